//! Several looks: when a task ends, which look gives the verdict, and by which levels.

use isobench_analysis::judge::{self, Attempt, JudgeError, TaskLook};
use isobench_analysis::launch::LaunchInput;
use isobench_analysis::stats::sequential::{looks, looks_with_missing};
use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::BlockEnd;
use isobench_schema::failure::FailureClass;
use isobench_schema::plan::{PlannedTask, Spending};
use isobench_schema::verdict::{LookDecision, Verdict};

use super::support::{attempts, failed, find, scaled, task, verdicts, wobble};

const SCHEDULE: [u32; 4] = [6, 12, 18, 24];

/// Returns a task of these arms with four looks.
fn several(arms: &[&str]) -> PlannedTask {
    let mut task = task("t", arms, 24);
    task.design.looks = looks(Spending::Even, &SCHEDULE).unwrap();
    task
}

/// Makes the human arm so many times as fast, with some noise.
fn human(block: u32, arm: &str, launch: LaunchInput, factor: f64, noise: f64) -> LaunchInput {
    if arm == "human" { scaled(launch, factor * wobble(block, noise)) } else { launch }
}

/// Returns whether two levels are the same; they have six digits.
fn is_same(level: f64, other: f64) -> bool {
    (level - other).abs() < 1e-9
}

/// Looks at a task of which nobody has confirmed anything.
fn look(task: &PlannedTask, attempts: &[Attempt], number: u32) -> Result<Option<TaskLook>, JudgeError> {
    judge::look(task, attempts, &Confirmations::default(), number)
}

fn decisions(look: &TaskLook) -> Vec<LookDecision> {
    look.contrasts.iter().map(|contrast| contrast.result.decision).collect()
}

#[test]
fn a_task_ends_at_the_look_that_leaves_nothing_to_decide() {
    let task = several(&["baseline", "human"]);
    let clear = attempts(&task, 6, |block, arm, launch| human(block, arm, launch, 1.3, 0.01));
    let first = look(&task, &clear, 0).unwrap().unwrap();
    assert_eq!((decisions(&first), first.stops), (vec![LookDecision::Better], true));
    assert_eq!(first.reason, "nothing is left to decide");
    let result = first.contrasts[0].result;
    assert_eq!((result.look, result.planned, result.blocks), (0, 6, 6));
    assert!(is_same(result.level, task.design.looks[0].level), "{result:?}");

    let unclear = attempts(&task, 24, |block, arm, launch| human(block, arm, launch, 1.02, 0.05));
    let first = look(&task, &unclear, 0).unwrap().unwrap();
    assert_eq!((decisions(&first), first.stops), (vec![LookDecision::Undecided], false));
    assert_eq!(first.reason, "undecided: human against baseline");
    let last = look(&task, &unclear, 3).unwrap().unwrap();
    assert_eq!((last.stops, last.reason.as_str()), (true, "it was the last look"));
}

#[test]
fn a_look_is_taken_with_its_own_blocks_and_only_when_they_are_done() {
    let task = several(&["baseline", "human"]);
    // The gain is there in the first six blocks only.
    let fading =
        |block: u32, arm: &str, launch: LaunchInput| human(block, arm, launch, if block < 6 { 1.3 } else { 1.0 }, 0.01);
    let eleven = attempts(&task, 11, fading);
    assert_eq!(decisions(&look(&task, &eleven, 0).unwrap().unwrap()), [LookDecision::Better]);
    assert_eq!(look(&task, &eleven, 1).unwrap(), None);
    assert_eq!(look(&task, &eleven, 4).unwrap(), None);
    let few = attempts(&task, 5, fading);
    assert_eq!(look(&task, &few, 0).unwrap(), None);
}

#[test]
fn the_first_look_that_decides_gives_the_verdict_and_its_numbers() {
    let task = several(&["baseline", "human", "agent:x"]);
    // The agent needs more blocks; over them the human gain shrinks.
    let all = attempts(&task, 12, |block, arm, launch| match arm {
        "human" => scaled(launch, if block < 6 { 1.3 } else { 1.1 } * wobble(block, 0.01)),
        "agent:x" => scaled(launch, 1.2 * wobble(block, 0.12)),
        _ => launch,
    });
    let first = look(&task, &all, 0).unwrap().unwrap();
    assert_eq!(decisions(&first)[0], LookDecision::Better);
    assert!(!first.stops, "{first:?}");
    let judged = verdicts(task.clone(), &all);
    let found = find(&judged.contrasts, "human", "baseline");
    assert_eq!((found.verdict, found.blocks), (Verdict::Better, 6));
    assert!((found.speedup.unwrap() - 1.3).abs() < 0.01, "{found:?}");
    assert_eq!(found.look.map(|look| look.level), Some(task.design.looks[0].level));
    assert_eq!((found.looks.len(), found.differences.len()), (2, 12));
    assert!(found.reason.ends_with(" (look 1 of 4; over all 12 blocks it is 1.20x)"), "{}", found.reason);
}

#[test]
fn a_later_look_decides_by_its_own_level() {
    let task = several(&["baseline", "human"]);
    let all = attempts(&task, 12, |block, arm, launch| human(block, arm, launch, 1.05, 0.055));
    let judged = verdicts(task.clone(), &all);
    let found = find(&judged.contrasts, "human", "baseline");
    let said: Vec<LookDecision> = found.looks.iter().map(|result| result.decision).collect();
    assert_eq!(said, [LookDecision::Undecided, LookDecision::Better]);
    assert_eq!((found.verdict, found.blocks, found.p), (Verdict::Better, 12, found.looks[1].p));
    // The first look's p would have been enough for one look at 5 %.
    let p = found.looks[0].p.unwrap();
    assert!(p > found.looks[0].level && p < 0.05, "{p}");
    assert!(found.reason.ends_with(" (look 2 of 4)"), "{}", found.reason);
}

/// Marks a block as lost: infrastructure spoilt it, and no replacement is left.
fn lost(attempts: &mut [Attempt], block: usize) {
    let launch = &mut attempts[block].launches[1];
    *launch = failed(launch.clone(), FailureClass::HostError);
    let seen = launch.failure().unwrap();
    attempts[block].end = BlockEnd::Spoilt { failure: seen };
}

#[test]
fn where_a_block_is_missing_the_same_error_is_spent_with_other_levels() {
    let mut task = several(&["baseline", "human"]);
    task.design.replacements = 0;
    let mut all = attempts(&task, 12, |block, arm, launch| human(block, arm, launch, 1.05, 0.055));
    lost(&mut all, 3);
    let judged = verdicts(task.clone(), &all);
    let found = find(&judged.contrasts, "human", "baseline");
    let expected = looks_with_missing(Spending::Even, 24, &[(6, 5), (12, 11)]).unwrap();
    for (result, expected) in found.looks.iter().zip(&expected) {
        assert_eq!(result.blocks, expected.blocks);
        assert!(is_same(result.level, expected.level), "{result:?} {expected:?}");
        assert!(is_same(result.equivalence_level, expected.equivalence_level), "{result:?} {expected:?}");
    }
    assert!(!is_same(found.looks[1].level, task.design.looks[1].level));
}

#[test]
fn a_contrast_with_too_little_chance_is_not_waited_for() {
    let mut task = several(&["baseline", "human"]);
    let noisy = attempts(&task, 6, |block, arm, launch| human(block, arm, launch, 1.0, 0.5));
    assert_eq!(decisions(&look(&task, &noisy, 0).unwrap().unwrap()), [LookDecision::Undecided]);
    task.design.futility = Some(0.5);
    let found = look(&task, &noisy, 0).unwrap().unwrap();
    assert_eq!((decisions(&found), found.stops), (vec![LookDecision::Hopeless], true));
    let judged = verdicts(task.clone(), &noisy);
    let contrast = find(&judged.contrasts, "human", "baseline");
    assert_eq!(contrast.verdict, Verdict::Inconclusive);
    assert!(contrast.reason.contains("the looks to come were unlikely to change that"), "{}", contrast.reason);
    assert!(contrast.blocks_needed.unwrap() > 24, "{contrast:?}");

    // What may still be decided is waited for.
    let hopeful = attempts(&task, 6, |block, arm, launch| human(block, arm, launch, 1.04, 0.055));
    assert_eq!(decisions(&look(&task, &hopeful, 0).unwrap().unwrap()), [LookDecision::Undecided]);
}

#[test]
fn what_an_arms_failure_settles_is_not_waited_for() {
    let task = several(&["baseline", "human", "agent:x"]);
    let all = attempts(&task, 6, |block, arm, launch| match arm {
        "agent:x" if block < 2 => failed(launch, FailureClass::StartCrashed),
        "human" => scaled(launch, 1.3 * wobble(block, 0.01)),
        _ => launch,
    });
    let found = look(&task, &all, 0).unwrap().unwrap();
    assert_eq!(decisions(&found), [LookDecision::Better, LookDecision::Settled, LookDecision::Settled]);
    assert!(found.stops);
}

#[test]
fn agents_are_not_waited_for_where_there_is_nothing_to_beat() {
    let task = several(&["baseline", "human", "agent:x"]);
    let all = attempts(&task, 6, |block, arm, launch| match arm {
        "human" => scaled(launch, wobble(block, 0.002)),
        "agent:x" => scaled(launch, 1.3 * wobble(block + 1, 0.002)),
        _ => launch,
    });
    let found = look(&task, &all, 0).unwrap().unwrap();
    assert_eq!(decisions(&found), [LookDecision::Equivalent, LookDecision::Better, LookDecision::Settled]);
    assert!(found.stops);
}

#[test]
fn drift_at_a_look_decides_nothing_and_is_waited_for() {
    let task = several(&["baseline", "human"]);
    // At six blocks a rise is too short to be told from chance.
    let all =
        attempts(&task, 12, |block, arm, launch| human(block, arm, launch, 0.97 + 0.012 * f64::from(block), 0.001));
    let found = look(&task, &all, 1).unwrap().unwrap();
    assert_eq!((decisions(&found), found.stops), (vec![LookDecision::Drift], false));
}
