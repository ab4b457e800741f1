//! What a run says: every verdict, its charge and its sentence.

use crate::support::{
    arm, attempt, attempts, broken, failed, find, judged, look, plan, scaled, task, verdicts, with, wobble,
};
use isobench_analysis::judge::Attempt;
use isobench_analysis::launch::LaunchInput;
use isobench_schema::comparability::{KeyDifference, KeyField};
use isobench_schema::event::BlockEnd;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::measurement::MetricName;
use isobench_schema::plan::PlannedTask;
use isobench_schema::verdict::{Standing, TaskJudgement, Unlike, Verdict};

const ALL: &[&str] = &["baseline", "human", "agent:x"];

/// Judges six blocks of three arms.
fn six(make: impl Fn(u32, &str, LaunchInput) -> LaunchInput) -> TaskJudgement {
    let task = task("t", ALL, 6);
    let attempts = attempts(&task, 6, make);
    verdicts(task, &attempts)
}

/// Returns a launch whose arm is faster by a factor and wobbles by 1 % from block to block.
fn speed(block: u32, arm: &str, launch: LaunchInput, factors: [f64; 2]) -> LaunchInput {
    let [human, agent] = factors;
    let shift = match arm {
        "human" => human * wobble(block, 0.005),
        "agent:x" => agent * wobble(block + 3, 0.005),
        _ => 1.0,
    };
    scaled(launch, shift)
}

fn check(judgement: &TaskJudgement, of: &str, against: &str, expected: Verdict) {
    let contrast = find(&judgement.contrasts, of, against);
    assert_eq!(contrast.verdict, expected, "{of} against {against}: {}", contrast.reason);
}

#[test]
fn a_gain_above_the_margin_is_better_and_a_loss_worse() {
    let judgement = six(|block, arm, launch| speed(block, arm, launch, [1.24, 0.8]));
    check(&judgement, "human", "baseline", Verdict::Better);
    check(&judgement, "agent:x", "baseline", Verdict::Worse);
    check(&judgement, "agent:x", "human", Verdict::Worse);
    assert_eq!(judgement.standing, Standing::Rankable);
    let human = find(&judgement.contrasts, "human", "baseline");
    assert_eq!(human.blocks, 6);
    assert_eq!(human.differences.len(), 6);
    assert!(human.low.unwrap() < human.estimate.unwrap() && human.estimate.unwrap() < human.high.unwrap());
    assert!((human.speedup.unwrap() - 1.24).abs() < 0.01);
    assert_eq!(human.sign_flip_p, Some(0.03125));
    assert_eq!(
        human.reason,
        "1.24x as fast as the baseline (95 % interval 1.24 to 1.24, p < 0.0001, 6 blocks), faster by at least the margin of 2 %"
    );
}

#[test]
fn a_latency_improves_downwards() {
    let mut task = task("t", &["baseline", "human"], 6);
    task.metric.primary = MetricName::MeanTtftMs;
    task.metric.direction = MetricName::MeanTtftMs.direction();
    let make = |block: u32, arm: &str, launch: LaunchInput| {
        let factor = if arm == "human" { 0.5 * wobble(block, 0.01) } else { 1.0 };
        with(launch, |digest| *digest.measurement.values.get_mut(&MetricName::MeanTtftMs).unwrap() *= factor)
    };
    let attempts = attempts(&task, 6, make);
    let judgement = verdicts(task, &attempts);
    check(&judgement, "human", "baseline", Verdict::Better);
    assert!((find(&judgement.contrasts, "human", "baseline").speedup.unwrap() - 2.0).abs() < 0.02);
}

#[test]
fn a_small_proven_difference_is_trivial() {
    let judgement = six(|block, arm, launch| speed(block, arm, launch, [1.01, 1.0]));
    check(&judgement, "human", "baseline", Verdict::Trivial);
    check(&judgement, "agent:x", "baseline", Verdict::Equivalent);
    let reason = &find(&judgement.contrasts, "human", "baseline").reason;
    assert!(reason.ends_with("a proven difference that is smaller than the margin of 2 %"), "{reason}");
    let reason = &find(&judgement.contrasts, "agent:x", "baseline").reason;
    assert!(reason.contains("(90 % interval 0.99"), "{reason}");
}

#[test]
fn against_a_human_commit_that_gained_nothing_there_is_nothing_to_beat() {
    for human in [1.0, 1.01, 0.7] {
        let judgement = six(|block, arm, launch| speed(block, arm, launch, [human, 1.3]));
        check(&judgement, "agent:x", "baseline", Verdict::Better);
        check(&judgement, "agent:x", "human", Verdict::NothingToBeat);
        assert_eq!(judgement.standing, Standing::NothingToBeat);
        assert!(find(&judgement.contrasts, "agent:x", "human").estimate.unwrap() > 0.2);
    }
}

#[test]
fn too_much_spread_is_inconclusive_and_says_how_many_blocks_would_decide() {
    let judgement = six(|block, arm, launch| {
        let factor = if arm == "human" { 1.1 * wobble(block, 0.2) } else { 1.0 };
        scaled(launch, factor)
    });
    check(&judgement, "human", "baseline", Verdict::Inconclusive);
    assert_eq!(judgement.standing, Standing::HumanGainUnproven);
    let human = find(&judgement.contrasts, "human", "baseline");
    assert!(human.mde.unwrap() > 0.1 && human.blocks_needed.unwrap() > 6);
    assert!(human.reason.contains("would decide"), "{}", human.reason);
}

#[test]
fn an_agent_that_fails_by_itself_has_failed() {
    let judgement = six(|block, arm, launch| match arm {
        "agent:x" => failed(launch, FailureClass::StartCrashed),
        _ => speed(block, arm, launch, [1.3, 1.0]),
    });
    check(&judgement, "human", "baseline", Verdict::Better);
    for against in ["baseline", "human"] {
        let contrast = find(&judgement.contrasts, "agent:x", against);
        assert_eq!((contrast.verdict, contrast.estimate, contrast.blocks), (Verdict::AgentFailed, None, 0));
        assert_eq!(contrast.reason, "agent `x` failed in 6 of 6 blocks: start-crashed: start-crashed seen");
    }
    let agent = judgement.arms.iter().find(|judged| judged.arm == arm("agent:x")).unwrap();
    assert_eq!((agent.launches, agent.valid, agent.failures[0].launches), (6, 0, 6));
}

#[test]
fn an_agent_that_does_not_start_or_build_has_failed_unless_every_arm_does() {
    for class in [FailureClass::SpawnFailed, FailureClass::BuildTimeout] {
        let alone = six(|_, arm, launch| if arm == "agent:x" { failed(launch, class) } else { launch });
        check(&alone, "agent:x", "baseline", Verdict::AgentFailed);
        let all = six(|_, _, launch| failed(launch, class));
        for of in ["agent:x", "human"] {
            check(&all, of, "baseline", Verdict::NotMeasured);
        }
    }
}

#[test]
fn a_check_that_an_agent_breaks_is_invalid_and_charged_to_it() {
    let judgement = six(|block, arm, launch| match arm {
        "agent:x" => broken(launch, FailureClass::TokenCountMismatch),
        _ => speed(block, arm, launch, [1.3, 1.0]),
    });
    for against in ["baseline", "human"] {
        check(&judgement, "agent:x", against, Verdict::Invalid);
        assert_eq!(find(&judgement.contrasts, "agent:x", against).charged_to, Some(arm("agent:x")));
    }
    assert_eq!(judgement.standing, Standing::Rankable);
}

#[test]
fn a_baseline_or_human_arm_that_fails_is_not_measured_and_the_others_are_judged() {
    let human_fails = six(|block, arm, launch| match arm {
        "human" => failed(launch, FailureClass::NeverReady),
        _ => speed(block, arm, launch, [1.0, 1.3]),
    });
    check(&human_fails, "human", "baseline", Verdict::NotMeasured);
    check(&human_fails, "agent:x", "human", Verdict::NotMeasured);
    check(&human_fails, "agent:x", "baseline", Verdict::Better);
    assert_eq!(human_fails.standing, Standing::NotMeasured);

    let baseline_fails = six(|block, arm, launch| match arm {
        "baseline" => failed(launch, FailureClass::NeverReady),
        _ => speed(block, arm, launch, [1.3, 1.0]),
    });
    check(&baseline_fails, "human", "baseline", Verdict::NotMeasured);
    check(&baseline_fails, "agent:x", "baseline", Verdict::NotMeasured);
    check(&baseline_fails, "agent:x", "human", Verdict::Worse);

    let human_broken = six(|_, arm, launch| match arm {
        "human" => broken(launch, FailureClass::OutputLength),
        _ => launch,
    });
    check(&human_broken, "human", "baseline", Verdict::Invalid);
    assert_eq!(find(&human_broken.contrasts, "human", "baseline").charged_to, Some(arm("human")));
}

#[test]
fn one_failure_in_many_blocks_is_counted_but_decides_nothing() {
    // 1 of 24 is under 10 %; 1 of 6 is not; 2 of 24 are two blocks.
    for (blocks, failing, expected) in
        [(24, 1, Verdict::Better), (6, 1, Verdict::AgentFailed), (24, 2, Verdict::AgentFailed)]
    {
        let task = task("t", ALL, blocks);
        let attempts = attempts(&task, blocks, |block, arm, launch| match arm {
            "agent:x" if block < failing => failed(launch, FailureClass::ServerDied),
            _ => speed(block, arm, launch, [1.1, 1.3]),
        });
        let judgement = verdicts(task, &attempts);
        check(&judgement, "agent:x", "baseline", expected);
        assert_eq!(judgement.arms[2].failures[0].launches, failing);
    }
}

#[test]
fn a_failure_of_every_arm_is_not_an_arms_own() {
    let task = task("t", ALL, 6);
    let mut attempts = attempts(&task, 6, |block, arm, launch| match block {
        0 | 1 => failed(launch, FailureClass::StartCrashed),
        _ => speed(block, arm, launch, [1.3, 1.3]),
    });
    assert!(matches!(attempts[0].end, BlockEnd::Spoilt { .. }));
    attempts[0].end = BlockEnd::Complete;
    attempts[1].end = BlockEnd::Complete;
    let judgement = verdicts(task, &attempts);
    check(&judgement, "agent:x", "human", Verdict::Inconclusive);
    let reason = &find(&judgement.contrasts, "agent:x", "human").reason;
    assert!(reason.starts_with("only 4 blocks can be compared, and an interval needs 5; start-crashed"), "{reason}");
}

#[test]
fn a_window_that_is_too_short_is_invalid_and_charged_to_nobody() {
    let judgement = six(|_, _, launch| broken(launch, FailureClass::WindowTooShort));
    for (of, against) in [("human", "baseline"), ("agent:x", "human")] {
        check(&judgement, of, against, Verdict::Invalid);
        assert_eq!(find(&judgement.contrasts, of, against).charged_to, None);
    }
}

#[test]
fn an_arm_without_a_patch_is_not_run() {
    let mut task = task("t", ALL, 6);
    task.arms.pop();
    task.not_run = vec![arm("agent:x")];
    let attempts = attempts(&task, 6, |block, arm, launch| speed(block, arm, launch, [1.0, 1.0]));
    let judgement = verdicts(task, &attempts);
    check(&judgement, "agent:x", "baseline", Verdict::NotRun);
    check(&judgement, "agent:x", "human", Verdict::NotRun);
    assert_eq!(judgement.standing, Standing::NothingToBeat);
}

#[test]
fn without_a_human_arm_the_standing_is_not_asked() {
    let task = task("t", &["baseline", "agent:x"], 6);
    let attempts = attempts(&task, 6, |block, arm, launch| speed(block, arm, launch, [1.0, 1.3]));
    let judgement = verdicts(task, &attempts);
    check(&judgement, "agent:x", "baseline", Verdict::Better);
    assert_eq!(judgement.standing, Standing::NotAsked);
}

#[test]
fn unlike_launches_are_not_compared() {
    let judgement = six(|block, arm, mut launch| {
        if arm == "agent:x" && block < 2 {
            launch.record.key.0.insert(KeyField::Host, "other".to_owned());
        }
        if arm == "human" {
            launch = with(launch, |digest| digest.seed += 1);
        }
        speed(block, arm, launch, [1.3, 1.3])
    });
    check(&judgement, "agent:x", "baseline", Verdict::Inconclusive);
    assert_eq!(find(&judgement.contrasts, "agent:x", "baseline").blocks, 4);
    assert_eq!(find(&judgement.contrasts, "human", "baseline").blocks, 0);
    assert!(find(&judgement.contrasts, "human", "baseline").reason.contains("because their `seed` differs"));
    let unlike = |block: u32, of: &str, against_block: u32, against: &str, values: [&str; 2]| {
        let [left, right] = values.map(|value| Some(value.to_owned()));
        let differences = vec![KeyDifference { field: KeyField::Host, left, right }];
        Unlike { block, of: arm(of), against_block, against: arm(against), differences }
    };
    let same_block = unlike(0, "agent:x", 0, "baseline", ["other", "h"]);
    assert!(judgement.unlike.contains(&same_block), "{:?}", judgement.unlike);
    assert!(judgement.unlike.contains(&unlike(2, "agent:x", 0, "agent:x", ["h", "other"])), "{:?}", judgement.unlike);
    let seeds = judgement.unlike.iter().find(|unlike| unlike.of == arm("human")).unwrap();
    assert_eq!((seeds.differences[0].left.as_deref(), seeds.differences[0].right.as_deref()), (Some("1"), Some("0")));
}

#[test]
fn before_a_look_is_complete_nothing_is_tested() {
    let task = task("t", ALL, 6);
    let attempts = attempts(&task, 5, |block, arm, launch| speed(block, arm, launch, [1.3, 1.3]));
    let judgement = verdicts(task, &attempts);
    let human = find(&judgement.contrasts, "human", "baseline");
    assert_eq!((human.verdict, human.p, human.low, human.look), (Verdict::Inconclusive, None, None, None));
    assert!(human.estimate.unwrap() > 0.2);
    assert_eq!(human.reason, "only 5 of 6 blocks are complete, and no look is reached");
}

#[test]
fn the_last_complete_look_is_judged_with_its_own_blocks() {
    let mut task = task("t", ALL, 6);
    task.design.looks = vec![look(6), look(12), look(18)];
    // From block 6 on the human gain is gone.
    let attempts = attempts(&task, 11, |block, arm, launch| {
        speed(block, arm, launch, if block < 6 { [1.3, 1.0] } else { [1.0, 1.0] })
    });
    let judgement = verdicts(task, &attempts);
    check(&judgement, "human", "baseline", Verdict::Better);
    assert_eq!(find(&judgement.contrasts, "human", "baseline").look, Some(look(6)));
    assert_eq!((judgement.blocks.complete, judgement.blocks.planned), (11, 18));
}

/// Returns six blocks, of which block 2 was first cut short and then spoilt.
fn mended(task: &PlannedTask) -> Vec<Attempt> {
    let make = |block: u32, arm: &str, launch: LaunchInput| speed(block, arm, launch, [1.3, 1.3]);
    let mut attempts = attempts(task, 6, make);
    let spoilt = |block: u32, arm: &str, launch: LaunchInput| match arm {
        "human" => broken(launch, FailureClass::Drift),
        _ => scaled(make(block, arm, launch), 50.0),
    };
    let mut cut = attempt(task, 2, 1, &spoilt);
    cut.end = BlockEnd::Interrupted;
    attempts[2] = attempt(task, 2, 3, &make);
    attempts.push(cut);
    attempts.push(attempt(task, 2, 2, &spoilt));
    attempts
}

#[test]
fn only_the_complete_attempt_of_a_block_counts() {
    let task = task("t", ALL, 6);
    let attempts = mended(&task);
    let judgement = verdicts(task, &attempts);
    check(&judgement, "human", "baseline", Verdict::Better);
    assert_eq!((judgement.blocks.complete, judgement.blocks.interrupted, judgement.blocks.spoilt), (6, 1, 1));
    assert_eq!(judgement.arms[1].failures, []);
}

#[test]
fn a_block_that_is_no_more_replaced_counts_with_its_whole_launches() {
    let mut task = task("t", ALL, 6);
    task.design.replacements = 0;
    let all = attempts(&task, 6, |block, arm, launch| match (block, arm) {
        (3, "human") => failed(launch, FailureClass::HostError),
        _ => speed(block, arm, launch, [1.3, 1.3]),
    });
    let judgement = verdicts(task.clone(), &all);
    check(&judgement, "human", "baseline", Verdict::Better);
    assert_eq!(find(&judgement.contrasts, "human", "baseline").blocks, 5);
    assert_eq!(find(&judgement.contrasts, "agent:x", "baseline").blocks, 6);
    assert_eq!((judgement.blocks.complete, judgement.blocks.spoilt), (5, 1));

    let all = attempts(&task, 6, |block, arm, launch| match arm {
        "human" => failed(launch, FailureClass::HostError),
        _ => speed(block, arm, launch, [1.3, 1.3]),
    });
    let judgement = verdicts(task, &all);
    check(&judgement, "agent:x", "baseline", Verdict::Better);
    check(&judgement, "human", "baseline", Verdict::NotMeasured);
    assert_eq!(
        find(&judgement.contrasts, "human", "baseline").reason,
        "only 0 blocks can be compared, and an interval needs 5; host-error: host-error seen"
    );
}

#[test]
fn a_block_that_may_still_be_replaced_is_not_done() {
    let task = task("t", ALL, 6);
    let all = attempts(&task, 6, |block, arm, launch| match (block, arm) {
        (3, "human") => failed(launch, FailureClass::HostError),
        _ => speed(block, arm, launch, [1.3, 1.3]),
    });
    let judgement = verdicts(task, &all);
    assert_eq!(find(&judgement.contrasts, "agent:x", "baseline").look, None);
}

#[test]
fn differences_that_follow_each_other_are_drift() {
    let task = task("t", ALL, 12);
    let attempts = attempts(&task, 12, |block, arm, launch| match arm {
        "human" => scaled(launch, 1.2 + 0.02 * f64::from(block)),
        _ => speed(block, arm, launch, [1.0, 1.3]),
    });
    let judgement = verdicts(task, &attempts);
    check(&judgement, "human", "baseline", Verdict::Inconclusive);
    check(&judgement, "agent:x", "baseline", Verdict::Better);
    let reason = &find(&judgement.contrasts, "human", "baseline").reason;
    assert!(reason.contains("but drift: the differences follow those of the block before"), "{reason}");
}

#[test]
fn incidents_are_counted_and_undo_nothing() {
    let judgement = six(|block, arm, mut launch| {
        let incident = Failure::new(FailureStage::Workload, FailureClass::StopForced, "killed");
        launch.record.incidents.push(incident);
        speed(block, arm, launch, [1.3, 1.3])
    });
    check(&judgement, "human", "baseline", Verdict::Better);
    let human = &judgement.arms[1];
    assert_eq!((human.incidents[0].launches, human.valid, human.values.len()), (6, 6, 6));
    assert!((human.means[&MetricName::OutputThroughput] - 130.0).abs() < 1.0);
}

#[test]
fn a_record_that_contradicts_itself_is_refused() {
    let task = task("t", ALL, 6);
    let good = attempts(&task, 6, |_, _, launch| launch);
    let refused = |change: &dyn Fn(&mut Vec<Attempt>)| {
        let mut attempts = good.clone();
        change(&mut attempts);
        judged(&plan(vec![task.clone()]), &attempts).unwrap_err().to_string()
    };
    let twice = refused(&|attempts| {
        let second = attempt(&task, 0, 2, &|_: u32, _: &str, launch| launch);
        attempts.push(second);
    });
    assert_eq!(twice, "the record has two complete attempts at one block: t/block-0/attempt-1 and t/block-0/attempt-2");
    let strange = refused(&|attempts| attempts[0].id.task = "u".parse().unwrap());
    assert_eq!(strange, "the record has a block of task `u`, which is not in the plan");
    let beyond = refused(&|attempts| attempts[5].id.block = 9);
    assert_eq!(beyond, "the record has the block t/block-9/attempt-1, but the plan has only 6 blocks of that task");
    let moved = refused(&|attempts| attempts[0].launches[0].record.launch.block.block = 3);
    assert_eq!(moved, "the launch t/block-3/attempt-1/baseline is recorded in the block t/block-0/attempt-1");
    let doubled = refused(&|attempts| {
        let again = attempts[0].launches[0].clone();
        attempts[0].launches.push(again);
    });
    assert_eq!(doubled, "the launch t/block-0/attempt-1/baseline is recorded twice");
}
