//! How far a run has come, kept up with each event, so that a long run costs no more than a look at each event.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::block::{BlockLaunch, BlockSpec};
use isobench_schema::event::{BlockEnd, Event, EventKind};
use isobench_schema::failure::{Charge, Failure, FailureClass};
use isobench_schema::ids::{ArmId, BlockId, EnvironmentId, RunId, TaskId};
use isobench_schema::outcome::{LaunchRecord, Outcome};
use isobench_schema::plan::{Plan, PlannedBlock, PlannedTask, UnknownDesignError};

use crate::budget::{Budget, Spent};
use crate::estimate;
use crate::next::Next;

/// Complete blocks with a failure of its own from which on an arm is given up: its verdict stands then (methodology,
/// section 4).
const FAILED_BLOCKS: u32 = 2;

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
    /// What the plan is at fault for, where the first complete block had no two arms left to compare for it.
    at_fault: Option<FailureClass>,
    /// Milliseconds that launches of complete blocks took.
    launches_ms: f64,
    /// Milliseconds that launches of all attempts took.
    spent_ms: f64,
    /// Looks that were taken.
    looks: u32,
    /// Whether a look ended the task.
    ended: bool,
}

impl TaskProgress {
    fn complete(&mut self, block: u32, launches: &[LaunchRecord], charged: &BTreeMap<ArmId, Failure>) {
        // A block is complete once; a second attempt at it would be another program's mistake, and doesn't count.
        if !self.complete.insert(block) {
            return;
        }
        if self.complete.len() == 1 {
            self.at_fault = fault_of_plan(launches, charged);
        }
        let mut baseline_failed = false;
        for (arm, failure) in charged.iter().filter(|(_, failure)| !failure.class.is_fault_of_plan()) {
            baseline_failed |= *arm == ArmId::Baseline && !failure.is_confirmable();
            self.count_failure(arm, failure);
        }
        self.launches_ms += launches_ms(launches);
        for record in launches {
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
        // A person may still confirm it, and then the arm needs its blocks.
        if failure.is_confirmable() {
            return;
        }
        let (blocks, last) = self.failed.entry(arm.clone()).or_insert_with(|| (0, failure.clone()));
        *blocks += 1;
        last.clone_from(failure);
    }

    /// Returns the failure that an arm's further launches end with at once, if there is one: its environment would only
    /// repeat it, or the arm has failed by itself in so many blocks that its verdict stands.
    fn settled(&self, arm: &ArmId, environment: &EnvironmentId) -> Option<Failure> {
        let decided = self.failed.get(arm).filter(|(blocks, _)| *blocks >= FAILED_BLOCKS).map(|(_, failure)| failure);
        self.settled.get(environment).or(decided).cloned()
    }

    /// Returns whether nothing more is run for a block: it is complete, or infrastructure spoilt its last attempt when the
    /// design's replacements were used up. It is lost then, and the rest of the task goes on.
    fn is_done(&self, task: &PlannedTask, block: u32) -> bool {
        let used_up = u32::try_from(self.spoilt.len()).unwrap_or(u32::MAX) > task.design.replacements;
        let last = self.attempts.get(&block).copied().unwrap_or(0);
        self.complete.contains(&block) || (used_up && self.spoilt.contains(&(block, last)))
    }

    /// Returns why no further block is run, if so.
    fn stop(&self) -> Option<TaskStop> {
        let failed = self.baseline_failed;
        if failed >= FAILED_BLOCKS {
            return Some(TaskStop::BaselineFailed { failed });
        }
        if let Some(class) = self.at_fault {
            return Some(TaskStop::PlanAtFault { class });
        }
        self.ended.then_some(TaskStop::Decided { looks: self.looks })
    }

    /// Returns the blocks up to the next look, none after the last.
    fn next_look(&self, task: &PlannedTask) -> Option<u32> {
        let look = usize::try_from(self.looks).ok().and_then(|looks| task.design.looks.get(looks))?;
        Some(look.blocks)
    }
}

/// Why a task stops before its last block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStop {
    /// The baseline failed in so many blocks that nothing can be judged.
    BaselineFailed {
        /// Complete blocks in which it failed.
        failed: u32,
    },
    /// The plan asks for what can't be measured: in the first complete block no two arms could be compared for it, and more
    /// blocks would only repeat that.
    PlanAtFault {
        /// What the plan is at fault for.
        class: FailureClass,
    },
    /// A look left nothing to decide.
    Decided {
        /// How many looks it took.
        looks: u32,
    },
}

/// The blocks of a task, derived once, with how many of the first are done.
#[derive(Debug, Clone)]
struct Current {
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
            EventKind::LookTaken { task, look, stops, .. } => {
                let task = self.tasks.entry(task.clone()).or_default();
                task.looks = task.looks.max(look.saturating_add(1));
                task.ended |= *stops;
            }
            EventKind::BlockEnded { id, end, launches, charged } => {
                let task = self.attempt(id);
                task.spent_ms += launches_ms(launches);
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
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. }
            | EventKind::RunEnded { .. } => {}
        }
    }

    fn attempt(&mut self, id: &BlockId) -> &mut TaskProgress {
        let task = self.tasks.entry(id.task.clone()).or_default();
        let latest = task.attempts.entry(id.block).or_default();
        *latest = id.attempt.max(*latest);
        task
    }

    /// Returns what runs next without any bounds: [`Self::next_within`] an empty budget.
    ///
    /// # Errors
    /// Returns the version of a design's algorithm that isn't known here.
    pub fn next(&mut self, plan: &Plan) -> Result<Next, UnknownDesignError> {
        self.next_within(plan, &Budget::default())
    }

    /// Returns what runs next: a look whose blocks are done, or the first block of the first task that isn't done, in its
    /// next attempt. No block after a look is run before the look was taken.
    ///
    /// Tasks come in the order of the plan; where time or money is bounded, those with the fewest looks come first. Then a
    /// task is only taken further if its blocks up to the next look are likely to fit.
    ///
    /// An attempt that has begun counts as used up, whether it has an end or not: ask only when no block is under way.
    ///
    /// # Errors
    /// Returns the version of a design's algorithm that isn't known here.
    pub fn next_within(&mut self, plan: &Plan, budget: &Budget) -> Result<Next, UnknownDesignError> {
        while plan.tasks.get(self.first).is_some_and(|task| self.is_over(task)) {
            self.first += 1;
        }
        let mut open: Box<dyn Iterator<Item = usize>> = Box::new(self.first..plan.tasks.len());
        if budget.is_shared() {
            let looks = |place: &usize| plan.tasks.get(*place).map_or(0, |task| self.looks_taken(&task.id));
            let mut order: Vec<usize> = open.collect();
            order.sort_by_key(looks);
            open = Box::new(order.into_iter());
        }
        let mut reasons: Vec<String> = Vec::new();
        for task in open.filter_map(|place| plan.tasks.get(place)) {
            if self.is_over(task) {
                continue;
            }
            let Some(block) = self.next_block(task)? else {
                return Ok(Next::Look { task: task.id.clone(), look: self.looks_taken(&task.id) });
            };
            match self.too_dear(plan, task, budget) {
                Some(reason) => reasons.push(reason),
                None => return Ok(Next::Block(Box::new(self.spec(plan, task, &block)))),
            }
        }
        reasons.sort_unstable();
        reasons.dedup();
        Ok(if reasons.is_empty() { Next::Finished } else { Next::BudgetUsed { reason: reasons.join(" and ") } })
    }

    /// Returns whether nothing more is run of a task.
    fn is_over(&self, task: &PlannedTask) -> bool {
        let Some(progress) = self.tasks.get(&task.id) else { return task.design.looks.is_empty() };
        progress.stop().is_some() || progress.next_look(task).is_none()
    }

    /// Returns the ids of the images that tasks besides this one need and that aren't over.
    pub fn images_left(&self, plan: &Plan, now: &TaskId) -> BTreeSet<String> {
        let left = plan.tasks.iter().filter(|task| task.id != *now && !self.is_over(task));
        let specs = left.flat_map(|task| task.environments.values());
        specs.filter_map(|spec| Some(spec.python.image()?.id.clone())).collect()
    }

    /// Returns why a task isn't brought to its next look within the budget, if it isn't.
    fn too_dear(&self, plan: &Plan, task: &PlannedTask, budget: &Budget) -> Option<String> {
        let target = self
            .tasks
            .get(&task.id)
            .map_or_else(|| task.design.looks.first().map(|look| look.blocks), |progress| progress.next_look(task))?;
        if let Some(most) = budget.max_blocks.filter(|most| target > *most) {
            return Some(format!("the bound of {most} blocks"));
        }
        if !budget.is_shared() {
            return None;
        }
        let block_s = self.mean_block_s(&task.id).unwrap_or_else(|| estimate::block_s(task));
        let stretch = f64::from(self.blocks_left_to(task, target)) * block_s;
        budget.exceeded(self.spent(plan).and(task, stretch))
    }

    /// Returns what the launches of all attempts used up.
    pub fn spent(&self, plan: &Plan) -> Spent {
        let tasks = plan.tasks.iter().filter_map(|task| Some((task, self.tasks.get(&task.id)?)));
        tasks.fold(Spent::default(), |spent, (task, progress)| spent.and(task, progress.spent_ms / 1000.0))
    }

    /// Returns the first block before a task's next look that isn't done.
    fn next_block(&mut self, task: &PlannedTask) -> Result<Option<PlannedBlock>, UnknownDesignError> {
        let progress = self.tasks.get(&task.id);
        let Some(target) = progress
            .map_or_else(|| task.design.looks.first().map(|look| look.blocks), |progress| progress.next_look(task))
        else {
            return Ok(None);
        };
        let is_at = |at: &Current| at.id == task.id && at.seed == task.design.seed;
        let mut current = match self.current.take().filter(is_at) {
            Some(current) => current,
            None => Current { id: task.id.clone(), seed: task.design.seed, blocks: Plan::blocks(task)?, block: 0 },
        };
        let progress = self.tasks.get(&task.id);
        let is_done = |block: &PlannedBlock| progress.is_some_and(|progress| progress.is_done(task, block.block));
        while current.blocks.get(current.block).is_some_and(is_done) {
            current.block += 1;
        }
        let next = current.blocks.get(current.block).filter(|block| block.block < target).cloned();
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
            // The sentinel is the baseline under another name.
            let sentinel = task.design.sentinel.as_ref().filter(|sentinel| sentinel.arm == *arm);
            let made_as = sentinel.map_or(arm, |_| &ArmId::Baseline);
            let planned = task.arms.iter().find(|planned| planned.arm == *made_as)?;
            let settled = progress.and_then(|progress| progress.settled(arm, &planned.environment));
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
            sources: task.sources.clone(),
            fetched: task.fetched.clone(),
            images: task.images.clone(),
            recipes: task.recipes.clone(),
            isolation: plan.isolation,
            allow_unisolated: plan.allow_unisolated,
            container: plan.container.clone(),
        }
    }

    /// Returns why nothing more of a task is run, if so.
    pub fn stop(&self, task: &TaskId) -> Option<TaskStop> {
        self.tasks.get(task)?.stop()
    }

    /// Returns how many looks at a task were taken.
    pub fn looks_taken(&self, task: &TaskId) -> u32 {
        self.tasks.get(task).map_or(0, |progress| progress.looks)
    }

    /// Returns how many blocks of a task are complete.
    pub fn blocks_complete(&self, task: &TaskId) -> u32 {
        self.tasks.get(task).map_or(0, |progress| u32::try_from(progress.complete.len()).unwrap_or(u32::MAX))
    }

    /// Returns how many blocks of a task are still to run at most: none if it has stopped.
    pub fn blocks_left(&self, task: &PlannedTask) -> u32 {
        if self.stop(&task.id).is_some() { 0 } else { self.blocks_left_to(task, task.design.blocks()) }
    }

    /// Returns how many of a task's first blocks are still to run.
    fn blocks_left_to(&self, task: &PlannedTask, target: u32) -> u32 {
        let Some(progress) = self.tasks.get(&task.id) else { return target };
        let left = (0..target).filter(|block| !progress.is_done(task, *block)).count();
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// Returns how long the launches of one complete block of a task took in the mean, in seconds, if any were timed.
    pub fn mean_block_s(&self, task: &TaskId) -> Option<f64> {
        let progress = self.tasks.get(task)?;
        let complete = self.blocks_complete(task);
        (complete > 0 && progress.launches_ms > 0.0).then(|| progress.launches_ms / 1000.0 / f64::from(complete))
    }
}

/// Returns what the plan is at fault for in a complete block, if that leaves no two of its arms to compare. An arm that
/// failed otherwise may be measured in the next block, so it is left.
fn fault_of_plan(launches: &[LaunchRecord], charged: &BTreeMap<ArmId, Failure>) -> Option<FailureClass> {
    let fault = |arm: &ArmId| charged.get(arm).map(|failure| failure.class).filter(|class| class.is_fault_of_plan());
    let left: Vec<&ArmId> =
        launches.iter().map(|record| &record.launch.arm).filter(|arm| fault(arm).is_none()).collect();
    let can_compare = left.len() >= 2 && left.iter().any(|arm| matches!(arm, ArmId::Baseline | ArmId::Human));
    charged.keys().find_map(fault).filter(|_| !can_compare)
}

/// Returns how long launches took together, in milliseconds.
fn launches_ms(launches: &[LaunchRecord]) -> f64 {
    launches.iter().filter_map(|record| record.timeline.total_ms).map(isobench_schema::units::Millis::get).sum()
}
