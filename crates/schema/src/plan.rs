//! The plan: every choice of a run, made before a device is used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::assessment::{Assessment, PlannedFor};
use crate::container::ContainerSpec;
use crate::deviation::Deviation;
use crate::environment::{EngineKind, EnvironmentSpec, Isolation};
use crate::failure::spelt_enum;
use crate::format::{self, Stored};
use crate::ids::{ArmId, Digest, EnvironmentId, TaskId};
use crate::images::PlannedImage;
use crate::input::{PlannedInput, TaskInputs};
use crate::noise::KnownSpread;
use crate::order::{self, derive_seed};
use crate::recipe::AppliedRecipe;
use crate::task::{Limits, MetricSpec, Requirements, ServerSpec};
use crate::units::Seconds;
use crate::workload::Workload;

/// One point at which a task is judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// After how many complete blocks.
    pub blocks: u32,
    /// The two-sided level of the difference test at this look.
    pub level: f64,
    /// The one-sided level of each of the two equivalence tests at this look.
    pub equivalence_level: f64,
}

spelt_enum!(
    /// How much of the error probability may be used up by when (a spending function of Lan and `DeMets` 1983, Biometrika
    /// 70:659).
    Spending {
        /// α ln(1 + (e − 1) f): much at once, with levels that are nearly the same at every look, after Pocock (1977).
        Pocock = "pocock",
        /// α f: evenly, which is less at once and leaves more for the last look (Kim and `DeMets` 1987, Biometrika 74:149,
        /// with the exponent 1).
        Even = "even",
        /// 2 − 2 Φ(z(1 − α/2)/√f): hardly anything early, after O'Brien and Fleming (1979).
        OBrienFleming = "obrien-fleming",
    }
);

fn even() -> Spending {
    Spending::Even
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_even(spending: &Spending) -> bool {
    *spending == Spending::Even
}

/// The design of a task's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// The version of the algorithm that derives orders and seeds: [`order::ALGORITHM`].
    pub algorithm: u32,
    /// The task's seed.
    pub seed: u64,
    /// The looks, in order; the last one's `blocks` is the most that is run.
    pub looks: Vec<Look>,
    /// The shortest measured window.
    pub min_window_s: Seconds,
    /// How often a block that infrastructure spoilt is replaced, over the whole task.
    pub replacements: u32,
    /// How the looks' levels spend the error: with it they are calculated anew where blocks are missing.
    #[serde(default = "even", skip_serializing_if = "is_even")]
    pub spending: Spending,
    /// A contrast isn't waited for any longer if its chance to be decided at a look to come is below this; absent, it is
    /// always waited for. Not binding: the error holds either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub futility: Option<f64>,
    /// The baseline under another name, to count how often it is found to differ from itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<Sentinel>,
}

/// An arm that is the baseline once more, without anything that measures it being able to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sentinel {
    /// Its name, drawn from the task's seed: it looks like an agent's.
    pub arm: ArmId,
    /// It is launched in one block of so many.
    pub every: u32,
}

/// What a task's design finds in the noise that is known of the task, or in several noises where none is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecast {
    /// What is known of the spread of block differences; absent, it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownSpread>,
    /// The smallest difference that the design finds with a power of 80 %, in standard deviations of block differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<f64>,
    /// What comes of the known spread; where it is unknown, of each of several spreads.
    pub outcomes: Vec<ForecastOutcome>,
    /// How long finding the spread out would take in seconds, where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_s: Option<f64>,
}

/// What a design finds in a given spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForecastOutcome {
    /// The standard deviation of block differences, as log ratios.
    pub deviation: f64,
    /// The smallest log ratio that the design finds with a power of 80 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mde: Option<f64>,
    /// The most blocks of a design that finds a difference of the margin with a power of 80 %; absent if 10,000 are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_for_margin: Option<u32>,
    /// How many blocks are expected to be run, by the true difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<ExpectedBlocks>,
}

/// How long one contrast is expected to take if this is the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedBlocks {
    /// The true relative difference: 0.05 is 5 % faster.
    pub difference: f64,
    /// The mean number of blocks until it is decided, or the last look is taken.
    pub blocks: f64,
    /// How likely it is to be decided.
    pub decided: f64,
    /// The estimated time of so many blocks in seconds.
    pub seconds: f64,
}

impl Design {
    /// Returns the most blocks that are run.
    pub fn blocks(&self) -> u32 {
        self.looks.last().map_or(0, |look| look.blocks)
    }
}

/// One block as the design wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedBlock {
    /// Its index, from 0.
    pub block: u32,
    /// The arms in the order of their launches.
    pub order: Vec<ArmId>,
    /// The seed of its prompts and arrival times, the same for all arms.
    pub prompt_seed: u64,
}

/// An arm with its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedArm {
    /// The arm.
    pub arm: ArmId,
    /// The environment, in [`PlannedTask::environments`].
    pub environment: EnvironmentId,
}

/// Two arms to compare.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedContrast {
    /// The arm that is asked about.
    pub of: ArmId,
    /// The arm that it is compared with.
    pub against: ArmId,
}

/// Everything that is decided about one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTask {
    /// The task.
    pub id: TaskId,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The engine.
    pub engine: EngineKind,
    /// The arms that are run, in the order baseline, human, agents.
    pub arms: Vec<PlannedArm>,
    /// Arms that the task names but has no patch for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<ArmId>,
    /// The environments by their names.
    pub environments: BTreeMap<EnvironmentId, EnvironmentSpec>,
    /// What is compared.
    pub contrasts: Vec<PlannedContrast>,
    /// How the engine is served.
    pub server: ServerSpec,
    /// The load.
    pub workload: Workload,
    /// What decides.
    pub metric: MetricSpec,
    /// The design.
    pub design: Design,
    /// Deadlines and bounds.
    pub limits: Limits,
    /// What a launch needs.
    pub requirements: Requirements,
    /// Differences from what the task asks.
    pub deviations: Vec<Deviation>,
    /// Digests of the inputs (models and the like) by path or by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Where a tokenizer and a dataset's file are taken from.
    #[serde(default, skip_serializing_if = "TaskInputs::is_empty")]
    pub sources: TaskInputs,
    /// Inputs from a hub, with every file that is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetched: Vec<PlannedInput>,
    /// Images from a registry that its launches run from, with what must be fetched of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PlannedImage>,
    /// Recipes of the table that are in every arm, part of the comparability key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<AppliedRecipe>,
    /// Estimated time for all blocks.
    pub estimate_s: Seconds,
    /// What the design finds in the noise that is known of the task, if any is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
}

impl PlannedTask {
    /// Returns whether the human arm is the baseline again (an A/A run).
    pub fn is_against_itself(&self) -> bool {
        let environment =
            |arm: &ArmId| self.arms.iter().find(|planned| planned.arm == *arm).map(|arm| &arm.environment);
        environment(&ArmId::Human).is_some_and(|human| environment(&ArmId::Baseline) == Some(human))
    }
}

spelt_enum!(
    /// Why a task or an arm isn't run.
    ExclusionReason {
        /// It wasn't among the tasks or arms asked for.
        NotChosen = "not-chosen",
        /// A revision can't be found.
        RevisionNotFound = "revision-not-found",
        /// The repository can't be read.
        RepositoryUnavailable = "repository-unavailable",
        /// The machine has too few devices, too little memory or too little disk.
        MachineTooSmall = "machine-too-small",
        /// A program that its environment needs isn't on the machine.
        ToolMissing = "tool-missing",
        /// A file that the task names is missing.
        InputMissing = "input-missing",
        /// The task asks for something that contradicts itself.
        Contradiction = "contradiction",
        /// The task can't be measured as it stands; its assessment says why.
        CannotRun = "cannot-run",
        /// isobench's client can't draw this workload's prompts.
        ClientLacks = "client-lacks",
        /// Agent patches would run without isolation, which wasn't allowed.
        IsolationMissing = "isolation-missing",
    }
);

/// A task or an arm that isn't run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// The task.
    pub task: TaskId,
    /// The arm, if only one is excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<ArmId>,
    /// Why.
    pub reason: ExclusionReason,
    /// Why, in one sentence that names the object.
    pub message: String,
}

/// Something in the dataset that can't be read. The rest goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// The line or row, from 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column, if one is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What is wrong, naming the key or column.
    pub message: String,
}

/// An immutable plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of isobench that made it.
    pub planner: String,
    /// The dataset's name, for people.
    pub dataset: String,
    /// The digest of the facts beside it.
    pub facts: Digest,
    /// The seed from which every task's seed is derived.
    pub seed: u64,
    /// How far the measured code is kept from the rest of the machine.
    pub isolation: Isolation,
    /// Whether agent patches may run without isolation.
    pub allow_unisolated: bool,
    /// What engines' containers are made with, if they run in containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerSpec>,
    /// The tasks, in the order in which they are run.
    pub tasks: Vec<PlannedTask>,
    /// What isn't run, and why.
    pub exclusions: Vec<Exclusion>,
    /// What can't be read.
    pub problems: Vec<Problem>,
    /// What is known about each task of a dataset of commits, in its order, run or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assessments: Vec<Assessment>,
    /// The devices that the assessments reckon with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_for: Option<PlannedFor>,
}

impl Stored for Plan {
    const NAME: &'static str = "plan";
    const VERSION: u32 = 1;
}

impl Plan {
    /// Returns the digest that names the plan: of its stored bytes.
    ///
    /// # Errors
    /// Never for plans built by the planner; the signature follows the serialiser's.
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        Digest::of_written(|out| format::write_pretty(self, out))
    }

    /// Returns the plan without what it expects. Two plans that differ in nothing else run in the same way.
    #[must_use]
    pub fn without_forecasts(&self) -> Self {
        let mut plan = self.clone();
        for task in &mut plan.tasks {
            task.forecast = None;
        }
        plan
    }

    /// Returns the task of that name.
    pub fn task(&self, id: &TaskId) -> Option<&PlannedTask> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    /// Returns the estimated time of all tasks in seconds.
    pub fn estimate_s(&self) -> f64 {
        // The sum of no numbers at all is -0.
        0.0 + self.tasks.iter().map(|task| task.estimate_s.get()).sum::<f64>()
    }

    /// Returns the blocks of a task: a pure function of the plan, versioned by the design's algorithm.
    ///
    /// # Errors
    /// Returns the algorithm's version if it isn't known here.
    pub fn blocks(task: &PlannedTask) -> Result<Vec<PlannedBlock>, UnknownDesignError> {
        let Design { algorithm, seed, .. } = task.design;
        if algorithm != order::ALGORITHM {
            return Err(UnknownDesignError { task: task.id.clone(), algorithm });
        }
        let orders = order::orders(task.arms.len(), task.design.blocks(), seed);
        let name = |places: Vec<usize>| {
            places.iter().filter_map(|&place| task.arms.get(place)).map(|a| a.arm.clone()).collect()
        };
        let with_sentinel = |block: u32, mut order: Vec<ArmId>| {
            if let Some(Sentinel { arm, every }) = &task.design.sentinel
                && (block + 1).is_multiple_of((*every).max(1))
            {
                let places = u64::try_from(order.len()).unwrap_or(0) + 1;
                let place = derive_seed(seed, &format!("sentinel/{block}")) % places;
                order.insert(usize::try_from(place).unwrap_or(0), arm.clone());
            }
            order
        };
        let planned = |(block, places): (u32, Vec<usize>)| PlannedBlock {
            block,
            order: with_sentinel(block, name(places)),
            prompt_seed: derive_seed(seed, &format!("prompts/{block}")),
        };
        Ok((0..).zip(orders).map(planned).collect())
    }
}

/// A plan whose design algorithm isn't known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task `{task}` uses the design algorithm {algorithm}, and this isobench knows only {known}", known = order::ALGORITHM)]
pub struct UnknownDesignError {
    /// The task.
    pub task: TaskId,
    /// The version that its design names.
    pub algorithm: u32,
}
