//! What is hard to believe is invalid until a person confirms it; who did, when and why stays in the record.

use serde_json::Value;

use crate::support::Place;

/// Returns a place with a run in which the human commit is faster than its task believes.
fn implausible() -> Place {
    let place = Place::new();
    place.write_task(&place.task_text());
    let believes = ["--set", "metric.believable-ratio=1.1"];
    let command = ["run", "task", "--out", "run", "--quiet"].into_iter().chain(believes);
    assert_eq!(place.finish(command).code, Some(100));
    place
}

fn confirm(place: &Place, code: i32, more: &[&str]) -> String {
    let command = ["confirm", "run", "--arm", "human", "--reason", "the commit drops a lock"];
    let finished = place.expect(code, &[&command, more].concat());
    finished.stdout + &finished.stderr
}

fn verdict(place: &Place) -> Value {
    place.contrast("run", "human", "baseline")["verdict"].clone()
}

#[test]
fn a_confirmed_arm_counts_until_the_word_is_withdrawn() {
    let place = implausible();
    let contrast = place.contrast("run", "human", "baseline");
    assert_eq!((&contrast["verdict"], &contrast["charged_to"]), (&"invalid".into(), &"human".into()), "{contrast}");
    let reason = contrast["reason"].as_str().unwrap();
    assert!(reason.contains("implausible: it seems") && reason.contains("1.1 times that are believed"), "{reason}");

    let told = confirm(&place, 0, &["--by", "ann"]);
    assert!(told.contains("human of task task is confirmed by ann, for believable-ratio"), "{told}");
    // Two blocks are too few for an interval, but they count.
    assert_eq!(verdict(&place), "inconclusive");
    for format in ["terminal", "markdown", "html", "csv", "json"] {
        let report = place.expect(0, &["report", "run", "--format", format]).stdout;
        assert!(report.contains("ann") && report.contains("the commit drops a lock"), "{format}: {report}");
    }
    place.check_sound("run");
    assert!(confirm(&place, 2, &["--by", "bob"]).contains("is confirmed already, confirmed by ann because"));
    place.expect(0, &["run", "run", "--quiet"]);

    confirm(&place, 0, &["--by", "bob", "--withdraw"]);
    assert_eq!(verdict(&place), "invalid");
    assert!(confirm(&place, 2, &["--by", "bob", "--withdraw"]).contains("nobody has confirmed `human`"));
    place.check_sound("run");
    let log = std::fs::read_to_string(place.path("run/events.jsonl")).unwrap();
    let kinds = ["\"event\":\"confirmed\"", "\"event\":\"confirmation-withdrawn\""];
    assert!(kinds.iter().all(|kind| log.matches(kind).count() == 1), "{log}");
}

#[test]
fn what_needs_no_confirmation_or_is_not_there_is_refused_with_the_next_step() {
    let place = implausible();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let command = [&["confirm", "run", "--reason", "so", "--by", "ann"], arguments].concat();
        place.expect(2, &command).says(parts);
    };
    refused(&["--arm", "baseline"], &["`baseline` of task `task` needs no confirmation", "hint: `isobench report`"]);
    refused(&["--arm", "agent:none"], &["task `task` has no arm `agent:none`", "its arms are `baseline`, `human`"]);
    refused(&["--arm", "human", "--task", "other"], &["the run has no task `other`", "one of `task`"]);
    let blank = ["confirm", "run", "--arm", "human", "--reason", " ", "--by", "ann"];
    place.expect(2, &blank).says(&["`--reason` can't be taken: it is empty", "hint:"]);
}

#[test]
fn a_forged_confirmation_is_found() {
    let place = implausible();
    confirm(&place, 0, &["--by", "ann"]);
    let path = place.path("run/events.jsonl");
    let log = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, log.replace("\"checks\":[\"believable-ratio\"]", "\"checks\":[\"roofline\"]")).unwrap();
    let found = place.expect(1, &["verify", "run"]);
    assert!(found.stdout.contains("the confirmation of `human` of task `task` by ann names roofline"), "{found:?}");
}
