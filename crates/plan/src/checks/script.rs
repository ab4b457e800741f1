//! Checks what a task asks of a benchmark script: what it measures, what it is given, and what can't be had beside it.

use isobench_schema::environment::Python;
use isobench_schema::measurement::MetricName;
use isobench_schema::script::{Script, ScriptOf};
use isobench_schema::task::Task;
use isobench_schema::tool::ToolKind;
use isobench_schema::workload::{Arrival, WorkloadKind};

use super::Fault;
use crate::paths;

/// Returns what contradicts itself, for a task whose numbers are a script's and for one whose aren't.
pub(super) fn faults(task: &Task) -> Vec<Fault> {
    let primary = task.metric.primary;
    let Some(script) = &task.workload.script else {
        let message =
            format!("`{primary}` is a number that benchmark scripts say of themselves, and needs `workload.script`");
        return if of_latency(primary) || primary == MetricName::CostTimeS {
            vec![("metric.primary", message)]
        } else {
            Vec::new()
        };
    };
    let mut faults = place(script);
    if !reports(script).contains(&primary) {
        let names: Vec<&str> = reports(script).iter().map(|metric| metric.as_str()).collect();
        let message = format!("`{}` says nothing of `{primary}`, only `{}`", script.tool, names.join("`, `"));
        faults.push(("metric.primary", message));
    }
    let kind = match script.tool.kind() {
        ToolKind::OfflineLatency => WorkloadKind::Latency,
        ToolKind::OfflineThroughput | ToolKind::Serving | ToolKind::Server => WorkloadKind::Throughput,
    };
    if task.workload.kind != kind {
        let found = task.workload.kind;
        faults
            .push(("workload.kind", format!("`{}` measures `{kind}`, and `workload.kind` is `{found}`", script.tool)));
    }
    if task.environment.python == Python::Absent {
        let message = "a benchmark script needs Python, and `environment.python` is `absent`";
        faults.push(("environment.python", message.to_owned()));
    }
    if !task.server.options.is_empty() {
        let message = "`server.options` mean nothing beside `workload.script`: give `workload.script.arguments`";
        faults.push(("server.options", message.to_owned()));
    }
    if script.of == ScriptOf::Human && task.human.is_none() {
        let message = "`workload.script.of` is `human`, and the task has no human arm";
        faults.push(("workload.script.of", message.to_owned()));
    }
    faults.extend(arguments(task, script));
    faults
}

/// Returns the metrics that a script's output has in every version, the one first that usually decides.
pub(crate) fn reports(script: &Script) -> &'static [MetricName] {
    match script.tool.kind() {
        ToolKind::OfflineLatency => {
            &[MetricName::AvgLatencyS, MetricName::P50LatencyS, MetricName::P90LatencyS, MetricName::P99LatencyS]
        }
        ToolKind::OfflineThroughput if script.tool == isobench_schema::tool::Tool::BenchmarkPrefixCaching => {
            &[MetricName::CostTimeS]
        }
        ToolKind::OfflineThroughput | ToolKind::Serving | ToolKind::Server => {
            &[MetricName::TotalTokenThroughput, MetricName::RequestThroughput, MetricName::OutputThroughput]
        }
    }
}

fn of_latency(metric: MetricName) -> bool {
    [MetricName::AvgLatencyS, MetricName::P50LatencyS, MetricName::P90LatencyS, MetricName::P99LatencyS]
        .contains(&metric)
}

fn place(script: &Script) -> Vec<Fault> {
    let mut faults = Vec::new();
    let path = &script.path;
    if path.starts_with(['-', '/']) || path.ends_with('/') || !paths::stays_inside(path) {
        let message = format!("`workload.script.path` must be a file of the repository, found `{path}`");
        faults.push(("workload.script.path", message));
    } else if script.folder().is_empty() {
        let message = format!("`workload.script.path` must be in a folder of the repository, found `{path}`");
        faults.push(("workload.script.path", message));
    }
    faults
}

/// Arguments that say again what the workload says.
const SAID_TWICE: [&str; 6] =
    ["--num-prompts", "--batch-size", "--num-iters", "--input-len", "--output-len", "--output-json"];

/// Finds arguments that contradict the workload, by which the script's claims are checked.
fn arguments(task: &Task, script: &Script) -> Vec<Fault> {
    let workload = &task.workload;
    let mut faults = Vec::new();
    let batch = match workload.arrival {
        Arrival::Closed { concurrency, .. } => Some(concurrency),
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => None,
    };
    if let Some(batch) = batch.filter(|batch| *batch > 0 && !workload.requests.is_multiple_of(*batch)) {
        let message = format!(
            "`workload.requests` is {}, which is no number of batches of {batch}: a latency script measures whole ones",
            workload.requests
        );
        faults.push(("workload.requests", message));
    }
    let said = |name: &str| match name {
        "--num-prompts" => Some(workload.requests),
        "--batch-size" => batch,
        "--num-iters" => workload.requests.checked_div(batch?),
        "--input-len" => workload.prompts.input_tokens(),
        "--output-len" => Some(workload.output_tokens),
        _ => None,
    };
    for name in SAID_TWICE {
        let Some(given) = value(&script.arguments, name) else { continue };
        if name == "--output-json" {
            let message = "`--output-json` in `workload.script.arguments` is isobench's own to give".to_owned();
            faults.push(("workload.script.arguments", message));
        } else if let Some(said) = said(name).filter(|said| given != said.to_string()) {
            let message =
                format!("`{name} {given}` in `workload.script.arguments` contradicts the workload, which says {said}");
            faults.push(("workload.script.arguments", message));
        }
    }
    faults.extend(model(task, script).map(|message| ("workload.script.arguments", message)));
    faults
}

/// What `workload.script.arguments` hold in place of the task's model.
const MODEL: &str = "{model}";

/// Says why a script wouldn't measure the task's model: without `--model` it takes its own default.
fn model(task: &Task, script: &Script) -> Option<String> {
    let Some(given) = value(&script.arguments, "--model") else {
        return Some(format!(
            "`workload.script.arguments` have no `--model`, and `{}` would take a model of its own: give \
             `\"--model\", \"{MODEL}\"`",
            script.tool
        ));
    };
    (given != MODEL && given != task.server.model).then(|| {
        format!(
            "`--model {given}` in `workload.script.arguments` contradicts `server.model`, which is `{}`: give \
             `\"--model\", \"{MODEL}\"`",
            task.server.model
        )
    })
}

/// Returns the value that an argument list gives an option last. The engine's parser takes `_` for `-` in names.
fn value<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let is_named = |word: &str| word.replace('_', "-") == name;
    let mut found = None;
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((before, value)) if is_named(before) => found = Some(value),
            Some(_) | None if is_named(word) => found = words.peek().map(|value| value.as_str()).or(found),
            Some(_) | None => {}
        }
    }
    found
}
