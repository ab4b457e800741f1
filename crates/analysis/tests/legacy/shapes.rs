//! Every shape of result file becomes records, and nothing of it is lost.

use isobench_analysis::legacy::{mark_equal, mark_several};
use isobench_schema::ids::ArmId;
use isobench_schema::legacy::{LegacyFlag, LegacyRecord, LegacySource, LegacyUnit};
use serde_json::Value;

use crate::{bytes, file, flags, text};

const THREE_WAY: &str = "results/iso_bench_results_3way_claude_code";

fn one(name: &str) -> LegacyRecord {
    let found = file(name);
    assert!(found.problems.is_empty(), "{name}: {:?}", found.problems);
    assert_eq!(found.records.len(), 1, "{name}");
    found.records.into_iter().next().unwrap()
}

fn numbers(record: &LegacyRecord) -> Vec<(&str, Option<f64>, LegacyUnit)> {
    record.metrics.iter().map(|metric| (metric.key.as_str(), metric.value, metric.unit)).collect()
}

#[test]
fn a_three_way_result_names_its_arm_in_its_name() {
    for (folder, arm) in [("baseline", "baseline"), ("agent", "human"), ("agent", "agent")] {
        let record = one(&format!("{THREE_WAY}/{folder}_benchmark_results/015069b0_{arm}_result.json"));
        let expected = if arm == "agent" { "agent:unnamed" } else { arm };
        assert_eq!(record.arm.as_ref().unwrap().to_string(), expected);
        assert_eq!((record.source, record.commit.as_str()), (LegacySource::ThreeWay, "015069b0"));
        assert_eq!(record.commit_full.as_deref(), Some("015069b01741e9ecb9e604c7fe87fbdfc306ebe5"));
        assert_eq!(
            (record.parent.as_deref(), record.model.as_deref()),
            (Some("fbefc8a78d22"), Some("Qwen/Qwen3-1.7B"))
        );
        assert_eq!(numbers(&record)[2], ("throughput_tok_s", record.metrics[2].value, LegacyUnit::TokensPerSecond));
        assert!(record.timestamp.as_deref().unwrap().starts_with("2026-01-10"));
        assert!(record.other.is_empty(), "{:?}", record.other);
    }
}

#[test]
fn a_native_record_is_read_with_the_fields_that_only_it_has() {
    let record = one("results/native/3b61cb45_baseline_result.json");
    assert_eq!((record.source, record.arm.clone()), (LegacySource::Native, Some(ArmId::Baseline)));
    let expected = [
        ("throughput_output_tok_s", Some(1710.86), LegacyUnit::TokensPerSecond),
        ("throughput_req_s", Some(13.37), LegacyUnit::RequestsPerSecond),
        ("throughput_total_tok_s", Some(8554.29), LegacyUnit::TokensPerSecond),
    ];
    assert_eq!(numbers(&record), expected);
    assert_eq!(record.other.get("runner"), Some(&Value::from("native")));
    assert_eq!(record.other.get("iso_bench_override_applied"), Some(&Value::from(false)));
    assert!(flags(&record).is_empty(), "{:?}", record.remarks);
}

#[test]
fn a_modal_result_has_all_arms_or_is_the_commits_failure() {
    let found = file(&format!("{THREE_WAY}/vllm/fc542144/benchmark_result.json"));
    let arms: Vec<String> = found.records.iter().map(|record| record.arm.as_ref().unwrap().to_string()).collect();
    assert_eq!(arms, ["baseline", "human", "agent:unnamed"]);
    for record in &found.records {
        assert_eq!((record.commit.as_str(), record.project.as_deref()), ("fc542144", Some("vllm")), "from the folders");
        assert_eq!(record.versions.get("baseline").map(String::as_str), Some("0.8.4.dev144"));
        assert_eq!(record.metrics.len(), 2);
    }
    assert!(found.records[0].other.contains_key("agent_vs_human"), "what isn't read is kept");

    let failed = one(&format!("{THREE_WAY}/vllm/22dd9c27/benchmark_result.json"));
    assert_eq!((failed.arm.clone(), failed.metrics.len()), (None, 0));
    assert_eq!(failed.error.as_deref(), Some("Baseline benchmark produced no metrics"));
}

#[test]
fn a_wrapped_modal_result_is_read_too() {
    let wrapped = r#"{"instance": {"commit_hash": "015069b01741e9ecb9e604c7fe87fbdfc306ebe5", "status": "old"},
        "result": {"status": "success", "human_metrics": {"ttft_mean": 11.5}, "agent_metrics": {"ttft_mean": 12.5}}}"#;
    let found = text(wrapped, "x/benchmark_result.json").unwrap();
    assert_eq!(found.records.len(), 2);
    assert!(found.records[0].says_success());
    assert_eq!(found.records[0].other.get("outer.status"), Some(&Value::from("old")));
}

#[test]
fn a_docker_result_is_flat() {
    let record = one(&format!("{THREE_WAY}/docker_benchmark_results/22d33bac_result.json"));
    assert_eq!((record.source, record.arm.clone()), (LegacySource::Docker, Some(ArmId::Human)));
    assert_eq!(record.metrics.len(), 6, "a null is no number: {:?}", record.metrics);
    assert!(record.metrics.iter().all(|metric| metric.unit != LegacyUnit::Unknown));
    assert_eq!(record.other.get("benchmark_type"), Some(&Value::from("serving")));
}

#[test]
fn a_row_of_the_data_set_is_three_arms() {
    let mut found = file("results/hf-rows.jsonl");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let arms: Vec<String> = found.records.iter().map(|record| record.arm.as_ref().unwrap().to_string()).collect();
    assert_eq!(arms, ["baseline", "human", "agent:claude-code"]);
    let counts: Vec<usize> = found.records.iter().map(|record| record.metrics.len()).collect();
    assert_eq!(counts, [6, 5, 5]);
    mark_equal(&mut found.records);
    let equal = |record: &LegacyRecord| flags(record).contains(&LegacyFlag::EqualAcrossArms);
    let marked: Vec<bool> = found.records.iter().map(equal).collect();
    assert_eq!(marked, [false, true, true], "198.29 tokens/s twice");
}

#[test]
fn several_records_of_one_arm_with_other_numbers_are_marked_and_copies_are_not() {
    let record = |name: &str, rate: f64| {
        let object = format!(
            r#"{{"human_commit": "015069b0", "status": "success", "metrics": {{"throughput_tok_s": {rate}}}}}"#
        );
        text(&object, name).unwrap().records.remove(0)
    };
    let mut records = [
        record("a/015069b0_human_result.json", 198.29),
        record("b/015069b0_human_result.json", 201.5),
        record("a/015069b0_baseline_result.json", 150.25),
        record("b/015069b0_baseline_result.json", 150.25),
    ];
    mark_several(&mut records);
    let marked: Vec<bool> = records.iter().map(|record| flags(record).contains(&LegacyFlag::SeveralOfOneArm)).collect();
    assert_eq!(marked, [true, true, false, false]);
    let expected = "2 records are of this commit and arm, with other numbers: which counts doesn't show";
    assert_eq!(records[0].remarks[0].message, expected);
}

#[test]
fn every_sample_is_a_known_shape_and_every_field_is_somewhere() {
    let mut folders = vec![crate::folder().join("results")];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            read += 1;
            let name = path.strip_prefix(crate::folder()).unwrap().to_str().unwrap().to_owned();
            let found = file(&name);
            assert!(found.problems.is_empty(), "{name}: {:?}", found.problems);
            let text = String::from_utf8(bytes(&name)).unwrap();
            let written = serde_json::to_string(&found.records).unwrap();
            for number in text.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|word| word.contains('.')) {
                let Ok(number) = number.parse::<f64>() else { continue };
                assert!(written.contains(&number.to_string()), "{name}: {number} is lost");
            }
        }
    }
    assert_eq!(read, 13);
}

#[test]
fn an_unknown_shape_names_the_file_and_the_nearest_shape() {
    for (name, object, expected) in [
        (
            "a/015069b0_human_result.json",
            r#"{"human_commit": "015069b0", "metrics": {}}"#,
            "`a/015069b0_human_result.json` is not a result of a known shape; the nearest is `three-way`, which lacks `status`",
        ),
        (
            "a/benchmark_result.json",
            r#"{"status": "success", "model": "m"}"#,
            "`a/benchmark_result.json` is not a result of a known shape; the nearest is `modal`, which lacks \
             `baseline_metrics` or `human_metrics` or `agent_metrics` or `baseline_version` or `gpu_config`",
        ),
        ("a.json", "[1]", ""),
        ("a.json", "5", "`a.json` holds a number, where an object or a list of objects was expected"),
    ] {
        match text(object, name) {
            Err(error) => assert_eq!(error.to_string(), expected),
            Ok(found) => assert!(expected.is_empty() && found.problems.len() == 1, "{found:?}"),
        }
    }
}
