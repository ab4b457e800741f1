//! Records made up for tests, and what is read from them.

use isobench_schema::failure::FailureClass;
use isobench_schema::format;
use isobench_schema::ids::{ArmId, BlockId, Digest, LaunchId, TaskId};
use isobench_schema::measurement::{Measurement, MetricName};
use isobench_schema::record::{
    AuditLine, Phase, PhaseAudit, RecordHeader, RequestFailure, RequestRecord, ServerLine, ServerSample, Usage,
};
use isobench_schema::units::Seconds;
use isobench_schema::workload::Arrival;

use super::*;
use crate::validity::PromptCounts;

const MS: u64 = 1_000_000;

/// Returns the record of a request of 4 tokens: due at 10 ms, first token after 20 ms, then one every 10 ms, 55 ms in
/// all.
pub(crate) fn record(phase: Phase, index: u32) -> RequestRecord {
    RequestRecord {
        input_tokens: 8,
        output_tokens_asked: 4,
        sent_ns: Some(11 * MS),
        first_byte_ns: Some(12 * MS),
        chunk_ns: vec![30 * MS, 40 * MS, 50 * MS, 60 * MS],
        chunk_tokens: vec![1; 4],
        end_ns: 65 * MS,
        status: Some(200),
        finish_reason: Some("length".to_owned()),
        usage: Some(Usage { prompt_tokens: 8, completion_tokens: 4 }),
        text: format!("one two three {index}"),
        ..RequestRecord::intended(phase, index, 10 * MS)
    }
}

/// Returns the record moved in time.
pub(crate) fn at(mut record: RequestRecord, start_ns: u64) -> RequestRecord {
    let shift = |time: u64| time + start_ns;
    record.intended_ns = shift(record.intended_ns);
    record.sent_ns = record.sent_ns.map(shift);
    record.first_byte_ns = record.first_byte_ns.map(shift);
    record.chunk_ns = record.chunk_ns.into_iter().map(shift).collect();
    record.end_ns = shift(record.end_ns);
    record
}

/// Returns a window of `count` requests, one every 65 ms, with a probe on each side.
pub(crate) fn launch(count: u32) -> Vec<RequestRecord> {
    let before = [Phase::First, Phase::ProbeBefore, Phase::WarmUp];
    let mut records: Vec<RequestRecord> =
        (0..).zip(before).map(|(place, phase): (u64, Phase)| at(record(phase, 0), place * 65 * MS)).collect();
    records.extend((0..count).map(|index| at(record(Phase::Measure, index), (u64::from(index) + 3) * 65 * MS)));
    records.push(at(record(Phase::ProbeAfter, 0), (u64::from(count) + 3) * 65 * MS));
    records
}

/// Returns rules that [`launch`] keeps.
pub(crate) fn rules(count: u32) -> LaunchRules {
    LaunchRules {
        requests: count,
        probes: 1,
        exact_length: true,
        count_tolerance: 0.0,
        arrival: Arrival::closed(1),
        failed_requests: 0,
        min_window_s: Seconds::new(0.1).unwrap(),
        primary: MetricName::OutputThroughput,
        margin: 0.02,
        prompt_counts: PromptCounts::Unknown,
        script: None,
    }
}

pub(crate) fn text(records: &[RequestRecord]) -> String {
    let header = RecordHeader {
        client: "isobench 0.1.0".to_owned(),
        clock: "a clock".to_owned(),
        epoch_unix_ns: 1,
        seed: 7,
        workload: Digest::of(b"w"),
    };
    let mut lines = vec![format::to_line(&header).unwrap()];
    lines.extend(records.iter().map(|record| serde_json::to_string(record).unwrap()));
    lines.join("\n") + "\n"
}

pub(crate) fn launch_id() -> LaunchId {
    LaunchId { block: BlockId { task: TaskId::new("t").unwrap(), block: 0, attempt: 1 }, arm: ArmId::Human }
}

pub(crate) fn read(rules: LaunchRules, text: &str, piece: usize) -> Result<LaunchDigest, String> {
    let mut reader = RecordReader::new(launch_id(), rules);
    for bytes in text.as_bytes().chunks(piece) {
        reader.feed(bytes);
    }
    reader.finish().map_err(|error| error.to_string())
}

#[test]
fn a_launch_is_measured() {
    let digest = read(rules(8), &text(&launch(8)), 1 << 20).unwrap();
    assert_eq!(digest.findings, []);
    assert_eq!((digest.seed, digest.client.as_str(), digest.workload.clone()), (7, "isobench 0.1.0", Digest::of(b"w")));
    assert_eq!((digest.probes_before.len(), digest.probes_after.len(), digest.answers.len()), (1, 1, 8));
    let Measurement { values, too_few, requests, input_tokens, output_tokens, window_s, .. } = digest.measurement;
    assert_eq!((requests.asked, requests.completed, requests.failed), (8, 8, 0));
    assert_eq!((input_tokens, output_tokens), (64, 32));
    // From the first one's 10 ms to the last one's 65 ms, 7 * 65 ms later.
    assert!((window_s - 0.51).abs() < 1e-12);
    for (name, expected) in [
        (MetricName::RequestThroughput, 8.0 / 0.51),
        (MetricName::OutputThroughput, 32.0 / 0.51),
        (MetricName::TotalTokenThroughput, 96.0 / 0.51),
        (MetricName::MeanTtftMs, 20.0),
        (MetricName::MedianTpotMs, 35.0 / 3.0),
        (MetricName::MeanItlMs, 10.0),
        (MetricName::MedianE2elMs, 55.0),
    ] {
        assert!((values[&name] - expected).abs() < 1e-9, "{name}: {}", values[&name]);
    }
    assert_eq!(too_few.len(), 8);
    assert!(!values.contains_key(&MetricName::P90TtftMs));
}

#[test]
fn lines_of_other_kinds_are_kept_and_change_no_number() {
    let audit = PhaseAudit {
        phase: Phase::Measure,
        began_ns: 1,
        ended_ns: 2,
        workers: 1,
        busiest_ns: 1,
        processor_ns: 1,
        waited_ns: None,
        reads: 3,
        stamped_reads: 3,
        lag_ns: vec![(1000, 3)],
        longest_lag_ns: 900,
        reconnects: 0,
        connections: 1,
        retransmits: Some(0),
    };
    let server = ServerSample { at_ns: 5, values: [("waiting".to_owned(), 1.0)].into() };
    let plain = text(&launch(8));
    let mut lines: Vec<String> = plain.lines().map(str::to_owned).collect();
    lines.insert(4, serde_json::to_string(&ServerLine { server }).unwrap());
    lines.push(serde_json::to_string(&AuditLine { audit: audit.clone() }).unwrap());
    let digest = read(rules(8), &(lines.join("\n") + "\n"), 1 << 20).unwrap();
    assert_eq!(digest.audits, [audit]);
    assert_eq!(digest.measurement, read(rules(8), &plain, 1 << 20).unwrap().measurement);
}

#[test]
fn a_percentile_needs_enough_requests() {
    for (count, p90, p99) in [(63, false, false), (64, true, false), (661, true, false), (662, true, true)] {
        let digest = read(rules(count), &text(&launch(count)), 1 << 20).unwrap();
        for (name, there) in [(MetricName::P90E2elMs, p90), (MetricName::P99ItlMs, p99)] {
            assert_eq!(digest.measurement.values.contains_key(&name), there, "{name} of {count}");
            assert_eq!(digest.measurement.too_few.contains(&name), !there, "{name} of {count}");
        }
    }
}

#[test]
fn pieces_of_any_size_give_the_same() {
    let text = text(&launch(4));
    let whole = read(rules(4), &text, 1 << 20).unwrap();
    for piece in [1, 7, 100] {
        assert_eq!(read(rules(4), &text, piece).unwrap(), whole);
    }
    let stored = serde_json::to_vec(&whole).unwrap();
    assert_eq!(serde_json::from_slice::<LaunchDigest>(&stored).unwrap(), whole);
}

#[test]
fn failed_requests_and_what_is_not_the_window_are_not_measured() {
    let mut records = launch(6);
    records[3].failure = Some(RequestFailure { class: FailureClass::HttpError, message: "500".to_owned() });
    // The warm-up takes its time, before the window.
    for record in &mut records[3..] {
        *record = at(record.clone(), 1_000_000 * MS);
    }
    records[2].end_ns += 1_000_000 * MS;
    let digest = read(LaunchRules { failed_requests: 1, ..rules(6) }, &text(&records), 1 << 20).unwrap();
    assert_eq!(digest.findings, []);
    let requests = digest.measurement.requests;
    assert_eq!((requests.asked, requests.completed, requests.failed), (6, 5, 1));
    assert_eq!((digest.measurement.output_tokens, digest.answers.len()), (20, 5));
}

#[test]
fn answers_are_kept_from_all_over_the_window_as_the_seed_draws_them() {
    for requests in [1, 8, 16] {
        assert_eq!(drawn(7, requests), (0..requests).collect(), "{requests}");
    }
    for requests in [17, 100, 1_000_000, u32::MAX] {
        let kept: Vec<u32> = drawn(7, requests).into_iter().collect();
        assert_eq!(kept.len(), 16, "{requests}");
        for (part, index) in (0_u64..).zip(&kept) {
            let part_of = |part: u64| u64::from(requests) * part / 16;
            assert!((part_of(part)..part_of(part + 1)).contains(&u64::from(*index)), "{index} of {requests}");
        }
    }
    assert_eq!(drawn(7, 1000), drawn(7, 1000));
    assert_ne!(drawn(7, 1000), drawn(8, 1000));
    let digest = read(rules(100), &text(&launch(100)), 1 << 20).unwrap();
    assert_eq!(digest.answers.iter().map(|answer| answer.index).collect::<BTreeSet<_>>(), drawn(7, 100));
}

#[test]
fn every_measured_answer_leaves_a_short_digest() {
    let mut records = launch(40);
    let whole = read(rules(40), &text(&records), 1 << 20).unwrap();
    "something else".clone_into(&mut records[3 + 37].text);
    records[3 + 20].failure = Some(RequestFailure { class: FailureClass::HttpError, message: "500".to_owned() });
    let other = read(LaunchRules { failed_requests: 1, ..rules(40) }, &text(&records), 1 << 20).unwrap();
    assert_eq!(whole.answer_digests.first_difference(&other.answer_digests), Some(37));
    assert_eq!(whole.answer_digests.equal_share(&other.answer_digests), Some(38.0 / 39.0));
    let stored = String::from(whole.answer_digests);
    assert_eq!(stored.len(), 40 * 16);
}

#[test]
fn without_completed_requests_nothing_is_measured() {
    let mut records = launch(2);
    for record in &mut records[3..5] {
        record.failure = Some(RequestFailure { class: FailureClass::HttpError, message: "500".to_owned() });
    }
    let digest = read(rules(2), &text(&records), 1 << 20).unwrap();
    assert!(digest.measurement.values.is_empty() && digest.measurement.too_few.is_empty());
    assert_eq!(digest.findings[0].class, FailureClass::HttpError);
}

#[test]
fn unreadable_records_name_the_line() {
    let good = text(&launch(2));
    let lines: Vec<&str> = good.lines().collect();
    let repeated = format!("{good}{}\n", lines[2]);
    let mut uneven = launch(2);
    uneven[1].chunk_tokens.pop();
    let cases = [
        (String::new(), "the request records are empty"),
        ("{}\n".to_owned(), "line 1 of the request records is no header"),
        (format!("{}\n{{}}\n", lines[0]), "line 2 of the request records is no request record"),
        (format!("{}\n\n", lines[0]), "line 2 of the request records is no request record"),
        (good.trim_end().to_owned(), "line 7 of the request records is cut"),
        (good[..good.len() - 40].to_owned(), "line 7 of the request records is cut"),
        (repeated, "line 8 of the request records repeats probe-before request 0"),
        (text(&uneven), "line 3 of the request records has 4 chunk times but 3 token counts"),
    ];
    for (text, expected) in cases {
        for piece in [5, 1 << 20] {
            assert_eq!(read(rules(2), &text, piece).unwrap_err(), expected);
        }
    }
}

#[test]
fn unreadable_records_are_a_failure_of_the_launch() {
    let mut reader = RecordReader::new(launch_id(), rules(1));
    reader.feed(b"[]\n");
    let failure = reader.finish().unwrap_err().failure();
    assert_eq!((failure.stage, failure.class), (FailureStage::Parse, FailureClass::EvidenceUnreadable));
    assert!(failure.message.starts_with("line 1 of the request records is no header: expected the format"));
}
