//! A task as datasets of performance commits give it: a commit, and the command that is said to show its effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::environment::EngineKind;
use crate::failure::spelt_enum;
use crate::format::Stored;
use crate::ids::{Revision, TaskId};
use crate::task::AgentPatch;

spelt_enum!(
    /// The form in which a dataset gives its rows.
    RowFormat {
        /// A row as ISO-Bench publishes it (JSON Lines or Parquet).
        Published = "published",
        /// An entry of a mapping file whose keys are commits.
        Mapping = "mapping",
        /// A record of the extraction of a commit: `commit_hash`, `perf_command`, `files_changed`, ..
        Extraction = "extraction",
        /// An item of a plan file: `human`, `pre`, `pre_parent_index`.
        PlanItem = "plan-item",
        /// The list of published tasks: `commit`, `parent`, `perf_command`, `server_command`, `benchmark_kind`.
        TaskList = "task-list",
        /// A record of one arm's run: `human_commit`, `human_commit_full`, `parent_commit`, `status`, `metrics`.
        Result = "result",
    }
);

/// Where a row stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The file, as given.
    pub file: String,
    /// The row, from 1: a line of JSON Lines, a row of Parquet, an entry of a mapping.
    pub row: u64,
    /// The form of the row.
    pub format: RowFormat,
}

/// A task as a dataset gives it. What the planner reads is typed; the whole row is kept beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitTask {
    /// The task's name: `vllm-015069b0`.
    pub id: TaskId,
    /// The engine that the commit belongs to.
    pub engine: EngineKind,
    /// The git repository: an absolute path or a URL.
    pub repository: String,
    /// The commit: the human arm.
    pub commit: Revision,
    /// The revision before it: the baseline. Absent: the commit's first parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Revision>,
    /// The commit's subject line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The model that the row names beside the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The benchmark's kind as the row says it: `serving`, `latency`, `throughput`, `prefix_caching`, `one_batch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub benchmark_kind: Option<String>,
    /// The benchmark command, as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The server's command, as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_command: Option<String>,
    /// The files that the commit changes, if the row lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<String>,
    /// Agents and their patches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPatch>,
    /// Where the row stands.
    pub origin: Origin,
    /// The whole row, as it was; a plain value (a mapping's string, say) under its format's own key.
    pub columns: Map<String, Value>,
    /// Further rows of the same commit, such as one for each agent's result, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_rows: Vec<FurtherRow>,
}

/// Another row of the same commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FurtherRow {
    /// Where it stands.
    pub origin: Origin,
    /// The whole row, as it was.
    pub columns: Map<String, Value>,
}

impl Stored for CommitTask {
    const NAME: &'static str = "commit-task";
    const VERSION: u32 = 1;
}

/// The first line of a file of commit tasks: what the dataset that they were read from looked like, so that it can be written
/// again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetHeader {
    /// The dataset's name, for people.
    pub name: String,
    /// The columns of its rows, in the order in which they were first seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// What a Parquet file says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parquet: Option<ParquetShape>,
}

/// What a Parquet file says of itself beside its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParquetShape {
    /// The types of its columns, as Parquet's own text: `message schema { .. }`.
    pub schema: String,
    /// Its metadata: keys and values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Option<String>>,
}

impl Stored for DatasetHeader {
    const NAME: &'static str = "dataset";
    const VERSION: u32 = 1;
}
