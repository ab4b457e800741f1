//! The task that is planned.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{Moment, Revision};
use isobench_schema::input::TaskInputs;
use isobench_schema::task::{DesignSpec, Requirements, ServerSpec, Task};
use isobench_schema::workload::{Prompts, TokenCounter};

use super::load::Load;
use super::sources::Sources;
use super::{Subject, client};
use crate::{checks, defaults, inputs};

/// The variable that holds a token of the hub.
const TOKEN: &str = "HF_TOKEN";

/// The path that says whether the server is ready, before it had one for that.
const MODELS: &str = "/v1/models";

/// When vLLM's servers got `/health` (commit 7e90a2d117, released with v0.2.2).
const HEALTH_SINCE: &str = "2023-11-01T17:29:44Z";

/// Returns the task, if its parts are known; recipes are not applied yet.
pub(super) fn task(subject: &Subject<'_>, load: &Load<'_>, sources: &Sources) -> Option<Task> {
    let baseline = subject.baseline?;
    let human = subject.human?;
    let mut task = Task {
        id: subject.task.id.clone(),
        title: Some(human.subject.clone()),
        repository: subject.task.repository.clone(),
        baseline: Revision::new(baseline.commit.to_string()).ok()?,
        human: Revision::new(human.commit.to_string()).ok(),
        agents: subject.task.agents.clone(),
        engine: subject.task.engine,
        environment: sources.environment.clone()?,
        server: server(subject, load)?,
        workload: load.workload.clone()?,
        metric: load.metric.clone()?,
        design: DesignSpec::default(),
        limits: load.limits.unwrap_or_else(defaults::limits),
        requirements: Requirements {
            devices: load.need.as_ref().and_then(|need| need.devices).unwrap_or(1),
            memory_gib: None,
            disk_gib: None,
        },
        inputs: TaskInputs::default(),
        recipes: Vec::new(),
    };
    if inputs::give(subject.facts, &mut task) {
        // The engine is given a folder that holds all of it.
        task.server.allow_network = false;
        task.server.pass_environment.retain(|name| name != TOKEN);
    }
    if task.inputs.tokenizer.is_some() && !client::sends_ids(task.engine, Some(&baseline.committed)) {
        task.workload.counter = TokenCounter::Tokenizer;
    }
    Some(task)
}

/// Returns what contradicts itself in a task, as for tasks that people write.
pub(super) fn faults(task: &Task) -> Vec<String> {
    // The lengths of a dataset's prompts are the dataset's, and can't be held against anything here.
    match task.workload.prompts {
        Prompts::Dataset { .. } => Vec::new(),
        Prompts::Words { .. } | Prompts::TokenIds { .. } => {
            checks::faults(task).into_iter().map(|(_, message)| message).collect()
        }
    }
}

fn server(subject: &Subject<'_>, load: &Load<'_>) -> Option<ServerSpec> {
    let model = load.model.clone()?;
    let mut options = load.options.clone();
    // The server's own command gives these.
    for name in ["model", "model-path", "host", "port", "served-model-name"] {
        options.remove(name);
    }
    Some(ServerSpec {
        command: command(subject.task.engine),
        options,
        environment: load.variables.clone(),
        // Only a gated model needs the token of who runs it.
        pass_environment: load.model_row().filter(|row| row.gated).map(|_| TOKEN.to_owned()).into_iter().collect(),
        health: health(subject).to_owned(),
        // Weights that aren't in the cache are fetched from the hub.
        allow_network: !subject.facts.model_configs.contains_key(&model),
        served_model_name: model.clone(),
        model,
    })
}

/// Returns the command that starts the server in every version of the engine; empty: the engine's default does.
fn command(engine: EngineKind) -> Vec<String> {
    // `vllm serve` came long after the module.
    if engine != EngineKind::Vllm {
        return Vec::new();
    }
    let words = [
        "{python}",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        "{model}",
        "--host",
        "{host}",
        "--port",
        "{port}",
        "--served-model-name",
        "{served-model-name}",
    ];
    words.into_iter().map(str::to_owned).collect()
}

fn health(subject: &Subject<'_>) -> &'static str {
    let has_health = |moment: &Moment| subject.task.engine != EngineKind::Vllm || moment.as_str() >= HEALTH_SINCE;
    match subject.baseline {
        Some(baseline) if !has_health(&baseline.committed) => MODELS,
        _ => defaults::HEALTH,
    }
}
