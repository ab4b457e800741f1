//! Loads made up for tests, and what is reported of them.

mod checks;
mod formats;
mod inputs;
mod report;

use isobench_schema::failure::FailureClass;
use isobench_schema::measurement::MetricName;
use isobench_schema::record::{RequestFailure, RequestRecord, Usage};
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, WorkloadKind};

use super::*;
use crate::measure::tests::text;
use crate::validity::PromptCounts;

const MS: u64 = 1_000_000;

fn workload(requests: u32) -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests,
        prompts: Prompts::Words { input_tokens: 8 },
        output_tokens: 9,
        ignore_eos: false,
        temperature: 0.0,
        arrival: Arrival::Constant { rate_per_s: 27.0 },
        max_in_flight: None,
        warm_up_requests: 0,
        probes: Probes { count: 0, output_tokens: 0 },
        counter: TokenCounter::TokenIds,
        extra_body: BTreeMap::new(),
        script: None,
    }
}

fn options(workload: &Workload) -> ReportOptions {
    let rules = LaunchRules {
        requests: workload.requests,
        probes: 0,
        exact_length: false,
        count_tolerance: 0.0,
        arrival: workload.arrival.clone(),
        failed_requests: workload.requests,
        min_window_s: Seconds::new(0.0).unwrap(),
        primary: MetricName::OutputThroughput,
        margin: 0.02,
        prompt_counts: PromptCounts::Unknown,
        script: None,
    };
    ReportOptions { is_whole: true, prompts_by_usage: true, rules, percentiles: vec![99.9], objective: None }
}

fn facts(workload: Workload) -> LoadFacts {
    LoadFacts {
        urls: vec!["http://127.0.0.1:8000".to_owned()],
        model: "tiny".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        workload,
        tokenizer_digest: None,
        dataset_digest: None,
        counted_by: TokenCounter::TokenIds,
    }
}

fn report_with(records: &[RequestRecord], objective: Option<&str>) -> LoadReport {
    let workload = workload(u32::try_from(records.len()).unwrap());
    let objective = objective.map(|text| Objective::parse(text).unwrap());
    let mut reader = LoadReader::new(ReportOptions { objective, ..options(&workload) });
    for piece in text(records).as_bytes().chunks(997) {
        reader.feed(piece);
    }
    reader.finish(facts(workload)).unwrap()
}

/// Returns requests with uneven latencies; every 13th fails, chunks have one token or two, and the last answer has one chunk.
fn uneven(count: u32) -> Vec<RequestRecord> {
    let request = |index: u32| {
        let i = u64::from(index);
        let due = i * 37 * MS;
        let released = due + i % 3 * MS;
        let mut at = released + (50 + i * 7919 % 100) * MS;
        let mut chunk_ns = vec![at];
        for j in 1..6 {
            at += (10 + i * j * 31 % 13) * MS;
            chunk_ns.push(at);
        }
        let mut chunk_tokens: Vec<u32> = (0..6).map(|j| 1 + (index + j) % 2).collect();
        if index + 1 == count {
            chunk_ns.truncate(1);
            chunk_tokens = vec![1];
        }
        let tokens = chunk_tokens.iter().copied().map(u64::from).sum();
        let failure = RequestFailure { class: FailureClass::HttpError, message: format!("status {}", 500 + index % 2) };
        RequestRecord {
            input_tokens: 8,
            output_tokens_asked: 9,
            released_ns: Some(released),
            sent_ns: Some(released + MS / 2),
            first_byte_ns: Some(released + MS),
            end_ns: chunk_ns.last().unwrap() + 5 * MS,
            chunk_ns,
            chunk_tokens,
            status: Some(200),
            finish_reason: Some("length".to_owned()),
            usage: Some(Usage { prompt_tokens: 8, completion_tokens: tokens }),
            failure: (index % 13 == 5).then_some(failure),
            ..RequestRecord::intended(Phase::Measure, index, due)
        }
    };
    (0..count).map(request).collect()
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{what}: {found} instead of {expected}");
}
