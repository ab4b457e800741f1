//! Why launches failed is found in their logs, stands in the judgement and the pages, and is found again when it is deleted.

use isobench_schema::failure::FailureClass;
use isobench_testkit::Fault;
use serde_json::Value;

use crate::support::{Place, arm};

const AIMV2: &str = "ValueError: 'aimv2' is already used by a Transformers config, pick another name.";

#[test]
fn the_cause_of_a_failed_launch_is_found_in_its_logs() {
    let place = Place::new();
    let script = format!("echo \"{AIMV2}\" >&2; kill $PPID");
    let mut text = place.with_faults(place.task_text(), "crash", &[Fault::Shell(0, script)]);
    text.blocks = 2;
    place.write_task(&text);
    place.expect(100, &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);

    let task = place.judgement("run");
    let [counted] = arm(&task, "agent:crash").failures.as_slice() else { panic!("one kind of failure: {task:#?}") };
    assert_eq!((counted.launches, counted.failure.class), (2, FailureClass::StartCrashed));
    let cause = counted.cause.as_ref().unwrap();
    assert_eq!(cause.signature.as_deref(), Some("B1"));
    assert_eq!(counted.failure.evidence[0].text, AIMV2, "the runner shows the line that tells most first");

    let rows = place.expect(0, &["classify", "run", "--json"]);
    let rows: Value = serde_json::from_str(&rows.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!((&rows[0]["arm"], &rows[0]["launches"]), (&Value::from("agent:crash"), &Value::from(2)));
    assert_eq!(rows[0]["cause"]["blame"], "arm", "the baseline hasn't it");
    place.expect(2, &["classify", "run", "--exit-status", "1"]).says(&["leave `--exit-status` out"]);

    let report = place.expect(0, &["report", "run"]).stdout;
    for part in ["its logs say: ", "transformers-without-aimv2", "How far the arms come", "What a retry could change"] {
        assert!(report.contains(part), "{part} isn't in {report}");
    }

    let derived = place.path("run").join("derived");
    let (judged, causes) = (derived.join("judgement.json"), derived.join("causes.jsonl"));
    let before = std::fs::read(&judged).unwrap();
    assert!(std::fs::read_to_string(&causes).unwrap().contains("\"B1\""));
    std::fs::remove_dir_all(&derived).unwrap();
    place.expect(100, &["judge", "run"]);
    assert_eq!(std::fs::read(&judged).unwrap(), before, "what is deleted is computed again to the same bytes");
    place.check_sound("run");
}
