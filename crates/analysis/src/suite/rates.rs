//! How often an arm succeeded, and what became of all tasks.

use isobench_schema::ids::ArmId;
use isobench_schema::suite::{ArmRates, OutcomeCounts, SuccessRate, SuccessRule};
use isobench_schema::verdict::{Contrast, Standing, Verdict};

use super::{Row, Tasks, rate};

/// What became of a task for one arm and rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    NotSucceeded,
    Undecided,
    Failed,
    NoPatch,
    Infrastructure,
    WithoutArm,
    NothingToBeat,
    HumanGainUnproven,
}

impl Outcome {
    /// Returns whether the arm succeeded, if infrastructure didn't take the task away and it counts at all.
    pub(super) fn trial(self) -> Option<bool> {
        match self {
            Self::Succeeded => Some(true),
            Self::NotSucceeded | Self::Undecided | Self::Failed | Self::NoPatch => Some(false),
            Self::Infrastructure | Self::WithoutArm | Self::NothingToBeat | Self::HumanGainUnproven => None,
        }
    }
}

/// Returns the rates of the human commit and of each agent.
pub(super) fn of(tasks: &Tasks<'_>) -> Vec<ArmRates> {
    let human = ArmId::Human;
    let arms = tasks.has_human().then_some(&human).into_iter().chain(tasks.agents());
    let rules = |arm: &ArmId| -> Vec<SuccessRule> {
        let applies = |rule: &SuccessRule| match (rule, arm) {
            (SuccessRule::BetterThanBaseline, _) => true,
            (SuccessRule::AtLeastHuman | SuccessRule::BetterThanHuman, ArmId::Agent(_)) => tasks.has_human(),
            (SuccessRule::AtLeastHuman | SuccessRule::BetterThanHuman, ArmId::Baseline | ArmId::Human) => false,
        };
        SuccessRule::ALL.iter().copied().filter(applies).collect()
    };
    let of_arm = |arm: &ArmId| ArmRates {
        arm: arm.clone(),
        rates: rules(arm).into_iter().map(|rule| success_rate(tasks, arm, rule)).collect(),
    };
    arms.map(of_arm).collect()
}

fn success_rate(tasks: &Tasks<'_>, arm: &ArmId, rule: SuccessRule) -> SuccessRate {
    let mut counts = OutcomeCounts { infrastructure: tasks.left_out, ..OutcomeCounts::default() };
    for row in &tasks.rows {
        *place(&mut counts, outcome(tasks, *row, arm, rule)) += 1;
    }
    let excluded = counts.infrastructure + counts.without_arm;
    let tried = counts.succeeded + counts.not_succeeded + counts.undecided + counts.failed + counts.no_patch;
    SuccessRate {
        rule,
        strict: rate(counts.succeeded, tried + excluded),
        infrastructure_excluded: rate(counts.succeeded, tried),
        counts,
    }
}

fn place(counts: &mut OutcomeCounts, outcome: Outcome) -> &mut u32 {
    match outcome {
        Outcome::Succeeded => &mut counts.succeeded,
        Outcome::NotSucceeded => &mut counts.not_succeeded,
        Outcome::Undecided => &mut counts.undecided,
        Outcome::Failed => &mut counts.failed,
        Outcome::NoPatch => &mut counts.no_patch,
        Outcome::Infrastructure => &mut counts.infrastructure,
        Outcome::WithoutArm => &mut counts.without_arm,
        Outcome::NothingToBeat => &mut counts.nothing_to_beat,
        Outcome::HumanGainUnproven => &mut counts.human_gain_unproven,
    }
}

/// Returns what became of a task for an arm. A task that can't rank agents is counted apart whatever the agent did in it.
pub(super) fn outcome(tasks: &Tasks<'_>, row: Row<'_>, arm: &ArmId, rule: SuccessRule) -> Outcome {
    if matches!(arm, ArmId::Agent(_)) {
        match row.judged.standing {
            Standing::NothingToBeat => return Outcome::NothingToBeat,
            Standing::HumanGainUnproven => return Outcome::HumanGainUnproven,
            Standing::Rankable | Standing::NotMeasured | Standing::NotAsked => {}
        }
    }
    let against = match rule {
        SuccessRule::BetterThanBaseline => ArmId::Baseline,
        SuccessRule::AtLeastHuman | SuccessRule::BetterThanHuman => ArmId::Human,
    };
    match row.contrast(arm, &against) {
        Some(contrast) => by_verdict(contrast, arm, rule),
        None if tasks.arms_left_out.contains(&(&row.judged.id, arm)) => Outcome::Infrastructure,
        None => Outcome::WithoutArm,
    }
}

fn by_verdict(contrast: &Contrast, arm: &ArmId, rule: SuccessRule) -> Outcome {
    match contrast.verdict {
        verdict if is_success(verdict, rule) => Outcome::Succeeded,
        Verdict::Better | Verdict::Worse | Verdict::Trivial | Verdict::Equivalent => Outcome::NotSucceeded,
        Verdict::Inconclusive => Outcome::Undecided,
        Verdict::AgentFailed => Outcome::Failed,
        Verdict::Invalid if contrast.charged_to.as_ref() == Some(arm) => Outcome::Failed,
        Verdict::Invalid | Verdict::NotMeasured => Outcome::Infrastructure,
        Verdict::NotRun => Outcome::NoPatch,
        Verdict::NothingToBeat => Outcome::NothingToBeat,
    }
}

/// Returns whether a verdict is a success by a rule.
pub(super) fn is_success(verdict: Verdict, rule: SuccessRule) -> bool {
    match (rule, verdict) {
        (SuccessRule::BetterThanBaseline | SuccessRule::BetterThanHuman, Verdict::Better)
        | (SuccessRule::AtLeastHuman, Verdict::Better | Verdict::Trivial | Verdict::Equivalent) => true,
        (
            SuccessRule::BetterThanBaseline | SuccessRule::BetterThanHuman | SuccessRule::AtLeastHuman,
            Verdict::Worse
            | Verdict::Trivial
            | Verdict::Equivalent
            | Verdict::Inconclusive
            | Verdict::NothingToBeat
            | Verdict::AgentFailed
            | Verdict::Invalid
            | Verdict::NotMeasured
            | Verdict::NotRun,
        ) => false,
    }
}
