//! A made-up result of a load with everything in it.

use std::collections::BTreeMap;

use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;
use isobench_schema::load_checks::{
    AgainstProcess, Audit, AuditBound, AuditVerdict, Bounds, BrokenBound, Difference, Flow, FlowState, FullLoop,
    Halves, Lag, LittlesLaw, Pacing, PairedChecks, PairedMetric, RateBounds, SearchEnd, Spread, SteadyState, StepState,
    SweepBy, SweepReport, SweepStep, TtftBias, WarmUp,
};
use isobench_schema::load_result::{
    Goodput, Histogram, InputCounter, LoadFailures, LoadInterval, LoadResult, LoadSlice, Paired, ServerMetric, Validity,
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

/// Adds a value so many buckets above the others.
fn with_extreme(mut histogram: Histogram, buckets: usize) -> Histogram {
    histogram.counts.extend(std::iter::repeat_n(0, buckets).chain([1]));
    histogram
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
        script: None,
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
        input_counted_by: Some(InputCounter::TokenIds),
        percentiles: vec![50.0, 90.0, 95.0, 99.0],
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
        requests_needed: BTreeMap::from([("p99".to_owned(), 662)]),
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
        audit: Some(audit()),
        findings: Vec::new(),
        halves: Some([
            numbers(&[("output_throughput", 1259.0), ("median_ttft_ms", 52.1), ("median_tpot_ms", 10.02)]),
            numbers(&[("output_throughput", 1273.0), ("median_ttft_ms", 51.9), ("median_tpot_ms", 10.02)]),
        ]),
        halves_change: Some(Halves::Compared {
            first: 688.9,
            second: 690.4,
            change: 0.0022,
            interval: Bounds { low: -0.011, high: 0.0154 },
            slices: 30,
        }),
        warm_up: Some(WarmUp {
            state: SteadyState::Steady,
            slices: 14,
            start_slices: Some(2),
            level: Some(1262.0),
            change: Some(0.004),
        }),
        full_loop: None,
        full_loop_metrics: BTreeMap::new(),
        flow: Some(Flow {
            state: FlowState::KeepsUp,
            due: 301,
            ended: 298,
            share: Some(0.990_033),
            excess: Some(0.12),
            growth_p: Some(0.41),
            slower_p: Some(0.62),
        }),
        littles_law: Some(LittlesLaw::Checked { ratio: 0.991, holds: true }),
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
            ("e2el".to_owned(), with_extreme(bell(640.0, 1.005, 40, 14.0, 6.0), 600)),
        ]),
        paired: None,
        sweep: None,
    }
}

fn audit() -> Audit {
    let against = |drawn, sent, expected, error| {
        Some(AgainstProcess { drawn, sent, expected: Some(expected), standard_error: Some(error) })
    };
    Audit {
        verdict: AuditVerdict::Ok,
        broken: Vec::new(),
        unknown: Vec::new(),
        workers: 1,
        busy_share: Some(0.23),
        waited_share: Some(0.01),
        stamped_share: Some(0.998),
        lag: Some(Lag { lag_ms: Spread { p50: 0.021, p99: 0.31, max: 1.9 }, resolution: 0.05, reads: 38_120 }),
        lateness_ms: Some(Spread { p50: 0.04, p99: 0.22, max: 0.9 }),
        turnaround_ms: None,
        idle_share: None,
        ttft_bias: Some(TtftBias { mean: 0.0017, p99: 0.0021 }),
        pacing: Some(Pacing {
            asked_per_s: Some(20.0),
            drawn_per_s: 19.99,
            sent_per_s: 19.98,
            rate_error: -0.0005,
            gap_cv: against(1.02, 1.02, 1.0, 0.041),
            dispersion: against(0.98, 0.98, 1.0, 0.082),
            short_gaps: against(0.0017, 0.0017, 0.001, 0.0013),
        }),
        retransmits: Some(0),
        reconnects: 0,
        connections: 24,
    }
}

/// Returns the result of a closed loop.
pub(crate) fn closed() -> LoadResult {
    let mut result = result();
    result.workload.arrival = Arrival::closed(24);
    result.flow = None;
    let rate = |ended_per_s: f64| RateBounds {
        ended_per_s,
        bounds: Bounds { low: ended_per_s * 0.96, high: ended_per_s * 1.02 },
    };
    result.full_loop = Some(FullLoop::Full {
        from_ns: 1_250_000_000,
        to_ns: 29_400_000_000,
        share: 0.934_6,
        whole: 541,
        ended: 561,
        filled: 0.998,
        requests: rate(19.93),
        output_tokens: rate(1275.5),
    });
    result.full_loop_metrics =
        numbers(&[("output_throughput", 1275.5), ("median_ttft_ms", 52.0), ("median_tpot_ms", 10.02)]);
    result.audit = Some(Audit {
        lateness_ms: None,
        pacing: None,
        turnaround_ms: Some(Spread { p50: 0.09, p99: 0.4, max: 2.1 }),
        idle_share: Some(0.0002),
        ..audit()
    });
    result
}

/// Returns the result of a client that was the bottleneck.
pub(crate) fn client_bound() -> LoadResult {
    let mut result = closed();
    let broken = |bound, value, limit, message: &str| BrokenBound { bound, value, limit, message: message.to_owned() };
    let broken = vec![
        broken(AuditBound::Busy, 0.97, 0.7, "the busiest thread was busy for 97 % of the window, not less than 70 %"),
        broken(AuditBound::IdleSlots, 0.03, 0.01, "the loop's places were empty for 3 % of their time, more than 1 %"),
    ];
    result.validity = Validity::ClientBound;
    result.findings = broken
        .iter()
        .map(|broken| Failure::new(FailureStage::Validity, FailureClass::ClientBound, &broken.message))
        .collect();
    result.audit = Some(Audit { verdict: AuditVerdict::ClientBound, broken, busy_share: Some(0.97), ..audit() });
    result
}

/// Returns the result of two servers.
pub(crate) fn paired() -> LoadResult {
    let mut result = result();
    result.urls.push("http://127.0.0.1:8001".to_owned());
    let difference = |change: f64, half: f64| Difference {
        change,
        interval: Some(Bounds { low: change - half, high: change + half }),
        slices: 60,
        merged: 1,
        correlation: 0.04,
    };
    let compared = |by_time, by_pair| PairedMetric::Compared { pairs: 594, by_time, by_pair: Some(by_pair) };
    let dependent = Difference { interval: None, correlation: 0.6, ..difference(0.11, 0.0) };
    let second: BTreeMap<String, f64> = metrics().into_iter().map(|(name, value)| (name, value * 0.95)).collect();
    result.paired = Some(Paired {
        checks: PairedChecks {
            mark: PairedChecks::MARK.to_owned(),
            note: PairedChecks::NOTE.to_owned(),
            metrics: BTreeMap::from([
                ("ttft".to_owned(), compared(difference(-0.05, 0.021), difference(-0.047, 0.008))),
                ("tpot".to_owned(), compared(difference(0.002, 0.004), difference(0.0015, 0.003))),
                ("itl".to_owned(), compared(dependent, difference(0.1, 0.02))),
                ("ttfc".to_owned(), PairedMetric::TooFew { pairs: 12, needed: 80, change: Some(0.31) }),
                (
                    "e2el".to_owned(),
                    PairedMetric::TooFewSlices { pairs: 100, slices: 7, needed: 20, change: Some(-0.05) },
                ),
                (
                    "output_throughput".to_owned(),
                    PairedMetric::Fixed { reason: "the arrivals fix the throughput of both servers".to_owned() },
                ),
            ]),
        },
        metrics: [metrics(), second],
    });
    result
}

/// Returns what a search found.
pub(crate) fn search() -> SweepReport {
    let step = |level: f64, state, output_tok_per_s: f64, littles_law| SweepStep {
        level,
        state,
        completed_per_s: output_tok_per_s / 64.0,
        output_tok_per_s: Some(output_tok_per_s),
        mean_ttft_ms: Some(50.0 + level),
        mean_tpot_ms: Some(9.0 + level / 16.0),
        littles_law,
    };
    let holds = LittlesLaw::Checked { ratio: 0.99, holds: true };
    SweepReport {
        by: SweepBy::Concurrency,
        end: SearchEnd::Refined,
        highest_sustained: Some(32.0),
        lowest_not_sustained: Some(64.0),
        knee: Some(Bounds { low: 16.0, high: 32.0 }),
        peak_per_s: Some(2310.0),
        steps: vec![
            step(8.0, StepState::Sustained, 790.0, holds),
            step(16.0, StepState::Sustained, 1510.0, holds),
            step(32.0, StepState::Sustained, 2260.0, holds),
            step(64.0, StepState::ObjectiveMissed, 2310.0, LittlesLaw::Checked { ratio: 0.9, holds: false }),
            step(128.0, StepState::ClientBound, 2290.0, LittlesLaw::TooFew),
        ],
    }
}

/// Returns a step of a search, with all that it found.
pub(crate) fn searched() -> LoadResult {
    LoadResult { sweep: Some(search()), ..closed() }
}
