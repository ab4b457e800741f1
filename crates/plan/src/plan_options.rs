//! What a plan is made with, besides the dataset and the facts.

use isobench_schema::container::ContainerSpec;
use isobench_schema::plan::Spending;

use crate::assess::AssessOptions;
use crate::choose::Choice;
use crate::defaults;

/// What a plan is made with, besides the dataset and the facts.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// The seed from which every other seed is derived.
    pub seed: u64,
    /// What to run.
    pub choice: Choice,
    /// Whether agent patches may run without isolation.
    pub allow_unisolated: bool,
    /// What engines' containers are made with; without it, engines run as bare processes.
    pub container: Option<ContainerSpec>,
    /// The version of isobench, for the record.
    pub planner_version: String,
    /// Whether the human arm is replaced by the baseline and agents are left out, to show the noise (an A/A run).
    pub baseline_against_itself: bool,
    /// What tasks of a dataset of commits are assessed with.
    pub commits: AssessOptions,
    /// How tasks are looked at, unless they say it themselves.
    pub design: DesignOptions,
    /// The room in bytes that runs leave on a disk.
    pub disk_floor_bytes: u64,
}

/// How tasks are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignOptions {
    /// Looks after these numbers of blocks, for every task.
    pub looks: Option<Vec<u32>>,
    /// The most blocks of a task.
    pub max_blocks: Option<u32>,
    /// How the error is spent over the looks.
    pub spending: Spending,
    /// A contrast isn't waited for if its chance to be decided at a look to come is below this.
    pub futility: Option<f64>,
    /// The baseline is launched once more, under another name, in one block of so many.
    pub sentinel_every: Option<u32>,
    /// Whether an agent with an empty patch is added to every task, whose verdicts are known.
    pub negative_control: bool,
}

impl Default for DesignOptions {
    fn default() -> Self {
        Self {
            looks: None,
            max_blocks: None,
            spending: Spending::Even,
            futility: Some(defaults::FUTILITY),
            sentinel_every: None,
            negative_control: false,
        }
    }
}

impl PlanOptions {
    /// Returns the options of a whole dataset on the bare process host.
    pub fn new(seed: u64, planner_version: impl Into<String>) -> Self {
        Self {
            seed,
            choice: Choice::default(),
            allow_unisolated: false,
            container: None,
            planner_version: planner_version.into(),
            baseline_against_itself: false,
            commits: AssessOptions::default(),
            design: DesignOptions::default(),
            disk_floor_bytes: 0,
        }
    }
}
