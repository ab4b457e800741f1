//! A block that runs elsewhere and is taken in.

use std::collections::BTreeMap;
use std::fs;

use isobench_schema::block::{BlockComplete, BlockSpec};
use isobench_schema::environment::Patch;
use isobench_schema::event::{BlockEnd, EventKind, LaunchStage};
use isobench_schema::failure::{Failure, FailureClass};
use isobench_schema::format;
use isobench_schema::ids::ArmId;
use isobench_testkit::Fault;
use rustix::process::Signal;

use crate::support::{Place, Running, events, wait_for_stage, wait_until};

/// Returns a place whose run was interrupted in its first block, and the specification of what runs next.
fn interrupted() -> Place {
    let place = Place::new();
    place.write_task(&place.task_text());
    let mut running = Running::start(&mut place.isobench(["run", "task", "--out", "run"]));
    wait_for_stage(&place.path("run"), LaunchStage::Environment);
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(5));
    let spec = place.expect(0, &["run", "run", "--dry-run"]).stdout;
    fs::write(place.path("spec.json"), spec).unwrap();
    place
}

/// Runs the block of `spec.json` until it is complete. A busy machine spoils one now and then: a run would replace it by
/// itself, and whoever runs a block alone does it again.
fn run_block(place: &Place) {
    for _ in 0..5 {
        let finished = place.finish(["block", "spec.json", "--out", "elsewhere", "--quiet"]);
        if finished.code == Some(0) {
            return;
        }
        assert_eq!(finished.code, Some(100), "{finished:?}");
        fs::remove_dir_all(place.path("elsewhere")).unwrap();
    }
    panic!("the machine spoilt the block five times");
}

#[test]
fn a_block_that_ran_elsewhere_is_taken_in_once() {
    let place = interrupted();
    run_block(&place);
    place.check_nothing_left("elsewhere");
    place.expect(0, &["block", "spec.json", "--out", "elsewhere"]).says(&["is complete already"]);
    let taken = place.expect(0, &["run", "run", "--take-in", "elsewhere", "--take-in", "elsewhere"]);
    taken.says(&["`elsewhere` taken in", "`elsewhere` is in the run already"]);
    place.check_sound("run");
    let mut complete = Vec::new();
    for event in events(&place.path("run")) {
        if let EventKind::BlockEnded { id, end: BlockEnd::Complete, launches, .. } = event.kind {
            assert_eq!(launches.len(), 2);
            complete.push((id.block, id.attempt));
        }
    }
    assert_eq!(complete, [(0, 2), (1, 1)]);
    let log = fs::read(place.path("run/events.jsonl")).unwrap();
    place.expect(0, &["run", "run", "--take-in", "elsewhere"]).says(&["is in the run already"]);
    assert_eq!(fs::read(place.path("run/events.jsonl")).unwrap(), log);
    place.expect(4, &["run", "run", "--dry-run"]).says(&["no block is left"]);
}

#[test]
fn a_block_ends_elsewhere_as_it_would_have_in_its_run() {
    let place = Place::new();
    let mut text = place.with_faults(place.task_text(), "garbage", &[Fault::Garbage]);
    text.blocks = 1;
    place.write_task(&text);
    place.expect(100, &["run", "task", "--out", "here", "--allow-unisolated", "--quiet"]);
    let charged = |(end, charged): (BlockEnd, BTreeMap<ArmId, Failure>)| {
        let charged: Vec<_> = charged.into_iter().map(|(arm, failure)| (arm.to_string(), failure.class)).collect();
        assert_eq!(charged, [("agent:garbage".to_owned(), FailureClass::OutputMismatch)]);
        assert_eq!(end, BlockEnd::Complete);
    };
    for event in events(&place.path("here")) {
        if let EventKind::BlockEnded { end, charged: found, .. } = event.kind {
            charged((end, found));
        }
    }
    let mut running = Running::start(&mut place.isobench(["run", "task", "--out", "run", "--allow-unisolated"]));
    wait_for_stage(&place.path("run"), LaunchStage::Environment);
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(5));
    fs::write(place.path("spec.json"), place.expect(0, &["run", "run", "--dry-run"]).stdout).unwrap();
    run_block(&place);
    let complete = fs::read(place.path("elsewhere/complete.json")).unwrap();
    let complete: BlockComplete = isobench_schema::format::from_slice(&complete).unwrap();
    charged((complete.end, complete.charged));
}

#[test]
fn a_block_that_is_interrupted_or_killed_elsewhere_runs_again_whole() {
    let place = interrupted();
    let spec = fs::read_to_string(place.path("spec.json")).unwrap();
    for (signal, code) in [(Signal::INT, Some(5)), (Signal::KILL, None)] {
        let mut running = Running::start(&mut place.isobench(["block", "spec.json", "--out", "elsewhere"]));
        wait_for_stage(&place.path("elsewhere"), LaunchStage::Starting);
        running.signal(signal);
        assert_eq!(running.finish().code, code);
        place.expect(2, &["run", "run", "--take-in", "elsewhere"]).says(&["`elsewhere`"]);
    }
    run_block(&place);
    place.check_nothing_left("elsewhere");
    fs::write(place.path("other.json"), spec.replace("\"attempt\": 2", "\"attempt\": 3")).unwrap();
    place.expect(2, &["block", "other.json", "--out", "elsewhere"]).says(&["holds another block"]);
    place.expect(0, &["run", "run", "--take-in", "elsewhere", "--quiet"]);
    place.check_sound("run");
}

#[test]
fn a_block_of_another_run_or_one_that_is_not_complete_is_refused() {
    let place = interrupted();
    place.expect(0, &["run", "task", "--out", "other", "--arm", "baseline", "--quiet"]);
    run_block(&place);
    let log = fs::read(place.path("other/events.jsonl")).unwrap();
    place.expect(2, &["run", "other", "--take-in", "elsewhere"]).says(&["`elsewhere`", "`run`", "`other`"]);
    assert_eq!(fs::read(place.path("other/events.jsonl")).unwrap(), log);
    fs::remove_file(place.path("elsewhere/complete.json")).unwrap();
    place.expect(2, &["run", "run", "--take-in", "elsewhere"]).says(&["`elsewhere`"]);
    place.expect(2, &["run", "run", "--take-in", "task"]).says(&["`task` holds no block"]);
    place.expect(2, &["run", "task", "--take-in", "elsewhere"]).says(&["name the run's folder"]);
}

#[test]
fn a_block_that_is_not_the_plans_or_that_ended_otherwise_here_is_refused() {
    let place = interrupted();
    let spec = fs::read_to_string(place.path("spec.json")).unwrap();
    fs::write(place.path("other.json"), spec.replacen("\"requests\": 16", "\"requests\": 12", 1)).unwrap();
    place.expect(0, &["block", "other.json", "--out", "other", "--quiet"]);
    let log = fs::read(place.path("run/events.jsonl")).unwrap();
    let refused = place.expect(2, &["run", "run", "--take-in", "other"]);
    refused.says(&["`other`", "`workload.requests` is 12, and the plan says 16", "hint: `isobench run run --dry-run`"]);
    assert_eq!(fs::read(place.path("run/events.jsonl")).unwrap(), log);
    run_block(&place);
    let mut running = Running::start(&mut place.isobench(["run", "run"]));
    let told = || fs::read_to_string(place.path("run/events.jsonl")).unwrap();
    wait_until("the next attempt has begun", || told().matches("block-started").count() == 2);
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(5));
    let refused = place.expect(2, &["run", "run", "--take-in", "elsewhere"]);
    refused.says(&["block-0/attempt-2` has ended in the run already, interrupted", "`elsewhere`"]);
    place.expect(0, &["run", "run", "--quiet"]);
    fs::write(place.path("next.json"), spec.replace("\"attempt\": 2", "\"attempt\": 7")).unwrap();
    place.expect(0, &["block", "next.json", "--out", "late", "--quiet"]);
    place.expect(2, &["run", "run", "--take-in", "late"]).says(&["`late` is complete in the run already"]);
    place.check_sound("run");
}

#[test]
fn a_specification_that_cannot_be_read_is_refused() {
    let place = interrupted();
    let spec = fs::read_to_string(place.path("spec.json")).unwrap();
    for (text, parts) in [
        (String::new(), ["isobench.block-spec", "because"]),
        ("{}".to_owned(), ["expected the format `isobench.block-spec/1`", "no `format` field"]),
        (spec.replace("block-spec/1", "block-spec/2"), ["isobench.block-spec/2", "newer"]),
        (spec.replace("\"prompt_seed\"", "\"promptseed\""), ["isobench.block-spec", "promptseed"]),
        (spec.replace("\"attempt\": 2", "\"attempt\": \"two\""), ["isobench.block-spec", "two"]),
        (spec.replace("\"run\": \"run\"", "\"run\": \"../../x\""), ["names no valid run", "../../x"]),
    ] {
        fs::write(place.path("bad.json"), &text).unwrap();
        place.expect(2, &["block", "bad.json", "--out", "elsewhere"]).says(&parts);
    }
    place.expect(2, &["block", "nowhere.json", "--out", "elsewhere"]).says(&["cannot read `nowhere.json`"]);
}

#[test]
fn a_block_with_an_agent_needs_the_same_permission_as_a_run() {
    let place = interrupted();
    let spec = fs::read_to_string(place.path("spec.json")).unwrap();
    let mut spec: BlockSpec = format::from_slice(spec.as_bytes()).unwrap();
    let human = spec.launches.iter_mut().find(|launch| launch.arm == ArmId::Human).unwrap();
    human.arm = "agent:x".parse().unwrap();
    human.environment.source.patch = Some(Patch::new("x.patch", b"patch".to_vec()));
    fs::write(place.path("bad.json"), format::to_pretty(&spec).unwrap()).unwrap();
    let refused = place.expect(2, &["block", "bad.json", "--out", "elsewhere"]);
    refused.says(&["the arm `agent:x` would run a stranger's patch without isolation", "--allow-unisolated"]);
}
