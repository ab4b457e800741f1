//! Headlines, rates and counts.

use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::plan::{Exclusion, ExclusionReason};
use isobench_schema::suite::{OutcomeCounts, OverTasks, ScoringRule, SuccessRule};
use isobench_schema::verdict::{SentinelJudgement, Verdict};
use proptest::prelude::*;

use super::{Made, contrast, headline, near, rates, score, without};
use crate::support::arm;

#[test]
fn there_is_no_suite_without_two_tasks_of_one_kind() {
    let mut made = Made::default();
    assert_eq!(made.suite(), None);
    made.add(vec![contrast("human", "baseline", Verdict::Better, 0.2)]);
    assert_eq!(made.suite(), None);
    made.add(vec![contrast("agent:a", "baseline", Verdict::Better, 0.2)]);
    assert_eq!(made.suite(), None, "two tasks, but no kind of contrast in both");
    made.add(vec![contrast("human", "baseline", Verdict::Better, 0.1)]);
    assert!(made.suite().is_some());
}

#[test]
fn a_headline_is_the_geometric_mean_with_the_proven_gain_beside_it() {
    let mut made = Made::default();
    for estimate in [0.1, 0.3, 0.01, 0.4] {
        made.add(vec![contrast("human", "baseline", Verdict::Better, estimate)]);
    }
    let suite = made.found();
    let found = headline(&suite, "human", "baseline");
    // scipy.stats.ttest_1samp([0.1, 0.3, 0.01, 0.4], 0).confidence_interval(0.95)
    near(found.measured.estimate, 0.2025);
    near(found.measured.speedup, 0.2025_f64.exp());
    near(found.measured.low.unwrap(), STUDENT.0);
    near(found.measured.high.unwrap(), STUDENT.1);
    assert_eq!((found.measured.tasks, found.measured.method), (4, OverTasks::StudentT));
    assert_eq!((found.proven_tasks, found.with_failures), (3, None));
    near(found.proven, (0.08 + 0.28 + 0.38) / 4.0);
}

const STUDENT: (f64, f64) = (-0.082_257_819_323_980_91, 0.487_257_819_323_980_93);

#[test]
fn a_failed_agent_left_the_baseline_as_it_was() {
    let mut made = Made::default();
    for (verdict, human) in [(Verdict::AgentFailed, 0.3), (Verdict::Invalid, 0.2), (Verdict::NotRun, 0.1)] {
        made.add(vec![
            contrast("human", "baseline", Verdict::Better, human),
            without("agent:a", "baseline", verdict),
            without("agent:a", "human", verdict),
        ]);
    }
    for estimate in [0.2, 0.4] {
        made.add(vec![
            contrast("human", "baseline", Verdict::Better, 0.3),
            contrast("agent:a", "baseline", Verdict::Better, estimate),
            contrast("agent:a", "human", Verdict::Inconclusive, estimate - 0.3),
        ]);
    }
    let suite = made.found();
    let over_baseline = headline(&suite, "agent:a", "baseline");
    near(over_baseline.measured.estimate, 0.3);
    near(over_baseline.with_failures.unwrap().estimate, 0.6 / 5.0);
    assert_eq!(over_baseline.with_failures.unwrap().tasks, 5);
    let over_human = headline(&suite, "agent:a", "human");
    near(over_human.measured.estimate, 0.0);
    near(over_human.with_failures.unwrap().estimate, -0.6 / 5.0);
    let single = score(&suite, ScoringRule::ThresholdFive);
    assert_eq!((single.agents[0].rate.successes, single.agents[0].rate.trials), (1, 5), "failures are `worse`");
    let over = score(&suite, ScoringRule::OverBaselineFive);
    assert_eq!((over.agents[0].rate.successes, over.agents[0].rate.trials), (2, 5));
}

/// A suite with every standing and every way to end.
fn varied() -> Made {
    let mut made = Made::default();
    let ends = [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::Trivial, Verdict::Inconclusive];
    for verdict in ends {
        made.add(vec![
            contrast("human", "baseline", Verdict::Better, 0.2),
            contrast("agent:a", "baseline", Verdict::Better, 0.2),
            contrast("agent:a", "human", verdict, 0.0),
        ]);
    }
    for verdict in [Verdict::AgentFailed, Verdict::Invalid, Verdict::NotRun, Verdict::NotMeasured] {
        made.add(vec![
            contrast("human", "baseline", Verdict::Better, 0.2),
            without("agent:a", "baseline", verdict),
            without("agent:a", "human", verdict),
        ]);
    }
    for human in [Verdict::Equivalent, Verdict::Inconclusive] {
        made.add(vec![
            contrast("human", "baseline", human, 0.0),
            contrast("agent:a", "baseline", Verdict::Better, 0.2),
            contrast("agent:a", "human", Verdict::NothingToBeat, 0.2),
        ]);
    }
    made.add(vec![contrast("human", "baseline", Verdict::Better, 0.2)]);
    let exclusion = |task: &str, arm: Option<ArmId>, reason| Exclusion {
        task: TaskId::new(task).unwrap(),
        arm,
        reason,
        message: String::new(),
    };
    made.exclusions = vec![
        exclusion("large", None, ExclusionReason::MachineTooSmall),
        exclusion("other", None, ExclusionReason::NotChosen),
        exclusion("task-11", Some(arm("agent:b")), ExclusionReason::IsolationMissing),
    ];
    made
}

#[test]
fn every_task_is_counted_once_under_both_denominators() {
    let suite = varied().found();
    assert_eq!((suite.tasks.planned, suite.tasks.left_out, suite.tasks.rankable), (12, 1, 10));
    let agent = rates(&suite, "agent:a");
    let by = |rule| agent.rates.iter().find(|rate| rate.rule == rule).unwrap();
    let at_least = by(SuccessRule::AtLeastHuman);
    let counts = OutcomeCounts {
        succeeded: 3,
        not_succeeded: 1,
        undecided: 1,
        failed: 2,
        no_patch: 1,
        infrastructure: 2,
        without_arm: 1,
        nothing_to_beat: 1,
        human_gain_unproven: 1,
    };
    assert_eq!(at_least.counts, counts);
    assert_eq!((at_least.strict.successes, at_least.strict.trials), (3, 11));
    assert_eq!((at_least.infrastructure_excluded.successes, at_least.infrastructure_excluded.trials), (3, 8));
    // statsmodels.stats.proportion.proportion_confint(3, 11, 0.05, 'wilson'); (3, 8)
    near(at_least.strict.low.unwrap(), WILSON[0].0);
    near(at_least.strict.high.unwrap(), WILSON[0].1);
    near(at_least.infrastructure_excluded.low.unwrap(), WILSON[1].0);
    near(at_least.infrastructure_excluded.high.unwrap(), WILSON[1].1);
    assert_eq!(by(SuccessRule::BetterThanHuman).counts.succeeded, 1);
    assert_eq!(by(SuccessRule::BetterThanBaseline).counts.succeeded, 5);
    let human = &rates(&suite, "human").rates;
    assert_eq!(human.len(), 1);
    assert_eq!((human[0].counts.succeeded, human[0].counts.not_succeeded, human[0].counts.undecided), (10, 1, 1));
    assert_eq!((human[0].strict.trials, human[0].infrastructure_excluded.trials), (13, 12));
}

const WILSON: [(f64, f64); 2] =
    [(0.097_460_592_900_248_89, 0.565_645_301_176_129_2), (0.136_844_285_823_597_37, 0.694_257_605_397_372_8)];

#[test]
fn a_suite_in_which_everything_failed_has_counts_and_no_means() {
    let mut made = Made::default();
    for _ in 0..3 {
        made.add(vec![
            without("human", "baseline", Verdict::NotMeasured),
            without("agent:a", "baseline", Verdict::NotMeasured),
            without("agent:a", "human", Verdict::NotMeasured),
        ]);
    }
    let suite = made.found();
    assert!(suite.headlines.is_empty() && suite.claims.is_empty() && suite.ranks.is_empty());
    let agent = &rates(&suite, "agent:a").rates[0];
    assert_eq!((agent.counts.infrastructure, agent.infrastructure_excluded.trials), (3, 0));
    assert_eq!((agent.infrastructure_excluded.low, agent.strict.successes, agent.strict.trials), (None, 0, 3));
    assert!(suite.rules.iter().all(|score| score.null_agent.is_none()), "{:?}", suite.rules);
}

#[test]
fn sentinels_of_all_tasks_are_counted_together() {
    let mut made = Made::default();
    for rejected in [0, 1] {
        made.add(vec![contrast("human", "baseline", Verdict::Better, 0.2)]).sentinel =
            Some(SentinelJudgement { arm: arm("agent:s"), differences: Vec::new(), tested: 10, rejected });
    }
    let found = made.found().sentinels.unwrap();
    assert_eq!((found.successes, found.trials), (1, 20));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn counts_add_up_and_the_order_of_tasks_does_not_matter(
        ends in prop::collection::vec((0_usize..10, 0_usize..10, -0.4_f64..0.4), 2..25),
    ) {
        let numbers = [Verdict::Better, Verdict::Worse, Verdict::Trivial, Verdict::Equivalent, Verdict::Inconclusive];
        let make = |of: &str, against: &str, verdict: usize, estimate: f64| match numbers.get(verdict) {
            Some(verdict) => contrast(of, against, *verdict, estimate),
            None => without(of, against, Verdict::ALL[verdict % Verdict::ALL.len()]),
        };
        let mut made = Made::default();
        for (human, agent, estimate) in &ends {
            made.add(vec![
                make("human", "baseline", *human, *estimate),
                make("agent:a", "baseline", *agent, *estimate / 2.0),
                make("agent:a", "human", *agent, -*estimate / 2.0),
            ]);
        }
        let suite = made.found();
        for rate in suite.rates.iter().flat_map(|arm| &arm.rates) {
            let c = rate.counts;
            let tried = c.succeeded + c.not_succeeded + c.undecided + c.failed + c.no_patch;
            let lost = c.infrastructure + c.without_arm;
            prop_assert_eq!(rate.infrastructure_excluded.trials, tried);
            prop_assert_eq!(rate.strict.trials, tried + lost);
            let all = tried + lost + c.nothing_to_beat + c.human_gain_unproven;
            prop_assert_eq!(all, u32::try_from(ends.len()).unwrap());
        }
        for headline in &suite.headlines {
            let mean = headline.measured;
            prop_assert!(mean.low.unwrap() <= mean.estimate + 1e-12 && mean.estimate <= mean.high.unwrap() + 1e-12);
            prop_assert!(headline.proven >= 0.0 && headline.proven_tasks <= mean.tasks);
        }
        for claims in &suite.claims {
            let tests = &claims.tests;
            prop_assert!(tests.iter().all(|t| t.p <= t.benjamini_hochberg + 1e-12));
            prop_assert!(tests.iter().all(|t| t.benjamini_hochberg <= t.holm + 1e-12 && t.p <= t.in_task + 1e-12));
        }
        made.judged.reverse();
        made.planned.reverse();
        let mirrored = made.found();
        prop_assert_eq!(&suite.rates, &mirrored.rates);
        prop_assert_eq!(suite.tasks, mirrored.tasks);
        prop_assert_eq!(suite, Made::found(&{ made.judged.reverse(); made.planned.reverse(); made }));
    }
}
