//! Why launches failed is found in their logs, stands in the judgement and the pages, and is found again when it is deleted.

use isobench_schema::failure::FailureClass;
use isobench_testkit::Fault;
use serde_json::Value;

use crate::support::{Place, arm, complete_launches};

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

#[test]
fn kept_causes_are_believed_only_as_they_were_written_and_a_lost_log_keeps_nobody_from_judging() {
    let place = Place::new();
    let script = "echo 'OSError: [Errno 98] Address already in use' >&2; kill $PPID".to_owned();
    let mut text = place.with_faults(place.task_text(), "crash", &[Fault::Shell(0, script)]);
    text.blocks = 2;
    place.write_task(&text);
    place.expect(100, &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
    let agents = place.contrast("run", "agent:crash", "baseline");
    assert_eq!(agents["verdict"], "agent-failed", "it answers for it, whatever it printed");
    let report = place.expect(0, &["report", "run"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("no log of the baseline says so"), "{report}");
    assert!(!report.contains("speaks against the machine") && !report.contains("may pass if run again"), "{report}");

    let derived = place.path("run").join("derived");
    let (judged, from) = (derived.join("judgement.json"), derived.join("judgement.from"));
    let (causes, before) = (derived.join("causes.jsonl"), std::fs::read(&judged).unwrap());
    let whole = std::fs::read_to_string(&causes).unwrap();
    let key = whole.split("\"key\":\"").nth(1).unwrap().split('"').next().unwrap();
    let damaged = [
        whole.replace("port-taken", "port-taker"),
        whole.replace(key, &"0".repeat(key.len())),
        whole[..whole.len() / 2].to_owned(),
        format!("{{\"key\":\"{key}\",\"cause\":{{}}}}\nnot JSON\n"),
    ];
    for damaged in damaged {
        std::fs::write(&causes, damaged).unwrap();
        std::fs::remove_file(&judged).unwrap();
        place.expect(100, &["judge", "run"]);
        assert_eq!(std::fs::read(&judged).unwrap(), before, "it is computed again to the same bytes");
    }

    let kept_from = std::fs::read_to_string(&from).unwrap();
    let older: Vec<&str> = kept_from.lines().filter(|line| !line.starts_with("judgement ")).collect();
    let older = older.join("\n") + "\n";
    assert_ne!(older, kept_from);
    let text = String::from_utf8(before.clone()).unwrap();
    std::fs::write(&judged, text.replacen("isobench.judgement/2", "isobench.judgement/1", 1)).unwrap();
    std::fs::write(&from, older).unwrap();
    place.expect(0, &["report", "run"]);
    assert_eq!(std::fs::read(&judged).unwrap(), before, "what an older program judged is judged again");

    let task = place.judgement("run");
    let logs = complete_launches(&place.path("run"))
        .into_iter()
        .find(|launch| launch.launch.arm.to_string() == "agent:crash")
        .unwrap();
    let digest = logs.evidence["server.stderr"].digest.to_string();
    let artifact = place.path("run").join("artifacts").join(&digest[..2]).join(format!("{digest}.zst"));
    std::fs::remove_file(&artifact).unwrap();
    std::fs::remove_dir_all(&derived).unwrap();
    place.expect(100, &["judge", "run"]);
    let without = place.judgement("run");
    let verdicts = |task: &isobench_schema::verdict::TaskJudgement| {
        task.contrasts.iter().map(|contrast| contrast.verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&without), verdicts(&task), "no verdict rests on a log");
    let verified = place.finish(["verify", "run"]).stdout;
    assert!(verified.contains("`server.stderr` of") && verified.contains("is missing"), "{verified}");
}
