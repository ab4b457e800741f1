//! What is wrong with numbers.

use isobench_schema::legacy::{LegacyFlag, LegacyRecord, LegacyUnit};

use crate::{flags, text};

fn record(status: &str, command: &str, duration_s: f64, metrics: &str) -> LegacyRecord {
    let object = format!(
        r#"{{"human_commit": "015069b0", "status": "{status}", "perf_command": "{command}", "duration_s": {duration_s},
            "metrics": {{{metrics}}}}}"#
    );
    let found = text(&object, "015069b0_human_result.json").unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    found.records.into_iter().next().unwrap()
}

const SERVING: &str = "python benchmarks/benchmark_serving.py --model m";
const THROUGHPUT: &str =
    "python benchmarks/benchmark_throughput.py --model m --input-len 512 --output-len 128 --num-prompts 3200";
const LATENCY: &str =
    "python benchmarks/benchmark_latency.py --model m --batch-size 32 --input-len 512 --output-len 128";

fn check(status: &str, command: &str, metrics: &str, expected: &[LegacyFlag]) {
    assert_eq!(flags(&record(status, command, 100.0, metrics)), expected, "{metrics}");
}

#[test]
fn sound_numbers_have_no_flag() {
    check("success", SERVING, r#""throughput_tok_s": 198.29, "mean_ttft_ms": 45.2, "mean_tpot_ms": 12.3"#, &[]);
    check("success", THROUGHPUT, r#""throughput_req_s": 43.2, "throughput_tok_s": 5529.12"#, &[]);
    check("success", LATENCY, r#""mean_latency_ms": 2174.04"#, &[]);
}

#[test]
fn requests_under_a_key_of_tokens_are_told_by_equality_and_by_time() {
    let flag = [LegacyFlag::RequestRateAsTokenRate];
    let equal = r#""throughput_req_s": 43.27, "throughput_tok_s": 43.27"#;
    check("success", THROUGHPUT, equal, &flag);
    // 3200 requests of 128 tokens in 100 s are at least 4096 tokens/s.
    check("success", THROUGHPUT, r#""throughput_tok_s": 43.27"#, &flag);
    let found = record("success", THROUGHPUT, 100.0, r#""throughput_tok_s": 43.27"#);
    assert_eq!(found.metrics[0].unit, LegacyUnit::RequestsPerSecond, "the unit is set right");
    assert_eq!(found.metrics[0].value, Some(43.27), "the number stays as it is written");
    // How fast requests come may limit a server.
    check("success", SERVING, r#""throughput_tok_s": 43.27"#, &[]);
}

#[test]
fn seconds_under_a_key_of_milliseconds_are_told_by_what_no_engine_does() {
    let flag = [LegacyFlag::SecondsAsMilliseconds];
    check("success", LATENCY, r#""avg_latency_ms": 2.174"#, &flag);
    check("success", SERVING, r#""mean_ttft_ms": 0.0452"#, &flag);
    check("success", SERVING, r#""mean_tpot_ms": 0.0123"#, &flag);
    let found = record("success", LATENCY, 100.0, r#""avg_latency_ms": 2.174"#);
    assert_eq!(found.metrics[0].unit, LegacyUnit::Seconds);
}

#[test]
fn the_engines_log_is_told_by_its_steps_and_by_what_prints_no_throughput() {
    let flag = [LegacyFlag::EngineLogAsResult];
    check("success", LATENCY, r#""throughput_tok_s": 1024.0"#, &flag);
    check("success", SERVING, r#""throughput_tok_s": 204.8"#, &flag);
    let longer = format!("{SERVING} --random-input-len 1024");
    check("success", &longer, r#""throughput_tok_s": 307.2"#, &flag);
    check("success", &longer, r#""throughput_tok_s": 198.29"#, &[]);
    let found = record("success", SERVING, 100.0, r#""throughput_tok_s": 204.8"#);
    let message = &found.remarks[0].message;
    assert!(message.contains("4 prompts of 512 tokens in 10 s (4 times 51.2)"), "{message}");
}

#[test]
fn the_other_flags_are_told_one_by_one() {
    use LegacyFlag as F;
    check("success", SERVING, r#""mean_ttft_ms": 500.5, "mean_e2el_ms": 100.5"#, &[F::TtftAboveLatency]);
    check("success", SERVING, r#""mean_ttft_ms": 0, "mean_tpot_ms": 0.0, "completed": 0"#, &[F::ZeroForMissing]);
    check("success", SERVING, r#""mean_ttft_ms": 0, "output_throughput": -1, "ttft_pct": -5"#, &[F::ZeroForMissing]);
    check("success", SERVING, "", &[F::SuccessWithoutMetrics]);
    check("error", SERVING, r#""mean_ttft_ms": 500.5"#, &[F::MetricsWithoutSuccess]);
    check("error", SERVING, "", &[]);
    check("finished", SERVING, "", &[F::UnknownStatus]);
    check("success", SERVING, r#""throughput": 198.29"#, &[F::UnknownUnit]);
    check("success", SERVING, r#""mean_ttft_ms": "N/A", "mean_tpot_ms": 12.3"#, &[F::TextForNumber]);
}
