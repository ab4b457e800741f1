//! The whole demo, killed on its way. A file of its own, so that no other test runs beside what it measures.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "all of it is test code")]

mod support;

use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running, draw, is_slow_wanted, wait_until};

/// Returns how many events a run has told, if it has begun.
fn told(run: &Path) -> usize {
    std::fs::read_to_string(run.join("events.jsonl")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_demo_that_is_killed_three_times_goes_on_to_the_verdicts_that_are_known() {
    if !is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return;
    }
    let place = Place::new();
    let run = place.path("run");
    // Before the run begins, while the engine is timed; then early in it, and once more late.
    for [least, most] in [[0, 0], [5, 120], [120, 260]] {
        let mut running = Running::start(&mut place.isobench(["demo", "--out", "run", "--quiet"]));
        let at = usize::try_from(least + draw(&mut u64::from(most)) % (most - least + 1)).unwrap();
        if at == 0 {
            wait_until("the demo is laid down", || run.is_dir());
            thread::sleep(Duration::from_secs(3));
        }
        wait_until("so many events", || told(&run) >= at);
        running.signal(Signal::KILL);
        assert_eq!(running.finish().code, None, "it was over before event {at}");
    }
    let finished = place.finish(["demo", "--out", "run"]);
    // The demo says 0 exactly if every verdict is the one that is known.
    let as_known = check_verdicts(&place, "run");
    assert_eq!(finished.code, Some(if as_known { 0 } else { 100 }), "{finished:?}");
    place.check_sound("run");
    let files = std::fs::read_dir(&run).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = files.filter(|name| name.to_string_lossy().starts_with("tmp-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Holds the verdicts against the baseline to what is known of the arms.
///
/// By its design a test at 5 % sees a difference in equal arms now and then, and the test of serial correlation finds one
/// in a hundred sound contrasts undecided. So the no-op may have any verdict on a difference, and the two real
/// optimisations may be left undecided; nothing else may differ. Returns whether none of that happened.
fn check_verdicts(place: &Place, name: &str) -> bool {
    let judged = place.finish(["judge", name, "--json"]);
    let judgement: Value = serde_json::from_str(&judged.stdout).unwrap();
    let contrasts = judgement["tasks"][0]["contrasts"].as_array().unwrap();
    let mut as_known = true;
    for (of, verdicts, charged) in [
        ("human", &["better", "inconclusive"][..], false),
        ("agent:optimised", &["better", "inconclusive"], false),
        ("agent:no-op", &["better", "worse", "trivial", "equivalent", "inconclusive"], false),
        ("agent:crash", &["agent-failed"], false),
        ("agent:short", &["invalid"], true),
        ("agent:garbage", &["invalid"], true),
        ("agent:liar", &["invalid"], true),
    ] {
        let is_it = |contrast: &&Value| contrast["of"] == of && contrast["against"] == "baseline";
        let contrast = contrasts.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {of} was not judged"));
        let verdict = contrast["verdict"].as_str().unwrap();
        assert!(verdicts.contains(&verdict), "{name}: {of}: {contrast}");
        assert_eq!(contrast["charged_to"] == of, charged, "{name}: {of}: {contrast}");
        as_known &= match of {
            "human" | "agent:optimised" => verdict == "better",
            "agent:no-op" => ["equivalent", "inconclusive"].contains(&verdict),
            _ => true,
        };
        if verdict == "better" || verdict == "inconclusive" {
            let optimised = of != "agent:no-op";
            assert!(!optimised || contrast["estimate"].as_f64().unwrap() > 0.3, "{name}: {of}: {contrast}");
        }
    }
    as_known
}
