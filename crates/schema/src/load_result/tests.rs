//! A whole result is written and read back, and what is absent stays absent.

use super::*;
use crate::format;
use crate::load_checks::{AuditVerdict, PairedChecks, PairedMetric, Spread};
use crate::workload::{Api, Arrival, Probes, Prompts, WorkloadKind};

fn workload() -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests: 2,
        prompts: Prompts::Words { input_tokens: 8 },
        output_tokens: 4,
        ignore_eos: true,
        temperature: 0.0,
        arrival: Arrival::closed(1),
        max_in_flight: None,
        warm_up_requests: 0,
        probes: Probes { count: 0, output_tokens: 0 },
        counter: TokenCounter::TokenIds,
        extra_body: BTreeMap::new(),
        script: None,
    }
}

fn bare() -> LoadResult {
    LoadResult {
        urls: vec!["http://127.0.0.1:8000".to_owned()],
        model: "tiny".to_owned(),
        client: "isobench 0.1.0".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        definition: crate::measurement::DEFINITION.to_owned(),
        workload: workload(),
        seed: 1,
        workload_digest: Digest::of(b"w"),
        tokenizer_digest: None,
        dataset_digest: None,
        counted_by: TokenCounter::TokenIds,
        input_counted_by: Some(InputCounter::Usage),
        percentiles: Vec::new(),
        validity: Validity::Valid,
        metrics: BTreeMap::from([("completed".to_owned(), 2.0)]),
        from_send: BTreeMap::new(),
        intervals: BTreeMap::new(),
        too_few: Vec::new(),
        requests_needed: BTreeMap::new(),
        goodput: None,
        failures: Vec::new(),
        audit: None,
        findings: Vec::new(),
        halves: None,
        halves_change: None,
        warm_up: None,
        full_loop: None,
        full_loop_metrics: BTreeMap::new(),
        flow: None,
        littles_law: None,
        server: BTreeMap::new(),
        series: Vec::new(),
        distributions: BTreeMap::new(),
        paired: None,
        sweep: None,
    }
}

#[test]
fn what_is_absent_is_not_written() {
    let text = format::to_line(&bare()).unwrap();
    assert!(text.starts_with(r#"{"format":"isobench.load/2","urls":["http"#), "{text}");
    for key in ["goodput", "audit", "halves", "paired", "series", "too_few", "flow", "full_loop", "sweep", "null"] {
        assert!(!text.contains(key), "{key} in {text}");
    }
    assert_eq!(format::from_slice::<LoadResult>(text.as_bytes()).unwrap(), bare());
}

fn audit() -> Audit {
    Audit {
        verdict: AuditVerdict::Ok,
        broken: Vec::new(),
        unknown: Vec::new(),
        workers: 1,
        busy_share: Some(0.2),
        waited_share: None,
        stamped_share: Some(1.0),
        lag: None,
        lateness_ms: Some(Spread { p50: 0.01, p99: 0.1, max: 1.0 }),
        turnaround_ms: None,
        idle_share: None,
        ttft_bias: None,
        pacing: None,
        retransmits: None,
        reconnects: 0,
        connections: 4,
    }
}

#[test]
fn a_whole_result_is_read_back() {
    let numbers = BTreeMap::from([("mean_ttft_ms".to_owned(), 1.5)]);
    let interval = LoadInterval { low: 1.0, high: 2.0 };
    let result = LoadResult {
        intervals: BTreeMap::from([("mean_ttft_ms".to_owned(), interval)]),
        goodput: Some(Goodput { objective: "ttft<200ms".to_owned(), good: 1, share: 0.5, request_goodput: 0.1 }),
        failures: vec![LoadFailures { class: FailureClass::HttpError, count: 1, examples: vec!["500".to_owned()] }],
        audit: Some(audit()),
        halves: Some([numbers.clone(), numbers.clone()]),
        halves_change: Some(Halves::TooFew { slices: 3, needed: 20 }),
        full_loop: Some(FullLoop::NeverFull { most: 2, concurrency: 3 }),
        full_loop_metrics: numbers.clone(),
        littles_law: Some(LittlesLaw::Checked { ratio: 1.01, holds: true }),
        server: BTreeMap::from([(
            "vllm:num_requests_waiting".to_owned(),
            ServerMetric { looks: 2, first: 0.0, last: 1.0, min: 0.0, mean: 0.5, max: 1.0 },
        )]),
        distributions: BTreeMap::from([(
            "ttft".to_owned(),
            Histogram { first_ms: 1.0, ratio: 1.1, counts: vec![1, 0, 2] },
        )]),
        paired: Some(Paired {
            checks: PairedChecks {
                mark: PairedChecks::MARK.to_owned(),
                note: PairedChecks::NOTE.to_owned(),
                metrics: BTreeMap::from([(
                    "ttft".to_owned(),
                    PairedMetric::TooFew { pairs: 3, needed: 80, change: None },
                )]),
            },
            metrics: [numbers.clone(), numbers],
        }),
        ..bare()
    };
    let text = format::to_pretty(&result).unwrap();
    assert_eq!(format::from_slice::<LoadResult>(text.as_bytes()).unwrap(), result);
}

#[test]
fn the_first_broken_check_decides_whether_numbers_may_be_used() {
    use crate::failure::FailureStage;
    let finding = |class| Failure::new(FailureStage::Validity, class, "seen");
    for (classes, expected) in [
        (vec![], Validity::Valid),
        (vec![FailureClass::ClientBound, FailureClass::Drift], Validity::ClientBound),
        (vec![FailureClass::HttpError], Validity::FailedRequests),
        (vec![FailureClass::Implausible], Validity::Incomplete),
    ] {
        let findings: Vec<Failure> = classes.into_iter().map(finding).collect();
        assert_eq!(Validity::of(&findings), expected);
    }
}
