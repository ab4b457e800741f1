//! A run in the shape of an earlier system's files, and those files read again.

use isobench_testkit::Fault;
use serde_json::Value;

use crate::support::Place;

#[test]
fn a_run_is_written_as_the_earlier_systems_files_and_read_back() {
    let place = Place::new();
    let text = place.with_faults(place.task_text(), "mine", &[]);
    place.write_task(&place.with_faults(text, "crash", &[Fault::DieAtStart]));
    place.expect(100, &["run", "task", "--out", "one", "--allow-unisolated", "--quiet"]);
    let listed = place.expect(0, &["export", "one", "--format", "legacy", "--out", "old", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let files: Vec<&str> = listed["files"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    let read = |end: &str| -> Value {
        let file = files.iter().find(|file| file.ends_with(end)).unwrap_or_else(|| panic!("{end}: {files:?}"));
        serde_json::from_slice(&std::fs::read(place.path("old").join(file)).unwrap()).unwrap()
    };
    let (baseline, human) = (read("_baseline_result.json"), read("_human_result.json"));
    let means = place.judgement("one").arms.into_iter().map(|arm| arm.means).collect::<Vec<_>>();
    for (object, means) in [(&baseline, &means[0]), (&human, &means[1])] {
        assert_eq!(object["status"], "success");
        for (key, name) in [
            ("throughput_tok_s", "output_throughput"),
            ("throughput_req_s", "request_throughput"),
            ("throughput_total_tok_s", "total_token_throughput"),
            ("mean_ttft_ms", "mean_ttft_ms"),
        ] {
            let name = isobench_schema::measurement::MetricName::parse(name).unwrap();
            assert_eq!(object["metrics"][key].as_f64(), means.get(&name).copied(), "{key}");
        }
        let [requests, tokens] =
            ["throughput_req_s", "throughput_tok_s"].map(|key| object["metrics"][key].as_f64().unwrap());
        assert!(tokens > requests, "tokens are tokens");
        assert!(object["duration_s"].as_f64().unwrap() > 0.0);
        assert!(object["timestamp"].as_str().unwrap().starts_with("20"));
    }
    assert_eq!(human["human_commit"], human["human_commit_full"].as_str().unwrap()[..8]);
    assert_eq!(baseline["parent_commit"], human["parent_commit"]);
    let crashed = read("_crash_agent_result.json");
    assert_eq!((&crashed["status"], &crashed["metrics"]), (&"error".into(), &serde_json::json!({})));
    assert!(crashed["error"].as_str().unwrap().starts_with("start-crashed: "), "{crashed:#}");

    place.expect(2, &["export", "one", "--format", "legacy", "--out", "old"]).says(&["is there already"]);
    place.expect(0, &["export", "one", "--format", "legacy", "--out", "old", "--force"]);
    let summary = place.expect(0, &["import", "old", "--out", "again.jsonl", "--json"]);
    let summary: Value = serde_json::from_str(&summary.stdout).unwrap();
    assert_eq!((&summary["records"], &summary["problems"]), (&4.into(), &Value::Null), "{summary:#}");
    assert_eq!(summary["flags"], serde_json::json!([]), "our own numbers have no unit problems: {summary:#}");
    let arms: Vec<String> = std::fs::read_to_string(place.path("again.jsonl"))
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["arm"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(arms, ["agent:crash", "human", "agent:mine", "baseline"]);
}
