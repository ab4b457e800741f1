//! A made-up result of a load with everything in it.

use std::collections::BTreeMap;

use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;
use isobench_schema::load_result::{
    ClientAudit, Goodput, Histogram, LagAudit, LoadFailures, LoadInterval, LoadResult, LoadSlice, PairedDifference,
    PairedResult, RateAudit, Saturation, ServerMetric, Spread, SteadyWindow, Validity,
};
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};

fn numbers(of: &[(&str, f64)]) -> BTreeMap<String, f64> {
    of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn metrics() -> BTreeMap<String, f64> {
    numbers(&[
        ("completed", 596.0),
        ("failed", 4.0),
        ("duration", 30.12),
        ("total_input_tokens", 76_288.0),
        ("total_output_tokens", 38_144.0),
        ("max_concurrent_requests", 24.0),
        ("request_throughput", 19.79),
        ("output_throughput", 1266.4),
        ("total_token_throughput", 3799.3),
        ("mean_ttft_ms", 57.21),
        ("median_ttft_ms", 52.03),
        ("p50_ttft_ms", 52.03),
        ("std_ttft_ms", 14.2),
        ("p90_ttft_ms", 71.9),
        ("mean_tpot_ms", 10.04),
        ("median_tpot_ms", 10.02),
        ("p90_tpot_ms", 10.11),
        ("mean_itl_ms", 10.04),
        ("median_itl_ms", 10.01),
        ("p90_itl_ms", 10.4),
        ("p99_itl_ms", 12.77),
        ("mean_e2el_ms", 689.7),
        ("median_e2el_ms", 683.5),
        ("p90_e2el_ms", 705.1),
    ])
}

fn series() -> Vec<LoadSlice> {
    (0..60u32)
        .map(|index| {
            let t = f64::from(index);
            let wave = (t / 6.0).sin();
            LoadSlice {
                t_s: t / 2.0,
                length_s: 0.5,
                completed: if index < 2 { 0 } else { 10 },
                failed: u64::from(index == 33) * 4,
                in_flight: (t.min(8.0)) + 4.0 + wave,
                output_throughput: 1266.0 + 120.0 * wave,
                // A pause of the server leaves a hole.
                median_ttft_ms: (index != 40).then_some(52.0 + 3.0 * wave),
                p99_ttft_ms: (index != 40).then_some(75.0 + 12.0 * wave + if index == 20 { 60.0 } else { 0.0 }),
                median_itl_ms: Some(10.0 + 0.2 * wave),
                p99_itl_ms: Some(12.0 + 0.6 * wave),
            }
        })
        .collect()
}

fn bell(first_ms: f64, ratio: f64, buckets: u32, middle: f64, width: f64) -> Histogram {
    let count = |index: u32| 2000.0 * (-((f64::from(index) - middle) / width).powi(2)).exp();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and above 0")]
    let counts = (0..buckets).map(|index| count(index) as u64).collect();
    Histogram { first_ms, ratio, counts }
}

fn workload() -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests: 600,
        prompts: Prompts::TokenIds { input_tokens: 128, vocabulary_size: 32_000, first_id: 100 },
        output_tokens: 64,
        ignore_eos: true,
        temperature: 0.0,
        arrival: Arrival::Open { rate_per_s: 20.0, burstiness: 1.0 },
        max_in_flight: None,
        warm_up_requests: 8,
        probes: Probes { count: 0, output_tokens: 0 },
        counter: TokenCounter::TokenIds,
        extra_body: BTreeMap::from([("top_p".to_owned(), serde_json::json!(0.9))]),
    }
}

/// Returns the result.
pub(crate) fn result() -> LoadResult {
    let interval = |low, high| LoadInterval { low, high };
    LoadResult {
        urls: vec!["http://127.0.0.1:8000".to_owned()],
        model: "tiny/model-7b".to_owned(),
        client: "isobench 0.1.0".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        definition: isobench_schema::measurement::DEFINITION.to_owned(),
        workload: workload(),
        seed: 1,
        workload_digest: Digest::of(b"workload"),
        tokenizer_digest: Some(Digest::of(b"tokenizer")),
        dataset_digest: None,
        counted_by: TokenCounter::TokenIds,
        validity: Validity::Valid,
        metrics: metrics(),
        from_send: numbers(&[("mean_ttft_ms", 55.9), ("mean_e2el_ms", 688.4)]),
        intervals: BTreeMap::from([
            ("mean_ttft_ms".to_owned(), interval(56.1, 58.4)),
            ("mean_itl_ms".to_owned(), interval(10.03, 10.05)),
            ("p99_itl_ms".to_owned(), interval(12.61, 12.93)),
            ("output_throughput".to_owned(), interval(1250.0, 1281.0)),
        ]),
        too_few: vec!["p99_ttft_ms".to_owned(), "p99_tpot_ms".to_owned(), "p99_e2el_ms".to_owned()],
        goodput: Some(Goodput {
            objective: "ttft<200ms".to_owned(),
            good: 590,
            share: 0.983_333,
            request_goodput: 19.59,
        }),
        failures: vec![LoadFailures {
            class: FailureClass::HttpError,
            count: 4,
            examples: vec!["the server answered 503 Service Unavailable".to_owned()],
        }],
        audit: Some(ClientAudit {
            broken: Vec::new(),
            lag: Some(LagAudit { lag_ms: Spread { p50: 0.021, p99: 0.31, max: 1.9 }, stamped_share: 0.998 }),
            release_lateness_ms: Some(Spread { p50: 0.04, p99: 0.22, max: 0.9 }),
            busy_share: Some(0.23),
            waited_share: Some(0.01),
            workers: Some(1),
            retransmits: Some(0),
            reconnects: Some(0),
            connections: Some(24),
            rate: Some(RateAudit {
                asked_per_s: 20.0,
                achieved_per_s: 19.98,
                asked_gap_cv: Some(1.02),
                achieved_gap_cv: Some(1.02),
                asked_dispersion: Some(0.98),
                achieved_dispersion: Some(0.98),
            }),
        }),
        findings: Vec::new(),
        halves: Some([
            numbers(&[("output_throughput", 1259.0), ("median_ttft_ms", 52.1), ("median_tpot_ms", 10.02)]),
            numbers(&[("output_throughput", 1273.0), ("median_ttft_ms", 51.9), ("median_tpot_ms", 10.02)]),
        ]),
        steady: Some(SteadyWindow {
            from_s: 2.0,
            to_s: 29.5,
            requests: 551,
            metrics: numbers(&[("output_throughput", 1271.0), ("mean_ttft_ms", 57.0)]),
        }),
        saturation: Some(Saturation {
            is_over_saturated: false,
            offered_per_s: 19.98,
            achieved_per_s: 19.79,
            latency_change: Some(0.002),
            trend_p: Some(0.7),
            littles_law: Some(1.004),
        }),
        server: BTreeMap::from([
            (
                "vllm:num_requests_waiting".to_owned(),
                ServerMetric { looks: 30, first: 0.0, last: 1.0, min: 0.0, mean: 0.4, max: 3.0 },
            ),
            (
                "vllm:prompt_tokens_total".to_owned(),
                ServerMetric { looks: 30, first: 1024.0, last: 77_312.0, min: 1024.0, mean: 39_000.0, max: 77_312.0 },
            ),
        ]),
        series: series(),
        distributions: BTreeMap::from([
            ("ttft".to_owned(), bell(40.0, 1.02, 60, 14.0, 9.0)),
            ("itl".to_owned(), bell(9.0, 1.01, 120, 11.0, 6.0)),
            ("icl".to_owned(), bell(9.0, 1.01, 120, 11.0, 6.0)),
            ("tpot".to_owned(), bell(9.5, 1.005, 40, 11.0, 5.0)),
            ("e2el".to_owned(), bell(640.0, 1.005, 40, 14.0, 6.0)),
        ]),
        paired: None,
    }
}

/// Returns the result of a client that was the bottleneck.
pub(crate) fn client_bound() -> LoadResult {
    let mut result = result();
    result.validity = Validity::ClientBound;
    let broken = "the busiest thread was busy for 97 % of the window, and the bound is 70 %";
    result.audit.get_or_insert_default().broken = vec![broken.to_owned()];
    result.findings = vec![Failure::new(FailureStage::Workload, FailureClass::ClientBound, broken)];
    result
}

/// Returns the result of two servers.
pub(crate) fn paired() -> LoadResult {
    let mut result = result();
    result.urls.push("http://127.0.0.1:8001".to_owned());
    let difference = |change: f64, half: f64| PairedDifference {
        change,
        interval: Some(LoadInterval { low: change - half, high: change + half }),
    };
    let second: BTreeMap<String, f64> = metrics().into_iter().map(|(name, value)| (name, value * 0.95)).collect();
    result.paired = Some(PairedResult {
        mark: PairedResult::MARK.to_owned(),
        slices: 20,
        metrics: [metrics(), second],
        differences: BTreeMap::from([
            ("mean_ttft_ms".to_owned(), difference(-0.05, 0.021)),
            ("mean_tpot_ms".to_owned(), difference(0.002, 0.004)),
            ("output_throughput".to_owned(), difference(0.031, 0.012)),
            ("p99_itl_ms".to_owned(), PairedDifference { change: 0.11, interval: None }),
        ]),
    });
    result
}
