//! The events of a run: the one seam between what happens and who watches or stores it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::failure::{Failure, spelt_enum};
use crate::format::Stored;
use crate::ids::{ArmId, BlockId, Digest, LaunchId, RunId, TaskId};
use crate::outcome::LaunchRecord;
use crate::units::Millis;
use crate::verdict::LookResult;

spelt_enum!(
    /// What a launch is doing.
    LaunchStage {
        /// Its environment is being made and proven.
        Environment = "environment",
        /// The native files of its environment are being built; a launch that shares those of another one never says this.
        NativeBuild = "native-build",
        /// Its process has been started.
        Starting = "starting",
        /// Its health endpoint has answered.
        Ready = "ready",
        /// It is being warmed up and probed.
        WarmUp = "warm-up",
        /// The measured window is under way.
        Measuring = "measuring",
        /// It is being stopped.
        Stopping = "stopping",
        /// Its process is gone and its evidence is stored.
        Finished = "finished",
    }
);

/// What became of one attempt at a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BlockEnd {
    /// Every launch has its outcome: the attempt that is judged.
    Complete,
    /// It was cut short; the block runs again.
    Interrupted,
    /// Infrastructure spoilt it; the block runs again while the design allows it.
    Spoilt {
        /// What spoilt it.
        failure: Failure,
    },
}

spelt_enum!(
    /// Why a run's process stopped.
    RunEnd {
        /// Every block of the plan is done.
        Finished = "finished",
        /// A person or a signal stopped it; it can be resumed.
        Interrupted = "interrupted",
        /// Something failed that must be mended first; it can be resumed then.
        Stopped = "stopped",
        /// The time, money or blocks that were given are used up; it can be resumed with more.
        BudgetUsed = "budget-used",
    }
);

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EventKind {
    /// A coordinator has taken up the run, for the first time or again.
    RunStarted {
        /// The run.
        run: RunId,
        /// The digest of its plan.
        plan: Digest,
        /// The version of isobench.
        isobench: String,
        /// The coordinator's process.
        process: u32,
    },
    /// Processes that a dead coordinator left behind were found and ended.
    OrphansEnded {
        /// The processes.
        processes: Vec<u32>,
    },
    /// An attempt at a block has begun.
    BlockStarted {
        /// The block.
        id: BlockId,
        /// The arms in the order of their launches.
        order: Vec<ArmId>,
    },
    /// A launch has come to another stage. For people who watch; nothing is decided by it.
    LaunchStage {
        /// The launch.
        launch: LaunchId,
        /// The stage.
        stage: LaunchStage,
    },
    /// An attempt at a block has ended, with the outcome of each of its launches: one line, written whole or not at all.
    BlockEnded {
        /// The block.
        id: BlockId,
        /// What became of it.
        end: BlockEnd,
        /// The records of its launches, in their order.
        launches: Vec<LaunchRecord>,
        /// What the checks at the end of the block found against an arm whose launch was measured, and what the plan is at
        /// fault for in it. It decides which arms need no further launches, and whether the task needs any; the judgement
        /// looks at the evidence anew.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        charged: BTreeMap<ArmId, Failure>,
    },
    /// A task was looked at: what its blocks so far say of each contrast, by which levels, and whether it goes on. Everything
    /// in it follows from the plan and the evidence, and the judgement works it out anew.
    LookTaken {
        /// The task.
        task: TaskId,
        /// The look's number, from 0.
        look: u32,
        /// The blocks of the look.
        blocks: u32,
        /// What it says of each contrast.
        contrasts: Vec<ContrastLook>,
        /// Whether the task's further blocks are not run.
        stops: bool,
        /// Why it stops or goes on: one sentence.
        reason: String,
    },
    /// A person has confirmed that an arm's launches count although they are hard to believe.
    Confirmed {
        /// The task.
        task: TaskId,
        /// The arm.
        arm: ArmId,
        /// The checks that its launches break, which alone are confirmed.
        checks: Vec<Check>,
        /// Who confirmed it.
        by: String,
        /// Why.
        reason: String,
    },
    /// A person has taken such a word back.
    ConfirmationWithdrawn {
        /// The task.
        task: TaskId,
        /// The arm.
        arm: ArmId,
        /// Who took it back.
        by: String,
        /// Why.
        reason: String,
    },
    /// The coordinator has stopped.
    RunEnded {
        /// Why.
        end: RunEnd,
        /// What a person should know, such as the full disk's path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// What a look says of one contrast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContrastLook {
    /// The arm that is asked about.
    pub of: ArmId,
    /// The arm that it is compared with.
    pub against: ArmId,
    /// What the look says.
    pub result: LookResult,
}

/// An event with its place and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the run, from 0, without gaps.
    pub sequence: u64,
    /// Wall-clock time in milliseconds since 1970-01-01 UTC; for people, never for arithmetic on measurements.
    pub at_ms: Millis,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The first line of an event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventLogHeader {
    /// The run, or the block's run in a block's folder.
    pub run: RunId,
}

impl Stored for EventLogHeader {
    const NAME: &'static str = "events";
    const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object() {
        let id = BlockId { task: TaskId::new("t").unwrap(), block: 0, attempt: 1 };
        let kind =
            EventKind::BlockEnded { id, end: BlockEnd::Complete, launches: Vec::new(), charged: BTreeMap::new() };
        let event = Event { sequence: 3, at_ms: Millis::new(1.5).unwrap(), kind };
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(
            text,
            r#"{"sequence":3,"at_ms":1.5,"event":"block-ended","id":{"task":"t","block":0,"attempt":1},"end":{"status":"complete"},"launches":[]}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}
