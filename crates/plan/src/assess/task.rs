//! The task that is planned.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Revision;
use isobench_schema::input::TaskInputs;
use isobench_schema::task::{DesignSpec, Requirements, ServerSpec, Task};
use isobench_schema::workload::{Prompts, TokenCounter, Workload};

use std::collections::BTreeMap;

use super::load::Load;
use super::script;
use super::sources::Sources;
use super::{Subject, client};
use crate::{age, checks, defaults, inputs};

/// The variable that holds a token of the hub.
const TOKEN: &str = "HF_TOKEN";

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
        workload: workload(load)?,
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
    if task.workload.script.is_some() {
        // A script makes its own requests, and reads what it needs for them beside the model.
        task.inputs.tokenizer = None;
        task.inputs.dataset = None;
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

/// Returns the workload, with the arguments of the script that measures, if one does.
fn workload(load: &Load<'_>) -> Option<Workload> {
    let mut workload = load.workload.clone()?;
    if let (Some(script), Some(fitted)) = (&mut workload.script, &load.fitted) {
        script.arguments = script::arguments(fitted, &load.options, load.model.as_deref()?);
    }
    Some(workload)
}

fn server(subject: &Subject<'_>, load: &Load<'_>) -> Option<ServerSpec> {
    let model = load.model.clone()?;
    let is_started = load.workload.as_ref().is_some_and(|workload| workload.script.is_none());
    let mut options = if is_started { load.options.clone() } else { BTreeMap::new() };
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
    match subject.baseline {
        Some(baseline) if !age::has_health(subject.task.engine, &baseline.committed) => age::MODELS,
        _ => defaults::HEALTH,
    }
}
