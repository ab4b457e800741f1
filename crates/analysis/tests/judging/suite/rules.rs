//! Rules on single runs, and the empty patch.

use isobench_schema::ids::ArmId;
use isobench_schema::legacy::HardClass;
use isobench_schema::suite::{NullBasis, ScoringRule};
use isobench_schema::verdict::{ArmJudgement, BlockValue, Verdict};

use super::{Made, contrast, near, score};

#[test]
fn an_empty_patch_scores_what_the_baseline_scores() {
    let mut made = Made::default();
    let values = |numbers: &[f64]| ArmJudgement {
        arm: ArmId::Baseline,
        launches: 6,
        valid: 6,
        values: (0..).zip(numbers).map(|(block, &value)| BlockValue { block, position: 0, value }).collect(),
        means: std::collections::BTreeMap::new(),
        failures: Vec::new(),
        incidents: Vec::new(),
    };
    // A human gain of 4 % in the one task and of 30 % in the other.
    let mut small = contrast("human", "baseline", Verdict::Better, 1.04_f64.ln());
    small.differences.iter_mut().for_each(|difference| difference.log_ratio = 1.04_f64.ln());
    made.add(vec![small]).arms = vec![values(&[100.0, 103.0, 100.0, 100.0])];
    made.add(vec![contrast("human", "baseline", Verdict::Better, 1.3_f64.ln())]).arms =
        vec![values(&[100.0, 110.0, 120.0, 121.0])];
    let suite = made.found();
    let null = |rule| score(&suite, rule).null_agent.unwrap();
    // 1/1.04 is 3.8 % below: within 5 %, not within 2 %. 1/1.3 is within neither.
    let five = null(ScoringRule::ThresholdFive);
    assert_eq!((five.trials, five.basis), (2, NullBasis::SingleRuns));
    near(five.expected, 0.5);
    near(null(ScoringRule::ThresholdTwo).expected, 0.0);
    // 100 and 103, 100 and 100: one of four comparisons is 3 % up. 100 and 110, 120 and 121: one is 10 % up.
    near(null(ScoringRule::OverBaselineFive).expected, 0.125);
    near(null(ScoringRule::OverBaselineTwo).expected, 0.25);
    // Where the human commit is better an empty patch is worse.
    let human = null(ScoringRule::AtLeastHuman);
    assert_eq!((human.trials, human.basis), (2, NullBasis::HumanVerdict));
    near(human.expected, 0.0);
}

#[test]
fn an_empty_patch_is_hardly_ever_better_by_six_blocks_at_a_level() {
    let mut made = Made::default();
    for _ in 0..2 {
        made.add(vec![contrast("human", "baseline", Verdict::Better, 0.2)]).margin = 1e-9;
    }
    // Half of the two-sided error of 5 %, where the margin is nothing.
    let without_margin = score(&made.found(), ScoringRule::BetterThanBaseline).null_agent.unwrap();
    assert!((without_margin.expected - 0.025).abs() < 0.005, "{without_margin:?}");
    assert_eq!((without_margin.trials, without_margin.basis), (2, NullBasis::Simulated));
    made.judged.iter_mut().for_each(|task| task.margin = 0.02);
    let with_margin = score(&made.found(), ScoringRule::BetterThanBaseline).null_agent.unwrap();
    assert!(with_margin.expected < without_margin.expected / 2.0, "{with_margin:?}");
}

#[test]
fn single_runs_stand_beside_verdicts() {
    let mut made = Made::default();
    for (difference, verdict) in [(0.0, Verdict::Worse), (-0.03, Verdict::Equivalent), (-0.2, Verdict::Worse)] {
        let mut own = contrast("agent:a", "human", verdict, difference);
        own.differences[0].log_ratio = difference;
        made.add(vec![contrast("human", "baseline", Verdict::Better, 0.2), own]);
    }
    let suite = made.found();
    let classes: Vec<(HardClass, HardClass)> = suite.side_by_side.iter().map(|item| (item.five, item.two)).collect();
    assert_eq!(
        classes,
        [
            (HardClass::Similar, HardClass::Similar),
            (HardClass::Similar, HardClass::Worse),
            (HardClass::Worse, HardClass::Worse)
        ]
    );
    let five = &score(&suite, ScoringRule::ThresholdFive).agents[0];
    assert_eq!((five.rate.successes, five.rate.trials, five.unconfirmed), (2, 3, Some(1)));
    near(suite.side_by_side[2].difference_pct.unwrap(), 100.0 * (-0.2_f64).exp_m1());
}
