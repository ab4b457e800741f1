//! What runs next: a pure function of the plan and the events so far.

use isobench_schema::block::BlockSpec;
use isobench_schema::event::Event;
use isobench_schema::ids::{RunId, TaskId};
use isobench_schema::plan::{Plan, UnknownDesignError};

use crate::progress::Progress;

/// What runs next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This attempt at a block.
    Block(Box<BlockSpec>),
    /// The blocks of a look are done: the task is looked at before any further one is run.
    Look {
        /// The task.
        task: TaskId,
        /// The look's number, from 0.
        look: u32,
    },
    /// Tasks are undecided, but none of them can be brought to its next look within the budget.
    BudgetUsed {
        /// What keeps each of them from it.
        reason: String,
    },
    /// Nothing: every task is complete or has stopped.
    Finished,
}

/// Returns what runs next in a run. Asked again with the same events it answers the same.
///
/// For a run under way keep a [`Progress`] instead, which takes one event at a time.
///
/// # Errors
/// Returns the version of a design's algorithm that isn't known here.
pub fn next(plan: &Plan, run: &RunId, events: &[Event]) -> Result<Next, UnknownDesignError> {
    let mut progress = Progress::new(run.clone());
    for event in events {
        progress.apply(event);
    }
    progress.next(plan)
}
