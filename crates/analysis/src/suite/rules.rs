//! What rules on single runs say of agents, beside isobench's: the first block of each task is taken as such a run.

use isobench_schema::ids::ArmId;
use isobench_schema::legacy::HardClass;
use isobench_schema::measurement::Direction;
use isobench_schema::suite::{AgentScore, ArmRates, RuleScore, ScoringRule, SideBySide, SuccessRule};

use super::rates::is_success;
use super::{Row, Tasks, null_agent, rate};
use crate::legacy::{AgentRun, hard_class, is_hard_success};

/// The thresholds in percent.
const FIVE: f64 = 5.0;
const TWO: f64 = 2.0;

/// Returns the score of every rule that applies, and the classes of each agent in each task with a human arm.
pub(super) fn of(tasks: &Tasks<'_>, rates: &[ArmRates]) -> (Vec<RuleScore>, Vec<SideBySide>) {
    let side_by_side: Vec<SideBySide> = tasks.rows.iter().flat_map(|row| side_by_side(*row)).collect();
    let score = |&rule: &ScoringRule| {
        let applies = match rule {
            ScoringRule::OverBaselineFive | ScoringRule::OverBaselineTwo | ScoringRule::BetterThanBaseline => true,
            ScoringRule::ThresholdFive
            | ScoringRule::ThresholdTwo
            | ScoringRule::AtLeastHuman
            | ScoringRule::BetterThanHuman => tasks.has_human(),
        };
        applies.then(|| one(tasks, rates, &side_by_side, rule))
    };
    let scores = ScoringRule::ALL.iter().filter_map(score).collect();
    (scores, side_by_side)
}

fn one(tasks: &Tasks<'_>, rates: &[ArmRates], classes: &[SideBySide], rule: ScoringRule) -> RuleScore {
    let threshold = |class: fn(&SideBySide) -> HardClass, percent: f64| {
        let null = null_agent::against_human(tasks, |log_ratio, direction| {
            let difference = difference_pct(log_ratio, direction);
            is_hard_success(hard_class(Some(difference), percent, AgentRun::Ran))
        });
        (tasks.agents().into_iter().map(|arm| by_class(classes, arm, class)).collect(), null)
    };
    let over = |percent: f64| {
        let is_over = move |log_ratio: f64, direction: Direction| difference_pct(log_ratio, direction) > percent;
        let agents = tasks.agents().into_iter().map(|arm| over_baseline(tasks, arm, is_over)).collect();
        (agents, null_agent::against_baseline(tasks, is_over))
    };
    let (agents, null_agent): (Vec<AgentScore>, _) = match rule {
        ScoringRule::ThresholdFive => threshold(|item| item.five, FIVE),
        ScoringRule::ThresholdTwo => threshold(|item| item.two, TWO),
        ScoringRule::OverBaselineFive => over(FIVE),
        ScoringRule::OverBaselineTwo => over(TWO),
        ScoringRule::BetterThanBaseline => {
            (by_rate(rates, SuccessRule::BetterThanBaseline), null_agent::better_than_baseline(tasks))
        }
        ScoringRule::AtLeastHuman => (by_rate(rates, SuccessRule::AtLeastHuman), null_agent::by_human_verdict(tasks)),
        ScoringRule::BetterThanHuman => {
            (by_rate(rates, SuccessRule::BetterThanHuman), null_agent::by_human_verdict(tasks))
        }
    };
    RuleScore { rule, agents, null_agent }
}

/// Returns the scores by one of isobench's rules: of the tasks that infrastructure didn't take away.
fn by_rate(rates: &[ArmRates], rule: SuccessRule) -> Vec<AgentScore> {
    let agents = rates.iter().filter(|rates| matches!(rates.arm, ArmId::Agent(_)));
    let score = |of: &ArmRates| {
        let found = of.rates.iter().find(|rate| rate.rule == rule)?;
        Some(AgentScore { arm: of.arm.clone(), rate: found.infrastructure_excluded, unconfirmed: None })
    };
    agents.filter_map(score).collect()
}

/// Returns an agent's score by classes.
fn by_class(classes: &[SideBySide], arm: &ArmId, class: fn(&SideBySide) -> HardClass) -> AgentScore {
    let (mut trials, mut successes, mut unconfirmed) = (0, 0, 0);
    for item in classes.iter().filter(|item| item.arm == *arm && class(item) != HardClass::NoData) {
        trials += 1;
        if is_hard_success(class(item)) {
            successes += 1;
            unconfirmed += u32::from(!is_success(item.verdict, SuccessRule::AtLeastHuman));
        }
    }
    AgentScore { arm: arm.clone(), rate: rate(successes, trials), unconfirmed: Some(unconfirmed) }
}

/// Returns an agent's score by a single run against the baseline. An agent that failed did not succeed.
fn over_baseline(tasks: &Tasks<'_>, arm: &ArmId, is_over: impl Fn(f64, Direction) -> bool) -> AgentScore {
    let (mut trials, mut successes, mut unconfirmed) = (0, 0, 0);
    for row in &tasks.rows {
        let Some(contrast) = row.contrast(arm, &ArmId::Baseline) else { continue };
        match contrast.differences.first() {
            Some(first) => {
                trials += 1;
                if is_over(first.log_ratio, row.judged.direction) {
                    successes += 1;
                    unconfirmed += u32::from(!is_success(contrast.verdict, SuccessRule::BetterThanBaseline));
                }
            }
            None => trials += u32::from(row.left_the_baseline(arm)),
        }
    }
    AgentScore { arm: arm.clone(), rate: rate(successes, trials), unconfirmed: Some(unconfirmed) }
}

/// Returns the classes of each agent of a task with a human arm.
fn side_by_side(row: Row<'_>) -> impl Iterator<Item = SideBySide> {
    let contrasts = row.judged.contrasts.iter().filter(|contrast| contrast.against == ArmId::Human);
    contrasts.filter(|contrast| matches!(contrast.of, ArmId::Agent(_))).map(move |contrast| {
        let run = if row.left_the_baseline(&contrast.of) { AgentRun::Failed } else { AgentRun::Ran };
        let first = contrast.differences.first();
        let difference = first.map(|first| difference_pct(first.log_ratio, row.judged.direction));
        SideBySide {
            task: row.judged.id.clone(),
            arm: contrast.of.clone(),
            difference_pct: difference,
            five: hard_class(difference, FIVE, run),
            two: hard_class(difference, TWO, run),
            verdict: contrast.verdict,
        }
    })
}

/// Returns a log ratio as the earlier system's difference: (agent − other)/other of a rate, (other − agent)/other of a time,
/// in percent, so that positive is better.
pub(super) fn difference_pct(log_ratio: f64, direction: Direction) -> f64 {
    match direction {
        Direction::Higher => 100.0 * log_ratio.exp_m1(),
        Direction::Lower => -100.0 * (-log_ratio).exp_m1(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_the_earlier_systems() {
        // 110 tok/s against 100, and 90 ms against 100: both 10 % better.
        let (rate, time) = ((110.0_f64 / 100.0).ln(), -(90.0_f64 / 100.0).ln());
        assert!((difference_pct(rate, Direction::Higher) - 10.0).abs() < 1e-9);
        assert!((difference_pct(time, Direction::Lower) - 10.0).abs() < 1e-9);
        assert!((difference_pct(-rate, Direction::Higher) + 100.0 / 11.0).abs() < 1e-9);
    }
}
