//! The baseline under another name: what its differences show.

use isobench_schema::ids::BlockId;
use isobench_schema::plan::{PlannedTask, Sentinel};

use super::support::{BASE, arm, attempts, measured, scaled, task, verdicts, wobble};

/// Returns a task with a sentinel in every second block.
fn with_sentinel() -> PlannedTask {
    let mut task = task("t", &["baseline", "human"], 12);
    task.design.sentinel = Some(Sentinel { arm: arm("agent:0a1b2c3d"), every: 2 });
    task
}

/// Judges twelve blocks whose sentinel is so many times as fast as the baseline.
fn judged(factor: impl Fn(u32) -> f64) -> isobench_schema::verdict::TaskJudgement {
    let task = with_sentinel();
    let mut all = attempts(&task, 12, |block, arm, launch| match arm {
        "human" => scaled(launch, 1.3 * wobble(block, 0.02)),
        _ => launch,
    });
    for attempt in all.iter_mut().filter(|attempt| attempt.id.block % 2 == 1) {
        let id: BlockId = attempt.id.clone();
        let launch = measured(&task, &id, &arm("baseline"), BASE * factor(id.block));
        let mut record = launch.record.clone();
        record.launch.arm = arm("agent:0a1b2c3d");
        record.position = 2;
        attempt.launches.push(isobench_analysis::launch::LaunchInput { record, ..launch });
    }
    verdicts(task, &all)
}

#[test]
fn differences_within_the_spread_are_not_rejected_and_those_beyond_are() {
    let found = judged(|block| wobble(block, 0.01)).sentinel.unwrap();
    assert_eq!((found.differences.len(), found.tested, found.rejected), (6, 6, 0), "{found:?}");
    // The spread of the human arm's differences is 1.3 %: of two differences of 10 % both lie beyond 2.2 spreads.
    let found = judged(|block| if block < 4 { 1.1 } else { 1.0 }).sentinel.unwrap();
    assert_eq!((found.tested, found.rejected), (6, 2), "{found:?}");
}

#[test]
fn a_sentinel_is_no_arm_and_changes_no_verdict() {
    let judged = judged(|_| 1.0);
    assert_eq!(judged.arms.len(), 2);
    assert_eq!(judged.contrasts.len(), 1);
    assert!(judged.unlike.is_empty(), "{:?}", judged.unlike);
    let plain = verdicts(task("t", &["baseline", "human"], 2), &[]);
    assert_eq!(plain.sentinel, None);
}
