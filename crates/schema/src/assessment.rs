//! What is known about a task before a device is used: what is wrong with it, what was repaired, what it needs, where each
//! arm's environment comes from, and what it costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::deviation::Deviation;
use crate::environment::Rung;
use crate::failure::spelt_enum;
use crate::ids::{ArmId, CommitId, Moment, TaskId};
use crate::tool::Tool;

spelt_enum!(
    /// How far a task comes, by what is known before a device is used: the rows of the funnel, best first.
    Standing {
        /// The command is accepted as it stands, and every arm's environment can be had without a build.
        AsIs = "runnable-as-is",
        /// It runs after repairs that don't change what is measured.
        Repaired = "runnable-with-repairs",
        /// It needs more devices, or larger ones, than it is planned for.
        MoreDevices = "needs-more-devices",
        /// An arm's environment must be built from source.
        Build = "needs-a-build",
        /// It can't be run: something is missing or wrong that only an edit of the dataset mends.
        Cannot = "cannot-run",
    }
);

spelt_enum!(
    /// How much a finding matters.
    Severity {
        /// The task can't be measured as it stands.
        Error = "error",
        /// It can be measured, but what comes out may not be what was meant.
        Warning = "warning",
        /// Worth knowing.
        Note = "note",
    }
);

/// Something that a lint rule found in a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The rule's id, such as `option-refused`.
    pub rule: String,
    /// How much it matters; an error that was repaired stays an error.
    pub severity: Severity,
    /// What is wrong, in one sentence that names the object.
    pub message: String,
    /// The option, column, file or value that it is about.
    pub subject: String,
    /// What shows it: the parser's options, files, dates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What to do about it.
    pub fix: String,
    /// Whether a repair in the same assessment takes care of it.
    pub repaired: bool,
}

/// A revision as it is known: from a clone, or from the table of known commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevisionFacts {
    /// The commit.
    pub commit: CommitId,
    /// Its first parent; absent for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CommitId>,
    /// When it was committed.
    pub committed: Moment,
    /// Its subject line.
    pub subject: String,
    /// The newest release that branched off before it, such as `v0.6.4.post1`; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_release: Option<String>,
    /// The first release that contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_release: Option<String>,
    /// The digest of everything that is compiled or decides how: equal keys need one native build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_key: Option<String>,
    /// The files that it changes against its first parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Vec<String>>,
    /// Of the paths of known benchmark scripts, those that exist at it, stubs left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<String>>,
    /// Where this is known from.
    pub source: FactSource,
}

spelt_enum!(
    /// Where facts about a revision come from.
    FactSource {
        /// A clone of the repository.
        Git = "git",
        /// The table of known commits.
        Knowledge = "knowledge",
    }
);

/// A command that was read and made fit for the baseline's own programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssessedCommand {
    /// The benchmark program.
    pub tool: Tool,
    /// Variables set before the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// The benchmark program's arguments after repair, with the program itself first, as the baseline's own parser takes them.
    pub client: Vec<String>,
    /// The server's arguments after repair, with the program itself first; empty for an offline benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
}

/// What one launch needs, by the rule of `docs/methodology.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceNeed {
    /// The model that is reckoned with.
    pub model: String,
    /// Devices of the kind that is planned for; absent if no number of them is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u32>,
    /// The tensor parallel size that the command asks for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_tensor_parallel: Option<u32>,
    /// Weights in GB (10^9 bytes), all devices together.
    pub weights_gb: f64,
    /// Key-value cache per token in bytes, all devices together.
    pub kv_bytes_per_token: u64,
    /// The longest context that one request may take, in tokens.
    pub context_tokens: u64,
    /// The most tokens that the workload holds in the cache at once, as far as it fits.
    pub workload_tokens: u64,
    /// Memory that each device must have, in GB.
    pub device_gb: f64,
    /// How the numbers came about, a sentence each.
    pub because: Vec<String>,
}

/// What one rung of the ladder answers for one arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RungAnswer {
    /// The rung.
    pub rung: Rung,
    /// What becomes of it.
    pub answer: RungVerdict,
    /// The image, wheel or release that it would be, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// Why.
    pub reason: String,
}

spelt_enum!(
    /// What becomes of a rung.
    RungVerdict {
        /// It is taken.
        Taken = "taken",
        /// It can't be used.
        Refused = "refused",
        /// A rung above it is taken.
        NotNeeded = "not-needed",
    }
);

/// A recipe that a task's environments need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeededRecipe {
    /// The recipe's id in `knowledge/recipes.toml`.
    pub id: String,
    /// What it does to the environment, such as `transformers<4.54`.
    pub action: String,
    /// Why it applies to this task.
    pub reason: String,
    /// What it means for comparisons.
    pub effect: String,
}

/// What a task costs, as far as it can be known before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Seconds without a device: fetching, building, installing.
    pub prepare_s: f64,
    /// Seconds that devices are held.
    pub device_s: f64,
    /// Devices held at once.
    pub devices: u32,
    /// Price of the devices in US dollars, if the price of one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_usd: Option<f64>,
    /// Price of the builds in US dollars, if the price of a build machine is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_usd: Option<f64>,
    /// What is assumed, a sentence each.
    pub assumptions: Vec<String>,
}

/// The devices that assessments reckon with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedFor {
    /// The device's id in `knowledge/devices.toml`, such as `h100-sxm`.
    pub device: String,
    /// How many of them one launch may use.
    pub count: u32,
    /// Whether they are only assumed, because this machine has no device that is known.
    pub assumed: bool,
}

/// Everything that is known about one task of a dataset of commits before a device is used.
///
/// Tasks of the same commit and command have most of it in common, and share it in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assessment {
    /// The task.
    pub task: TaskId,
    /// The commit's subject line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The command as the dataset gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// How far it comes.
    pub standing: Standing,
    /// Why it stands there, a sentence each, the weightiest first.
    pub reasons: Arc<Vec<String>>,
    /// The baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Arc<RevisionFacts>>,
    /// The human commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<Arc<RevisionFacts>>,
    /// The command after repair; absent if it can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Arc<AssessedCommand>>,
    /// What is wrong with it.
    pub findings: Arc<Vec<Finding>>,
    /// What was changed, each with its reason.
    pub repairs: Arc<Vec<Deviation>>,
    /// What a launch needs; absent if the model isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<Arc<DeviceNeed>>,
    /// Where each arm's environment comes from: every rung with its answer.
    pub ladder: Arc<BTreeMap<ArmId, Vec<RungAnswer>>>,
    /// The recipes that its environments need, in every arm alike.
    pub recipes: Arc<Vec<NeededRecipe>>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Arc<Cost>>,
}
