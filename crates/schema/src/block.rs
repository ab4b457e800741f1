//! The block specification: everything that one block needs to run anywhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::container::ContainerSpec;
use crate::environment::{EngineKind, EnvironmentSpec, Isolation};
use crate::event::{BlockEnd, EventKind};
use crate::failure::Failure;
use crate::format::Stored;
use crate::ids::{ArmId, BlockId};
use crate::images::PlannedImage;
use crate::input::{PlannedInput, TaskInputs};
use crate::outcome::LaunchRecord;
use crate::recipe::AppliedRecipe;
use crate::task::{Limits, MetricSpec, ServerSpec};
use crate::units::Seconds;
use crate::workload::Workload;

/// One launch of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockLaunch {
    /// The arm.
    pub arm: ArmId,
    /// Its environment.
    pub environment: EnvironmentSpec,
    /// A failure of an earlier block that the same environment would only repeat; the launch ends with it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Failure>,
}

/// Everything that one block needs. The unit that is sent anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// The run's name, by which its processes are known.
    pub run: String,
    /// The task, block and attempt.
    pub id: BlockId,
    /// The launches, in order.
    pub launches: Vec<BlockLaunch>,
    /// The engine.
    pub engine: EngineKind,
    /// How the engine is served.
    pub server: ServerSpec,
    /// The load.
    pub workload: Workload,
    /// The seed of prompts and arrival times.
    pub prompt_seed: u64,
    /// What decides; the checks at the end of the block need it.
    pub metric: MetricSpec,
    /// The shortest measured window.
    pub min_window_s: Seconds,
    /// Deadlines and bounds.
    pub limits: Limits,
    /// Digests of the inputs by path or by name, part of the comparability key.
    #[serde(default)]
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
    /// How far the measured code must be kept from the rest of the machine.
    pub isolation: Isolation,
    /// Whether agent patches may run without isolation.
    pub allow_unisolated: bool,
    /// What engines' containers are made with, if they run in containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerSpec>,
}

impl Stored for BlockSpec {
    const NAME: &'static str = "block-spec";
    const VERSION: u32 = 1;
}

/// How a block that ran in a folder of its own ended. Its file is written last, so that a folder without it isn't complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockComplete {
    /// The task, block and attempt.
    pub id: BlockId,
    /// What became of the attempt.
    pub end: BlockEnd,
    /// The records of its launches, in their order.
    pub launches: Vec<LaunchRecord>,
    /// What the checks at the end of the block found against an arm whose launch was measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub charged: BTreeMap<ArmId, Failure>,
}

impl From<BlockComplete> for EventKind {
    fn from(BlockComplete { id, end, launches, charged }: BlockComplete) -> Self {
        Self::BlockEnded { id, end, launches, charged }
    }
}

impl Stored for BlockComplete {
    const NAME: &'static str = "block-complete";
    const VERSION: u32 = 1;
}
