//! The live view and the log lines, from a scripted run.

use crate::sample;

use std::collections::BTreeMap;

use isobench_report::live::{LiveState, plain_line};
use isobench_schema::comparability::ComparabilityKey;
use isobench_schema::event::{BlockEnd, Event, EventKind, LaunchStage, RunEnd};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{ArmId, BlockId, Digest, LaunchId, RunId, TaskId};
use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline};
use isobench_schema::units::Millis;

/// 2026-01-02 03:04:05 UTC, in seconds.
const START_S: f64 = 1_767_323_045.0;

fn block(block: u32, attempt: u32) -> BlockId {
    BlockId { task: TaskId::new("chunked-prefill").unwrap(), block, attempt }
}

fn order() -> Vec<ArmId> {
    ["human", "baseline", "agent:half"].map(sample::arm).to_vec()
}

fn stage(id: BlockId, arm: &str, stage: LaunchStage) -> EventKind {
    EventKind::LaunchStage { launch: LaunchId { block: id, arm: sample::arm(arm) }, stage }
}

fn record(arm: &ArmId, outcome: Outcome) -> LaunchRecord {
    LaunchRecord {
        launch: LaunchId { block: block(0, 1), arm: arm.clone() },
        position: 0,
        environment: Digest::of(b"e").into(),
        outcome,
        incidents: Vec::new(),
        evidence: BTreeMap::new(),
        timeline: Timeline::default(),
        client: None,
        device: None,
        key: ComparabilityKey::default(),
    }
}

fn script() -> Vec<(f64, EventKind)> {
    let crash = Failure::new(FailureStage::Start, FailureClass::StartCrashed, "it ended with \u{1b}[31mstatus 1");
    let short = Failure::new(FailureStage::Validity, FailureClass::OutputLength, "answers are too short");
    let records = vec![
        record(&sample::arm("human"), Outcome::Measured),
        record(&sample::arm("baseline"), Outcome::Measured),
        record(&sample::arm("agent:half"), Outcome::Failed { failure: crash.clone() }),
    ];
    let run = RunId::new("r").unwrap();
    let charged = BTreeMap::from([(sample::arm("human"), short)]);
    vec![
        (0.0, EventKind::RunStarted { run, plan: Digest::of(b"p"), isobench: "0.1.0".to_owned(), process: 1 }),
        (0.1, EventKind::OrphansEnded { processes: vec![7, 8] }),
        (1.0, EventKind::BlockStarted { id: block(0, 1), order: order() }),
        (2.0, stage(block(0, 1), "human", LaunchStage::Environment)),
        (3.0, stage(block(0, 1), "human", LaunchStage::Ready)),
        (61.0, EventKind::BlockEnded { id: block(0, 1), end: BlockEnd::Complete, launches: records, charged }),
        (61.0, EventKind::BlockStarted { id: block(1, 1), order: order() }),
        (
            62.0,
            EventKind::BlockEnded {
                id: block(1, 1),
                end: BlockEnd::Spoilt { failure: crash },
                launches: Vec::new(),
                charged: BTreeMap::new(),
            },
        ),
        (63.0, EventKind::BlockStarted { id: block(1, 2), order: order() }),
        (64.0, stage(block(1, 2), "human", LaunchStage::Finished)),
        (65.0, stage(block(1, 2), "baseline", LaunchStage::Measuring)),
    ]
}

fn events() -> Vec<Event> {
    let number = |(sequence, (at_s, kind)): (u64, (f64, EventKind))| Event {
        sequence,
        at_ms: Millis::new((START_S + at_s) * 1000.0).unwrap(),
        kind,
    };
    (0..).zip(script()).map(number).collect()
}

fn state() -> LiveState {
    let mut state = LiveState::new(&sample::plan());
    for event in &events() {
        state.apply(event);
    }
    state
}

fn now_ms(after_s: f64) -> f64 {
    (START_S + after_s) * 1000.0
}

#[test]
fn the_view_shows_where_the_run_is() {
    let mut state = state();
    state.note_measurement(&sample::arm("human"), "232.4 tok/s");
    state.note_estimate("human vs baseline 1.16x (1.14x to 1.18x)");
    insta::assert_snapshot!("live", state.render(now_ms(75.0), 100, 20));
    insta::assert_snapshot!("live_small", state.render(now_ms(75.0), 40, 7));
    let end = EventKind::RunEnded { end: RunEnd::Stopped, message: Some("the disk is full".to_owned()) };
    state.apply(&Event { sequence: 99, at_ms: Millis::new(now_ms(80.0)).unwrap(), kind: end });
    insta::assert_snapshot!("live_ended", state.render(now_ms(80.0), 100, 20));
}

#[test]
fn the_view_never_leaves_the_screen() {
    let state = state();
    for width in [0, 1, 10, 80] {
        for height in 0..12 {
            let text = state.render(now_ms(75.0), width, height);
            assert!(text.lines().count() <= height, "{width}x{height}");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}x{height}");
        }
    }
    assert!(LiveState::default().render(0.0, 80, 24).contains("not started"));
}

#[test]
fn the_estimate_follows_the_pace() {
    // 18 blocks in 540 s were foreseen, 30 s each; the first took 60 s, so that 17 blocks take 1020 s.
    let mut state = LiveState::new(&sample::plan());
    for event in events().iter().take(6) {
        state.apply(event);
    }
    assert!(state.render(now_ms(61.0), 100, 20).contains("about 17 min left"));
}

#[test]
fn a_log_has_one_harmless_line_for_each_event_of_note() {
    let lines: Vec<String> = events().iter().filter_map(plain_line).collect();
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    insta::assert_snapshot!(lines.join("\n"));
}
