//! From a dataset and facts to a plan: every choice of a run, made once.

use std::collections::BTreeMap;
use std::sync::Arc;

use isobench_schema::assessment::{Assessment, RevisionFacts};
use isobench_schema::commit_task::CommitTask;
use isobench_schema::deviation::Deviation;
use isobench_schema::environment::Isolation;
use isobench_schema::facts::Facts;
use isobench_schema::format;
use isobench_schema::ids::{AgentName, ArmId, Digest, TaskId};
use isobench_schema::input::PlannedInput;
use isobench_schema::order::{self, derive_seed};
use isobench_schema::plan::{Design, Exclusion, ExclusionReason, Look, Plan, PlannedTask, Sentinel};
use isobench_schema::task::Task;
use isobench_schema::units::Seconds;

use crate::arms::{self, Arms, Commits};
use crate::assess::Assessor;
use crate::choose::{self, ChooseError, Selection, Selector};
use crate::dataset::Dataset;
use crate::knowledge::Knowledge;
pub use crate::plan_options::{DesignOptions, PlanOptions};
use crate::statistics::Statistics;
use crate::{age, defaults, deviations, estimate, exclude, image_names, image_order, inputs, toolkit};

/// The name of the agent with an empty patch.
pub const NEGATIVE_CONTROL: &str = "negative-control";

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The choice names something that the dataset hasn't.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// A task can't be looked at as asked.
    #[error("task `{task}` can't be looked at after {blocks:?} blocks: {reason}")]
    Looks {
        /// The task.
        task: TaskId,
        /// The blocks of the looks.
        blocks: Vec<u32>,
        /// Why.
        reason: String,
    },
    /// Something can't be written as JSON, which its digest needs.
    #[error("cannot write {what} as JSON")]
    Serialise {
        /// What.
        what: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Returns the plan of a dataset. Same input, same plan.
///
/// # Errors
/// Returns an error if the choice names unknown tasks or arms, or if the looks asked for can't be. What merely can't be run is among the plan's exclusions.
pub fn plan(
    dataset: &Dataset,
    facts: &Facts,
    options: &PlanOptions,
    statistics: &dyn Statistics,
) -> Result<Plan, PlanError> {
    choose::check(dataset, &options.choice)?;
    let facts_text =
        format::to_pretty(facts).map_err(|source| PlanError::Serialise { what: "the facts".to_owned(), source })?;
    let plan = Plan {
        planner: options.planner_version.clone(),
        dataset: dataset.name.clone(),
        facts: Digest::of(facts_text.as_bytes()),
        seed: options.seed,
        isolation: Isolation::of(options.container.as_ref()),
        allow_unisolated: options.allow_unisolated,
        container: options.container.clone(),
        tasks: Vec::new(),
        exclusions: Vec::new(),
        problems: dataset.problems.clone(),
        assessments: Vec::new(),
        planned_for: None,
    };
    let assessor = Assessor::new(facts, Knowledge::embedded(), &options.commits);
    let mut making = Making { facts, options, statistics, selector: Selector::new(&options.choice), assessor, plan };
    for task in &dataset.tasks {
        let overrides = dataset.overrides.get(&task.id).cloned().unwrap_or_default();
        making.add(task, overrides)?;
    }
    if !dataset.commit_tasks.is_empty() {
        making.plan.planned_for = Some(options.commits.planned_for.clone());
    }
    for task in &dataset.commit_tasks {
        making.add_commit(task)?;
    }
    let mut plan = making.plan;
    plan.tasks = image_order::by_layers(plan.tasks);
    Ok(plan)
}

/// A plan on its way.
struct Making<'p> {
    facts: &'p Facts,
    options: &'p PlanOptions,
    statistics: &'p dyn Statistics,
    selector: Selector<'p>,
    assessor: Assessor<'p>,
    plan: Plan,
}

impl<'p> Making<'p> {
    /// Plans one task, or notes why it isn't run.
    fn add(&mut self, task: &Task, overrides: Vec<Deviation>) -> Result<(), PlanError> {
        let arms = match self.selector.select(task) {
            Selection::Left(exclusion) => {
                self.plan.exclusions.push(exclusion);
                return Ok(());
            }
            Selection::Run(arms) => arms,
        };
        self.plan_arms(task, &arms, overrides, None)
    }

    /// Plans these arms of a task, or notes why they aren't run. `commits` are theirs, where they are known already.
    fn plan_arms(
        &mut self,
        task: &Task,
        arms: &[ArmId],
        overrides: Vec<Deviation>,
        commits: Option<Commits>,
    ) -> Result<(), PlanError> {
        let mut planning = Planning {
            task,
            facts: self.facts,
            options: self.options,
            statistics: self.statistics,
            known: commits,
            exclusions: Vec::new(),
        };
        let planned = planning.plan(arms, overrides)?;
        self.plan.exclusions.append(&mut planning.exclusions);
        self.plan.tasks.extend(planned);
        Ok(())
    }

    /// Assesses a task of a dataset of commits, and plans it if it can be run.
    fn add_commit(&mut self, task: &'p CommitTask) -> Result<(), PlanError> {
        if let Some(left) = self.selector.leave_commit(task) {
            self.plan.exclusions.push(left);
            return Ok(());
        }
        let assessed = self.assessor.assess(task);
        if let Some(left) = self.selector.take_commit(&task.id, assessed.kind()) {
            self.plan.exclusions.push(left);
            return Ok(());
        }
        if let Some((reason, message)) = assessed.exclusion() {
            self.plan.exclusions.push(exclude::task(&task.id, (reason, message)));
        } else if let Some(planned) = &assessed.task {
            let (of_alike, deviations) = planned.as_ref();
            let own = Task { id: task.id.clone(), agents: task.agents.clone(), ..of_alike.clone() };
            let commit = |facts: Option<&Arc<RevisionFacts>>| facts.map(|facts| facts.commit.clone());
            let Assessment { baseline, human, .. } = &assessed.assessment;
            let (baseline, human) = (commit(baseline.as_ref()), commit(human.as_ref()));
            let commits = Commits { baseline, human, rungs: assessed.rungs() };
            match self.selector.arms(&own.id, choose::arms_of(&own)) {
                Ok(arms) => self.plan_arms(&own, &arms, deviations.clone(), Some(commits))?,
                Err(left) => self.plan.exclusions.push(left),
            }
        }
        self.plan.assessments.push(assessed.assessment);
        Ok(())
    }
}

/// One task on its way into the plan.
struct Planning<'p> {
    task: &'p Task,
    facts: &'p Facts,
    options: &'p PlanOptions,
    statistics: &'p dyn Statistics,
    /// The commits of the arms, where they are known before git is asked.
    known: Option<Commits>,
    exclusions: Vec<Exclusion>,
}

impl Planning<'_> {
    fn plan(&mut self, chosen: &[ArmId], overrides: Vec<Deviation>) -> Result<Option<PlannedTask>, PlanError> {
        let task = self.task;
        let id = &task.id;
        if let Some(why) = self.cannot() {
            self.exclusions.push(exclude::task(id, why));
            return Ok(None);
        }
        let found = exclude::inputs(task, self.facts);
        let found = found.and_then(|paths| Ok((paths, inputs::planned(task, self.facts)?)));
        let (inputs, toolkit) = match found.and_then(|found| Ok((found, toolkit::of(task, self.facts, self.options)?)))
        {
            Ok(found) => found,
            Err(why) => {
                self.exclusions.push(exclude::task(id, why));
                return Ok(None);
            }
        };
        let named: Vec<ArmId> = choose::arms_of(task).collect();
        let mut deviations = overrides;
        let Some((arms, commits)) = (if self.options.baseline_against_itself {
            deviations.push(deviations::baseline_against_itself(task));
            self.null_arms()
        } else {
            deviations.extend(deviations::arms_chosen(&named, chosen));
            self.leave_unchosen(&named, chosen);
            self.runnable(chosen)
        }) else {
            return Ok(None);
        };
        let (arms, left) = image_names::available(task, arms, &commits, self.facts);
        self.exclusions.extend(left);
        let not_run = if self.options.baseline_against_itself { Vec::new() } else { arms::not_run(task, chosen) };
        let built = arms::build(task, &arms, &commits, (self.facts, toolkit.as_ref()))
            .map_err(|source| PlanError::Serialise { what: format!("an environment of task `{id}`"), source })?;
        if built.arms.is_empty() {
            if self.exclusions.iter().all(|exclusion| exclusion.reason == ExclusionReason::NotChosen) {
                let message = format!("task `{id}` has no patch for any of the arms asked for");
                self.exclusions.push(exclude::task(id, (ExclusionReason::NotChosen, message)));
            }
            return Ok(None);
        }
        let images = image_names::sizes(built.environments.values(), self.facts);
        if let Some(why) = exclude::image_disk(task, &images, self.facts, self.options) {
            self.exclusions.push(exclude::task(id, why));
            return Ok(None);
        }
        if let Some(exclusion) = self.nothing_to_compare(&built, &not_run) {
            self.exclusions.push(exclusion);
            return Ok(None);
        }
        let mut planned = self.planned(built, (not_run, &commits), deviations, inputs)?;
        planned.images = images;
        Ok(Some(planned))
    }

    /// Returns why the task can't be run, by what is known of the machine and of its revisions' age.
    fn cannot(&self) -> Option<exclude::Why> {
        let (task, host) = (self.task, &self.facts.host);
        let machine = exclude::machine(task, host).or_else(|| exclude::tools(task, host));
        let machine = machine.or_else(|| exclude::containers(task, self.options));
        machine.or_else(|| age::options(task, self.facts).filter(|_| self.known.is_none()))
    }

    /// Returns the exclusion of the task if arms that were asked for are left out, and none is left to compare another with.
    fn nothing_to_compare(&self, built: &Arms, not_run: &[ArmId]) -> Option<Exclusion> {
        let is_alone = arms::contrasts(&built.arms).is_empty() && not_run.is_empty();
        let mut left_out = self.exclusions.iter().filter(|left| left.reason != ExclusionReason::NotChosen);
        let first = left_out.next().filter(|_| is_alone && !self.options.design.negative_control)?;
        let arm =
            first.arm.as_ref().map_or_else(String::new, |arm| format!("; `{arm}` is left out: {}", first.message));
        let left: Vec<String> = built.arms.iter().map(|planned| format!("`{}`", planned.arm)).collect();
        let id = &self.task.id;
        let message = format!("task `{id}` has nothing left to compare but {}{arm}", left.join(", "));
        Some(exclude::task(id, (first.reason, message)))
    }

    /// Notes each arm that the task names and the choice doesn't.
    fn leave_unchosen(&mut self, named: &[ArmId], chosen: &[ArmId]) {
        for arm in named.iter().filter(|arm| !chosen.contains(arm)) {
            let why = (ExclusionReason::NotChosen, format!("arm `{arm}` was not asked for"));
            self.exclusions.push(exclude::arm(&self.task.id, arm, why));
        }
    }

    /// Returns the arms that can be run, with their commits, or `None` if the task can't.
    fn runnable(&mut self, chosen: &[ArmId]) -> Option<(Vec<ArmId>, Commits)> {
        let task = self.task;
        let rungs = self.known.as_ref().map(|known| known.rungs.clone()).unwrap_or_default();
        let mut commits = Commits { rungs, ..Commits::default() };
        if choose::needs_baseline(task, chosen) {
            commits.baseline = Some(self.baseline()?);
        }
        if choose::needs_human(task, chosen) && !chosen.contains(&ArmId::Human) {
            // The script that is run comes with the human commit.
            if let Some(why) = self.human(&mut commits) {
                self.exclusions.push(exclude::task(&task.id, why));
                return None;
            }
        }
        let mut arms = Vec::new();
        for arm in chosen {
            let why = match arm {
                ArmId::Baseline => None,
                ArmId::Human => self.human(&mut commits),
                ArmId::Agent(_) if arms::patch(task, arm).is_none() => continue,
                ArmId::Agent(_) => exclude::isolation(self.options),
            };
            match why {
                Some(why) => self.exclusions.push(exclude::arm(&task.id, arm, why)),
                None => arms.push(arm.clone()),
            }
        }
        Some((arms, commits))
    }

    /// Returns the baseline's commit, or `None` after excluding the task, whose other arms would have nothing to be
    /// compared with.
    fn baseline(&mut self) -> Option<isobench_schema::ids::CommitId> {
        if let Some(commit) = self.known.as_ref().and_then(|known| known.baseline.clone()) {
            return Some(commit);
        }
        match exclude::commit(self.facts, &self.task.repository, &self.task.baseline) {
            Ok(commit) => Some(commit),
            Err(why) => {
                self.exclusions.push(exclude::task(&self.task.id, why));
                None
            }
        }
    }

    fn human(&self, commits: &mut Commits) -> Option<exclude::Why> {
        let human = self.task.human.as_ref()?;
        if let Some(commit) = self.known.as_ref().and_then(|known| known.human.clone()) {
            commits.human = Some(commit);
            return None;
        }
        match exclude::commit(self.facts, &self.task.repository, human) {
            Ok(commit) => {
                commits.human = Some(commit);
                None
            }
            Err(why) => Some(why),
        }
    }

    /// Returns the arms of a run of the baseline against itself.
    fn null_arms(&mut self) -> Option<(Vec<ArmId>, Commits)> {
        let commit = self.baseline()?;
        let of_baseline = self.known.as_ref().and_then(|known| known.rungs.get(&ArmId::Baseline).copied());
        let rungs = [ArmId::Baseline, ArmId::Human].into_iter().filter_map(|arm| Some((arm, of_baseline?))).collect();
        let commits = Commits { baseline: Some(commit.clone()), human: Some(commit), rungs };
        Some((vec![ArmId::Baseline, ArmId::Human], commits))
    }

    fn planned(
        &self,
        built: Arms,
        (not_run, commits): (Vec<ArmId>, &Commits),
        mut deviations: Vec<Deviation>,
        (mut inputs, fetched): (BTreeMap<String, String>, Vec<PlannedInput>),
    ) -> Result<PlannedTask, PlanError> {
        let task = self.task;
        inputs.extend(fetched.iter().map(|input| (input.name(), input.digest.to_string())));
        let Arms { mut arms, environments } = built;
        if self.options.design.negative_control {
            arms.extend(arms::negative_control(&arms, NEGATIVE_CONTROL));
        }
        let design = self.design(arms.len())?;
        let (server, asked_otherwise) = age::readiness(task, self.facts);
        deviations.extend(asked_otherwise);
        let more = deviations::of_task(task, &design, commits);
        // An assessment has told some of them already.
        deviations = [deviations.clone(), more.into_iter().filter(|one| !deviations.contains(one)).collect()].concat();
        let mut planned = PlannedTask {
            id: task.id.clone(),
            title: task.title.clone(),
            engine: task.engine,
            contrasts: arms::contrasts(&arms),
            arms,
            not_run,
            environments,
            server,
            workload: arms::workload(task, commits),
            metric: task.metric.clone(),
            estimate_s: design.min_window_s,
            design,
            limits: task.limits,
            requirements: inputs::requirements(task, &fetched),
            deviations,
            inputs,
            sources: task.inputs.clone(),
            fetched,
            images: Vec::new(),
            recipes: task.recipes.clone(),
            forecast: None,
        };
        planned.estimate_s = estimate::of_task(&planned);
        planned.forecast = self.statistics.forecast(&planned, &self.facts.host);
        Ok(planned)
    }

    fn design(&self, arms: usize) -> Result<Design, PlanError> {
        let (task, asked) = (self.task, &self.options.design);
        let blocks = match (&asked.looks, task.design.blocks) {
            (Some(looks), _) => looks.clone(),
            (None, Some(blocks)) => vec![blocks],
            (None, None) => {
                let most = asked.max_blocks.or(task.design.max_blocks).unwrap_or(defaults::MAX_BLOCKS);
                default_looks(most, arms)
            }
        };
        let looks = match blocks.as_slice() {
            [blocks] => {
                let (level, equivalence_level) = (defaults::LEVEL, defaults::EQUIVALENCE_LEVEL);
                Ok(vec![Look { blocks: *blocks, level, equivalence_level }])
            }
            [first, ..] if *first < defaults::INTERVAL_BLOCKS => Err(format!(
                "a look after {first} blocks can't decide anything, because an interval needs {}",
                defaults::INTERVAL_BLOCKS
            )),
            several => self.statistics.looks(asked.spending, several),
        };
        let looks = looks.map_err(|reason| PlanError::Looks { task: task.id.clone(), blocks, reason })?;
        let default_window = Seconds::new(defaults::MIN_WINDOW_S).unwrap_or(task.limits.workload_s);
        Ok(Design {
            algorithm: order::ALGORITHM,
            seed: derive_seed(self.options.seed, &format!("task/{}", task.id)),
            looks,
            min_window_s: task.design.min_window_s.unwrap_or(default_window),
            replacements: defaults::REPLACEMENTS,
            spending: asked.spending,
            futility: asked.futility,
            sentinel: self.sentinel(),
        })
    }

    /// Returns the baseline under another name, if one is asked for and there is a baseline: a name like an agent's, which
    /// no agent of the task has.
    fn sentinel(&self) -> Option<Sentinel> {
        let every = self.options.design.sentinel_every?;
        let seed = derive_seed(self.options.seed, &format!("sentinel of task/{}", self.task.id));
        let is_free = |name: &AgentName| !self.task.agents.iter().any(|agent| agent.name == *name);
        let name = (0..=u64::MAX).find_map(|offset| {
            let name = format!("{:08x}", seed.wrapping_add(offset) & 0xffff_ffff);
            AgentName::new(name).ok().filter(is_free)
        })?;
        Some(Sentinel { arm: ArmId::Agent(name), every })
    }
}

/// Returns after how many blocks a task of so many arms is looked at that asks for nothing else: `most` blocks at most,
/// rounded up to sets of orders that are balanced.
pub fn default_looks(most: u32, arms: usize) -> Vec<u32> {
    order::default_schedule(most, order::look_set(arms))
}
