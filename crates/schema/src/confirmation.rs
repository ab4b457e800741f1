//! Confirmations: a person's word that a launch which is beyond belief counts all the same.
//!
//! Each is an event of the run, so that who said it, when and why stays in the record, also when it is withdrawn.

use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::event::{Event, EventKind};
use crate::ids::{ArmId, TaskId};
use crate::units::Millis;

/// A person's word that an arm's launches count although they break checks that only say "this is hard to believe".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The task.
    pub task: TaskId,
    /// The arm.
    pub arm: ArmId,
    /// The checks that were broken when it was confirmed. It reaches no other.
    pub checks: Vec<Check>,
    /// Who confirmed it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Wall-clock time in milliseconds since 1970-01-01 UTC.
    pub at_ms: Millis,
}

/// The confirmations of a run that hold: the last one of each arm, unless it was withdrawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Confirmations(Vec<Confirmation>);

impl Confirmations {
    /// Takes in the next event.
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Confirmed { task, arm, checks, by, reason } => {
                self.remove(task, arm);
                self.0.push(Confirmation {
                    task: task.clone(),
                    arm: arm.clone(),
                    checks: checks.clone(),
                    by: by.clone(),
                    reason: reason.clone(),
                    at_ms: event.at_ms,
                });
            }
            EventKind::ConfirmationWithdrawn { task, arm, .. } => self.remove(task, arm),
            EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::BlockEnded { .. }
            | EventKind::LookTaken { .. }
            | EventKind::RunEnded { .. } => {}
        }
    }

    fn remove(&mut self, task: &TaskId, arm: &ArmId) {
        self.0.retain(|confirmation| confirmation.task != *task || confirmation.arm != *arm);
    }

    /// Returns the one of an arm, if it holds.
    pub fn find(&self, task: &TaskId, arm: &ArmId) -> Option<&Confirmation> {
        self.0.iter().find(|confirmation| confirmation.task == *task && confirmation.arm == *arm)
    }

    /// Returns those of a task, in the order in which they were given.
    pub fn of_task<'c>(&'c self, task: &'c TaskId) -> impl Iterator<Item = &'c Confirmation> {
        self.0.iter().filter(move |confirmation| confirmation.task == *task)
    }

    /// Returns whether a check of an arm is confirmed.
    pub fn reach(&self, task: &TaskId, arm: &ArmId, check: Check) -> bool {
        check.is_confirmable() && self.find(task, arm).is_some_and(|confirmation| confirmation.checks.contains(&check))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind) -> Event {
        Event { sequence: 0, at_ms: Millis::new(5.0).unwrap(), kind }
    }

    fn confirmed(arm: &str, checks: &[Check], reason: &str) -> Event {
        let (task, arm) = (TaskId::new("t").unwrap(), arm.parse().unwrap());
        let (by, reason) = ("ann".to_owned(), reason.to_owned());
        event(EventKind::Confirmed { task, arm, checks: checks.to_vec(), by, reason })
    }

    #[test]
    fn the_last_word_on_an_arm_holds_until_it_is_withdrawn() {
        let (task, arm): (TaskId, ArmId) = (TaskId::new("t").unwrap(), "agent:x".parse().unwrap());
        let mut held = Confirmations::default();
        held.apply(&confirmed("agent:x", &[Check::Roofline], "first"));
        held.apply(&confirmed("agent:y", &[Check::Roofline], "other"));
        held.apply(&confirmed("agent:x", &[Check::BelievableRatio], "second"));
        assert_eq!(held.find(&task, &arm).map(|held| held.reason.as_str()), Some("second"));
        assert!(held.reach(&task, &arm, Check::BelievableRatio) && !held.reach(&task, &arm, Check::Roofline));
        assert_eq!(held.of_task(&task).count(), 2);
        let (by, reason) = ("bob".to_owned(), "a mistake".to_owned());
        held.apply(&event(EventKind::ConfirmationWithdrawn { task: task.clone(), arm: arm.clone(), by, reason }));
        assert_eq!((held.find(&task, &arm), held.of_task(&task).count()), (None, 1));
    }

    #[test]
    fn what_is_wrong_cannot_be_confirmed() {
        let (task, arm): (TaskId, ArmId) = (TaskId::new("t").unwrap(), "agent:x".parse().unwrap());
        let mut held = Confirmations::default();
        held.apply(&confirmed("agent:x", &[Check::AnswerLengths], "please"));
        assert!(!held.reach(&task, &arm, Check::AnswerLengths));
    }
}
