//! Whom the failures of several arms speak against, with the baseline as control.

use isobench_schema::cause::{Blame, Cause, CauseStage};
use isobench_schema::ids::ArmId;

use super::table::{Charge, Signatures};

/// What an arm is for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmRole {
    /// The arm without the change: what it does too isn't due to a change.
    Control,
    /// An arm with a change.
    Changed,
}

/// What became of one arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmOutcome {
    /// The arm.
    pub arm: ArmId,
    /// What it is for the comparison.
    pub role: ArmRole,
    /// Why it failed; absent if it didn't.
    pub cause: Option<Cause>,
}

/// Fills in, for each arm that failed, which arms have the same cause and whom it speaks against.
///
/// What is transient, or belongs to a class that the machine answers for, speaks against infrastructure, whichever arms it
/// hits. Otherwise the control decides: the same cause there is shared; an arm that fails where the control went on has done
/// it by itself; where the control failed before it got as far, or there is none, nothing can be said.
pub fn blame(outcomes: &mut [ArmOutcome]) {
    let blames: Vec<Option<(Vec<ArmId>, Blame)>> = outcomes.iter().map(|outcome| blame_of(outcome, outcomes)).collect();
    for (outcome, blame) in outcomes.iter_mut().zip(blames) {
        if let (Some(cause), Some((arms, blame))) = (&mut outcome.cause, blame) {
            cause.arms = arms;
            cause.blame = Some(blame);
        }
    }
}

fn blame_of(outcome: &ArmOutcome, all: &[ArmOutcome]) -> Option<(Vec<ArmId>, Blame)> {
    let cause = outcome.cause.as_ref()?;
    let has_it = |other: &&ArmOutcome| {
        other.arm == outcome.arm || other.cause.as_ref().is_some_and(|other| is_same(cause, other))
    };
    let arms: Vec<ArmId> = all.iter().filter(has_it).map(|other| other.arm.clone()).collect();
    let blame = if is_infrastructure(cause) {
        Blame::Infrastructure
    } else {
        match outcome.role {
            ArmRole::Control => control_blame(cause, outcome, all),
            ArmRole::Changed => changed_blame(cause, all),
        }
    };
    Some((arms, blame))
}

/// Returns whether two causes are one: the same signature. Two unknown causes are never known to be the same.
fn is_same(one: &Cause, other: &Cause) -> bool {
    one.signature.is_some() && one.signature == other.signature
}

fn is_infrastructure(cause: &Cause) -> bool {
    let charge = Signatures::embedded().class(&cause.class).map(|class| class.charge);
    cause.transient || charge == Some(Charge::Infrastructure)
}

/// Returns whom the control's own failure speaks against: everybody, if each arm that got as far has it.
fn control_blame(cause: &Cause, control: &ArmOutcome, all: &[ArmOutcome]) -> Blame {
    let mut shared = false;
    for other in all.iter().filter(|other| other.arm != control.arm) {
        match &other.cause {
            Some(other) if is_same(cause, other) => shared = true,
            Some(other) if other.stage < cause.stage && other.stage != CauseStage::Unknown => {}
            Some(_) | None => return Blame::Unclear,
        }
    }
    if shared { Blame::Shared } else { Blame::Unclear }
}

fn changed_blame(cause: &Cause, all: &[ArmOutcome]) -> Blame {
    let Some(control) = all.iter().find(|other| other.role == ArmRole::Control) else { return Blame::Unclear };
    match &control.cause {
        None => Blame::Arm,
        Some(other) if is_same(cause, other) => Blame::Shared,
        // The control went past the place where this arm failed.
        Some(other) if is_placed(cause) && is_placed(other) && other.stage > cause.stage => Blame::Arm,
        Some(_) => Blame::Unclear,
    }
}

/// Returns whether a stage says how far an arm had come.
fn is_placed(cause: &Cause) -> bool {
    !matches!(cause.stage, CauseStage::Unknown | CauseStage::Harness | CauseStage::Parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Classifier;

    const OUT_OF_MEMORY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    const PORT: &str =
        "ERROR: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use";
    const IMPORT: &str = "ModuleNotFoundError: No module named 'vllm.vllm_flash_attn.fa_utils'";
    const ODD: &str = "RuntimeError: the flux is out of order";
    const ODDER: &str = "RuntimeError: the other flux is";
    const CLIENT: &str = "benchmark_serving.py: error: unrecognized arguments: --dtype float16";
    const DISK: &str = "OSError: [Errno 28] No space left on device";
    const CRASH: &str = "RuntimeError: CUDA error: an illegal memory access was encountered";

    fn outcomes(texts: &[(&str, &str)]) -> Vec<ArmOutcome> {
        let outcome = |&(arm, text): &(&str, &str)| ArmOutcome {
            arm: arm.parse().unwrap(),
            role: if arm == "baseline" { ArmRole::Control } else { ArmRole::Changed },
            cause: (!text.is_empty()).then(|| Classifier::new().text("log", text.as_bytes())),
        };
        let mut all: Vec<_> = texts.iter().map(outcome).collect();
        blame(&mut all);
        all
    }

    fn check(texts: &[(&str, &str)], expected: &[(&str, Blame, &[&str])]) {
        let all = outcomes(texts);
        let found: Vec<_> = all
            .iter()
            .filter_map(|outcome| {
                let cause = outcome.cause.as_ref()?;
                let arms: Vec<String> = cause.arms.iter().map(ToString::to_string).collect();
                Some((outcome.arm.to_string(), cause.blame.unwrap(), arms))
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(arm, blame, arms)| {
                ((*arm).to_owned(), *blame, arms.iter().map(|arm| (*arm).to_owned()).collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(found, expected, "{texts:?}");
    }

    #[test]
    fn the_baseline_decides_whom_a_failure_speaks_against() {
        let all = ["baseline", "human", "agent:x"];
        check(&[("baseline", ""), ("human", ""), ("agent:x", "")], &[]);
        check(
            &[("baseline", IMPORT), ("human", IMPORT), ("agent:x", IMPORT)],
            &[("baseline", Blame::Shared, &all), ("human", Blame::Shared, &all), ("agent:x", Blame::Shared, &all)],
        );
        check(&[("baseline", ""), ("human", ""), ("agent:x", CRASH)], &[("agent:x", Blame::Arm, &["agent:x"])]);
        check(
            &[("baseline", ""), ("human", OUT_OF_MEMORY), ("agent:x", OUT_OF_MEMORY)],
            &[("human", Blame::Arm, &["human", "agent:x"]), ("agent:x", Blame::Arm, &["human", "agent:x"])],
        );
        check(&[("baseline", ""), ("human", PORT)], &[("human", Blame::Infrastructure, &["human"])]);
        check(&[("baseline", ""), ("agent:x", DISK)], &[("agent:x", Blame::Infrastructure, &["agent:x"])]);
        check(
            &[("baseline", PORT), ("human", PORT)],
            &[
                ("baseline", Blame::Infrastructure, &["baseline", "human"]),
                ("human", Blame::Infrastructure, &["baseline", "human"]),
            ],
        );
        check(&[("baseline", ""), ("agent:x", ODD)], &[("agent:x", Blame::Arm, &["agent:x"])]);
    }

    #[test]
    fn without_a_control_that_got_as_far_nothing_is_said() {
        check(&[("human", IMPORT), ("agent:x", "")], &[("human", Blame::Unclear, &["human"])]);
        check(
            &[("baseline", IMPORT), ("human", OUT_OF_MEMORY)],
            &[("baseline", Blame::Unclear, &["baseline"]), ("human", Blame::Unclear, &["human"])],
        );
        check(
            &[("baseline", ODD), ("human", ODDER)],
            &[("baseline", Blame::Unclear, &["baseline"]), ("human", Blame::Unclear, &["human"])],
        );
        check(&[("baseline", OUT_OF_MEMORY), ("human", "")], &[("baseline", Blame::Unclear, &["baseline"])]);
        check(&[("baseline", OUT_OF_MEMORY)], &[("baseline", Blame::Unclear, &["baseline"])]);
    }

    #[test]
    fn a_control_that_failed_later_went_past_the_place() {
        check(
            &[("baseline", CLIENT), ("human", CLIENT), ("agent:x", IMPORT)],
            &[
                ("baseline", Blame::Shared, &["baseline", "human"]),
                ("human", Blame::Shared, &["baseline", "human"]),
                ("agent:x", Blame::Arm, &["agent:x"]),
            ],
        );
    }
}
