//! What runs next, under every history that a run can have.

mod example;

use std::collections::{BTreeMap, BTreeSet};

use example::{SAMPLE, plan, read_task};
use isobench_plan::estimate::{self, remaining_s};
use isobench_plan::next::{Next, next};
use isobench_plan::progress::{Progress, TaskStop};
use isobench_schema::block::BlockSpec;
use isobench_schema::comparability::ComparabilityKey;
use isobench_schema::event::{BlockEnd, Event, EventKind};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{ArmId, BlockId, LaunchId, RunId, TaskId};
use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline};
use isobench_schema::plan::Plan;
use isobench_schema::units::Millis;
use proptest::prelude::*;

/// What becomes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Complete,
    /// Complete, and one arm failed.
    Failed(&'static str, FailureClass),
    Interrupted,
    Spoilt,
    /// The coordinator died: there is no end.
    Cut,
}

fn run() -> RunId {
    RunId::new("run").expect("a name")
}

fn failure(class: FailureClass) -> Failure {
    Failure::new(FailureStage::Acquire, class, "it failed")
}

/// Returns the events of an attempt at a block.
fn events(spec: &BlockSpec, fate: Fate) -> Vec<EventKind> {
    let id = spec.id.clone();
    let order = spec.launches.iter().map(|launch| launch.arm.clone()).collect();
    let started = EventKind::BlockStarted { id: id.clone(), order };
    let end = match fate {
        Fate::Cut => return vec![started],
        Fate::Complete | Fate::Failed(..) => BlockEnd::Complete,
        Fate::Interrupted => BlockEnd::Interrupted,
        Fate::Spoilt => BlockEnd::Spoilt { failure: failure(FailureClass::DiskFull) },
    };
    let record = |(position, launch): (u32, &isobench_schema::block::BlockLaunch)| LaunchRecord {
        launch: LaunchId { block: id.clone(), arm: launch.arm.clone() },
        position,
        environment: launch.environment.id().expect("an id"),
        outcome: match fate {
            Fate::Failed(arm, class) if launch.arm.to_string() == arm => Outcome::Failed { failure: failure(class) },
            Fate::Complete | Fate::Failed(..) => Outcome::Measured,
            Fate::Interrupted | Fate::Spoilt | Fate::Cut => Outcome::Interrupted,
        },
        incidents: Vec::new(),
        evidence: BTreeMap::new(),
        timeline: Timeline { total_ms: Millis::new(2000.0), ..Timeline::default() },
        client: None,
        key: ComparabilityKey::default(),
    };
    let launches = (0..).zip(&spec.launches).map(record).collect();
    vec![started, EventKind::BlockEnded { id, end, launches, charged: BTreeMap::new() }]
}

fn event(sequence: usize, kind: EventKind) -> Event {
    Event { sequence: sequence as u64, at_ms: Millis::new(0.0).expect("a time"), kind }
}

/// Runs a plan with one fate after another (then all complete) and returns the attempts with their fates.
fn play(plan: &Plan, fates: &[Fate]) -> (Vec<(BlockId, Fate)>, Vec<Event>, Progress) {
    let mut progress = Progress::new(run());
    let (mut attempts, mut history) = (Vec::new(), Vec::new());
    while let Next::Block(spec) = progress.next(plan).expect("a known design") {
        assert_eq!(next(plan, &run(), &history).expect("a known design"), Next::Block(spec.clone()));
        let fate = fates.get(attempts.len()).copied().unwrap_or(Fate::Complete);
        for kind in events(&spec, fate) {
            history.push(event(history.len(), kind));
            progress.apply(history.last().expect("just pushed"));
        }
        attempts.push((spec.id.clone(), fate));
        assert!(attempts.len() < 10_000, "a run without end");
    }
    assert_eq!(next(plan, &run(), &history).expect("a known design"), Next::Finished);
    (attempts, history, progress)
}

fn sample() -> Plan {
    plan(&read_task(SAMPLE, &[]))
}

fn shown(attempts: &[(BlockId, Fate)]) -> Vec<String> {
    attempts.iter().map(|(id, _)| format!("{}.{}", id.block, id.attempt)).collect()
}

#[test]
fn blocks_run_in_order_with_all_that_they_need() {
    let plan = sample();
    let Next::Block(spec) = next(&plan, &run(), &[]).unwrap() else { panic!("nothing to run") };
    let task = plan.tasks.first().unwrap();
    let block = Plan::blocks(task).unwrap().into_iter().next().unwrap();
    assert_eq!(spec.run, "run");
    assert_eq!(spec.id, BlockId { task: task.id.clone(), block: 0, attempt: 1 });
    assert_eq!(spec.launches.iter().map(|launch| launch.arm.clone()).collect::<Vec<_>>(), block.order);
    assert_eq!(spec.prompt_seed, block.prompt_seed);
    assert!(spec.launches.iter().all(|launch| launch.settled.is_none()));
    assert_eq!(
        (&spec.workload, &spec.metric, spec.min_window_s),
        (&task.workload, &task.metric, task.design.min_window_s)
    );
    assert_eq!(shown(&play(&plan, &[]).0), ["0.1", "1.1", "2.1", "3.1", "4.1", "5.1"]);
}

#[test]
fn a_block_cut_short_runs_again_and_a_spoilt_one_while_the_design_allows_it() {
    use Fate::{Complete, Cut, Interrupted, Spoilt};
    let plan = sample();
    for (fates, expected, complete) in [
        (vec![Cut, Interrupted, Complete], "0.1 0.2 0.3 1.1 2.1 3.1 4.1 5.1", 6),
        (vec![Spoilt, Complete, Spoilt], "0.1 0.2 1.1 1.2 2.1 3.1 4.1 5.1", 6),
        // The replacements are used up: the block is lost, and the others are run once.
        (vec![Spoilt, Spoilt, Spoilt], "0.1 0.2 0.3 1.1 2.1 3.1 4.1 5.1", 5),
        (vec![Spoilt, Spoilt, Spoilt, Complete, Spoilt], "0.1 0.2 0.3 1.1 2.1 3.1 4.1 5.1", 4),
        (vec![Complete, Spoilt, Cut, Spoilt, Complete, Spoilt], "0.1 1.1 1.2 1.3 1.4 2.1 3.1 4.1 5.1", 5),
    ] {
        let (attempts, _, progress) = play(&plan, &fates);
        assert_eq!(shown(&attempts).join(" "), expected);
        let task = plan.tasks.first().unwrap();
        assert_eq!((progress.blocks_complete(&task.id), progress.blocks_left(task)), (complete, 0));
    }
}

#[test]
fn a_settled_failure_goes_with_later_blocks_of_its_environment_only() {
    let plan = sample();
    for (class, settled) in [
        (FailureClass::PatchRejected, true),
        (FailureClass::BuildTimeout, true),
        (FailureClass::StartCrashed, false),
        (FailureClass::SpawnFailed, false),
    ] {
        let (_, history, _) = play(&plan, &[Fate::Failed("agent:fast", class)]);
        let first_block = history.get(..2).unwrap();
        let Next::Block(spec) = next(&plan, &run(), first_block).unwrap() else { panic!("nothing to run") };
        for launch in &spec.launches {
            let expected = settled && launch.arm.to_string() == "agent:fast";
            assert_eq!(launch.settled.is_some(), expected, "{}", launch.arm);
        }
    }
}

#[test]
fn a_task_whose_baseline_keeps_failing_stops() {
    let baseline = Fate::Failed("baseline", FailureClass::StartCrashed);
    let human = Fate::Failed("human", FailureClass::StartCrashed);
    let plan = sample();
    assert_eq!(shown(&play(&plan, &[baseline, Fate::Complete, baseline]).0), ["0.1", "1.1", "2.1"]);
    assert_eq!(play(&plan, &[human; 6]).0.len(), 6);
    // Of 24 blocks two are less than 10 %.
    let long = example::plan(&read_task(SAMPLE, &["design.blocks=24"]));
    let (attempts, _, progress) = play(&long, &[baseline; 24]);
    assert_eq!(attempts.len(), 3);
    assert_eq!(progress.stop(long.tasks.first().unwrap()), Some(TaskStop::BaselineFailed { failed: 3 }));
}

#[test]
fn what_the_checks_charge_to_the_baseline_counts_as_its_failure() {
    let plan = sample();
    let mut progress = Progress::new(run());
    for sequence in 0..2 {
        let Next::Block(spec) = progress.next(&plan).unwrap() else { panic!("nothing to run") };
        let charged = BTreeMap::from([(ArmId::Baseline, failure(FailureClass::OutputLength))]);
        let end = BlockEnd::Complete;
        let kind = EventKind::BlockEnded { id: spec.id, end, launches: Vec::new(), charged };
        progress.apply(&event(sequence, kind));
    }
    assert_eq!(progress.next(&plan).unwrap(), Next::Finished);
}

#[test]
fn an_unknown_design_is_refused() {
    let mut plan = sample();
    plan.tasks.first_mut().unwrap().design.algorithm = 99;
    let error = next(&plan, &run(), &[]).unwrap_err();
    assert_eq!(error.to_string(), "task `sample` uses the design algorithm 99, and this isobench knows only 1");
}

#[test]
fn the_time_left_falls_to_nothing() {
    let plan = sample();
    let task = plan.tasks.first().unwrap();
    let mut progress = Progress::new(run());
    assert!((remaining_s(&plan, &progress) - estimate::task_s(task)).abs() < 1e-9);
    let (_, history, done) = play(&plan, &[]);
    for event in history.get(..2).unwrap() {
        progress.apply(event);
    }
    // Three launches of two seconds in a block, five blocks left.
    assert!((remaining_s(&plan, &progress) - 30.0).abs() < 1e-9);
    assert!(remaining_s(&plan, &done).abs() < 1e-9);
    assert_eq!((done.blocks_complete(&task.id), done.blocks_left(task)), (6, 0));
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Complete),
        1 => Just(Fate::Failed("baseline", FailureClass::ServerDied)),
        1 => Just(Fate::Failed("agent:fast", FailureClass::BuildFailed)),
        2 => Just(Fate::Interrupted),
        1 => Just(Fate::Spoilt),
        2 => Just(Fate::Cut),
    ]
}

proptest! {
    #[test]
    fn no_history_repeats_a_complete_block_or_runs_for_ever(fates in prop::collection::vec(fate(), 0..60), blocks in 1..12_u32) {
        let mut dataset = read_task(SAMPLE, &[&format!("design.blocks={blocks}")]);
        let mut second = dataset.tasks.first().cloned().expect("a task");
        second.id = TaskId::new("second").expect("an id");
        dataset.tasks.push(second);
        let plan = plan(&dataset);
        let (attempts, history, progress) = play(&plan, &fates);
        let mut complete = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (id, fate) in &attempts {
            prop_assert!(!complete.contains(&(id.task.clone(), id.block)), "{id} was complete");
            prop_assert!(seen.insert(id.clone()), "{id} ran twice");
            if matches!(fate, Fate::Complete | Fate::Failed(..)) {
                complete.insert((id.task.clone(), id.block));
            }
        }
        for task in &plan.tasks {
            let stopped = progress.stop(task).is_some();
            prop_assert!(stopped || progress.blocks_left(task) == 0);
        }
        // Any beginning of the history leads on to something that hasn't been complete in it.
        for cut in 0..history.len() {
            let Next::Block(spec) = next(&plan, &run(), &history[..cut]).expect("a known design") else { continue };
            let was = |event: &Event| matches!(&event.kind, EventKind::BlockEnded { id, end: BlockEnd::Complete, .. } if id.task == spec.id.task && id.block == spec.id.block);
            prop_assert!(!history[..cut].iter().any(was));
        }
    }
}
