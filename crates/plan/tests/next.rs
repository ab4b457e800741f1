//! What runs next, under every history that a run can have.

mod example;

use std::collections::{BTreeMap, BTreeSet};

use example::{EvenLevels, SAMPLE, plan, read_task};
use isobench_plan::budget::{Budget, Money};
use isobench_plan::estimate::{self, remaining_s};
use isobench_plan::next::{Next, next};
use isobench_plan::planner::{self, DesignOptions, PlanOptions};
use isobench_plan::progress::{Progress, TaskStop};
use isobench_schema::block::BlockSpec;
use isobench_schema::check::Check;
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
        device: None,
        key: ComparabilityKey::default(),
    };
    let launches = (0..).zip(&spec.launches).map(record).collect();
    vec![started, EventKind::BlockEnded { id, end, launches, charged: BTreeMap::new() }]
}

fn event(sequence: usize, kind: EventKind) -> Event {
    Event { sequence: sequence as u64, at_ms: Millis::new(0.0).expect("a time"), kind }
}

/// Returns the event of a look.
fn look_taken(task: &TaskId, look: u32, stops: bool) -> EventKind {
    let reason = String::new();
    EventKind::LookTaken { task: task.clone(), look, blocks: 0, contrasts: Vec::new(), stops, reason }
}

/// Runs a plan with one fate after another (then all complete), and looks that never stop a task, and returns the attempts
/// with their fates.
fn play(plan: &Plan, fates: &[Fate]) -> (Vec<(BlockId, Fate)>, Vec<Event>, Progress) {
    let mut progress = Progress::new(run());
    let (mut attempts, mut history) = (Vec::new(), Vec::new());
    loop {
        let after = progress.next(plan).expect("a known design");
        assert_eq!(next(plan, &run(), &history).expect("a known design"), after);
        let spec = match after {
            Next::Block(spec) => spec,
            Next::Look { task, look } => {
                history.push(event(history.len(), look_taken(&task, look, false)));
                progress.apply(history.last().expect("just pushed"));
                continue;
            }
            Next::Finished => break,
            Next::BudgetUsed { reason } => unreachable!("{reason}"),
        };
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
    let long = example::plan(&read_task(SAMPLE, &["design.blocks=24"]));
    let (attempts, _, progress) = play(&long, &[baseline; 24]);
    assert_eq!(attempts.len(), 2);
    let task = long.tasks.first().unwrap();
    assert_eq!(progress.stop(&task.id), Some(TaskStop::BaselineFailed { failed: 2 }));
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
fn an_arm_that_is_only_hard_to_believe_keeps_its_blocks() {
    let plan = sample();
    let word = |check: Check, class| failure(class).breaking(check);
    for (charged, given_up) in [
        (word(Check::BelievableRatio, FailureClass::Implausible), false),
        (word(Check::AnswerLengths, FailureClass::OutputLength), true),
    ] {
        let mut progress = Progress::new(run());
        for sequence in 0..2 {
            let Next::Block(spec) = progress.next(&plan).unwrap() else { panic!("nothing to run") };
            let charged = BTreeMap::from([(ArmId::Human, charged.clone())]);
            let end = BlockEnd::Complete;
            progress.apply(&event(sequence, EventKind::BlockEnded { id: spec.id, end, launches: Vec::new(), charged }));
        }
        let Next::Block(spec) = progress.next(&plan).unwrap() else { panic!("nothing to run") };
        let human = spec.launches.iter().find(|launch| launch.arm == ArmId::Human).unwrap();
        assert_eq!(human.settled.is_some(), given_up, "{charged}");
    }
}

/// Returns a plan of two tasks with looks after 6 and 12 blocks.
fn two_tasks() -> Plan {
    // Nothing but start and stop is foreseen: 4 s for a launch, which then takes 2 s.
    let short = ["design.min-window-s=0.001", "workload.warm-up-requests=0", "workload.probes.count=0"];
    let settings = [short.as_slice(), &["design.max-blocks=12"]].concat();
    let mut dataset = read_task(SAMPLE, &settings);
    let mut second = dataset.tasks.first().cloned().expect("a task");
    second.id = TaskId::new("second").expect("an id");
    dataset.tasks.push(second);
    let options = PlanOptions { design: DesignOptions::default(), ..example::options() };
    planner::plan(&dataset, &example::facts(&dataset), &options, &EvenLevels).expect("a plan")
}

/// Runs a plan within a budget, with looks that stop the tasks that `stops` says, and returns what was done in order.
fn course(plan: &Plan, budget: &Budget, stops: impl Fn(&TaskId, u32) -> bool) -> (Vec<String>, Progress) {
    let mut progress = Progress::new(run());
    let mut done: Vec<String> = Vec::new();
    loop {
        let kinds = match progress.next_within(plan, budget).expect("a known design") {
            Next::Block(spec) => {
                let word = format!("{} blocks", spec.id.task);
                if done.last() != Some(&word) {
                    done.push(word);
                }
                events(&spec, Fate::Complete)
            }
            Next::Look { task, look } => {
                done.push(format!("{task} look {look}"));
                vec![look_taken(&task, look, stops(&task, look))]
            }
            Next::Finished => return (done, progress),
            Next::BudgetUsed { reason } => {
                done.push(format!("used: {reason}"));
                return (done, progress);
            }
        };
        for kind in kinds {
            progress.apply(&event(0, kind));
        }
    }
}

#[test]
fn no_block_runs_after_a_look_before_it_was_taken_and_a_decided_task_runs_no_more() {
    let plan = two_tasks();
    let (done, progress) = course(&plan, &Budget::default(), |task, look| task.as_str() == "second" && look == 0);
    let expected =
        ["sample blocks", "sample look 0", "sample blocks", "sample look 1", "second blocks", "second look 0"];
    assert_eq!(done, expected);
    let second = plan.tasks.last().unwrap();
    assert_eq!(progress.stop(&second.id), Some(TaskStop::Decided { looks: 1 }));
    assert_eq!((progress.blocks_complete(&second.id), progress.blocks_left(second)), (6, 0));
}

#[test]
fn within_a_budget_every_task_comes_to_its_first_look_before_any_goes_on() {
    let plan = two_tasks();
    // Three launches make a block: the first looks take 72 s (36 s and, as foreseen, 72 s), a second one 36 s more.
    let minutes = |seconds| Budget { seconds: Some(seconds), ..Budget::default() };
    let firsts = ["sample blocks", "sample look 0", "second blocks", "second look 0"];
    let (done, progress) = course(&plan, &minutes(110.0), |_, _| false);
    assert_eq!(done[..4], firsts);
    assert_eq!(done[4..], ["sample blocks", "sample look 1", "used: the budget of 1.8 minutes"]);
    assert!((progress.spent(&plan).seconds - 108.0).abs() < 1e-9);
    // What the first task saves goes to the second.
    let (done, _) = course(&plan, &minutes(110.0), |task, _| task.as_str() == "sample");
    assert_eq!(done[..4], firsts);
    assert_eq!(done[4..], ["second blocks", "second look 1"]);
    // A stretch that isn't likely to fit isn't begun.
    let (done, _) = course(&plan, &minutes(70.0), |_, _| false);
    assert_eq!(done, ["used: the budget of 1.2 minutes"]);
}

#[test]
fn money_and_blocks_bound_a_run_too() {
    let plan = two_tasks();
    let money = Budget { money: Some(Money { usd: 0.77, usd_per_hour: 25.0 }), ..Budget::default() };
    // 0.77 dollars are 111 s.
    let (done, _) = course(&plan, &money, |_, _| false);
    assert_eq!(done.last().unwrap(), "used: the budget of 0.77 US dollars, at 25.00 an hour of one device");
    assert_eq!(done.len(), 7, "{done:?}");
    let blocks = Budget { max_blocks: Some(11), ..Budget::default() };
    let (done, _) = course(&plan, &blocks, |_, _| false);
    let expected = ["sample blocks", "sample look 0", "second blocks", "second look 0", "used: the bound of 11 blocks"];
    assert_eq!(done, expected);
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
            let stopped = progress.stop(&task.id).is_some();
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
