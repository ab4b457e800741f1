//! The whole demo, killed on its way. A file of its own, so that no other test runs beside what it measures.

#![allow(clippy::unwrap_used, clippy::panic, reason = "all of it is test code")]

mod support;

use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use support::{Place, Running, draw, is_slow_wanted, wait_until};

/// Returns how many events a run has told, if it has begun.
fn told(run: &Path) -> usize {
    std::fs::read_to_string(run.join("events.jsonl")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_demo_that_is_killed_anywhere_goes_on_to_the_verdicts_that_are_known() {
    if !is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return;
    }
    let place = Place::new();
    // One after the other: they would disturb each other's measurements.
    for (name, [least, most]) in [("timing", [0, 0]), ("early", [5, 120]), ("late", [120, 260])] {
        let run = place.path(name);
        let mut running = Running::start(&mut place.isobench(["demo", "--out", name, "--quiet"]));
        let at = usize::try_from(least + draw(&mut u64::from(most)) % (most - least + 1)).unwrap();
        if at == 0 {
            // Before the run begins, the engine is timed.
            wait_until("the demo is laid down", || run.is_dir());
            thread::sleep(Duration::from_secs(3));
        }
        wait_until("so many events", || told(&run) >= at);
        running.signal(Signal::KILL);
        assert_eq!(running.finish().code, None, "{name} was over before event {at}");
        let finished = place.finish(["demo", "--out", name]);
        assert_eq!(finished.code, Some(0), "{name}: {finished:?}");
        finished.says(&["the verdicts are what is known of the demo's arms"]);
        place.check_sound(name);
        let files = std::fs::read_dir(&run).unwrap().flatten().map(|entry| entry.file_name());
        let left: Vec<_> = files.filter(|name| name.to_string_lossy().starts_with("tmp-")).collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}
