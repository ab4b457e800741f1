//! The reaper of a run's processes. It takes every process of this program for a stray, so that it is alone here.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::process::Command;

use isobench_runner::host::process_table;
use isobench_runner::host::reaper::{Reaper, names};

#[test]
fn what_has_left_its_session_and_its_mark_is_ended_and_what_was_there_before_is_not() {
    let this = std::process::id();
    let mut before = Command::new("sleep").arg("300").spawn().unwrap();
    let reaper = Reaper::new("reaper-test").unwrap();
    assert!(reaper.end_strays().unwrap().is_empty());
    // The shell ends at once, and its child is an orphan without a mark.
    for _ in 0..3 {
        let started = Command::new("sh").args(["-c", "env -i setsid sleep 301 >/dev/null 2>&1 &"]).status().unwrap();
        assert!(started.success());
    }
    let ended = reaper.end_strays().unwrap();
    // Each was seen before or after it has become another program.
    assert!(ended.len() >= 3, "{:?}", names(&ended));
    let left: Vec<_> = process_table::processes().into_iter().filter(|process| process.parent == this).collect();
    assert_eq!(left.iter().map(|process| process.pid).collect::<Vec<_>>(), [before.id()], "{left:?}");
    assert!(before.try_wait().unwrap().is_none(), "it was there before");
    before.kill().unwrap();
    before.wait().unwrap();
}
