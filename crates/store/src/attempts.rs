//! The attempts at blocks: begun once, ended once, with one outcome for each launch in its order.

use std::collections::BTreeMap;

use isobench_schema::event::EventKind;
use isobench_schema::ids::{ArmId, BlockId};
use isobench_schema::outcome::LaunchRecord;

/// Why an event about an attempt contradicts those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// It has begun already.
    #[error("`{id}` has begun twice")]
    BegunTwice {
        /// The attempt.
        id: BlockId,
    },
    /// It ends, or one of its launches goes on, but it never began.
    #[error("`{id}` never began")]
    NeverBegan {
        /// The attempt.
        id: BlockId,
    },
    /// It has ended already.
    #[error("`{id}` has ended already")]
    Ended {
        /// The attempt.
        id: BlockId,
    },
    /// The records aren't those of its launches, each once and in order.
    #[error("`{id}` began with the launches [{}] and has records of [{}]", list(.begun), list(.recorded))]
    OtherLaunches {
        /// The attempt.
        id: BlockId,
        /// The arms in the order of their launches.
        begun: Vec<ArmId>,
        /// The arms in the order of the records.
        recorded: Vec<ArmId>,
    },
}

fn list(arms: &[ArmId]) -> String {
    arms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[derive(Debug, Clone)]
struct Attempt {
    order: Vec<ArmId>,
    ended: bool,
}

/// What is known of every attempt so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts(BTreeMap<BlockId, Attempt>);

impl Attempts {
    /// Returns whether an event can come next.
    pub(crate) fn check(&self, kind: &EventKind) -> Result<(), AttemptError> {
        match kind {
            EventKind::BlockStarted { id, .. } if self.0.contains_key(id) => {
                Err(AttemptError::BegunTwice { id: id.clone() })
            }
            EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::LookTaken { .. }
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. }
            | EventKind::RunEnded { .. } => Ok(()),
            EventKind::LaunchStage { launch, .. } => self.under_way(&launch.block).map(|_| ()),
            EventKind::BlockEnded { id, launches, .. } => check_launches(id, &self.under_way(id)?.order, launches),
        }
    }

    /// Takes note of the next event.
    pub(crate) fn see(&mut self, kind: &EventKind) -> Result<(), AttemptError> {
        self.check(kind)?;
        if let EventKind::BlockStarted { id, order } = kind {
            self.0.insert(id.clone(), Attempt { order: order.clone(), ended: false });
        }
        if let EventKind::BlockEnded { id, .. } = kind
            && let Some(attempt) = self.0.get_mut(id)
        {
            attempt.ended = true;
        }
        Ok(())
    }

    pub(crate) fn has_begun(&self, id: &BlockId) -> bool {
        self.0.contains_key(id)
    }

    pub(crate) fn has_ended(&self, id: &BlockId) -> bool {
        self.0.get(id).is_some_and(|attempt| attempt.ended)
    }

    /// Returns the attempts that have begun and not ended, with their arms in order.
    pub(crate) fn open(&self) -> impl Iterator<Item = (&BlockId, &[ArmId])> {
        self.0.iter().filter(|(_, attempt)| !attempt.ended).map(|(id, attempt)| (id, attempt.order.as_slice()))
    }

    fn under_way(&self, id: &BlockId) -> Result<&Attempt, AttemptError> {
        match self.0.get(id) {
            None => Err(AttemptError::NeverBegan { id: id.clone() }),
            Some(attempt) if attempt.ended => Err(AttemptError::Ended { id: id.clone() }),
            Some(attempt) => Ok(attempt),
        }
    }
}

/// Returns an error unless the records are those of the launches, each once and in order.
pub(crate) fn check_launches(id: &BlockId, begun: &[ArmId], launches: &[LaunchRecord]) -> Result<(), AttemptError> {
    let arms = || launches.iter().map(|record| &record.launch.arm);
    let placed = (0..).zip(launches).all(|(place, record)| record.position == place && record.launch.block == *id);
    if placed && arms().eq(begun) {
        return Ok(());
    }
    let recorded = arms().cloned().collect();
    Err(AttemptError::OtherLaunches { id: id.clone(), begun: begun.to_vec(), recorded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{arms, block_complete, block_ended, block_id, block_started};

    fn check(kinds: &[EventKind], expected: Result<(), &str>) {
        let mut attempts = Attempts::default();
        let found = kinds.iter().try_for_each(|kind| attempts.see(kind)).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn an_attempt_begins_once_and_ends_once() {
        let (started, ended) = (block_started(0, 1), block_ended(0, 1));
        check(&[started.clone(), ended.clone()], Ok(()));
        check(&[started.clone(), ended.clone(), block_started(0, 2), block_ended(0, 2)], Ok(()));
        check(&[started.clone(), started.clone()], Err("`task/block-0/attempt-1` has begun twice"));
        check(std::slice::from_ref(&ended), Err("`task/block-0/attempt-1` never began"));
        check(&[started, ended.clone(), ended], Err("`task/block-0/attempt-1` has ended already"));
    }

    #[test]
    fn every_launch_has_one_record_in_its_place() {
        let change = |change: fn(&mut Vec<LaunchRecord>)| {
            let mut complete = block_complete(0, 1, &[]);
            change(&mut complete.launches);
            [block_started(0, 1), complete.into()]
        };
        let message = |recorded: &str| {
            format!(
                "`task/block-0/attempt-1` began with the launches [baseline, human, agent:a] and has records of [{recorded}]"
            )
        };
        check(&change(|launches| launches.truncate(2)), Err(&message("baseline, human")));
        check(&change(|launches| launches.swap(0, 1)), Err(&message("human, baseline, agent:a")));
        check(
            &change(|launches| launches.push(launches[0].clone())),
            Err(&message("baseline, human, agent:a, baseline")),
        );
        check(&change(|launches| launches[1].position = 7), Err(&message("baseline, human, agent:a")));
    }

    #[test]
    fn attempts_without_an_end_are_found() {
        let mut attempts = Attempts::default();
        for kind in [block_started(0, 1), block_ended(0, 1), block_started(0, 2)] {
            attempts.see(&kind).unwrap();
        }
        let open: Vec<_> = attempts.open().collect();
        assert_eq!(open, [(&block_id(0, 2), arms().as_slice())]);
    }
}
