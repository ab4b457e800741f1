//! Each check, kept and broken.

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::FailureClass;
use isobench_schema::measurement::MetricName;
use isobench_schema::record::{Phase, RequestFailure, RequestRecord, Usage};

use super::*;
use crate::measure::tests::{at, launch, read, record, rules, text};

const MS: u64 = 1_000_000;

/// Places of [`launch`]'s records: the probe before, and the first request of the window.
const PROBE: usize = 1;
const WINDOW: usize = 3;

fn classes(rules: LaunchRules, records: &[RequestRecord]) -> Vec<FailureClass> {
    findings_of(rules, records).iter().map(|failure| failure.class).collect()
}

fn findings_of(rules: LaunchRules, records: &[RequestRecord]) -> Vec<Failure> {
    read(rules, &text(records), 1 << 20).unwrap().findings
}

fn failed(class: FailureClass) -> RequestFailure {
    RequestFailure { class, message: format!("{class} seen") }
}

/// Puts a probe before the window and one after it, at their times.
fn probed(records: &mut Vec<RequestRecord>) {
    for record in records.iter_mut() {
        *record = at(record.clone(), 65 * MS);
    }
    let end = records.iter().map(|record| record.end_ns).max().unwrap();
    records.insert(0, record(Phase::ProbeBefore, 0));
    records.push(at(record(Phase::ProbeAfter, 0), end));
}

/// Returns an open loop at 20 requests a second whose latency is 55 ms and `growth_ms` more for each request.
fn open(count: u32, growth_ms: u64) -> (LaunchRules, Vec<RequestRecord>) {
    let mut records = Vec::new();
    for index in 0..count {
        let mut next = at(record(Phase::Measure, index), u64::from(index) * 50 * MS);
        next.end_ns += u64::from(index) * growth_ms * MS;
        records.push(next);
    }
    probed(&mut records);
    (LaunchRules { arrival: Arrival::Open { rate_per_s: 20.0, burstiness: 1.0 }, ..rules(count) }, records)
}

#[test]
fn more_failed_requests_than_allowed_have_the_most_frequent_class() {
    let mut records = launch(8);
    records[WINDOW].failure = Some(failed(FailureClass::HttpError));
    records[WINDOW + 2].failure = Some(failed(FailureClass::StreamStalled));
    records[WINDOW + 3].failure = Some(failed(FailureClass::StreamStalled));
    let allowed = |failed_requests| LaunchRules { failed_requests, ..rules(8) };
    assert_eq!(classes(allowed(3), &records), []);
    let findings = findings_of(allowed(2), &records);
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].class, findings[0].stage), (FailureClass::StreamStalled, FailureStage::Workload));
    assert_eq!(findings[0].message, "3 of 8 requests failed (2 may) and 0 of 2 probes: stream-stalled seen");
    let lines: Vec<_> = findings[0].evidence.iter().map(|line| (line.file.as_str(), line.line.unwrap())).collect();
    assert_eq!(lines, [("requests.jsonl", 7), ("requests.jsonl", 8)]);
}

#[test]
fn no_probe_may_fail() {
    let mut records = launch(8);
    records[PROBE].failure = Some(failed(FailureClass::HttpError));
    assert_eq!(classes(LaunchRules { failed_requests: 5, ..rules(8) }, &records), [FailureClass::HttpError]);
}

#[test]
fn missing_records_are_unreadable_evidence() {
    let mut records = launch(8);
    records.remove(WINDOW + 1);
    records.remove(PROBE);
    let findings = findings_of(rules(8), &records);
    assert_eq!(findings[0].class, FailureClass::EvidenceUnreadable);
    assert_eq!(findings[0].message, "the request records hold 7 of 8 requests, 0 of 1 probes before the window");
}

#[test]
fn an_answer_shorter_than_asked_is_an_output_length() {
    let shorten = |record: &mut RequestRecord| {
        record.chunk_ns.pop();
        record.chunk_tokens.pop();
        record.usage = Some(Usage { prompt_tokens: 8, completion_tokens: 3 });
    };
    for place in [PROBE, WINDOW + 1] {
        let mut records = launch(8);
        shorten(&mut records[place]);
        assert_eq!(classes(rules(8), &records), [FailureClass::OutputLength], "record {place}");
        assert_eq!(classes(LaunchRules { exact_length: false, ..rules(8) }, &records), []);
    }
    let mut records = launch(8);
    shorten(&mut records[WINDOW + 1]);
    let finding = findings_of(rules(8), &records).remove(0);
    assert_eq!(
        finding.message,
        "1 of 10 answers have another length than asked: measure request 1: 4 tokens asked, 3 came"
    );
    assert_eq!(finding.evidence[0].line, Some(6));
}

#[test]
fn an_answer_longer_than_asked_is_always_an_output_length() {
    let mut records = launch(8);
    records[WINDOW].chunk_tokens[3] = 2;
    records[WINDOW].usage = None;
    assert_eq!(classes(LaunchRules { exact_length: false, ..rules(8) }, &records), [FailureClass::OutputLength]);
}

#[test]
fn a_false_claim_weighs_more_than_the_length() {
    let mut records = launch(8);
    for record in &mut records[WINDOW..] {
        record.chunk_ns.pop();
        record.chunk_tokens.pop();
    }
    let findings = findings_of(rules(8), &records);
    let found: Vec<_> = findings.iter().map(|finding| finding.class).collect();
    assert_eq!(found, [FailureClass::TokenCountMismatch, FailureClass::OutputLength]);
    assert_eq!(findings[0].evidence.len(), EVIDENCE_LINES);
    assert_eq!(findings[0].evidence[0].text, "measure request 0: usage says 4 tokens, 3 came");
}

#[test]
fn a_missing_claim_is_no_mismatch() {
    let mut records = launch(8);
    for record in &mut records {
        record.usage = None;
    }
    assert_eq!(classes(rules(8), &records), []);
}

#[test]
fn times_out_of_order_are_implausible() {
    let mut records = launch(8);
    records[WINDOW].chunk_ns[0] = records[WINDOW].end_ns + MS;
    assert_eq!(classes(rules(8), &records), [FailureClass::Implausible]);
}

#[test]
fn a_short_window_is_found_by_the_plans_bound() {
    // 8 requests take 0.51 s.
    let window = |min: f64| LaunchRules { min_window_s: Seconds::new(min).unwrap(), ..rules(8) };
    assert_eq!(classes(window(0.5), &launch(8)), []);
    let findings = findings_of(window(0.6), &launch(8));
    assert_eq!(findings[0].class, FailureClass::WindowTooShort);
    assert_eq!(findings[0].message, "the window was 0.51 s long, shorter than 0.60 s, the plan's `min-window`");
}

#[test]
fn the_default_window_must_also_hold_ten_latencies() {
    // 600 requests take 39 s, with one latency in fifty of 5 s.
    let mut records = launch(600);
    for index in (0..600).step_by(50) {
        records[WINDOW + index].end_ns += 5000 * MS;
    }
    let last = records.pop().unwrap();
    records.push(at(last, 10_000 * MS));
    let window = |min: f64, arrival| LaunchRules { min_window_s: Seconds::new(min).unwrap(), arrival, ..rules(600) };
    let closed = Arrival::closed(100);
    assert_eq!(classes(window(29.0, closed.clone()), &records), []);
    assert_eq!(classes(window(30.0, closed), &records), [FailureClass::WindowTooShort]);
    assert_eq!(classes(window(30.0, Arrival::AllAtOnce), &records), []);
}

#[test]
fn a_late_open_loop_is_bound_by_the_client() {
    let (rules, mut records) = open(100, 0);
    assert_eq!(classes(rules.clone(), &records), []);
    for record in records.iter_mut().skip(1).step_by(20) {
        record.sent_ns = Some(record.intended_ns + 6 * MS);
    }
    assert_eq!(classes(rules.clone(), &records), [FailureClass::ClientBound]);
    assert_eq!(classes(LaunchRules { arrival: Arrival::closed(2), ..rules }, &records), []);
}

#[test]
fn a_server_that_falls_behind_an_open_loop_is_over_saturated() {
    let (rules, steady) = open(100, 0);
    assert_eq!(classes(LaunchRules { primary: MetricName::MeanE2elMs, ..rules }, &steady), []);
    let (rules, falling_behind) = open(100, 20);
    assert_eq!(classes(rules.clone(), &falling_behind), [FailureClass::OverSaturated]);
    let closed = Arrival::closed(50);
    assert_eq!(classes(LaunchRules { arrival: closed, ..rules }, &falling_behind)[..], []);
}

#[test]
fn a_metric_that_moves_with_time_drifts() {
    // Latencies from 55 ms to 105 ms, sent one after the other, so that the throughput falls by about half.
    let mut start = 0;
    let mut records = Vec::new();
    for index in 0..200_u32 {
        let mut next = at(record(Phase::Measure, index), start);
        next.end_ns += u64::from(index) * MS / 4;
        next.chunk_ns[3] = next.end_ns;
        start += next.end_ns - next.intended_ns;
        records.push(next);
    }
    probed(&mut records);
    for primary in [MetricName::OutputThroughput, MetricName::MeanE2elMs, MetricName::MedianItlMs] {
        assert_eq!(classes(LaunchRules { primary, ..rules(200) }, &records), [FailureClass::Drift], "{primary}");
    }
    // The time to the first token is the same throughout, a change below three margins doesn't count, and nothing is
    // steady where all is sent at once or where a round of the loop is longer than a slice.
    let steady = [
        LaunchRules { primary: MetricName::MeanTtftMs, ..rules(200) },
        LaunchRules { margin: 0.3, ..rules(200) },
        LaunchRules { arrival: Arrival::AllAtOnce, ..rules(200) },
        LaunchRules { arrival: Arrival::closed(21), ..rules(200) },
    ];
    for rules in steady {
        assert_eq!(classes(rules.clone(), &records), [], "{rules:?}");
    }
    let finding = findings_of(rules(200), &records).remove(0);
    assert!(finding.transient && finding.message.starts_with("the output throughput changed by -"), "{finding}");
}

#[test]
fn requests_that_run_in_step_do_not_drift() {
    let mut records = Vec::new();
    let rounds = (0..30_u32).flat_map(|round| (0..8).map(move |place| (round, round * 8 + place)));
    records.extend(rounds.map(|(round, index)| at(record(Phase::Measure, index), u64::from(round) * 65 * MS)));
    probed(&mut records);
    let closed = Arrival::closed(8);
    for primary in [MetricName::OutputThroughput, MetricName::MeanE2elMs] {
        assert_eq!(classes(LaunchRules { arrival: closed.clone(), primary, ..rules(240) }, &records), []);
    }
}

/// Returns what is found of records whose numbers are changed after they were made.
fn with_numbers(rules: &LaunchRules, change: impl Fn(&mut Measurement)) -> Vec<Failure> {
    let records = launch(8);
    let mut measurement = read(rules.clone(), &text(&records), 1 << 20).unwrap().measurement;
    change(&mut measurement);
    let mut samples = Samples::default();
    for (line, record) in (2..).zip(&records) {
        let sample = Sample::of(record, line);
        match record.phase {
            Phase::Measure => samples.window.push(sample),
            Phase::ProbeBefore | Phase::ProbeAfter => samples.probes.push(sample),
            Phase::First | Phase::WarmUp => {}
        }
    }
    findings(rules, &samples, &measurement)
}

#[test]
fn numbers_that_do_not_agree_with_what_was_counted_are_implausible() {
    assert_eq!(with_numbers(&rules(8), |_| {}), []);
    for metric in [MetricName::RequestThroughput, MetricName::OutputThroughput, MetricName::TotalTokenThroughput] {
        let found = with_numbers(&rules(8), |measurement| *measurement.values.get_mut(&metric).unwrap() *= 1.5);
        assert_eq!(found[0].check.map(|check| check.name), Some(Check::NumbersAgree), "{metric}: {found:?}");
        assert_eq!(found[0].class, FailureClass::Implausible);
        assert!(found[0].message.starts_with(&format!("{metric} times the window gives ")), "{}", found[0]);
    }
}

#[test]
fn a_latency_that_does_not_fit_the_rate_breaks_littles_law() {
    let halved = |measurement: &mut Measurement| {
        *measurement.values.get_mut(&MetricName::MeanE2elMs).unwrap() /= 2.0;
    };
    let found = with_numbers(&rules(8), halved);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].check, Some(Check::LittlesLaw.above(0.5, 0.01, CheckUnit::Share)));
}
