//! The text of a `task.toml` whose engine is the fake engine.

use std::path::Path;

use crate::path::fake_engine_path;

/// A task for tests: small, fast, with a declared short window. Every field is public; change what a test needs.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskText {
    /// The task's name.
    pub id: String,
    /// The git repository, absolute or relative to the task's file.
    pub repository: String,
    /// Whether there is a human arm.
    pub human: HumanArm,
    /// Agents and their patches, relative to the task's file.
    pub agents: Vec<(String, Option<String>)>,
    /// The engine's program; the fake engine by default.
    pub program: String,
    /// Arguments after those that every launch has.
    pub arguments: Vec<String>,
    /// `completions` or `chat`.
    pub api: String,
    /// Measured requests of each launch.
    pub requests: u32,
    /// Requests under way.
    pub concurrency: u32,
    /// Tokens asked of each answer.
    pub output_tokens: u32,
    /// Blocks.
    pub blocks: u32,
    /// The shortest measured window in seconds.
    pub min_window_s: f64,
    /// The smallest relative difference that matters. Wide by default: drift is measured in margins, and on a machine that
    /// does other work a short window drifts.
    pub margin: f64,
    /// Further lines at the end, such as another table.
    pub more: String,
}

/// Whether a task has a human arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HumanArm {
    /// The tag `human` of the repository.
    Present,
    /// None.
    Absent,
}

impl TaskText {
    /// Returns a task on the tags of a [`crate::FakeRepository`], without agents.
    ///
    /// # Panics
    /// Panics with the command that builds the fake engine if it isn't there.
    pub fn new(id: &str, repository: &Path) -> Self {
        Self {
            id: id.to_owned(),
            repository: repository.display().to_string(),
            human: HumanArm::Present,
            agents: Vec::new(),
            program: fake_engine_path().display().to_string(),
            arguments: Vec::new(),
            api: "completions".to_owned(),
            requests: 16,
            concurrency: 4,
            output_tokens: 16,
            blocks: 2,
            min_window_s: 0.0,
            margin: 0.9,
            more: String::new(),
        }
    }

    /// Adds an agent with its patch, relative to the task's file.
    #[must_use]
    pub fn with_agent(mut self, name: &str, patch: &str) -> Self {
        self.agents.push((name.to_owned(), Some(patch.to_owned())));
        self
    }

    /// Returns the text of the `task.toml`.
    pub fn toml(&self) -> String {
        let Self { requests, concurrency, output_tokens, blocks, min_window_s, margin, more, .. } = self;
        let human = match self.human {
            HumanArm::Present => "human = \"human\"\n",
            HumanArm::Absent => "",
        };
        let agent = |(name, patch): &(String, Option<String>)| {
            let patch = patch.as_ref().map(|patch| format!("patch = {}\n", quoted(patch))).unwrap_or_default();
            format!("\n[[agent]]\nname = {}\n{patch}", quoted(name))
        };
        let agents: String = self.agents.iter().map(agent).collect();
        let fixed =
            [self.program.as_str(), "--host", "{host}", "--port", "{port}", "--model", "{model}", "--folder", "{tree}"];
        let command = fixed.into_iter().chain(self.arguments.iter().map(String::as_str)).map(quoted);
        let command = command.collect::<Vec<_>>().join(", ");
        let (id, repository, api) = (quoted(&self.id), quoted(&self.repository), quoted(&self.api));
        format!(
            r#"id = {id}
repository = {repository}
baseline = "baseline"
{human}{agents}
[engine]
kind = "generic"

[environment]
python = "absent"

[server]
command = [{command}]
model = "fake"

[workload]
kind = "serving"
api = {api}
requests = {requests}
output-tokens = {output_tokens}
warm-up-requests = 2
arrival = {{ kind = "closed", concurrency = {concurrency} }}
prompts = {{ kind = "words", input-tokens = 8 }}
probes = {{ count = 2, output-tokens = 8 }}

[metric]
primary = "output_throughput"
margin = {margin:?}

[design]
blocks = {blocks}
min-window-s = {min_window_s:?}

[limits]
build-s = 20
ready-s = 20
request-s = 20
stall-s = 5
workload-s = 60
stop-s = 5
{more}"#
        )
    }
}

/// Returns a text as a TOML basic string, whose escapes are JSON's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
