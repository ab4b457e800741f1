//! Made-up suites of any number of tasks.

use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::legacy::HardClass;
use isobench_schema::suite::{
    AgentScore, ArmRates, Called, Claims, Headline, MeanOverTasks, NullBasis, NullScore, OutcomeCounts, OverTasks,
    RankMeasure, RankPair, RankRow, RankTable, Rate, RuleScore, ScoringRule, SideBySide, SuccessRate, SuccessRule,
    Suite, SuiteTasks, TaskTest,
};
use isobench_schema::verdict::{Contrast, Judgement, Standing, Verdict};

use crate::sample::{absent, arm, contrast, judgement_of, measured, task};

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap()
}

/// Returns the estimate of a task: gains of up to some 60 %, losses of up to some 10 %, in no order.
fn estimate(place: usize) -> f64 {
    let step = f64::from(number(place * 7919 % 997)) / 997.0;
    0.55 * step * step - 0.06
}

/// Returns a contrast with its interval, and a verdict that follows from it.
fn numbered(of: &str, against: &str, estimate: f64, place: usize) -> Contrast {
    let half = 0.012 + 0.05 * f64::from(number(place % 9)) / 9.0;
    let verdict = match estimate {
        e if e - half > 0.0 && e >= 0.0198 => Verdict::Better,
        e if e + half < 0.0 && e <= -0.0198 => Verdict::Worse,
        e if e.abs() + half < 0.0198 => Verdict::Equivalent,
        e if e.abs() > half => Verdict::Trivial,
        _ => Verdict::Inconclusive,
    };
    let mut found = contrast(of, against, verdict, estimate.exp());
    (found.low, found.high, found.p) = (Some(estimate - half), Some(estimate + half), Some(0.01));
    found
}

fn mean(values: &[f64]) -> MeanOverTasks {
    let estimate = values.iter().sum::<f64>() / f64::from(number(values.len()));
    let half = 0.3 / f64::from(number(values.len())).sqrt();
    MeanOverTasks {
        tasks: number(values.len()),
        estimate,
        speedup: estimate.exp(),
        low: Some(estimate - half),
        high: Some(estimate + half),
        method: if values.len() < 10 { OverTasks::StudentT } else { OverTasks::ClusterBootstrap },
    }
}

fn rate(successes: u32, trials: u32) -> Rate {
    let share = f64::from(successes) / f64::from(trials.max(1));
    Rate { successes, trials, low: Some((share - 0.1).max(0.0)), high: Some((share + 0.1).min(1.0)) }
}

/// Returns a judgement of so many tasks with a human arm and two agents, one of which fails at each seventh.
pub(crate) fn suite(tasks: usize) -> Judgement {
    let one = |place: usize| {
        let human = estimate(place);
        let mut contrasts = vec![numbered("human", "baseline", human, place)];
        contrasts.push(numbered("agent:half", "baseline", human / 2.0, place + 1));
        if place % 7 == 3 {
            contrasts.push(absent(
                "agent:other",
                "baseline",
                Verdict::AgentFailed,
                "agent `other` failed in 6 of 6 blocks",
            ));
        } else {
            contrasts.push(numbered("agent:other", "baseline", estimate(place + 5), place + 2));
        }
        contrasts.push(numbered("agent:half", "human", -human / 2.0, place + 3));
        let arms = vec![measured("baseline", 100.0), measured("human", 110.0), measured("agent:half", 105.0)];
        let mut made =
            task(&format!("vllm-project-vllm-{:08x}", place * 2_654_435_761 % 4_294_967_291), contrasts, arms);
        let standings = [(Verdict::Better, Standing::Rankable), (Verdict::Inconclusive, Standing::HumanGainUnproven)];
        let known = standings.iter().find(|(verdict, _)| *verdict == made.contrasts[0].verdict);
        made.standing = known.map_or(Standing::NothingToBeat, |(_, standing)| *standing);
        made
    };
    let mut judgement = judgement_of((0..tasks).map(one).collect());
    judgement.suite = Some(together(&judgement));
    judgement
}

fn of_kind<'j>(judgement: &'j Judgement, of: &ArmId, against: &ArmId) -> Vec<(&'j TaskId, &'j Contrast)> {
    let own = |contrast: &&Contrast| contrast.of == *of && contrast.against == *against && contrast.estimate.is_some();
    judgement.tasks.iter().filter_map(|task| Some((&task.id, task.contrasts.iter().find(own)?))).collect()
}

fn together(judgement: &Judgement) -> Suite {
    let kinds =
        [("human", "baseline"), ("agent:half", "baseline"), ("agent:other", "baseline"), ("agent:half", "human")];
    let kinds = kinds.map(|(of, against)| (arm(of), arm(against)));
    let standing = |wanted| number(judgement.tasks.iter().filter(|task| task.standing == wanted).count());
    let headline = |(of, against): &(ArmId, ArmId)| {
        let values: Vec<f64> =
            of_kind(judgement, of, against).iter().filter_map(|(_, contrast)| contrast.estimate).collect();
        let failed = judgement.tasks.len() - values.len();
        let with: Vec<f64> = values.iter().copied().chain(std::iter::repeat_n(0.0, failed)).collect();
        Headline {
            of: of.clone(),
            against: against.clone(),
            measured: mean(&values),
            with_failures: (failed > 0).then(|| mean(&with)),
            proven: values.iter().map(|value| (value - 0.03).max(0.0)).sum::<f64>() / f64::from(number(values.len())),
            proven_tasks: number(values.iter().filter(|value| **value > 0.03).count()),
        }
    };
    let claims = |(of, against): &(ArmId, ArmId)| {
        let tests = of_kind(judgement, of, against).into_iter().enumerate().map(|(place, (task, contrast))| TaskTest {
            task: task.clone(),
            estimate: contrast.estimate.unwrap(),
            p: 0.001,
            in_task: 0.002,
            holm: if place % 2 == 0 { 0.01 } else { 0.3 },
            benjamini_hochberg: 0.004,
        });
        Claims {
            of: of.clone(),
            against: against.clone(),
            holm: Called { faster: 5, slower: 1 },
            benjamini_hochberg: Called { faster: 8, slower: 2 },
            tests: tests.collect(),
        }
    };
    let tasks = number(judgement.tasks.len());
    Suite {
        tasks: SuiteTasks {
            planned: tasks,
            left_out: 1,
            rankable: standing(Standing::Rankable),
            human_gain_unproven: standing(Standing::HumanGainUnproven),
            nothing_to_beat: standing(Standing::NothingToBeat),
            not_measured: 0,
            not_asked: 0,
        },
        headlines: kinds.iter().map(headline).collect(),
        rates: rates(tasks),
        claims: kinds.iter().map(claims).collect(),
        ranks: vec![ranks()],
        rules: rules(tasks),
        side_by_side: side_by_side(judgement),
        sentinels: Some(rate(1, 20)),
    }
}

fn rates(tasks: u32) -> Vec<ArmRates> {
    let counts = OutcomeCounts {
        succeeded: tasks / 2,
        not_succeeded: tasks - tasks / 2,
        infrastructure: 1,
        ..OutcomeCounts::default()
    };
    let of = |rule| SuccessRate {
        rule,
        strict: rate(tasks / 2, tasks + 1),
        infrastructure_excluded: rate(tasks / 2, tasks),
        counts,
    };
    vec![
        ArmRates { arm: arm("human"), rates: vec![of(SuccessRule::BetterThanBaseline)] },
        ArmRates { arm: arm("agent:half"), rates: SuccessRule::ALL.iter().copied().map(of).collect() },
        ArmRates { arm: arm("agent:other"), rates: vec![of(SuccessRule::BetterThanBaseline)] },
    ]
}

fn ranks() -> RankTable {
    let row = |name: &str, value: f64, best, worst| RankRow { arm: arm(name), value, tasks: 10, best, worst };
    let pair = |of: &str, against: &str, difference: f64, holm: f64| RankPair {
        of: arm(of),
        against: arm(against),
        tasks: 10,
        difference: Some(difference),
        low: Some(difference - 0.05),
        high: Some(difference + 0.05),
        first_only: None,
        second_only: None,
        p: Some(holm / 2.0),
        holm: Some(holm),
    };
    RankTable {
        by: RankMeasure::SpeedUp,
        rows: vec![row("agent:other", 0.12, 1, 2), row("agent:half", 0.1, 1, 2), row("agent:third", 0.0, 3, 3)],
        groups: vec![vec![arm("agent:other"), arm("agent:half")], vec![arm("agent:third")]],
        pairs: vec![
            pair("agent:other", "agent:half", 0.02, 0.4),
            pair("agent:other", "agent:third", 0.12, 0.001),
            pair("agent:half", "agent:third", 0.1, 0.002),
        ],
    }
}

fn rules(tasks: u32) -> Vec<RuleScore> {
    let one = |(place, &rule): (usize, &ScoringRule)| RuleScore {
        rule,
        agents: ["agent:half", "agent:other"]
            .map(|name| AgentScore {
                arm: arm(name),
                rate: rate(tasks / 2, tasks),
                unconfirmed: (place < 4).then_some(2),
            })
            .into(),
        null_agent: Some(NullScore {
            expected: if place < 4 { 0.34 } else { 0.0 },
            trials: tasks,
            basis: if place < 2 { NullBasis::SingleRuns } else { NullBasis::NeighbouringBaselines },
        }),
    };
    ScoringRule::ALL.iter().enumerate().map(one).collect()
}

fn side_by_side(judgement: &Judgement) -> Vec<SideBySide> {
    let one = |(task, contrast): (&TaskId, &Contrast)| SideBySide {
        task: task.clone(),
        arm: contrast.of.clone(),
        difference_pct: contrast.estimate.map(|estimate| 100.0 * estimate.exp_m1()),
        five: HardClass::Similar,
        two: HardClass::Worse,
        verdict: contrast.verdict,
    };
    of_kind(judgement, &arm("agent:half"), &arm("human")).into_iter().map(one).collect()
}
