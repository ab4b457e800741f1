//! The live view of a run: what is being done, how far it is, and how long it will take. Pure: time comes in.

mod plain;
mod render;

use std::collections::BTreeMap;

use isobench_schema::event::{BlockEnd, Event, EventKind, LaunchStage, RunEnd};
use isobench_schema::failure::{Failure, FailureClass};
use isobench_schema::ids::{ArmId, BlockId, TaskId};
use isobench_schema::outcome::{LaunchRecord, Outcome};
use isobench_schema::plan::Plan;

use crate::text::clean;

pub use plain::plain_line;

/// What the plan says of a task, as far as the live view needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Expected {
    blocks: u32,
    estimate_s: f64,
}

impl Expected {
    /// Returns the estimated time of one block.
    fn block_s(self) -> f64 {
        self.estimate_s / f64::from(self.blocks.max(1))
    }
}

/// What is known of a launch of the block under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    At(LaunchStage),
}

/// A launch of the block under way.
#[derive(Debug, Clone, PartialEq)]
struct Launch {
    arm: ArmId,
    progress: Progress,
    since_ms: f64,
}

/// The block under way.
#[derive(Debug, Clone, PartialEq)]
struct Current {
    id: BlockId,
    started_ms: f64,
    launches: Vec<Launch>,
}

/// Everything that the live view shows, kept up to date by [`LiveState::apply`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveState {
    run: Option<String>,
    started_ms: Option<f64>,
    expected: BTreeMap<TaskId, Expected>,
    done: BTreeMap<TaskId, u32>,
    current: Option<Current>,
    /// Measured and estimated seconds of the blocks that this process has finished, for the pace.
    taken_s: f64,
    foreseen_s: f64,
    launches: u64,
    measured: u64,
    failures: BTreeMap<FailureClass, u64>,
    measurement: Option<String>,
    estimate: Option<String>,
    /// What the last look left.
    look: Option<String>,
    end: Option<(RunEnd, Option<String>)>,
}

impl LiveState {
    /// Returns the state before the first event of a run of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let tasks = plan.tasks.iter().map(|task| {
            let expected = Expected { blocks: task.design.blocks(), estimate_s: task.estimate_s.get() };
            (task.id.clone(), expected)
        });
        Self { expected: tasks.collect(), ..Self::default() }
    }

    /// Takes in an event. Events of earlier processes of the run may be replayed first.
    pub fn apply(&mut self, event: &Event) {
        let at_ms = event.at_ms.get();
        match &event.kind {
            EventKind::RunStarted { run, .. } => {
                self.run = Some(run.to_string());
                self.started_ms = Some(at_ms);
                self.current = None;
                self.end = None;
                // The pace of an earlier process, perhaps on a busier machine, isn't this one's.
                (self.taken_s, self.foreseen_s) = (0.0, 0.0);
            }
            EventKind::OrphansEnded { .. } | EventKind::Confirmed { .. } | EventKind::ConfirmationWithdrawn { .. } => {}
            EventKind::BlockStarted { id, order } => {
                let waiting = |arm: &ArmId| Launch { arm: arm.clone(), progress: Progress::Waiting, since_ms: at_ms };
                let launches = order.iter().map(waiting).collect();
                self.current = Some(Current { id: id.clone(), started_ms: at_ms, launches });
            }
            EventKind::LaunchStage { launch, stage } => {
                let current = self.current.as_mut().filter(|current| current.id == launch.block);
                let launches = current.map(|current| &mut current.launches).into_iter().flatten();
                for found in launches.filter(|found| found.arm == launch.arm) {
                    found.progress = Progress::At(*stage);
                    found.since_ms = at_ms;
                }
            }
            EventKind::BlockEnded { id, end, launches, charged } => {
                if self.block_ended(id, end, at_ms) {
                    self.count(launches, charged);
                }
            }
            EventKind::LookTaken { task, stops, reason, .. } => {
                // What is no more run of a task isn't waited for.
                let done = self.done.get(task).copied().unwrap_or(0);
                if let Some(expected) = self.expected.get_mut(task).filter(|_| *stops) {
                    expected.estimate_s = f64::from(done) * expected.block_s();
                    expected.blocks = done;
                }
                self.look = Some(format!("{task}: {}", clean(reason)));
            }
            EventKind::RunEnded { end, message } => {
                self.current = None;
                self.end = Some((*end, message.as_deref().map(clean)));
            }
        }
    }

    /// Notes the last measurement of an arm, already written for people.
    pub fn note_measurement(&mut self, arm: &ArmId, text: &str) {
        self.measurement = Some(format!("{arm} {}", clean(text)));
    }

    /// Notes the running estimate with its interval, already written for people.
    pub fn note_estimate(&mut self, text: &str) {
        self.estimate = Some(clean(text));
    }

    /// Takes in the end of an attempt. Returns whether it is complete.
    fn block_ended(&mut self, id: &BlockId, end: &BlockEnd, at_ms: f64) -> bool {
        let current = self.current.take().filter(|current| current.id == *id);
        match end {
            BlockEnd::Complete => {}
            BlockEnd::Interrupted | BlockEnd::Spoilt { .. } => return false,
        }
        *self.done.entry(id.task.clone()).or_default() += 1;
        if let (Some(current), Some(expected)) = (current, self.expected.get(&id.task)) {
            self.taken_s += (at_ms - current.started_ms).max(0.0) / 1000.0;
            self.foreseen_s += expected.block_s();
        }
        true
    }

    fn count(&mut self, launches: &[LaunchRecord], charged: &BTreeMap<ArmId, Failure>) {
        for record in launches {
            self.launches += 1;
            let failure = match &record.outcome {
                Outcome::Measured => charged.get(&record.launch.arm),
                Outcome::Failed { failure } => Some(failure),
                Outcome::Interrupted => continue,
            };
            match failure {
                Some(failure) => *self.failures.entry(failure.class).or_default() += 1,
                None => self.measured += 1,
            }
        }
    }

    /// Returns blocks done and blocks of the plan.
    fn blocks(&self) -> (u64, u64) {
        let done = self.done.values().map(|&blocks| u64::from(blocks)).sum();
        (done, self.expected.values().map(|expected| u64::from(expected.blocks)).sum())
    }

    /// Returns the estimated time left in seconds: the plan's estimate of the blocks left, at the pace so far.
    fn left_s(&self, now_ms: f64) -> Option<f64> {
        let left = self.expected.iter().map(|(task, expected)| {
            let done = self.done.get(task).copied().unwrap_or(0);
            f64::from(expected.blocks.saturating_sub(done)) * expected.block_s()
        });
        let foreseen: f64 = left.sum();
        let pace = if self.foreseen_s > 0.0 { self.taken_s / self.foreseen_s } else { 1.0 };
        let under_way = self.current.as_ref().map_or(0.0, |current| {
            let spent = (now_ms - current.started_ms).max(0.0) / 1000.0;
            let block = self.expected.get(&current.id.task).map_or(0.0, |expected| expected.block_s());
            spent.min(block * pace)
        });
        (foreseen > 0.0).then(|| (foreseen * pace - under_way).max(0.0))
    }
}
