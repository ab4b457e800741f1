//! Scripts of every generation, honest and lying, against what was seen of them.

use super::*;
use isobench_schema::ids::{ArmId, BlockId, CommitId, TaskId};
use isobench_schema::script::ScriptOf;
use isobench_schema::units::Millis;

fn ms(value: f64) -> Millis {
    Millis::new(value).unwrap()
}

fn rules(tool: Tool, requests: u32, batch: u32) -> ScriptRules {
    let script = Script {
        tool,
        path: Script::usual_path(tool).unwrap().to_owned(),
        of: ScriptOf::Baseline,
        commit: Some(CommitId::new("a".repeat(40)).unwrap()),
        arguments: Vec::new(),
        output_json: true,
    };
    ScriptRules { script, requests, batch, input_tokens: Some(8), output_tokens: 8, exact_length: true }
}

/// What was seen of a process that ran so many seconds and whose bar moved so many.
fn seen(wall_s: f64, bar: Option<(&str, f64)>) -> ScriptSeen {
    let bars = bar.map(|(caption, moved)| SeenBar {
        caption: caption.to_owned(),
        first_ms: ms(100.0),
        last_ms: ms(100.0 + 1000.0 * moved),
        percent: 100,
    });
    ScriptSeen {
        commit: CommitId::new("a".repeat(40)).unwrap(),
        files: Digest::of(b"files"),
        count: 2,
        wall_ms: ms(1000.0 * wall_s),
        processor_ms: ms(0.0),
        bars: bars.into_iter().collect(),
    }
}

fn launch() -> LaunchId {
    let task = TaskId::new("task").unwrap();
    LaunchId { block: BlockId { task, block: 0, attempt: 0 }, arm: ArmId::Baseline }
}

/// Reads what a script wrote and printed, and returns its primary metrics and findings, or its failure.
fn read_all(
    rules: &ScriptRules,
    seen: ScriptSeen,
    result: Option<&str>,
    printed: &str,
) -> Result<(BTreeMap<MetricName, f64>, Vec<Failure>), Failure> {
    let result = result.map(|text| text.as_bytes().to_vec());
    let evidence = ScriptEvidence { seen, result, stdout: &mut printed.as_bytes() };
    let digest = read(launch(), rules, evidence).unwrap()?;
    assert_eq!(digest.measurement.definition, SELF_REPORTED);
    assert!(digest.client.starts_with("self-reported by `"), "{}", digest.client);
    Ok((digest.measurement.values, digest.findings))
}

const LATENCY: &str = r#"{"avg_latency": 0.5, "latencies": [0.4, 0.5, 0.6, 0.5],
  "percentiles": {"10": 0.4, "25": 0.45, "50": 0.5, "75": 0.55, "90": 0.6, "99": 0.6}}"#;
const PROFILING: &str = "Profiling iterations";

#[track_caller]
fn check(rules: &ScriptRules, seen: ScriptSeen, result: Option<&str>, printed: &str, expected: &[(Check, &str)]) {
    let (_, findings) = read_all(rules, seen, result, printed).unwrap();
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, (check, words)) in findings.iter().zip(expected) {
        assert_eq!((finding.class, finding.check.unwrap().name), (FailureClass::Implausible, *check), "{finding}");
        assert!(finding.message.contains(words), "{finding}");
    }
}

#[test]
fn a_result_file_goes_before_what_is_printed() {
    let rules = rules(Tool::BenchmarkLatency, 32, 8);
    let printed = "Avg latency: 99.0 seconds\n";
    let (values, findings) = read_all(&rules, seen(20.0, Some((PROFILING, 2.1))), Some(LATENCY), printed).unwrap();
    assert_eq!(findings, []);
    let expected = [
        (MetricName::AvgLatencyS, 0.5),
        (MetricName::P50LatencyS, 0.5),
        (MetricName::P90LatencyS, 0.6),
        (MetricName::P99LatencyS, 0.6),
    ];
    assert_eq!(values, BTreeMap::from(expected));
}

#[test]
fn what_is_printed_by_every_generation_is_read() {
    let throughput = rules(Tool::BenchmarkThroughput, 100, 1);
    for (line, metric, value) in [
        ("Throughput: 50.00 requests/s, 800.00 tokens/s", MetricName::TotalTokenThroughput, 800.0),
        (
            "Throughput: 50.00 requests/s, 800.00 total tokens/s, 400.00 output tokens/s",
            MetricName::OutputThroughput,
            400.0,
        ),
    ] {
        let (values, findings) = read_all(&throughput, seen(9.0, None), None, &format!("x\n{line}\n")).unwrap();
        assert_eq!((values[&metric], findings.len()), (value, 0), "{line}: {findings:?}");
    }
    let caching = rules(Tool::BenchmarkPrefixCaching, 100, 1);
    let printed = "------start generating------\ncost time 2.5\n";
    let (values, _) = read_all(&caching, seen(9.0, None), None, printed).unwrap();
    assert_eq!(values, BTreeMap::from([(MetricName::CostTimeS, 2.5)]));
}

#[test]
fn a_claimed_time_that_does_not_fit_what_was_seen_breaks_claimed_time() {
    let latency = rules(Tool::BenchmarkLatency, 32, 8);
    // 4 iterations of 0.5 s.
    check(&latency, seen(1.9, None), Some(LATENCY), "", &[(Check::ClaimedTime, "its whole process ran for 1.900 s")]);
    check(&latency, seen(2.0, None), Some(LATENCY), "", &[]);
    let bar = |moved| seen(60.0, Some((PROFILING, moved)));
    check(&latency, bar(2.8), Some(LATENCY), "", &[]);
    check(&latency, bar(2.9), Some(LATENCY), "", &[(Check::ClaimedTime, "was seen to move for 2.900 s")]);
    // A bar of something else is none of what is measured.
    check(&latency, seen(60.0, Some(("Warmup iterations", 50.0))), Some(LATENCY), "", &[]);
    // Nor is one that is drawn once more when everything is over.
    let mut twice = bar(9.0);
    twice.bars.extend(seen(60.0, Some((PROFILING, 0.1))).bars);
    check(&latency, twice, Some(LATENCY), "", &[(Check::ClaimedTime, "was seen to move for 9.000 s")]);
    check(&latency, seen(2001.0, None), Some(LATENCY), "", &[(Check::ClaimedTime, "without a progress bar")]);
    let throughput = rules(Tool::BenchmarkThroughput, 100, 1);
    let printed = "Throughput: 50.00 requests/s, 800.00 tokens/s\n";
    check(&throughput, seen(1.99, None), None, printed, &[(Check::ClaimedTime, "1.990 s")]);
}

#[test]
fn work_that_was_not_asked_for_breaks_claimed_work() {
    let fewer = rules(Tool::BenchmarkLatency, 40, 8);
    let words = "4 iterations are claimed, and 5 were asked for";
    check(&fewer, seen(60.0, None), Some(LATENCY), "", &[(Check::ClaimedWork, words)]);
    let other_mean = LATENCY.replace("\"avg_latency\": 0.5", "\"avg_latency\": 0.25");
    let latency = rules(Tool::BenchmarkLatency, 32, 8);
    check(&latency, seen(60.0, None), Some(&other_mean), "", &[(Check::ClaimedWork, "a mean of 0.25 s is claimed")]);
    let throughput = rules(Tool::BenchmarkThroughput, 100, 1);
    let result = |requests: u32, tokens: u32| {
        let (per_second, tokens_per_second) = (f64::from(requests) / 2.0, f64::from(tokens) / 2.0);
        format!(
            r#"{{"elapsed_time": 2.0, "num_requests": {requests}, "total_num_tokens": {tokens},
                "requests_per_second": {per_second}, "tokens_per_second": {tokens_per_second}}}"#
        )
    };
    check(&throughput, seen(60.0, None), Some(&result(100, 1600)), "", &[]);
    let words = "110 requests are claimed, and 100 were asked for";
    check(&throughput, seen(60.0, None), Some(&result(110, 1600)), "", &[(Check::ClaimedWork, words)]);
    let words = "3200 tokens are claimed, and 1600 were asked for";
    check(&throughput, seen(60.0, None), Some(&result(100, 3200)), "", &[(Check::ClaimedWork, words)]);
    let rates = result(100, 1600).replace("\"requests_per_second\": 50", "\"requests_per_second\": 500");
    check(&throughput, seen(60.0, None), Some(&rates), "", &[(Check::ClaimedWork, "request_throughput")]);
}

#[test]
fn a_script_without_a_result_has_none() {
    let latency = rules(Tool::BenchmarkLatency, 32, 8);
    for (result, printed) in [
        (None, ""),
        (None, "INFO the model is loaded\n"),
        (Some("{\"avg_latency\": "), "Avg latency: 0.5 seconds\n"),
        (Some("[]"), ""),
        (None, "Avg latency: nan seconds\n"),
        (None, "Throughput: 50.00 requests/s, 800.00 tokens/s\n"),
    ] {
        let failure = read_all(&latency, seen(9.0, None), result, printed).unwrap_err();
        assert_eq!((failure.stage, failure.class), (FailureStage::Parse, FailureClass::ResultMissing), "{result:?}");
        assert_eq!(failure.evidence.len(), 1, "{failure:?}");
    }
}
