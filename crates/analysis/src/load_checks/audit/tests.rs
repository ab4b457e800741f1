//! A client is bound when it harms what is reported, and only then.

use isobench_schema::load_checks::{AuditBound, AuditVerdict};
use isobench_schema::record::{Phase, RequestRecord, Turn};

use super::*;

const MS: u64 = 1_000_000;

fn phase() -> PhaseAudit {
    PhaseAudit {
        phase: Phase::Measure,
        began_ns: 0,
        ended_ns: 10_000 * MS,
        workers: 2,
        busiest_ns: 3_000 * MS,
        processor_ns: 5_000 * MS,
        waited_ns: Some(50 * MS),
        reads: 10_000,
        stamped_reads: 10_000,
        lag_ns: vec![(50_000, 9_950), (200_000, 50)],
        longest_lag_ns: 190_000,
        reconnects: 1,
        connections: 64,
        retransmits: Some(0),
    }
}

/// When a request was due, went out and was answered.
#[derive(Clone, Copy)]
pub(super) struct SendTimes {
    pub(super) intended_ns: u64,
    pub(super) released_ns: u64,
    pub(super) out_ns: u64,
    pub(super) first_token_ns: Option<u64>,
    pub(super) end_ns: u64,
    pub(super) is_later_turn: bool,
}

pub(super) fn samples(all: &[SendTimes]) -> Vec<Sample> {
    let sample = |(index, times): (u32, &SendTimes)| {
        let record = RequestRecord {
            released_ns: Some(times.released_ns),
            first_out_ns: Some(times.out_ns),
            chunk_ns: times.first_token_ns.into_iter().collect(),
            chunk_tokens: times.first_token_ns.map(|_| 1).into_iter().collect(),
            end_ns: times.end_ns,
            turn: times.is_later_turn.then_some(Turn { session: 0, turn: 1 }),
            ..RequestRecord::intended(Phase::Measure, index, times.intended_ns)
        };
        Sample::of(&record, 1)
    };
    (0..).zip(all).map(sample).collect()
}

/// One request due each 10 ms, first token 50 ms and end 500 ms after it went out.
fn open(late_ns: u64) -> Vec<SendTimes> {
    (0..1_000_u64).map(|index| request(index * 10 * MS, index * 10 * MS + late_ns)).collect()
}

fn request(intended_ns: u64, released_ns: u64) -> SendTimes {
    SendTimes {
        intended_ns,
        released_ns,
        out_ns: released_ns + 20_000,
        first_token_ns: Some(released_ns + 50 * MS),
        end_ns: released_ns + 500 * MS,
        is_later_turn: false,
    }
}

/// Slots whose next request goes out `gap_ns` after the answer before, each of which takes 500 ms.
fn closed(slots: u64, rounds: u64, gap_ns: u64) -> Vec<SendTimes> {
    let mut all = Vec::new();
    for round in 0..rounds {
        for slot in 0..slots {
            let turn = slot * MS / 10 + round * (500 * MS + gap_ns);
            all.push(SendTimes { out_ns: turn, end_ns: turn + 500 * MS, ..request(turn, turn) });
        }
    }
    all
}

const GAPS: ReadGaps = ReadGaps { median_ms: 10.0, p99_ms: 11.0 };
const RATE: Arrival = Arrival::Constant { rate_per_s: 100.0 };

fn run(phase: &PhaseAudit, requests: &[SendTimes], arrival: &Arrival) -> Audit {
    let requests = &samples(requests);
    audit(&AuditInput { phase, requests, arrival, max_in_flight: None, gaps: Some(GAPS) })
}

#[track_caller]
fn check(found: &Audit, expected: &[AuditBound]) {
    let bounds: Vec<AuditBound> = found.broken.iter().map(|broken| broken.bound).collect();
    assert_eq!(bounds, expected, "{:?}", found.broken);
    let verdict = if expected.is_empty() { AuditVerdict::Ok } else { AuditVerdict::ClientBound };
    assert_eq!(found.verdict, verdict, "{:?}", found.unknown);
}

#[test]
fn a_client_with_room_is_ok() {
    let found = run(&phase(), &open(100_000), &RATE);
    check(&found, &[]);
    assert_eq!((found.busy_share, found.stamped_share), (Some(0.3), Some(1.0)));
    let lateness = found.lateness_ms.unwrap();
    assert!((lateness.p50 - 0.1).abs() < 1e-9 && (lateness.max - 0.1).abs() < 1e-9, "{lateness:?}");
    assert!((found.ttft_bias.unwrap().mean - 0.12 / 49.98).abs() < 1e-6, "{:?}", found.ttft_bias);
}

#[test]
fn each_bound_is_named_with_its_value_and_what_to_do() {
    let busy = PhaseAudit { busiest_ns: 7_000 * MS, ..phase() };
    let found = run(&busy, &open(0), &RATE);
    check(&found, &[AuditBound::Busy]);
    let message = &found.broken[0].message;
    assert!(message.contains("70.0 % of the window") && message.contains("more workers"), "{message}");
    // 6 ms late is over the 5 ms, and 12 % of a TTFT of 50 ms.
    check(&run(&phase(), &open(6 * MS), &RATE), &[AuditBound::Lateness, AuditBound::TtftBias]);
    // 2 ms are fine for the schedule, but 4 % of the TTFT.
    check(&run(&phase(), &open(2 * MS), &RATE), &[AuditBound::TtftBias]);
}

#[test]
fn a_rate_that_is_not_kept_is_broken() {
    let drifting: Vec<SendTimes> =
        (0..1_000_u64).map(|index| request(index * 10 * MS, index * 10 * MS + index * MS / 5)).collect();
    let found = run(&phase(), &drifting, &RATE);
    assert!((found.pacing.unwrap().rate_error - (10.0 / 10.2 - 1.0)).abs() < 1e-6, "{:?}", found.pacing);
    assert!(found.broken.iter().any(|broken| broken.bound == AuditBound::Rate), "{:?}", found.broken);
}

#[test]
fn waiting_for_a_place_is_not_lateness() {
    // Twenty may be under way, each for 500 ms: of 100 due each second 40 can be released.
    let mut ends = std::collections::VecDeque::new();
    let requests: Vec<SendTimes> = (0..400_u64)
        .map(|index| {
            let due = index * 10 * MS;
            let freed = if ends.len() == 20 { ends.pop_front().unwrap() } else { 0 };
            let times = request(due, due.max(freed) + 30_000);
            ends.push_back(times.end_ns);
            times
        })
        .collect();
    let (phase, requests) = (phase(), samples(&requests));
    let bounded =
        AuditInput { phase: &phase, requests: &requests, arrival: &RATE, max_in_flight: Some(20), gaps: Some(GAPS) };
    let found = audit(&bounded);
    check(&found, &[]);
    assert!((found.lateness_ms.unwrap().max - 0.03).abs() < 1e-9, "{:?}", found.lateness_ms);
    let unbounded = audit(&AuditInput { max_in_flight: None, ..bounded });
    assert!(unbounded.lateness_ms.unwrap().max > 1_000.0);
}

#[test]
fn with_stamps_a_lag_counts_once_it_merges_reads() {
    let slow = |ns: u64| PhaseAudit { lag_ns: vec![(ns, 10_000)], longest_lag_ns: ns, ..phase() };
    check(&run(&slow(9 * MS), &open(0), &RATE), &[]);
    check(&run(&slow(11 * MS), &open(0), &RATE), &[AuditBound::Lag]);
}

#[test]
fn with_stamps_tokens_that_were_written_back_to_back_may_be_read_together() {
    let requests = samples(&open(0));
    let found = |ns: u64| {
        let phase = PhaseAudit { lag_ns: vec![(ns, 10_000)], longest_lag_ns: ns, ..phase() };
        let gaps = Some(ReadGaps { median_ms: 0.05, p99_ms: 11.0 });
        audit(&AuditInput { phase: &phase, requests: &requests, arrival: &RATE, max_in_flight: None, gaps })
    };
    check(&found(490_000), &[]);
    check(&found(510_000), &[AuditBound::Lag]);
}

#[test]
fn without_stamps_a_lag_counts_against_what_is_reported() {
    let slow = |ns: u64| PhaseAudit { lag_ns: vec![(ns, 5_000)], longest_lag_ns: ns, stamped_reads: 5_000, ..phase() };
    // 2 % of gaps of 11 ms are 0.22 ms.
    check(&run(&slow(200_000), &open(0), &RATE), &[]);
    check(&run(&slow(250_000), &open(0), &RATE), &[AuditBound::Lag]);
    let starved = PhaseAudit { waited_ns: Some(200 * MS), stamped_reads: 0, lag_ns: Vec::new(), ..phase() };
    check(&run(&starved, &open(0), &RATE), &[AuditBound::Waited]);
    let stamped = PhaseAudit { waited_ns: Some(2_000 * MS), ..phase() };
    check(&run(&stamped, &open(0), &RATE), &[]);
}

#[test]
fn a_closed_loop_with_empty_places_offers_less() {
    let arrival = Arrival::closed(64);
    let quick = run(&phase(), &closed(64, 20, MS), &arrival);
    check(&quick, &[]);
    assert!((quick.idle_share.unwrap() - 1.0 / 501.0).abs() < 1e-9, "{:?}", quick.idle_share);
    assert!((quick.turnaround_ms.unwrap().p99 - 1.0).abs() < 1e-9 && quick.lateness_ms.is_none());
    let slow = run(&phase(), &closed(64, 20, 6 * MS), &arrival);
    check(&slow, &[AuditBound::IdleSlots]);
    assert!(slow.pacing.is_none());
}

#[test]
fn a_reader_who_thinks_leaves_no_place_empty() {
    let requests: Vec<SendTimes> = closed(8, 10, 400 * MS)
        .into_iter()
        .map(|times| SendTimes { is_later_turn: times.intended_ns >= 500 * MS, ..times })
        .collect();
    let found = run(&phase(), &requests, &Arrival::closed(8));
    assert_eq!(found.idle_share, Some(0.0));
}

#[test]
fn what_is_not_known_is_not_ok() {
    let blind = PhaseAudit { waited_ns: None, stamped_reads: 0, lag_ns: Vec::new(), ..phase() };
    let found = run(&blind, &open(0), &RATE);
    assert_eq!(found.verdict, AuditVerdict::Unproven);
    assert!(found.unknown[0].contains("how late the client read"), "{:?}", found.unknown);
    let empty = PhaseAudit { ended_ns: 0, reads: 0, stamped_reads: 0, lag_ns: Vec::new(), ..phase() };
    let found = run(&empty, &[], &RATE);
    assert_eq!((found.verdict, found.unknown.len()), (AuditVerdict::Unproven, 3));
}
