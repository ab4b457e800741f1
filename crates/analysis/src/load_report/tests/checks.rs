//! What is checked of a load beyond its numbers.

use isobench_schema::check::Check;
use isobench_schema::load_checks::{
    AuditVerdict, FlowState, FullLoop, Halves, LittlesLaw, PairedChecks, PairedMetric, StepState, SweepBy,
};
use isobench_schema::load_result::{Paired, Validity};
use isobench_schema::record::{AuditLine, PhaseAudit};

use super::*;
use crate::load_checks::sweep::{Next, Sweep, SweepRules};

/// Returns the requests of slots that each take `take_ns(request)` and go on `gap_ns` later.
fn closed(slots: u64, rounds: u64, gap_ns: u64, take_ns: impl Fn(u64) -> u64) -> Vec<RequestRecord> {
    let mut records = Vec::new();
    for slot in 0..slots {
        let mut at = slot * MS;
        for round in 0..rounds {
            let index = round * slots + slot;
            let take = take_ns(index);
            records.push(answered(u32::try_from(index).unwrap(), (at, at + 30_000), take));
            at += take + gap_ns;
        }
    }
    records
}

/// Returns a request of ten tokens that came evenly.
fn answered(index: u32, (due, released): (u64, u64), take_ns: u64) -> RequestRecord {
    RequestRecord {
        input_tokens: 8,
        output_tokens_asked: 10,
        released_ns: Some(released),
        first_out_ns: Some(released + 10_000),
        sent_ns: Some(released + 10_000),
        first_byte_ns: Some(due + take_ns / 20),
        chunk_ns: (1..=10).map(|chunk| due + take_ns * chunk / 10 - 40_000).collect(),
        chunk_tokens: vec![1; 10],
        end_ns: due + take_ns,
        status: Some(200),
        finish_reason: Some("length".to_owned()),
        ..RequestRecord::intended(Phase::Measure, index, due)
    }
}

fn phase(ended_ns: u64, busy: f64) -> PhaseAudit {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a time")]
    let busiest_ns = (real(ended_ns) * busy) as u64;
    PhaseAudit {
        phase: Phase::Measure,
        began_ns: 0,
        ended_ns,
        workers: 1,
        busiest_ns,
        processor_ns: busiest_ns,
        waited_ns: Some(0),
        reads: 1000,
        stamped_reads: 1000,
        lag_ns: vec![(20_000, 1000)],
        longest_lag_ns: 19_000,
        reconnects: 0,
        connections: 4,
        retransmits: Some(0),
    }
}

fn read(records: &[RequestRecord], arrival: Arrival, audit: Option<PhaseAudit>) -> LoadReport {
    let workload = Workload { arrival, ..workload(u32::try_from(records.len()).unwrap()) };
    let mut options = options(&workload);
    options.objective = Some(Objective::parse("e2el<10s").unwrap());
    let mut lines = text(records);
    lines.extend(audit.map(|audit| serde_json::to_string(&AuditLine { audit }).unwrap() + "\n"));
    let mut reader = LoadReader::new(options);
    reader.feed(lines.as_bytes());
    reader.finish(facts(workload)).unwrap()
}

/// Four slots whose answers take 80 to 120 ms.
fn steady() -> Vec<RequestRecord> {
    closed(4, 200, 100_000, |index| (80 + index * 7919 % 41) * MS)
}

#[test]
fn a_closed_loop_has_an_audit_a_full_stretch_and_halves() {
    let report = read(&steady(), Arrival::closed(4), Some(phase(20_000 * MS, 0.2)));
    let result = &report.result;
    assert_eq!(result.findings, []);
    let audit = result.audit.as_ref().unwrap();
    assert_eq!((audit.verdict, audit.lateness_ms), (AuditVerdict::Ok, None), "{audit:?}");
    assert!(audit.idle_share.unwrap() < 0.01 && audit.ttft_bias.is_some());
    let Some(FullLoop::Full { share, whole, ended, filled, requests, .. }) = result.full_loop else {
        panic!("not full")
    };
    assert!(share > 0.9 && whole <= ended && filled > 0.98, "{share} {whole} {ended} {filled}");
    let numbers = &result.full_loop_metrics;
    close(numbers["request_throughput"], requests.ended_per_s, "requests of the stretch");
    assert!((99.0..101.0).contains(&numbers["mean_e2el_ms"]), "{numbers:?}");
    let Some(LittlesLaw::Checked { ratio, holds: true }) = result.littles_law else {
        panic!("{:?}", result.littles_law)
    };
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    let Some(Halves::Compared { change, interval, .. }) = result.halves_change else { panic!("too few") };
    assert!(change.abs() < 0.02 && interval.low < 0.0 && interval.high > 0.0, "{change} {interval:?}");
    assert!(result.flow.is_none() && result.paired.is_none() && result.sweep.is_none());
}

#[test]
fn each_broken_bound_is_a_finding_and_the_load_client_bound() {
    let slow = closed(4, 200, 5 * MS, |index| (80 + index * 7919 % 41) * MS);
    let report = read(&slow, Arrival::closed(4), Some(phase(21_000 * MS, 0.9)));
    let audit = report.result.audit.as_ref().unwrap();
    assert_eq!((audit.verdict, audit.broken.len()), (AuditVerdict::ClientBound, 2), "{:?}", audit.broken);
    assert_eq!(checks(&report), [Check::ClientBusy, Check::ClientIdlePlaces]);
    assert_eq!(report.result.validity, Validity::ClientBound);
    let messages: Vec<&str> = report.result.findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(messages, audit.broken.iter().map(|broken| broken.message.as_str()).collect::<Vec<_>>());
    assert!(report.step(4.0).is_client_bound);
}

fn checks(report: &LoadReport) -> Vec<Check> {
    report.result.findings.iter().map(|finding| finding.check.unwrap().name).collect()
}

#[test]
fn requests_that_leave_late_or_too_seldom_break_checks_of_a_load_alone() {
    let due = |index: u32| u64::from(index) * 10 * MS;
    let of = |released: &dyn Fn(u32) -> u64| -> Vec<RequestRecord> {
        (0..500).map(|index| answered(index, (due(index), due(index) + released(index)), 100 * MS)).collect()
    };
    let rate = Arrival::Constant { rate_per_s: 100.0 };
    // Each leaves 3 ms late, of a TTFT of 10 ms.
    let late = read(&of(&|_| 3 * MS), rate.clone(), Some(phase(5_000 * MS, 0.1)));
    assert_eq!(checks(&late), [Check::ClientTtftBias]);
    // The later, the longer it waits for the client: the rate that is sent is 1.5 % too low.
    let slow = read(&of(&|index| u64::from(index) * 150_000), rate, Some(phase(5_000 * MS, 0.1)));
    assert!(checks(&slow).contains(&Check::ClientRate), "{:?}", slow.result.findings);
}

#[test]
fn missing_records_weigh_more_than_the_client() {
    let mut slow = closed(4, 200, 5 * MS, |_| 100 * MS);
    slow.pop();
    let workload = Workload { arrival: Arrival::closed(4), ..workload(800) };
    let mut reader = LoadReader::new(options(&workload));
    let audit = serde_json::to_string(&AuditLine { audit: phase(21_000 * MS, 0.9) }).unwrap() + "\n";
    reader.feed((text(&slow) + &audit).as_bytes());
    let result = reader.finish(facts(workload)).unwrap().result;
    assert_eq!(result.validity, Validity::Incomplete);
    assert_eq!(result.findings.iter().filter(|finding| finding.class == FailureClass::ClientBound).count(), 2);
}

#[test]
fn an_open_loop_shows_whether_the_server_kept_up() {
    let due = |index: u32| u64::from(index) * 10 * MS;
    let of = |take_ns: &dyn Fn(u64) -> u64| -> Vec<RequestRecord> {
        let one = |index| answered(index, (due(index), due(index) + 50_000), take_ns(u64::from(index)));
        (0..2000).map(one).collect()
    };
    let rate = Arrival::Constant { rate_per_s: 100.0 };
    let report = read(&of(&|index| (100 + index * 7919 % 41) * MS), rate.clone(), None);
    assert_eq!(report.result.flow.unwrap().state, FlowState::KeepsUp);
    assert_eq!((report.result.validity, report.result.audit.as_ref()), (Validity::Valid, None));
    assert!(matches!(report.result.littles_law, Some(LittlesLaw::Checked { holds: true, .. })));
    assert!(matches!(report.result.halves_change, Some(Halves::Compared { .. })));
    let step = report.step(100.0);
    assert_eq!((step.flow, step.objective_share, step.is_client_bound), (Some(FlowState::KeepsUp), Some(1.0), false));
    // Each takes 10 ms longer than the one before: half of what is due is served.
    let behind = read(&of(&|index| (100 + index * 10) * MS), rate, None);
    assert_eq!(behind.result.flow.unwrap().state, FlowState::OverSaturated);
    assert_eq!(behind.result.validity, Validity::OverSaturated);
    assert_eq!(behind.step(100.0).flow, Some(FlowState::OverSaturated));
}

#[test]
fn a_step_is_of_the_full_loop() {
    let step = read(&steady(), Arrival::closed(4), None).step(4.0);
    assert!((step.mean_in_flight - 4.0).abs() < 0.05, "{}", step.mean_in_flight);
    assert!((real(step.completed) / step.seconds - 40.0).abs() < 1.0, "{step:?}");
    assert_eq!(step.output_tokens, Some(10 * step.completed));
    let never = read(&steady(), Arrival::closed(5), None);
    assert_eq!((never.step(5.0).completed, never.result.full_loop_metrics.len()), (0, 0));
    let rules = SweepRules {
        by: SweepBy::Concurrency,
        lowest: 4.0,
        first: 4.0,
        highest: 4.0,
        factor: 2.0,
        resolution: 0.1,
        objective_share: Some(0.9),
        most_steps: 1,
    };
    let Next::Done(found) = Sweep::new(rules).unwrap().next(&[step]) else { panic!("more to run") };
    assert_eq!(found.steps[0].state, StepState::Sustained);
    assert!(found.steps[0].mean_ttft_ms.is_some() && found.steps[0].mean_tpot_ms.is_some());
    assert!(matches!(found.steps[0].littles_law, LittlesLaw::Checked { holds: true, .. }));
}

fn compared(paired: &Paired, name: &str) -> (f64, f64, f64) {
    let Some(PairedMetric::Compared { by_time, .. }) = paired.checks.metrics.get(name) else {
        panic!("{name}: {:?}", paired.checks.metrics.get(name));
    };
    let interval = by_time.interval.unwrap();
    (by_time.change, interval.low, interval.high)
}

#[test]
fn two_servers_are_compared_by_the_same_requests() {
    let take = |index: u64| 80 + index * 7919 % 41;
    let first = read(&steady(), Arrival::closed(4), None);
    let slower = closed(4, 200, 100_000, |index| take(index) * MS * 11 / 10);
    let paired = first.against(&read(&slower, Arrival::closed(4), None));
    assert_eq!(paired.checks.mark, PairedChecks::MARK);
    for (name, expected) in [("e2el", 0.1), ("tpot", 0.1), ("itl", 0.1), ("output_throughput", 1.0 / 1.1 - 1.0)] {
        let (change, low, high) = compared(&paired, name);
        assert!(
            (change - expected).abs() < 0.01 && low <= change && change <= high,
            "{name}: {change} [{low}, {high}]"
        );
    }
    assert_eq!(paired.metrics[0], first.result.metrics);
    let itself = first.against(&read(&steady(), Arrival::closed(4), None));
    assert_eq!(compared(&itself, "ttft"), (0.0, 0.0, 0.0));
}

#[test]
fn too_few_pairs_and_fixed_rates_are_said_to_be_so() {
    let few = read(&closed(2, 10, 0, |_| 50 * MS), Arrival::closed(2), None);
    let paired = few.against(&few);
    assert_eq!(paired.checks.metrics["e2el"], PairedMetric::TooFew { pairs: 20, needed: 80, change: Some(0.0) });
    assert!(matches!(paired.checks.metrics["output_throughput"], PairedMetric::TooFewSlices { .. }));
    let open = report_with(&uneven(200), None);
    assert!(matches!(open.against(&open).checks.metrics["request_throughput"], PairedMetric::Fixed { .. }));
    let nothing = report_with(&[], None);
    assert!(nothing.against(&nothing).checks.metrics.keys().all(|name| name == "request_throughput"));
}
