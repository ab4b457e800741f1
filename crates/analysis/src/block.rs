//! What becomes of an attempt at a block: it counts, or it runs again.

use std::collections::BTreeMap;

use isobench_schema::event::BlockEnd;
use isobench_schema::failure::{Charge, Failure, FailureClass};
use isobench_schema::ids::ArmId;

use crate::launch::LaunchInput;

/// Returns what becomes of an attempt at a block whose launches all have their outcome.
///
/// | rule | end |
/// | --- | --- |
/// | a launch was cut short | interrupted |
/// | a launch failed, or breaks a check, by a class that infrastructure answers for | spoilt by it |
/// | every arm failed by the same class | spoilt by it: the baseline is the control |
/// | anything else, an arm's own failures included | complete |
///
/// How often a block may be replaced is counted elsewhere. Two kinds of failure never spoil a block, because a new
/// attempt would only repeat them: faults of the plan, such as `window-too-short` and `over-saturated`, and in the
/// third rule what is settled before a launch and not transient. Such a block is complete, and the launches concerned don't count.
///
/// What is charged to an arm (by [`crate::judge::charged`]) comes before what shows in its launch by itself: an arm that
/// answers wrongly, and therefore too fast for the window or the client, spoils nothing.
pub fn end(launches: &[LaunchInput], charged: &BTreeMap<ArmId, Failure>) -> BlockEnd {
    let failure = |input: &LaunchInput| charged.get(&input.record.launch.arm).cloned().or_else(|| input.failure());
    let failures: Vec<Option<Failure>> = launches.iter().map(failure).collect();
    let failed = || failures.iter().flatten();
    if failed().any(|failure| failure.class == FailureClass::Interrupted) {
        return BlockEnd::Interrupted;
    }
    if let Some(failure) = failed().find(|failure| is_infrastructure(failure)) {
        return BlockEnd::Spoilt { failure: failure.clone() };
    }
    let passing = common_class(&failures).and_then(|_| failed().find(|failure| !repeats(failure)));
    passing.map_or(BlockEnd::Complete, |failure| BlockEnd::Spoilt { failure: failure.clone() })
}

/// Returns the class by which every launch failed, if there are at least two launches and one such class.
pub(crate) fn common_class(failures: &[Option<Failure>]) -> Option<FailureClass> {
    let class = failures.first()?.as_ref()?.class;
    let all = failures.iter().all(|failure| failure.as_ref().is_some_and(|failure| failure.class == class));
    (failures.len() >= 2 && all).then_some(class)
}

fn is_infrastructure(failure: &Failure) -> bool {
    failure.class.charge() == Charge::Infrastructure && !repeats(failure)
}

/// Returns whether a new attempt would end in the same failure.
fn repeats(failure: &Failure) -> bool {
    let settled = failure.class.is_settled_before_launch() && !failure.transient;
    settled || failure.class.is_of_plan()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::{launch, launch_id, read, rules, text};
    use isobench_schema::comparability::ComparabilityKey;
    use isobench_schema::failure::FailureStage;
    use isobench_schema::ids::Digest;
    use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline};

    fn input(outcome: Outcome, findings: &[FailureClass]) -> LaunchInput {
        let mut digest = read(rules(4), &text(&launch(4)), 1 << 20).unwrap();
        digest.findings = findings.iter().map(|class| Failure::new(FailureStage::Validity, *class, "seen")).collect();
        let record = LaunchRecord {
            launch: launch_id(),
            position: 0,
            environment: Digest::of(b"e").into(),
            outcome,
            incidents: Vec::new(),
            evidence: std::collections::BTreeMap::new(),
            timeline: Timeline::default(),
            client: None,
            device: None,
            key: ComparabilityKey::default(),
        };
        LaunchInput { record, digest: Some(digest), cause: None }
    }

    fn measured(findings: &[FailureClass]) -> LaunchInput {
        input(Outcome::Measured, findings)
    }

    fn failed(class: FailureClass) -> LaunchInput {
        input(Outcome::Failed { failure: Failure::new(FailureStage::Start, class, "seen") }, &[])
    }

    fn check(launches: &[LaunchInput], expected: &str) {
        let found = match end(launches, &BTreeMap::new()) {
            BlockEnd::Complete => "complete".to_owned(),
            BlockEnd::Interrupted => "interrupted".to_owned(),
            BlockEnd::Spoilt { failure } => format!("spoilt by {}", failure.class),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_arms_own_failure_leaves_the_block_complete() {
        check(&[measured(&[]), measured(&[])], "complete");
        for class in [FailureClass::StartCrashed, FailureClass::SpawnFailed, FailureClass::BuildTimeout] {
            check(&[measured(&[]), failed(class)], "complete");
        }
        check(&[measured(&[]), measured(&[FailureClass::OutputLength])], "complete");
        check(&[failed(FailureClass::StartCrashed)], "complete");
        check(&[failed(FailureClass::StartCrashed), failed(FailureClass::NeverReady)], "complete");
    }

    #[test]
    fn infrastructure_spoils_the_block_whichever_arm_it_hit() {
        check(&[measured(&[]), failed(FailureClass::LeaseLost)], "spoilt by lease-lost");
        check(&[measured(&[FailureClass::Drift]), failed(FailureClass::StartCrashed)], "spoilt by drift");
        let unread = LaunchInput { digest: None, ..measured(&[]) };
        check(&[measured(&[]), unread], "spoilt by evidence-unreadable");
    }

    #[test]
    fn an_arms_own_broken_check_weighs_more_than_what_follows_from_it() {
        check(&[measured(&[]), measured(&[FailureClass::OutputLength, FailureClass::Drift])], "complete");
    }

    #[test]
    fn what_a_new_attempt_would_repeat_does_not_spoil() {
        for class in [FailureClass::WindowTooShort, FailureClass::OverSaturated] {
            check(&[measured(&[class]), measured(&[])], "complete");
            check(&[measured(&[class]), measured(&[class])], "complete");
        }
        for class in [FailureClass::BuildFailed, FailureClass::BuildTimeout] {
            check(&[failed(class), failed(class)], "complete");
        }
    }

    #[test]
    fn what_may_pass_in_every_arm_spoils() {
        let class = FailureClass::BuildTimeout;
        let failure = Failure::new(FailureStage::Acquire, class, "seen").transient();
        let passing = || input(Outcome::Failed { failure: failure.clone() }, &[]);
        check(&[passing(), passing()], "spoilt by build-timeout");
        check(&[measured(&[]), passing()], "complete");
    }

    #[test]
    fn a_failure_of_every_arm_is_infrastructure() {
        check(&[failed(FailureClass::NeverReady), failed(FailureClass::NeverReady)], "spoilt by never-ready");
    }

    #[test]
    fn an_interrupted_launch_interrupts_the_block() {
        check(&[failed(FailureClass::LeaseLost), input(Outcome::Interrupted, &[])], "interrupted");
    }
}
