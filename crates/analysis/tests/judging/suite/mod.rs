//! Suites of made-up judgements with known answers.

mod compared;
mod counts;
mod rules;

use isobench_analysis::suite;
use isobench_schema::ids::ArmId;
use isobench_schema::measurement::{Direction, MetricName};
use isobench_schema::plan::{Exclusion, Plan, PlannedTask};
use isobench_schema::suite::{ArmRates, Claims, Headline, RankMeasure, RankTable, RuleScore, ScoringRule, Suite};
use isobench_schema::verdict::{
    BlockCounts, BlockDifference, Contrast, LookDecision, LookResult, Standing, TaskJudgement, Verdict,
};

use crate::support::{arm, plan, task};

/// Returns a contrast with numbers: six differences around the estimate.
pub(super) fn contrast(of: &str, against: &str, verdict: Verdict, estimate: f64) -> Contrast {
    let wobble = [0.01, -0.01, 0.02, -0.02, 0.005, -0.005];
    let differences =
        (0..).zip(wobble).map(|(block, wobble)| BlockDifference { block, log_ratio: estimate + wobble }).collect();
    let p = if matches!(verdict, Verdict::Better | Verdict::Worse | Verdict::Trivial) { 0.001 } else { 0.4 };
    let decisions = [LookDecision::Better, LookDecision::Worse, LookDecision::Trivial, LookDecision::Equivalent];
    let decides = |decision: &LookDecision| decision.verdict() == Some(verdict);
    let decision = decisions.into_iter().find(decides).unwrap_or(LookDecision::Undecided);
    let look = LookResult {
        look: 0,
        planned: 6,
        blocks: 6,
        level: 0.05,
        equivalence_level: 0.05,
        decision,
        estimate: Some(estimate),
        low: Some(estimate - 0.02),
        high: Some(estimate + 0.02),
        p: Some(p),
        equivalence_low: None,
        equivalence_high: None,
    };
    Contrast {
        estimate: Some(estimate),
        low: look.low,
        high: look.high,
        p: Some(p),
        blocks: 6,
        speedup: Some(estimate.exp()),
        looks: vec![look],
        differences,
        ..without(of, against, verdict)
    }
}

/// Returns a contrast without numbers.
pub(super) fn without(of: &str, against: &str, verdict: Verdict) -> Contrast {
    Contrast {
        of: arm(of),
        against: arm(against),
        metric: MetricName::OutputThroughput,
        verdict,
        estimate: None,
        low: None,
        high: None,
        p: None,
        blocks: 0,
        reason: String::new(),
        charged_to: (verdict == Verdict::Invalid).then(|| arm(of)),
        speedup: None,
        sign_flip_p: None,
        hodges_lehmann: None,
        equivalence_low: None,
        equivalence_high: None,
        mde: None,
        blocks_needed: None,
        look: None,
        looks: Vec::new(),
        differences: Vec::new(),
    }
}

/// The tasks of a suite as they are put together.
#[derive(Default)]
pub(super) struct Made {
    pub(super) planned: Vec<PlannedTask>,
    pub(super) judged: Vec<TaskJudgement>,
    pub(super) exclusions: Vec<Exclusion>,
}

impl Made {
    pub(super) fn add(&mut self, contrasts: Vec<Contrast>) -> &mut TaskJudgement {
        let id = format!("task-{}", self.planned.len());
        let planned = task(&id, &["baseline", "human", "agent:a"], 6);
        let human = contrasts.iter().find(|contrast| contrast.of == ArmId::Human).map(|contrast| contrast.verdict);
        let standing = match human {
            None => Standing::NotAsked,
            Some(Verdict::Better) => Standing::Rankable,
            Some(Verdict::Inconclusive) => Standing::HumanGainUnproven,
            Some(Verdict::NotMeasured) => Standing::NotMeasured,
            Some(_) => Standing::NothingToBeat,
        };
        self.judged.push(TaskJudgement {
            id: planned.id.clone(),
            title: None,
            standing,
            metric: MetricName::OutputThroughput,
            direction: Direction::Higher,
            margin: 0.02,
            blocks: BlockCounts::default(),
            contrasts,
            arms: Vec::new(),
            deviations: Vec::new(),
            sentinel: None,
            spread: None,
            unlike: Vec::new(),
            broken: Vec::new(),
            confirmations: Vec::new(),
        });
        self.planned.push(planned);
        self.judged.last_mut().unwrap()
    }

    pub(super) fn plan(&self) -> Plan {
        Plan { exclusions: self.exclusions.clone(), ..plan(self.planned.clone()) }
    }

    pub(super) fn suite(&self) -> Option<Suite> {
        suite::of(&self.plan(), &self.judged)
    }

    pub(super) fn found(&self) -> Suite {
        self.suite().unwrap()
    }
}

pub(super) fn headline<'s>(suite: &'s Suite, of: &str, against: &str) -> &'s Headline {
    suite.headlines.iter().find(|headline| headline.of == arm(of) && headline.against == arm(against)).unwrap()
}

pub(super) fn rates<'s>(suite: &'s Suite, of: &str) -> &'s ArmRates {
    suite.rates.iter().find(|rates| rates.arm == arm(of)).unwrap()
}

pub(super) fn claims<'s>(suite: &'s Suite, of: &str, against: &str) -> &'s Claims {
    suite.claims.iter().find(|claims| claims.of == arm(of) && claims.against == arm(against)).unwrap()
}

pub(super) fn score(suite: &Suite, rule: ScoringRule) -> &RuleScore {
    suite.rules.iter().find(|score| score.rule == rule).unwrap()
}

pub(super) fn table(suite: &Suite, by: RankMeasure) -> &RankTable {
    suite.ranks.iter().find(|table| table.by == by).unwrap()
}

pub(super) fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}
