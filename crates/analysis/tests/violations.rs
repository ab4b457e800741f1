//! A launch whose records break each check that is made of records alone, and by no other change.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected fails")]

use std::collections::BTreeMap;

use isobench_analysis::launch::LaunchInput;
use isobench_analysis::measure::{LaunchDigest, RecordReader};
use isobench_analysis::validity::{LaunchRules, PromptCounts};
use isobench_schema::check::Check;
use isobench_schema::comparability::ComparabilityKey;
use isobench_schema::failure::{Charge, FailureClass};
use isobench_schema::format;
use isobench_schema::ids::{ArmId, BlockId, Digest, LaunchId, TaskId};
use isobench_schema::measurement::MetricName;
use isobench_schema::outcome::{ClientLoad, DeviceClocks, LaunchRecord, Outcome, Timeline};
use isobench_schema::record::{AuditLine, Phase, PhaseAudit, RecordHeader, RequestFailure, RequestRecord, Usage};
use isobench_schema::units::{Millis, Seconds};
use isobench_schema::workload::Arrival;

const MS: u64 = 1_000_000;
/// Requests of the window.
const REQUESTS: u32 = 80;
/// Places of records: a warm-up, the probe before the window, and the window's first request.
const WARM_UP: usize = 2;
const PROBE: usize = 1;
const WINDOW: usize = 3;

/// A launch before it is read.
struct Made {
    rules: LaunchRules,
    records: Vec<RequestRecord>,
    audit: PhaseAudit,
    client: Option<ClientLoad>,
    device: Option<DeviceClocks>,
    /// Whether the last line is cut.
    is_cut: bool,
}

/// Returns a launch that breaks nothing: a request every 50 ms, each of 4 tokens and 40 ms.
fn sound() -> Made {
    let phases = [(Phase::First, 1), (Phase::ProbeBefore, 1), (Phase::WarmUp, 1), (Phase::Measure, REQUESTS)];
    let mut records = Vec::new();
    for (phase, count) in phases.into_iter().chain([(Phase::ProbeAfter, 1)]) {
        for index in 0..count {
            let due = 50 * MS * records.len() as u64;
            records.push(RequestRecord {
                input_tokens: 8,
                output_tokens_asked: 4,
                sent_ns: Some(due),
                first_byte_ns: Some(due + 5 * MS),
                chunk_ns: [10, 20, 30, 40].map(|ms| due + ms * MS).to_vec(),
                chunk_tokens: vec![1; 4],
                end_ns: due + 40 * MS,
                status: Some(200),
                usage: Some(Usage { prompt_tokens: 8, completion_tokens: 4 }),
                text: "one two three four".to_owned(),
                ..RequestRecord::intended(phase, index, due)
            });
        }
    }
    let audit = PhaseAudit {
        phase: Phase::Measure,
        began_ns: 0,
        ended_ns: 4_000 * MS,
        workers: 1,
        busiest_ns: 40 * MS,
        processor_ns: 40 * MS,
        waited_ns: Some(0),
        reads: 400,
        stamped_reads: 400,
        lag_ns: vec![(50_000, 400)],
        longest_lag_ns: 50_000,
        reconnects: 0,
        connections: 1,
        retransmits: Some(0),
    };
    let rules = LaunchRules {
        requests: REQUESTS,
        probes: 1,
        exact_length: true,
        count_tolerance: 0.0,
        arrival: Arrival::Open { rate_per_s: 20.0, burstiness: 1.0 },
        failed_requests: 0,
        min_window_s: Seconds::new(1.0).unwrap(),
        primary: MetricName::MeanE2elMs,
        margin: 0.02,
        prompt_counts: PromptCounts::Equal,
        script: None,
    };
    Made { rules, records, audit, client: None, device: None, is_cut: false }
}

fn id() -> LaunchId {
    LaunchId { block: BlockId { task: TaskId::new("t").unwrap(), block: 0, attempt: 1 }, arm: ArmId::Human }
}

fn read(made: &Made) -> Option<LaunchDigest> {
    let header = RecordHeader {
        client: "isobench".to_owned(),
        clock: "a clock".to_owned(),
        epoch_unix_ns: 1,
        seed: 7,
        workload: Digest::of(b"w"),
    };
    let mut lines = vec![format::to_line(&header).unwrap()];
    lines.extend(made.records.iter().map(|record| serde_json::to_string(record).unwrap()));
    lines.push(serde_json::to_string(&AuditLine { audit: made.audit.clone() }).unwrap());
    let text = lines.join("\n") + if made.is_cut { "" } else { "\n" };
    let mut reader = RecordReader::new(id(), made.rules.clone());
    reader.feed(text.as_bytes());
    reader.finish().ok()
}

fn judged(made: Made) -> LaunchInput {
    let digest = read(&made);
    let record = LaunchRecord {
        launch: id(),
        position: 0,
        environment: Digest::of(b"e").into(),
        outcome: Outcome::Measured,
        incidents: Vec::new(),
        evidence: BTreeMap::new(),
        timeline: Timeline::default(),
        client: made.client,
        device: made.device,
        key: ComparabilityKey::default(),
    };
    LaunchInput { record, digest, cause: None }
}

fn failed(record: &mut RequestRecord) {
    record.failure = Some(RequestFailure { class: FailureClass::HttpError, message: "500".to_owned() });
}

fn client(busy_ms: f64, waited_ms: f64) -> ClientLoad {
    let ms = |value| Millis::new(value).unwrap();
    ClientLoad { window_ms: ms(1000.0), busy_ms: ms(busy_ms), waited_ms: ms(waited_ms), engine_ms: None }
}

/// Moves a record in time.
fn late(record: &mut RequestRecord, ns: u64) {
    record.intended_ns += ns;
    record.sent_ns = record.sent_ns.map(|at| at + ns);
    record.first_byte_ns = record.first_byte_ns.map(|at| at + ns);
    record.chunk_ns.iter_mut().for_each(|at| *at += ns);
    record.end_ns += ns;
}

/// Lets each request of the window take so much longer than the one before it.
fn slower(made: &mut Made, ns: u64) {
    let place = |index: u32| u64::from(index);
    for record in made.records.iter_mut().filter(|record| record.phase == Phase::Measure) {
        record.chunk_ns[3] += place(record.index) * ns;
        record.end_ns = record.chunk_ns[3];
    }
    late(made.records.last_mut().unwrap(), u64::from(REQUESTS) * ns);
}

type Violation = (Check, fn(&mut Made));

/// Each check with the least that breaks it.
const VIOLATIONS: &[Violation] = &[
    (Check::RecordsReadable, |made| made.is_cut = true),
    (Check::RequestsSucceed, |made| failed(&mut made.records[WINDOW])),
    (Check::ProbesSucceed, |made| failed(&mut made.records[PROBE])),
    (Check::WarmUpFinished, |made| failed(&mut made.records[WARM_UP])),
    (Check::AllRecorded, |made| drop(made.records.remove(WINDOW))),
    (Check::Drained, |made| made.records[WARM_UP].end_ns += 11 * MS),
    (Check::TimesInOrder, |made| made.records[WINDOW].chunk_ns[3] += MS),
    (Check::LittlesLaw, |made| {
        // 40 ms of each 50 ms are under way: 0.8 requests, and here two at a time where there is one place.
        made.rules.arrival = Arrival::closed(1);
        let shift = |record: &mut RequestRecord| {
            let ns = 25 * MS * u64::from(record.index);
            let back = |at: u64| at - ns;
            record.intended_ns = back(record.intended_ns);
            record.sent_ns = record.sent_ns.map(back);
            record.first_byte_ns = record.first_byte_ns.map(back);
            record.chunk_ns.iter_mut().for_each(|at| *at -= ns);
            record.end_ns = back(record.end_ns);
        };
        made.records.iter_mut().filter(|record| record.phase == Phase::Measure).for_each(shift);
    }),
    (Check::TokenCounts, |made| made.records[WINDOW].usage = Some(Usage { prompt_tokens: 8, completion_tokens: 5 })),
    (Check::PromptCounts, |made| made.records[WINDOW].usage = Some(Usage { prompt_tokens: 9, completion_tokens: 4 })),
    (Check::AnswerLengths, |made| made.records[WINDOW].output_tokens_asked = 5),
    (Check::WindowLength, |made| made.rules.min_window_s = Seconds::new(5.0).unwrap()),
    (Check::ClientLateness, |made| {
        for record in made.records.iter_mut().skip(WINDOW).step_by(10) {
            record.sent_ns = record.sent_ns.map(|at| at + 8 * MS);
        }
    }),
    (Check::ClientLag, |made| {
        made.audit.lag_ns = vec![(150 * MS, 400)];
        made.audit.longest_lag_ns = 150 * MS;
    }),
    (Check::ClientBusy, |made| made.client = Some(client(710.0, 0.0))),
    (Check::ClientWait, |made| made.client = Some(client(10.0, 310.0))),
    (Check::ServerKeepsUp, |made| slower(made, 50 * MS)),
    (Check::NoDrift, |made| slower(made, MS / 10)),
    (Check::DeviceNotSlowed, |made| {
        made.device = Some(DeviceClocks {
            samples: 9,
            slowed: 1,
            power_capped: 9,
            reasons: vec!["hardware slow-down".to_owned()],
            lowest_mhz: None,
            highest_mhz: None,
            hottest_celsius: None,
        });
    }),
];

#[test]
fn a_sound_launch_breaks_nothing() {
    assert_eq!(judged(sound()).failures(), []);
}

#[test]
fn each_violation_breaks_its_check_with_its_class_and_charge() {
    for (check, violate) in VIOLATIONS {
        let mut made = sound();
        violate(&mut made);
        let failure = judged(made).failure().unwrap_or_else(|| unreachable!("{check} isn't broken"));
        let broken = failure.check.unwrap_or_else(|| unreachable!("{failure} names no check"));
        assert_eq!(broken.name, *check, "{failure}");
        match check.class() {
            Some(class) => assert_eq!(failure.class, class, "{check}"),
            None => assert_eq!(failure.class, FailureClass::HttpError, "{check}"),
        }
        assert_eq!(failure.class.charge() == Charge::Arm, check.charge().is_none_or(|charge| charge == Charge::Arm));
        // What says so has its numbers, but for records that can't be read.
        assert_eq!(broken.measured.is_some(), *check != Check::RecordsReadable, "{failure}");
    }
}

#[test]
fn a_lag_where_times_are_the_clients_own_is_held_to_a_shorter_bound() {
    let lag = |stamped_reads: u64| {
        let mut made = sound();
        made.audit.stamped_reads = stamped_reads;
        made.audit.lag_ns = vec![(8 * MS, 400)];
        made.audit.longest_lag_ns = 8 * MS;
        judged(made).failure().and_then(|failure| failure.check).map(|check| check.name)
    };
    assert_eq!((lag(400), lag(0)), (None, Some(Check::ClientLag)));
}

#[test]
fn as_many_requests_of_the_warm_up_may_fail_as_of_the_window() {
    let mut made = sound();
    made.rules.failed_requests = 1;
    failed(&mut made.records[WARM_UP]);
    assert_eq!(judged(made).failures(), []);
}
