//! How far a run has come, kept up with each event, so that a long run costs no more than a look at each event.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::block::{BlockLaunch, BlockSpec};
use isobench_schema::event::{BlockEnd, Event, EventKind};
use isobench_schema::failure::{Charge, Failure};
use isobench_schema::ids::{ArmId, BlockId, EnvironmentId, RunId, TaskId};
use isobench_schema::outcome::{LaunchRecord, Outcome};
use isobench_schema::plan::{Plan, PlannedBlock, PlannedTask, UnknownDesignError};

use crate::next::Next;

/// Complete blocks with a failure of its own from which on an arm is given up, if they are also [`FAILED_SHARE`].
const FAILED_BLOCKS: u32 = 2;

/// One in so many of a task's blocks (10 %; methodology, section 4).
const FAILED_SHARE: u32 = 10;

/// How far one task has come.
#[derive(Debug, Clone, Default)]
struct TaskProgress {
    /// The latest attempt at each block.
    attempts: BTreeMap<u32, u32>,
    complete: BTreeSet<u32>,
    /// Attempts that infrastructure spoilt.
    spoilt: BTreeSet<(u32, u32)>,
    /// Complete blocks whose baseline launch failed, or was charged by the checks at the block's end.
    baseline_failed: u32,
    /// Failures that an environment would only repeat.
    settled: BTreeMap<EnvironmentId, Failure>,
    /// In how many complete blocks each arm failed by itself, with the last such failure.
    failed: BTreeMap<ArmId, (u32, Failure)>,
    /// Milliseconds that launches of complete blocks took.
    launches_ms: f64,
}

impl TaskProgress {
    fn complete(&mut self, block: u32, launches: &[LaunchRecord], charged: &BTreeMap<ArmId, Failure>) {
        // A block is complete once; a second attempt at it would be another program's mistake, and doesn't count.
        if !self.complete.insert(block) {
            return;
        }
        let mut baseline_failed = charged.contains_key(&ArmId::Baseline);
        for (arm, failure) in charged {
            self.count_failure(arm, failure);
        }
        for record in launches {
            self.launches_ms += record.timeline.total_ms.map_or(0.0, isobench_schema::units::Millis::get);
            let Outcome::Failed { failure } = &record.outcome else { continue };
            baseline_failed |= record.launch.arm == ArmId::Baseline;
            if failure.class.charge() == Charge::Arm {
                self.count_failure(&record.launch.arm, failure);
            }
            if failure.class.is_settled_before_launch() && !failure.transient {
                self.settled.entry(record.environment.clone()).or_insert_with(|| failure.clone());
            }
        }
        self.baseline_failed += u32::from(baseline_failed);
    }

    fn count_failure(&mut self, arm: &ArmId, failure: &Failure) {
        let (blocks, last) = self.failed.entry(arm.clone()).or_insert_with(|| (0, failure.clone()));
        *blocks += 1;
        last.clone_from(failure);
    }

    /// Returns the failure that an arm's further launches end with at once, if there is one: its environment would only
    /// repeat it, or the arm has failed by itself in so many blocks that its verdict stands.
    fn settled(&self, task: &PlannedTask, arm: &ArmId, environment: &EnvironmentId) -> Option<Failure> {
        let is_decided = |blocks: u32| enough_failed(blocks, task);
        let decided = self.failed.get(arm).filter(|(blocks, _)| is_decided(*blocks)).map(|(_, failure)| failure);
        self.settled.get(environment).or(decided).cloned()
    }

    /// Returns whether nothing more is run for a block: it is complete, or infrastructure spoilt its last attempt when the
    /// design's replacements were used up. It is lost then, and the rest of the task goes on.
    fn is_done(&self, task: &PlannedTask, block: u32) -> bool {
        let used_up = u32::try_from(self.spoilt.len()).unwrap_or(u32::MAX) > task.design.replacements;
        let last = self.attempts.get(&block).copied().unwrap_or(0);
        self.complete.contains(&block) || (used_up && self.spoilt.contains(&(block, last)))
    }

    /// Returns why no further block is run although some are left, if so.
    fn stop(&self, task: &PlannedTask) -> Option<TaskStop> {
        let failed = self.baseline_failed;
        enough_failed(failed, task).then_some(TaskStop::BaselineFailed { failed })
    }
}

/// Returns whether an arm that failed in so many complete blocks is given up.
fn enough_failed(failed: u32, task: &PlannedTask) -> bool {
    failed >= FAILED_BLOCKS && failed.saturating_mul(FAILED_SHARE) >= task.design.blocks()
}

/// Why a task stops before its last block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStop {
    /// The baseline failed in so many blocks that nothing can be judged.
    BaselineFailed {
        /// Complete blocks in which it failed.
        failed: u32,
    },
}

/// The task that [`Progress::next`] is at, so that its blocks are derived once.
#[derive(Debug, Clone)]
struct Current {
    task: usize,
    id: TaskId,
    seed: u64,
    blocks: Vec<PlannedBlock>,
    /// Blocks before this one are done.
    block: usize,
}

/// How far a run has come. Fed with every event of one run, asked with the one plan of that run.
#[derive(Debug, Clone)]
pub struct Progress {
    run: RunId,
    tasks: BTreeMap<TaskId, TaskProgress>,
    /// Tasks of the plan before this one are done: complete or stopped, which no event undoes.
    first: usize,
    current: Option<Current>,
}

impl Progress {
    /// Returns the progress of a run without events.
    pub fn new(run: RunId) -> Self {
        Self { run, tasks: BTreeMap::new(), first: 0, current: None }
    }

    /// Takes in the next event.
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::BlockStarted { id, .. } => {
                self.attempt(id);
            }
            EventKind::BlockEnded { id, end, launches, charged } => {
                let task = self.attempt(id);
                match end {
                    BlockEnd::Complete => task.complete(id.block, launches, charged),
                    BlockEnd::Interrupted => {}
                    BlockEnd::Spoilt { .. } => {
                        task.spoilt.insert((id.block, id.attempt));
                    }
                }
            }
            EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::RunEnded { .. } => {}
        }
    }

    fn attempt(&mut self, id: &BlockId) -> &mut TaskProgress {
        let task = self.tasks.entry(id.task.clone()).or_default();
        let latest = task.attempts.entry(id.block).or_default();
        *latest = id.attempt.max(*latest);
        task
    }

    /// Returns what runs next: the first block of the first task that isn't complete, in its next attempt.
    ///
    /// An attempt that has begun counts as used up, whether it has an end or not: ask only when no block is under way.
    ///
    /// # Errors
    /// Returns the version of a design's algorithm that isn't known here.
    pub fn next(&mut self, plan: &Plan) -> Result<Next, UnknownDesignError> {
        while let Some(task) = plan.tasks.get(self.first) {
            let block = if self.stop(task).is_none() { self.next_block(task)? } else { None };
            if let Some(block) = block {
                return Ok(Next::Block(Box::new(self.spec(plan, task, &block))));
            }
            self.first += 1;
        }
        Ok(Next::Finished)
    }

    /// Returns the first block of a task that isn't done.
    fn next_block(&mut self, task: &PlannedTask) -> Result<Option<PlannedBlock>, UnknownDesignError> {
        let is_at = |at: &Current| at.task == self.first && at.id == task.id && at.seed == task.design.seed;
        let mut current = match self.current.take().filter(is_at) {
            Some(current) => current,
            None => Current {
                task: self.first,
                id: task.id.clone(),
                seed: task.design.seed,
                blocks: Plan::blocks(task)?,
                block: 0,
            },
        };
        let progress = self.tasks.get(&task.id);
        let is_done = |block: &PlannedBlock| progress.is_some_and(|progress| progress.is_done(task, block.block));
        while current.blocks.get(current.block).is_some_and(is_done) {
            current.block += 1;
        }
        let next = current.blocks.get(current.block).cloned();
        self.current = Some(current);
        Ok(next)
    }

    /// Returns everything that an attempt at a block needs, or `None` if the plan has no such block.
    ///
    /// # Errors
    /// Returns the version of a design's algorithm that isn't known here.
    pub fn spec_of(&self, plan: &Plan, id: &BlockId) -> Result<Option<BlockSpec>, UnknownDesignError> {
        let Some(task) = plan.task(&id.task) else { return Ok(None) };
        let blocks = Plan::blocks(task)?;
        let block = blocks.iter().find(|block| block.block == id.block);
        Ok(block.map(|block| BlockSpec { id: id.clone(), ..self.spec(plan, task, block) }))
    }

    /// Returns everything that the next attempt at a block needs.
    fn spec(&self, plan: &Plan, task: &PlannedTask, block: &PlannedBlock) -> BlockSpec {
        let progress = self.tasks.get(&task.id);
        let attempts = progress.and_then(|progress| progress.attempts.get(&block.block)).copied().unwrap_or(0);
        let launch = |arm: &ArmId| {
            let planned = task.arms.iter().find(|planned| planned.arm == *arm)?;
            let settled = progress.and_then(|progress| progress.settled(task, arm, &planned.environment));
            let environment = task.environments.get(&planned.environment)?.clone();
            Some(BlockLaunch { arm: arm.clone(), environment, settled })
        };
        BlockSpec {
            run: self.run.to_string(),
            id: BlockId { task: task.id.clone(), block: block.block, attempt: attempts.saturating_add(1) },
            launches: block.order.iter().filter_map(launch).collect(),
            engine: task.engine,
            server: task.server.clone(),
            workload: task.workload.clone(),
            prompt_seed: block.prompt_seed,
            metric: task.metric.clone(),
            min_window_s: task.design.min_window_s,
            limits: task.limits,
            inputs: task.inputs.clone(),
            isolation: plan.isolation,
            allow_unisolated: plan.allow_unisolated,
        }
    }

    /// Returns why a task stops before its last block, if it does.
    pub fn stop(&self, task: &PlannedTask) -> Option<TaskStop> {
        self.tasks.get(&task.id)?.stop(task)
    }

    /// Returns how many blocks of a task are complete.
    pub fn blocks_complete(&self, task: &TaskId) -> u32 {
        self.tasks.get(task).map_or(0, |progress| u32::try_from(progress.complete.len()).unwrap_or(u32::MAX))
    }

    /// Returns how many blocks of a task are still to run: none if it has stopped.
    pub fn blocks_left(&self, task: &PlannedTask) -> u32 {
        if self.stop(task).is_some() {
            return 0;
        }
        let Some(progress) = self.tasks.get(&task.id) else { return task.design.blocks() };
        let left = (0..task.design.blocks()).filter(|block| !progress.is_done(task, *block)).count();
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// Returns how long the launches of one complete block of a task took in the mean, in seconds, if any were timed.
    pub fn mean_block_s(&self, task: &TaskId) -> Option<f64> {
        let progress = self.tasks.get(task)?;
        let complete = self.blocks_complete(task);
        (complete > 0 && progress.launches_ms > 0.0).then(|| progress.launches_ms / 1000.0 / f64::from(complete))
    }
}
