//! The blocks that have ended of tasks that are under way, by which a look is taken.

use std::collections::BTreeMap;

use isobench_analysis::judge::{self, Attempt};
use isobench_analysis::validity::LaunchRules;
use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::{BlockEnd, Event, EventKind};
use isobench_schema::ids::{BlockId, TaskId};
use isobench_schema::outcome::LaunchRecord;
use isobench_schema::plan::Plan;
use isobench_store::Artifacts;

use crate::evidence::Digests;
use crate::exit::{CommandError, Exit, WithExit as _};

/// One attempt at a block, as the record has it.
#[derive(Debug)]
struct Ended {
    id: BlockId,
    end: BlockEnd,
    launches: Vec<LaunchRecord>,
}

/// The blocks that have ended, of tasks that no look has ended, and what a person has confirmed so far.
#[derive(Debug, Default)]
pub(crate) struct EndedBlocks {
    blocks: BTreeMap<TaskId, Vec<Ended>>,
    confirmations: Confirmations,
}

impl EndedBlocks {
    /// Takes in the next event.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.confirmations.apply(event);
        match &event.kind {
            EventKind::BlockEnded { id, end, launches, .. } => {
                let ended = Ended { id: id.clone(), end: end.clone(), launches: launches.clone() };
                self.blocks.entry(id.task.clone()).or_default().push(ended);
            }
            EventKind::LookTaken { task, stops: true, .. } => {
                self.blocks.remove(task);
            }
            EventKind::LookTaken { .. }
            | EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. }
            | EventKind::RunEnded { .. } => {}
        }
    }

    /// Looks at a task: returns the event that says what its blocks so far decide.
    ///
    /// # Errors
    /// Returns an error if evidence can't be read, or if the record contradicts the plan.
    pub(crate) fn look(
        &self,
        artifacts: &Artifacts,
        plan: &Plan,
        task: &TaskId,
        number: u32,
        digests: &mut Digests,
    ) -> Result<EventKind, CommandError> {
        let missing = || {
            let message = format!("look {} at task `{task}` can't be taken: its blocks aren't all done", number + 1);
            CommandError::new(Exit::Error, message).hint("`isobench verify` tells what is wrong with the record")
        };
        let planned = plan.task(task).ok_or_else(missing)?;
        let rules = LaunchRules::of_task(planned);
        let mut attempts = Vec::new();
        for Ended { id, end, launches } in self.blocks.get(task).into_iter().flatten() {
            let inputs = launches.iter().map(|record| digests.input(artifacts, record, &rules));
            let launches = inputs.collect::<Result<Vec<_>, CommandError>>()?;
            attempts.push(Attempt { id: id.clone(), end: end.clone(), launches });
        }
        let look =
            judge::look(planned, &attempts, &self.confirmations, number).exit(Exit::Error)?.ok_or_else(missing)?;
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let blocks = planned.design.looks.get(place).map_or(0, |look| look.blocks);
        Ok(EventKind::LookTaken {
            task: task.clone(),
            look: number,
            blocks,
            contrasts: look.contrasts,
            stops: look.stops,
            reason: look.reason,
        })
    }
}
