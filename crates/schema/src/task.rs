//! A task: one optimisation, and how to measure it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::{EngineKind, NativeBuild, Patch, Python, ToolkitChoice};
use crate::ids::{AgentName, Revision, TaskId};
use crate::input::TaskInputs;
use crate::measurement::{Direction, MetricName};
use crate::recipe::AppliedRecipe;
use crate::units::Seconds;
use crate::workload::Workload;

/// An agent and its patch on the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPatch {
    /// The agent.
    pub name: AgentName,
    /// Its patch; without one the arm is `not-run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
}

/// How the environment of every arm is made from its revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEnvironment {
    /// The Python that the engine runs on.
    pub python: Python,
    /// The installed package whose native files are laid under the revision's Python files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<String>,
    /// The build of the native files, shared by the arms whose native trees are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeBuild>,
    /// The container that native files and the tree are built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<ToolkitChoice>,
    /// Build commands, each an argument list.
    pub build: Vec<Vec<String>>,
    /// Variables for the build commands.
    pub build_environment: BTreeMap<String, String>,
    /// Folders of the tree that come first on Python's search path.
    pub python_path: Vec<String>,
    /// Top-level Python modules that must be found inside the tree.
    pub modules: Vec<String>,
    /// Whether agent patches may hold binary content.
    pub allow_binary_patch: bool,
}

/// The value of a server option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// A switch: `true` gives `--name`, `false` leaves it out.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// How the engine is served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// The command as an argument list, with `{python}`, `{host}`, `{port}`, `{model}`, `{served-model-name}` and `{tree}`
    /// replaced. Empty: the engine's own.
    pub command: Vec<String>,
    /// Options, appended to the command as `--name value`.
    pub options: BTreeMap<String, OptionValue>,
    /// Variables for the engine.
    pub environment: BTreeMap<String, String>,
    /// Names of variables that the engine gets from isobench's own environment, such as a token.
    pub pass_environment: Vec<String>,
    /// The path that answers 200 when the engine is ready.
    pub health: String,
    /// The model: an absolute folder, or a name.
    pub model: String,
    /// The name under which the model is served; requests name it.
    pub served_model_name: String,
    /// Whether the engine may ask the network.
    pub allow_network: bool,
}

/// Which number decides, and by how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricSpec {
    /// The primary metric.
    pub primary: MetricName,
    /// Which way it improves.
    pub direction: Direction,
    /// The smallest relative difference that matters (delta): 0.02 is 2 %.
    pub margin: f64,
    /// Further metrics to report.
    pub guards: Vec<MetricName>,
    /// How much less than with itself the baseline's answers may agree with an arm's, from 0 to 1.
    pub output_margin: f64,
    /// How many times as fast as the baseline an arm may be and still be believed; the rules' own number if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub believable_ratio: Option<f64>,
    /// The most that the devices allow, where the plan knows model and devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
}

/// How many times as fast as the baseline an arm may be and still be believed, unless the task says another number.
pub const BELIEVABLE_RATIO: f64 = 10.0;

impl MetricSpec {
    /// Returns how many times as fast as the baseline an arm may be and still be believed.
    pub fn believed(&self) -> f64 {
        self.believable_ratio.unwrap_or(BELIEVABLE_RATIO)
    }
}

/// The most that devices can do for a model: reading its weights once for each step at the full bandwidth of their memory,
/// and multiplying at their full speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// Output tokens per second of all requests together.
    pub output_tok_per_s: f64,
    /// The shortest time of a step that gives each request one token, in milliseconds.
    pub step_ms: f64,
    /// How they came about, in a sentence.
    pub because: String,
}

/// What a task asks of the design of its run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesignSpec {
    /// Blocks of a design with one look; absent, there are several looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// The most blocks of a design with several looks; the default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_blocks: Option<u32>,
    /// The shortest measured window; the default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_window_s: Option<Seconds>,
}

/// Deadlines and bounds of one launch. Every wait has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// For each build or install command.
    pub build_s: Seconds,
    /// From the start of the engine until it is ready.
    pub ready_s: Seconds,
    /// For one request.
    pub request_s: Seconds,
    /// Between two chunks of a stream.
    pub stall_s: Seconds,
    /// For warm-up, probes and window together.
    pub workload_s: Seconds,
    /// From SIGTERM until the engine is killed.
    pub stop_s: Seconds,
    /// Log bytes above which an incident is recorded; the log is kept whole all the same.
    pub log_bytes: u64,
    /// Failed requests of the window that don't invalidate the launch.
    pub failed_requests: u32,
}

/// What a launch needs of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirements {
    /// Accelerators. 0 is a CPU run.
    pub devices: u32,
    /// Main memory in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<f64>,
    /// Free disk in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gib: Option<f64>,
}

/// One optimisation: a baseline revision, a human revision, agent patches, and a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The task's name.
    pub id: TaskId,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The git repository: an absolute path or a URL.
    pub repository: String,
    /// The revision before the change.
    pub baseline: Revision,
    /// The real commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<Revision>,
    /// Agents, in the order of the file.
    pub agents: Vec<AgentPatch>,
    /// The engine.
    pub engine: EngineKind,
    /// How environments are made.
    pub environment: TaskEnvironment,
    /// How the engine is served.
    pub server: ServerSpec,
    /// The load.
    pub workload: Workload,
    /// What decides.
    pub metric: MetricSpec,
    /// The design asked for.
    pub design: DesignSpec,
    /// Deadlines and bounds.
    pub limits: Limits,
    /// What a launch needs of a machine.
    pub requirements: Requirements,
    /// What is fetched or read before a launch: a model on a hub, a tokenizer, a dataset's file.
    #[serde(default, skip_serializing_if = "TaskInputs::is_empty")]
    pub inputs: TaskInputs,
    /// Recipes of the table that are in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<AppliedRecipe>,
}
