//! Files of other tools: the numbers are those that these tools compute from the same requests, and our own reader of such
//! files finds them again.

use isobench_schema::reading::ReadingProblemKind;

use super::*;
use crate::load_report::peers::PeerFacts;
use crate::parse;
use crate::parse::binding::Binding;

fn peer_facts() -> PeerFacts {
    PeerFacts {
        date: "20260102-030405".to_owned(),
        tokenizer: "tiny".to_owned(),
        dataset: "random".to_owned(),
        label: None,
    }
}

/// What `calculate_metrics` of `vllm/benchmarks/serve.py`, 0.32.0, returns for these requests, with `NumPy` 2.3.
const VLLM: &[(&str, f64)] = &[
    ("completed", 37.0),
    ("failed", 3.0),
    ("duration_s", 1.564),
    ("total_input_tokens", 296.0),
    ("total_output_tokens", 325.0),
    ("request_throughput", 23.657_289_002_557_544),
    ("request_goodput", 12.787_723_785_166_24),
    ("output_throughput", 207.800_511_508_951_4),
    ("total_token_throughput", 397.058_823_529_411_77),
    ("peak_output_throughput", 131.0),
    ("peak_concurrent_requests", 26.0),
    ("mean_ttft_ms", 95.783_783_783_783_79),
    ("median_ttft_ms", 96.0),
    ("std_ttft_ms", 28.414_057_365_206_588),
    ("p90_ttft_ms", 134.4),
    ("p99.9_ttft_ms", 148.82),
    ("mean_tpot_ms", 9.791_666_666_666_666),
    ("median_tpot_ms", 10.187_5),
    ("std_tpot_ms", 1.279_173_452_750_729),
    ("p90_tpot_ms", 10.75),
    ("p99.9_tpot_ms", 11.0),
    ("mean_itl_ms", 15.666_666_666_666_666),
    ("median_itl_ms", 15.5),
    ("std_itl_ms", 3.681_787_005_729_087),
    ("p90_itl_ms", 21.0),
    ("p99.9_itl_ms", 22.0),
    ("mean_e2el_ms", 172.0),
    ("median_e2el_ms", 167.0),
    ("std_e2el_ms", 32.103_717_053_460_48),
    ("p90_e2el_ms", 212.2),
    ("p99.9_e2el_ms", 224.784),
];

/// What `calculate_metrics` of `sglang/benchmark/serving.py`, 0.5.23, returns for these requests.
const SGLANG: &[(&str, f64)] = &[
    ("completed", 37.0),
    ("duration_s", 1.564),
    ("total_input_tokens", 296.0),
    ("total_output_tokens", 325.0),
    ("total_output_tokens_retokenized", 325.0),
    ("request_throughput", 23.657_289_002_557_544),
    ("input_throughput", 189.258_312_020_460_35),
    ("output_throughput", 207.800_511_508_951_4),
    ("total_token_throughput", 397.058_823_529_411_77),
    ("mean_ttft_ms", 95.783_783_783_783_79),
    ("p95_ttft_ms", 140.8),
    ("p99_ttft_ms", 147.2),
    ("mean_tpot_ms", 10.416_666_666_666_666),
    ("std_tpot_ms", 1.279_173_452_750_729),
    ("p99_tpot_ms", 11.625),
    ("mean_itl_ms", 15.666_666_666_666_666),
    ("p95_itl_ms", 22.0),
    ("mean_e2el_ms", 177.0),
    ("median_e2el_ms", 172.0),
    ("p90_e2el_ms", 217.2),
    ("p99_e2el_ms", 227.84),
    ("concurrency", 4.187_340_153_452_686),
    ("peak_output_throughput", 131.0),
    ("peak_concurrent_requests", 26.0),
    // Of 40 requests that were sent.
    ("slo_attainment_pct", 50.0),
];

fn check(json: &str, format: &str, expected: &[(&str, f64)]) {
    let reading = parse::read(json.as_bytes(), &Binding::default()).unwrap();
    assert_eq!(reading.format.as_deref(), Some(format), "{json}");
    // Three of them failed, which only vLLM's file says.
    let problem = reading.problem.as_ref().map(|problem| problem.kind);
    assert_eq!(problem, (format == "vllm-serve-json").then_some(ReadingProblemKind::SomeFailed), "{json}");
    for (name, expected) in expected {
        let found = reading.metrics.get(*name).and_then(isobench_schema::reading::MetricValue::number);
        close(found.unwrap_or(f64::NAN), *expected, name);
    }
}

#[test]
fn the_file_of_vllm_has_its_numbers_and_keys() {
    let json = report_with(&uneven(40), Some("ttft:100 tpot:12")).vllm_json(&peer_facts(), &[90.0, 99.9]);
    check(&json, "vllm-serve-json", VLLM);
    let keys = [
        "date",
        "endpoint_type",
        "backend",
        "label",
        "model_id",
        "tokenizer_id",
        "num_prompts",
        "request_rate",
        "burstiness",
        "max_concurrency",
        "duration",
        "completed",
        "failed",
        "total_input_tokens",
        "total_output_tokens",
        "request_throughput",
        "request_goodput",
        "output_throughput",
        "total_token_throughput",
        "latencies",
        "queue_times",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
        "rtfx",
        "mean_ttft_ms",
        "median_ttft_ms",
        "std_ttft_ms",
        "p90_ttft_ms",
        "p99.9_ttft_ms",
        "mean_tpot_ms",
    ];
    in_order(&json, &keys);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["latencies"].as_array().unwrap().len(), 40);
    close(value["queue_times"][2].as_f64().unwrap(), 0.002, "queue time");
}

#[test]
fn the_line_of_sglang_has_its_numbers_and_keys() {
    let json = report_with(&uneven(40), Some("ttft:100 tpot:12")).sglang_json(&peer_facts());
    check(&json, "sglang-serve-jsonl", SGLANG);
    let keys = [
        "tag",
        "backend",
        "dataset_name",
        "request_rate",
        "max_concurrency",
        "sharegpt_output_len",
        "random_input_len",
        "random_output_len",
        "random_range_ratio",
        "server_info",
        "duration",
        "completed",
        "total_input_tokens",
        "total_input_text_tokens",
        "total_input_vision_tokens",
        "total_output_tokens",
        "total_output_tokens_retokenized",
        "request_throughput",
        "input_throughput",
        "output_throughput",
        "total_throughput",
        "mean_e2e_latency_ms",
        "median_e2e_latency_ms",
        "std_e2e_latency_ms",
        "p90_e2e_latency_ms",
        "p95_e2e_latency_ms",
        "p99_e2e_latency_ms",
        "mean_ttft_ms",
        "p99_itl_ms",
        "concurrency",
        "accept_length",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
        "goodput_slos_ms",
        "request_goodput",
        "slo_attainment",
        "slo_attainment_by_metric",
    ];
    in_order(&json, &keys);
}

/// Checks that the keys are there in this order.
fn in_order(json: &str, keys: &[&str]) {
    let mut at = 0;
    for key in keys {
        let quoted = format!("\"{key}\": ");
        at += json[at..].find(&quoted).unwrap_or_else(|| panic!("{key} after {at} in {json}"));
    }
}

#[test]
fn a_load_without_a_rate_is_read_back_too() {
    let records: Vec<RequestRecord> = uneven(40).into_iter().filter(|record| record.failure.is_none()).collect();
    let mut report = report_with(&records, None);
    report.result.workload.arrival = Arrival::closed(16);
    report.result.workload.requests = 37;
    for (json, format) in [
        (report.vllm_json(&peer_facts(), &[99.0]), "vllm-serve-json"),
        (report.sglang_json(&peer_facts()), "sglang-serve-jsonl"),
    ] {
        let reading = parse::read(json.as_bytes(), &Binding::default()).unwrap();
        assert_eq!((reading.format.as_deref(), &reading.problem), (Some(format), &None), "{json}");
        assert_eq!(reading.metrics["max_concurrency"].number(), Some(16.0));
        assert!(!reading.metrics.contains_key("request_rate") && !reading.metrics.contains_key("request_goodput"));
    }
    in_order(&report.sglang_json(&peer_facts()), &["request_rate\": Infinity, \"max_concurrency"]);
}

#[test]
fn a_load_in_which_everything_failed_is_written_too() {
    let mut records = uneven(3);
    for record in &mut records {
        record.failure = Some(RequestFailure { class: FailureClass::HttpError, message: "status 500".to_owned() });
    }
    let report = report_with(&records, None);
    let vllm: serde_json::Value = serde_json::from_str(&report.vllm_json(&peer_facts(), &[99.0])).unwrap();
    assert_eq!((vllm["completed"].as_u64(), vllm["failed"].as_u64()), (Some(0), Some(3)));
    assert_eq!((vllm["mean_ttft_ms"].as_f64(), vllm["p99_itl_ms"].as_f64()), (Some(0.0), Some(0.0)));
    let sglang: serde_json::Value = serde_json::from_str(&report.sglang_json(&peer_facts())).unwrap();
    assert_eq!(sglang["completed"].as_u64(), Some(0));
}

#[test]
fn embeddings_are_written_as_vllm_does_for_pooling() {
    let mut records = uneven(4);
    for record in &mut records {
        (record.chunk_ns, record.chunk_tokens) = (Vec::new(), Vec::new());
    }
    let mut report = report_with(&records, None);
    report.result.workload.api = Api::Embeddings;
    let json = report.vllm_json(&peer_facts(), &[99.0]);
    in_order(
        &json,
        &["completed", "total_input_tokens", "total_input_sequences", "request_throughput", "mean_e2el_ms"],
    );
    assert!(!json.contains("ttft") && !json.contains("output"), "{json}");
}
