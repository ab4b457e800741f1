//! Checks what a task asks as a whole: values that are right one by one but contradict each other.

mod script;

use isobench_schema::environment::EngineKind;
use isobench_schema::measurement::MetricName;
use isobench_schema::task::Task;
use isobench_schema::workload::{Api, Arrival, Prompts, WorkloadKind};

use crate::node::Node;
use crate::shape::Finding;
use crate::{defaults, paths};

pub(crate) use script::reports;

/// Requests from which a 99th percentile is an estimate (methodology, section 2).
const P99_REQUESTS: u32 = 662;

/// Requests from which a 90th percentile is an estimate (methodology, section 2).
const P90_REQUESTS: u32 = 64;

/// Returns what is wrong with a task as a whole. `root` gives the lines.
pub(crate) fn check(task: &Task, root: &Node) -> Vec<Finding> {
    let faults = faults(task);
    let place = |path: &str| {
        let mut path = path;
        loop {
            match (root.at(path), path.rsplit_once('.')) {
                (Some(node), _) => return Some(node),
                (None, Some((table, _))) => path = table,
                (None, None) => return None,
            }
        }
    };
    faults.into_iter().map(|(path, message)| Finding::at(place(path), message)).collect()
}

/// A key and what is wrong with its value.
pub(crate) type Fault = (&'static str, String);

/// Returns what is wrong with a task as a whole.
pub(crate) fn faults(task: &Task) -> Vec<Fault> {
    [workload(task), metric(task), bounds(task), server(task), tree_paths(task), script::faults(task)].concat()
}

fn arrival_name(arrival: &Arrival) -> &'static str {
    match arrival {
        Arrival::Closed { .. } => "closed",
        Arrival::Open { .. } => "open",
        Arrival::Constant { .. } => "constant",
        Arrival::Stages { .. } => "stages",
        Arrival::Bursts { .. } => "bursts",
        Arrival::Trace { .. } => "trace",
        Arrival::AllAtOnce => "all-at-once",
    }
}

fn workload(task: &Task) -> Vec<Fault> {
    let workload = &task.workload;
    let mut faults = Vec::new();
    let found = arrival_name(&workload.arrival);
    match (workload.kind, &workload.arrival) {
        (WorkloadKind::Throughput, arrival) if *arrival != Arrival::AllAtOnce => faults.push((
            "workload.arrival",
            format!("`workload.arrival` must be `all-at-once` for kind `throughput`, found `{found}`"),
        )),
        (WorkloadKind::Latency, arrival) if !matches!(arrival, Arrival::Closed { .. }) => faults.push((
            "workload.arrival",
            format!("`workload.arrival` must be `closed` for kind `latency`, found `{found}`"),
        )),
        (WorkloadKind::Throughput | WorkloadKind::Latency | WorkloadKind::Serving, _) => {}
    }
    if matches!((&workload.prompts, workload.api), (Prompts::TokenIds { .. }, Api::Chat)) {
        let message = "prompts of kind `token-ids` need `workload.api = \"completions\"`: chat takes only text";
        faults.push(("workload.prompts", message.to_owned()));
    }
    faults
}

/// What a metric needs of a workload beyond one request.
struct Needs {
    requests: u32,
    output_tokens: u32,
    fixed_by_rate: bool,
}

fn needs(metric: MetricName) -> Needs {
    let needs = |requests, output_tokens| Needs { requests, output_tokens, fixed_by_rate: false };
    match metric {
        MetricName::RequestThroughput | MetricName::OutputThroughput | MetricName::TotalTokenThroughput => {
            Needs { requests: 1, output_tokens: 1, fixed_by_rate: true }
        }
        MetricName::MeanTtftMs
        | MetricName::MedianTtftMs
        | MetricName::MeanE2elMs
        | MetricName::MedianE2elMs
        | MetricName::AvgLatencyS
        | MetricName::P50LatencyS
        | MetricName::P90LatencyS
        | MetricName::P99LatencyS
        | MetricName::CostTimeS => needs(1, 1),
        MetricName::P90TtftMs | MetricName::P90E2elMs => needs(P90_REQUESTS, 1),
        MetricName::P99TtftMs | MetricName::P99E2elMs => needs(P99_REQUESTS, 1),
        MetricName::MeanTpotMs | MetricName::MedianTpotMs | MetricName::MeanItlMs | MetricName::MedianItlMs => {
            needs(1, 2)
        }
        MetricName::P90TpotMs | MetricName::P90ItlMs => needs(P90_REQUESTS, 2),
        MetricName::P99TpotMs | MetricName::P99ItlMs => needs(P99_REQUESTS, 2),
    }
}

fn metric(task: &Task) -> Vec<Fault> {
    let mut faults = Vec::new();
    let primary = task.metric.primary;
    let needs = needs(primary);
    let requests = task.workload.requests;
    if requests < needs.requests {
        let least = needs.requests;
        let message = format!("`{primary}` needs at least {least} requests, and `workload.requests` is {requests}");
        faults.push(("metric.primary", message));
    }
    if task.workload.output_tokens < needs.output_tokens {
        let message = format!("`{primary}` needs at least 2 output tokens, and `workload.output-tokens` is 1");
        faults.push(("metric.primary", message));
    }
    if needs.fixed_by_rate && task.workload.arrival.is_open() {
        let message = format!(
            "`{primary}` can't decide an `open` workload, whose rate fixes the throughput; use a latency metric such as `{}`",
            MetricName::MeanE2elMs
        );
        faults.push(("metric.primary", message));
    }
    faults
}

fn bounds(task: &Task) -> Vec<Fault> {
    let mut faults = Vec::new();
    let window = task.design.min_window_s.map_or(defaults::MIN_WINDOW_S, isobench_schema::units::Seconds::get);
    let most = task.limits.workload_s.get();
    if window > most && task.workload.script.is_none() {
        let message = format!("`design.min-window-s`, {window} s, is longer than `limits.workload-s`, {most} s");
        faults.push(("design.min-window-s", message));
    }
    let (failed, requests) = (task.limits.failed_requests, task.workload.requests);
    if failed >= requests {
        let message = format!("`limits.failed-requests` is {failed}, which allows all of {requests} requests to fail");
        faults.push(("limits.failed-requests", message));
    }
    faults
}

fn server(task: &Task) -> Vec<Fault> {
    let mut faults = Vec::new();
    let server = &task.server;
    match task.engine {
        EngineKind::Generic if server.command.is_empty() && task.workload.script.is_none() => {
            faults.push(("server.command", "`server.command` is empty, and the engine `generic` has none".to_owned()));
        }
        EngineKind::Generic | EngineKind::Vllm | EngineKind::Sglang => {}
    }
    if !server.command.is_empty() && !server.command.iter().any(|word| word.contains("{port}")) {
        let message = "`server.command` has no `{port}`: each launch listens on a free port that it is given; add for \
                       example `\"--port\", \"{port}\"`";
        faults.push(("server.command", message.to_owned()));
    }
    if !server.health.starts_with('/') {
        faults.push(("server.health", format!("`server.health` must start with `/`, found `{}`", server.health)));
    }
    let is_option = |name: &&String| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain)
    };
    for name in server.options.keys().filter(|name| !is_option(name)) {
        let message = format!("`{name}` in `server.options` is no option's name: leave out the leading `--`");
        faults.push(("server.options", message));
    }
    let build = task.environment.build_environment.keys().map(|name| ("environment.build-environment", name));
    let native = task.environment.native.iter().flat_map(|native| native.environment.keys());
    let native = native.map(|name| ("environment.native.environment", name));
    let serve = server.environment.keys().map(|name| ("server.environment", name));
    let pass = server.pass_environment.iter().map(|name| ("server.pass-environment", name));
    for (path, name) in build.chain(native).chain(serve).chain(pass) {
        if name.is_empty() || name.contains(['=', '\0']) {
            faults.push((path, format!("`{}` in `{path}` is no variable's name", name.escape_debug())));
        }
    }
    faults
}

fn tree_paths(task: &Task) -> Vec<Fault> {
    let python_path = task.environment.python_path.iter().map(|path| ("environment.python-path", path));
    let native = task.environment.native.as_ref();
    let native_paths = native.map(|native| native.paths.as_slice()).unwrap_or_default();
    let outputs = native.map(|native| native.outputs.as_slice()).unwrap_or_default();
    python_path
        .chain(native_paths.iter().map(|path| ("environment.native.paths", path)))
        .chain(outputs.iter().map(|path| ("environment.native.outputs", path)))
        .filter(|(_, path)| !paths::stays_inside(path))
        .map(|(key, path)| (key, format!("`{path}` in `{key}` leads out of the tree")))
        .collect()
}
