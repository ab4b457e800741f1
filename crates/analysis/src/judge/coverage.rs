//! How far the arms of a run came, where they were lost, and what running them again could change.

use isobench_schema::cause::{Blame, FixKind};
use isobench_schema::coverage::{Coverage, CoverageStage, RetryActor};
use isobench_schema::failure::{Charge, FailureStage};
use isobench_schema::ids::ArmId;
use isobench_schema::plan::{Exclusion, ExclusionReason, Plan};
use isobench_schema::verdict::{ArmJudgement, CountedFailure, TaskJudgement, Verdict};

use crate::coverage::{Item, Loss, Retry, actor, coverage};

/// Counts the arms of every task, those that the plan leaves out too. What the command didn't ask for isn't counted, nor is
/// what couldn't be read as a task.
pub(super) fn of_run(plan: &Plan, tasks: &[TaskJudgement]) -> Coverage {
    let run = tasks.iter().flat_map(|task| task.arms.iter().map(move |arm| run_arm(task, arm)));
    let excluded = plan.exclusions.iter().filter(|exclusion| exclusion.reason != ExclusionReason::NotChosen);
    let items: Vec<Item> = run.chain(excluded.map(left_out)).collect();
    coverage("arms", &items)
}

fn left_out(exclusion: &Exclusion) -> Item {
    let (stage, fix) = match exclusion.reason {
        ExclusionReason::NotChosen | ExclusionReason::ClientLacks => (CoverageStage::Command, FixKind::None),
        ExclusionReason::Contradiction | ExclusionReason::CannotRun => (CoverageStage::Command, FixKind::DatasetEdit),
        ExclusionReason::RevisionNotFound => (CoverageStage::Environment, FixKind::DatasetEdit),
        ExclusionReason::MachineTooSmall => (CoverageStage::Environment, FixKind::Devices),
        ExclusionReason::RepositoryUnavailable
        | ExclusionReason::ToolMissing
        | ExclusionReason::InputMissing
        | ExclusionReason::IsolationMissing => (CoverageStage::Environment, FixKind::Machine),
    };
    let name = match &exclusion.arm {
        Some(arm) => format!("{}/{arm}", exclusion.task),
        None => exclusion.task.to_string(),
    };
    let class = exclusion.reason.to_string();
    let change = format!("what `isobench explain {class}` says");
    Item {
        name,
        loss: Some(Loss { stage, class, reason: exclusion.message.clone() }),
        retry: Some(Retry { fix, change, actor: actor(fix) }),
    }
}

fn run_arm(task: &TaskJudgement, arm: &ArmJudgement) -> Item {
    let name = format!("{}/{}", task.id, arm.arm);
    let Some((loss, retry)) = lost(task, arm) else { return Item { name, loss: None, retry: None } };
    Item { name, loss: Some(loss), retry: Some(retry) }
}

/// Returns where an arm was lost, and what would change that. It came through if it was measured
/// and a contrast that it is in is decided.
fn lost(task: &TaskJudgement, arm: &ArmJudgement) -> Option<(Loss, Retry)> {
    let verdicts = || {
        let own = task.contrasts.iter().filter(|contrast| contrast.of == arm.arm || contrast.against == arm.arm);
        own.map(|contrast| contrast.verdict)
    };
    let agent_failed = matches!(arm.arm, ArmId::Agent(_)) && verdicts().any(|verdict| verdict == Verdict::AgentFailed);
    if arm.valid > 0 && !agent_failed && verdicts().any(is_decided) {
        return None;
    }
    let failed = arm.valid == 0 || verdicts().any(|verdict| verdict == own_failure(&arm.arm));
    if let Some(counted) = arm.failures.first().filter(|_| failed) {
        let (loss, retry) = failure(&arm.arm, counted);
        let answers = matches!(arm.arm, ArmId::Agent(_))
            && counted.failure.class.charge() != Charge::Infrastructure
            && (counted.failure.stage == FailureStage::Validity || verdicts().any(|one| one == Verdict::AgentFailed));
        if counted.failure.is_confirmable() {
            return Some((loss, to_be_confirmed()));
        }
        return Some((loss, if answers { settled() } else { retry }));
    }
    let contrast = task.contrasts.iter().find(|contrast| contrast.of == arm.arm || contrast.against == arm.arm);
    let (stage, class, reason, fix, change) = match contrast {
        _ if arm.launches == 0 => {
            let reason = "no block of it is complete".to_owned();
            (CoverageStage::Environment, "not-run".to_owned(), reason, FixKind::Retry, "the same command goes on")
        }
        None => {
            let reason = "no contrast of it was asked for".to_owned();
            (CoverageStage::Decided, "not-asked".to_owned(), reason, FixKind::DatasetEdit, "a contrast of the task")
        }
        Some(contrast) => {
            let (fix, change) = match contrast.verdict {
                Verdict::Inconclusive => (FixKind::Option, "a plan with more blocks"),
                Verdict::Better
                | Verdict::Worse
                | Verdict::Trivial
                | Verdict::Equivalent
                | Verdict::NothingToBeat
                | Verdict::AgentFailed
                | Verdict::Invalid
                | Verdict::NotMeasured
                | Verdict::NotRun => (FixKind::LookElsewhere, "the other arm, which has to be measured too"),
            };
            (CoverageStage::Decided, contrast.verdict.to_string(), contrast.reason.clone(), fix, change)
        }
    };
    let retry = Retry { fix, change: change.to_owned(), actor: actor(fix) };
    Some((Loss { stage, class, reason }, retry))
}

/// Returns whether a verdict says which is better, or that neither is.
fn is_decided(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Better | Verdict::Worse | Verdict::Trivial | Verdict::Equivalent | Verdict::NothingToBeat => true,
        Verdict::Inconclusive | Verdict::AgentFailed | Verdict::Invalid | Verdict::NotMeasured | Verdict::NotRun => {
            false
        }
    }
}

/// Returns the verdict of an arm that failed by itself, though some of its launches count.
fn own_failure(arm: &ArmId) -> Verdict {
    match arm {
        ArmId::Agent(_) => Verdict::AgentFailed,
        ArmId::Baseline | ArmId::Human => Verdict::NotMeasured,
    }
}

/// Returns what running an agent again could change that answers for its failure: nothing, whatever its logs name.
fn settled() -> Retry {
    let change = "it is the agent's result, and counts as one".to_owned();
    Retry { fix: FixKind::None, change, actor: actor(FixKind::None) }
}

/// Returns what running an arm again couldn't change, and a person can: it is only hard to believe.
fn to_be_confirmed() -> Retry {
    let change = "a look at it: if it is true, `isobench confirm` makes it count".to_owned();
    Retry { fix: FixKind::LookElsewhere, change, actor: actor(FixKind::LookElsewhere) }
}

fn failure(arm: &ArmId, counted: &CountedFailure) -> (Loss, Retry) {
    let failure = &counted.failure;
    let stage = match failure.stage {
        FailureStage::Dataset => CoverageStage::Command,
        FailureStage::Acquire | FailureStage::Build | FailureStage::Verify => CoverageStage::Environment,
        FailureStage::Start | FailureStage::Ready => CoverageStage::Served,
        FailureStage::Workload | FailureStage::Parse => CoverageStage::Measured,
        FailureStage::Validity => CoverageStage::Comparable,
    };
    let own = || Loss { stage, class: failure.class.to_string(), reason: failure.message.clone() };
    let is_charged = failure.class.charge() == Charge::Arm;
    if failure.class.is_fault_of_plan() {
        let change = "another `workload`, as the failure says: the same would only repeat it".to_owned();
        return (own(), Retry { fix: FixKind::Option, change, actor: RetryActor::Person });
    }
    if let Some(cause) = counted.cause.as_ref().filter(|cause| cause.signature.is_some()) {
        // A log is written by who is measured: it gives no right to another try.
        if is_charged && cause.is_claim() {
            let change = format!("a look at it: its own log says `{}`, and none of the baseline's does", cause.class);
            let fix = FixKind::LookElsewhere;
            return (own(), Retry { fix, change, actor: actor(fix) });
        }
        let is_agents = matches!(arm, ArmId::Agent(_)) && cause.blame == Some(Blame::Arm);
        let (fix, change) = if is_charged && is_agents {
            (FixKind::None, "nothing: the baseline came further, so that it is the agent's result".to_owned())
        } else {
            let fix = if cause.transient { FixKind::Retry } else { cause.fix.kind };
            (fix, cause.fix.advice.clone())
        };
        let loss = Loss { stage, class: cause.class.clone(), reason: cause.cause.clone() };
        return (loss, Retry { fix, change, actor: actor(fix) });
    }
    let (fix, change) = if failure.transient || !is_charged {
        (FixKind::Retry, "the same again")
    } else if failure.stage == FailureStage::Validity {
        (FixKind::LookElsewhere, "a look at its answers: they break a check")
    } else {
        (FixKind::LookElsewhere, "a look at its logs: no signature knows them")
    };
    (own(), Retry { fix, change: change.to_owned(), actor: actor(fix) })
}
