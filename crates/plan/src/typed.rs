//! From a task's checked values to a [`Task`]: defaults filled in, paths resolved, patches read.

use std::collections::BTreeMap;

use isobench_schema::environment::{
    EngineKind, ImagePython, NativeBuild, PackageAlias, Patch, Python, ToolkitChoice, Venv,
};
use isobench_schema::ids::{AgentName, CommitId, InvalidIdError, Moment, Revision, TaskId};
use isobench_schema::input::TaskInputs;
use isobench_schema::measurement::{Direction, MetricName};
use isobench_schema::task::{
    AgentPatch, DesignSpec, Limits, MetricSpec, OptionValue, Requirements, ServerSpec, Task, TaskEnvironment,
};
use isobench_schema::units::Seconds;

use crate::dataset::Files;
use crate::knowledge::Knowledge;
use crate::node::{Node, NodeValue};
use crate::shape::Finding;
use crate::{checks, defaults, image_names, nearest, paths, shape, typed_inputs, typed_workload};

/// Where a task stands, which decides what its paths mean.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'f> {
    /// The files of the dataset.
    pub(crate) files: &'f dyn Files,
    /// The absolute path of the base folder.
    pub(crate) base: &'f str,
    /// The folder of the task's file, relative to the base folder.
    pub(crate) folder: &'f str,
}

/// Returns the task of `root`, or everything that is wrong with it.
pub(crate) fn task(root: &Node, surroundings: Surroundings<'_>) -> Result<Task, Vec<Finding>> {
    let findings = shape::check(root);
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut draft = Draft { root, surroundings, findings: Vec::new() };
    let task = whole_task(&mut draft);
    let mut findings = draft.findings;
    match task {
        Some(task) => {
            findings.extend(checks::check(&task, root));
            if findings.is_empty() { Ok(task) } else { Err(findings) }
        }
        None => Err(findings),
    }
}

/// A task under construction. Its values have the kinds that the table of keys gives them.
pub(crate) struct Draft<'n> {
    pub(crate) root: &'n Node,
    pub(crate) surroundings: Surroundings<'n>,
    findings: Vec<Finding>,
}

impl<'n> Draft<'n> {
    /// Notes what is wrong with the value of a key.
    pub(crate) fn fault(&mut self, path: &str, message: impl Into<String>) {
        let table = path.rsplit_once('.').and_then(|(table, _)| self.root.at(table));
        self.findings.push(Finding::at(self.root.at(path).or(table), message));
    }

    /// Notes that a key is missing which another value makes necessary.
    pub(crate) fn missing(&mut self, path: &str) {
        self.fault(path, format!("required key `{path}` is missing"));
    }

    pub(crate) fn text(&self, path: &str) -> Option<&'n str> {
        self.root.at(path)?.text()
    }

    pub(crate) fn switch(&self, path: &str) -> Option<bool> {
        if let NodeValue::Switch(value) = self.root.at(path)?.value { Some(value) } else { None }
    }

    pub(crate) fn whole(&self, path: &str) -> Option<u32> {
        if let NodeValue::Whole(value) = self.root.at(path)?.value { u32::try_from(value).ok() } else { None }
    }

    /// Returns a whole number, or `None` after noting that it is missing.
    pub(crate) fn needed_whole(&mut self, path: &str) -> Option<u32> {
        let value = self.whole(path);
        if value.is_none() {
            self.missing(path);
        }
        value
    }

    pub(crate) fn number(&self, path: &str) -> Option<f64> {
        self.root.at(path)?.number()
    }

    fn seconds(&mut self, path: &str, default: f64) -> Option<Seconds> {
        let seconds = Seconds::new(self.number(path).unwrap_or(default));
        if seconds.is_none() {
            self.fault(path, format!("`{path}` must be a number of seconds"));
        }
        seconds
    }

    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        self.root.at(path).map(texts).unwrap_or_default()
    }

    fn commands(&self, path: &str) -> Vec<Vec<String>> {
        self.root.at(path).map(Node::items).unwrap_or_default().iter().map(texts).collect()
    }

    fn map(&self, path: &str) -> BTreeMap<String, String> {
        let entries = self.root.at(path).map(Node::entries).unwrap_or_default();
        entries.iter().filter_map(|(name, node)| Some((name.clone(), node.text()?.to_owned()))).collect()
    }

    /// Returns a checked name, or `None` after noting the rule that the text breaks.
    fn name<T>(&mut self, path: &str, new: impl Fn(String) -> Result<T, InvalidIdError>) -> Option<T> {
        let text = self.text(path)?;
        match new(text.to_owned()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(path, format!("`{path}`: {error}"));
                None
            }
        }
    }
}

fn texts(node: &Node) -> Vec<String> {
    node.items().iter().filter_map(|item| item.text().map(str::to_owned)).collect()
}

fn whole_task(draft: &mut Draft<'_>) -> Option<Task> {
    let id = draft.name("id", TaskId::new);
    let baseline = draft.name("baseline", Revision::new);
    let human = draft.name("human", Revision::new);
    let repository = repository(draft);
    let agents = agents(draft);
    let engine = draft.text("engine.kind").and_then(EngineKind::parse).unwrap_or(defaults::ENGINE);
    let environment = environment(draft);
    let server = server(draft);
    let workload = typed_workload::workload(draft, engine);
    let metric = metric(draft);
    let limits = limits(draft);
    let min_window_s = draft.number("design.min-window-s").and_then(Seconds::new);
    let inputs = match (&server, &workload) {
        (Some(server), Some(workload)) => typed_inputs::inputs(draft, engine, server, workload),
        (_, _) => TaskInputs::default(),
    };
    Some(Task {
        id: id?,
        title: draft.text("title").map(str::to_owned),
        repository: repository?,
        baseline: baseline?,
        human,
        agents,
        engine,
        environment,
        server: server?,
        workload: workload?,
        metric: metric?,
        design: DesignSpec {
            blocks: draft.whole("design.blocks"),
            max_blocks: draft.whole("design.max-blocks"),
            min_window_s,
        },
        limits: limits?,
        requirements: Requirements {
            devices: draft.whole("requirements.devices").unwrap_or(defaults::DEVICES),
            memory_gib: draft.number("requirements.memory-gib"),
            disk_gib: draft.number("requirements.disk-gib"),
        },
        inputs,
        recipes: Vec::new(),
    })
}

fn repository(draft: &mut Draft<'_>) -> Option<String> {
    let text = draft.text("repository")?;
    if text.starts_with('-') || text.chars().any(char::is_control) {
        draft.fault("repository", format!("`repository` must be a path or URL, found `{}`", shape::shortened(text)));
        return None;
    }
    let Surroundings { base, folder, .. } = draft.surroundings;
    Some(if paths::is_url(text) { text.to_owned() } else { paths::absolute(base, folder, text) })
}

fn agents(draft: &mut Draft<'_>) -> Vec<AgentPatch> {
    let root = draft.root;
    let mut agents: Vec<AgentPatch> = Vec::new();
    for node in root.get("agent").map(Node::items).unwrap_or_default() {
        let Some(text) = node.get("name").and_then(Node::text) else { continue };
        let name = match AgentName::new(text) {
            Ok(name) => name,
            Err(error) => {
                draft.findings.push(Finding::at(node.get("name"), format!("`agent.name`: {error}")));
                continue;
            }
        };
        if agents.iter().any(|agent| agent.name == name) {
            draft.findings.push(Finding::at(node.get("name"), format!("agent `{name}` is named twice")));
            continue;
        }
        let patch = match node.get("patch").and_then(Node::text).map(|path| patch(draft, path)) {
            None => None,
            Some(Ok(patch)) => Some(patch),
            Some(Err(message)) => {
                let message = format!("`agent.patch` of agent `{name}`: {message}");
                draft.findings.push(Finding::at(node.get("patch"), message));
                continue;
            }
        };
        agents.push(AgentPatch { name, patch });
    }
    agents
}

fn patch(draft: &Draft<'_>, path: &str) -> Result<Patch, String> {
    let Surroundings { files, folder, .. } = draft.surroundings;
    let shown = shape::shortened(path);
    let inside = paths::inside(folder, path).ok_or_else(|| {
        format!("`{shown}` leads out of the dataset's folder; use a path relative to the task's file")
    })?;
    let bytes = files.read(&inside).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    Ok(Patch::new(path, bytes))
}

fn environment(draft: &mut Draft<'_>) -> TaskEnvironment {
    let python = python(draft);
    let python_path = match (draft.root.at("environment.python-path"), &python) {
        (Some(node), _) => texts(node),
        (None, Python::Absent) => Vec::new(),
        (None, Python::System | Python::Venv(_) | Python::Image(_)) => vec![defaults::PYTHON_PATH.to_owned()],
    };
    TaskEnvironment {
        python,
        overlay: draft.text("environment.overlay").map(str::to_owned),
        native: native(draft),
        toolkit: toolkit(draft),
        build: draft.commands("environment.build"),
        build_environment: draft.map("environment.build-environment"),
        python_path,
        modules: draft.list("environment.modules"),
        allow_binary_patch: draft.switch("environment.allow-binary-patch").unwrap_or(false),
    }
}

fn native(draft: &mut Draft<'_>) -> Option<NativeBuild> {
    draft.root.at("environment.native")?;
    for path in ["environment.native.paths", "environment.native.commands", "environment.native.outputs"] {
        match draft.root.at(path) {
            None => draft.missing(path),
            Some(node) if node.items().is_empty() => draft.fault(path, format!("`{path}` is empty")),
            Some(_) => {}
        }
    }
    if draft.root.at("environment.overlay").is_some() {
        let message = "`environment.overlay` and `environment.native` both give the native files; leave one out";
        draft.fault("environment.overlay", message);
    }
    Some(NativeBuild {
        paths: draft.list("environment.native.paths"),
        commands: draft.commands("environment.native.commands"),
        environment: draft.map("environment.native.environment"),
        outputs: draft.list("environment.native.outputs"),
        memory_per_job_mib: draft
            .whole("environment.native.memory-per-job-mib")
            .unwrap_or(defaults::MEMORY_PER_JOB_MIB),
        timeout_s: draft.whole("environment.native.timeout-s"),
    })
}

fn toolkit(draft: &mut Draft<'_>) -> Option<ToolkitChoice> {
    draft.root.at("environment.toolkit")?;
    if ["environment.native", "environment.build"].iter().all(|path| draft.root.at(path).is_none()) {
        let message = "`environment.toolkit` has no use without `environment.native` or `environment.build`";
        draft.fault("environment.toolkit", message);
    }
    let choice = ToolkitChoice {
        image: draft.text("environment.toolkit.image").map(str::to_owned),
        cuda: draft.text("environment.toolkit.cuda").map(str::to_owned),
        network: draft.switch("environment.toolkit.network").unwrap_or(false),
    };
    let known = &Knowledge::embedded().toolkits;
    if let Some(cuda) = choice.cuda.as_ref().filter(|cuda| known.of_cuda(cuda).is_none()) {
        let versions: Vec<&str> = known.toolkit.iter().map(|row| row.cuda.as_str()).collect();
        let message = format!(
            "no image is known for `environment.toolkit.cuda = \"{}\"`, only for {}; name one by `environment.toolkit.image`",
            shape::shortened(cuda),
            versions.join(", ")
        );
        draft.fault("environment.toolkit.cuda", message);
    }
    Some(choice)
}

/// Keys that only a virtual environment has a use for.
const VENV_KEYS: [&str; 8] = [
    "environment.python-version",
    "environment.requirements",
    "environment.overrides",
    "environment.no-dependencies",
    "environment.extra-indexes",
    "environment.exclude-newer",
    "environment.aliases",
    "environment.overlay",
];

fn python(draft: &mut Draft<'_>) -> Python {
    let kind = draft.text("environment.python");
    if draft.root.at("environment.image").is_some() {
        return image(draft);
    }
    for path in ["environment.baseline-image", "environment.image-python"] {
        if draft.root.at(path).is_some() {
            draft.fault(path, format!("`{path}` needs `environment.image`"));
        }
    }
    if kind != Some("venv") {
        for path in VENV_KEYS.into_iter().filter(|path| draft.root.at(path).is_some()) {
            draft.fault(path, format!("`{path}` needs `environment.python = \"venv\"`"));
        }
        return if kind == Some("absent") { Python::Absent } else { Python::System };
    }
    let aliases = draft.root.at("environment.aliases").map(Node::items).unwrap_or_default();
    let field = |node: &Node, key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
    let alias = |node: &Node| Some(PackageAlias { name: field(node, "name")?, version: field(node, "version")? });
    Python::Venv(Venv {
        python: draft.text("environment.python-version").map(str::to_owned),
        requirements: draft.list("environment.requirements"),
        overrides: draft.list("environment.overrides"),
        no_dependencies: draft.list("environment.no-dependencies"),
        extra_indexes: draft.list("environment.extra-indexes"),
        exclude_newer: draft.name("environment.exclude-newer", Moment::new),
        aliases: aliases.iter().filter_map(alias).collect(),
        stub_modules: Vec::new(),
    })
}

/// Returns the Python of an image: what is installed there is what the engine gets.
fn image(draft: &mut Draft<'_>) -> Python {
    let others = ["environment.python", "environment.native", "environment.toolkit", "environment.build"];
    let others = others.into_iter().chain(VENV_KEYS.into_iter().filter(|path| *path != "environment.overlay"));
    for path in others.filter(|path| draft.root.at(path).is_some()) {
        draft.fault(path, format!("`{path}` has no use with `environment.image`, to which nothing is added"));
    }
    let any = CommitId::new("0".repeat(40)).expect("40 digits are a commit id");
    for path in ["environment.image", "environment.baseline-image"] {
        if let Some(Err(placeholder)) = draft.text(path).map(|template| image_names::fill(template, &any)) {
            let message = format!(
                "`{path}` has `{{{placeholder}}}`, which isn't `{{commit}}` or `{{commitN}}` with N from 7 to 40"
            );
            draft.fault(path, message);
        }
    }
    Python::Image(ImagePython {
        image: draft.text("environment.image").unwrap_or_default().to_owned(),
        baseline_image: draft.text("environment.baseline-image").map(str::to_owned),
        program: draft.text("environment.image-python").unwrap_or(defaults::IMAGE_PYTHON).to_owned(),
        holds: None,
        pinned: None,
    })
}

fn server(draft: &mut Draft<'_>) -> Option<ServerSpec> {
    let written = draft.text("server.model")?;
    let options = draft.root.at("server.options").map(Node::entries).unwrap_or_default();
    Some(ServerSpec {
        command: draft.list("server.command"),
        options: options.iter().filter_map(|(name, node)| Some((name.clone(), option(node)?))).collect(),
        environment: draft.map("server.environment"),
        pass_environment: draft.list("server.pass-environment"),
        health: draft.text("server.health").unwrap_or(defaults::HEALTH).to_owned(),
        model: model(draft.surroundings, written),
        served_model_name: draft.text("server.served-model-name").unwrap_or(written).to_owned(),
        allow_network: draft.switch("server.allow-network").unwrap_or(false),
    })
}

/// Returns the model's absolute folder if it is a path, else its name.
///
/// A path is what starts with `/`, `./` or `../`, and whatever exists beside the task's file: `org/model` is a name as long
/// as there is no such folder.
pub(crate) fn model(surroundings: Surroundings<'_>, written: &str) -> String {
    let Surroundings { files, base, folder } = surroundings;
    let says_so = ["/", "./", "../"].iter().any(|start| written.starts_with(start));
    let exists = || paths::inside(folder, written).is_some_and(|path| files.kind(&path).is_some());
    if says_so || exists() { paths::absolute(base, folder, written) } else { written.to_owned() }
}

pub(crate) fn option(node: &Node) -> Option<OptionValue> {
    match &node.value {
        NodeValue::Switch(value) => Some(OptionValue::Switch(*value)),
        NodeValue::Whole(value) => Some(OptionValue::Whole(*value)),
        NodeValue::Number(value) => Some(OptionValue::Number(*value)),
        NodeValue::Text(text) => Some(OptionValue::Text(text.clone())),
        NodeValue::Null | NodeValue::Time(_) | NodeValue::List(_) | NodeValue::Table(_) => None,
    }
}

fn metric(draft: &mut Draft<'_>) -> Option<MetricSpec> {
    let primary = MetricName::parse(draft.text("metric.primary")?)?;
    let asked = draft.text("metric.direction").and_then(Direction::parse);
    if let Some(asked) = asked.filter(|asked| *asked != primary.direction()) {
        let own = primary.direction();
        draft.fault(
            "metric.direction",
            format!("`metric.direction` is `{asked}`, but `{primary}` improves as it gets `{own}`"),
        );
    }
    let mut guards = Vec::new();
    for name in draft.list("metric.guards") {
        let Some(guard) = MetricName::parse(&name) else {
            let hint = nearest::hint(&name, MetricName::ALL.iter().map(|metric| metric.as_str()));
            let name = shape::shortened(&name);
            draft.fault("metric.guards", format!("unknown metric `{name}` in `metric.guards`{hint}"));
            continue;
        };
        guards.push(guard);
    }
    Some(MetricSpec {
        primary,
        direction: primary.direction(),
        margin: draft.number("metric.margin").unwrap_or(defaults::MARGIN),
        guards,
        output_margin: draft.number("metric.output-margin").unwrap_or(defaults::OUTPUT_MARGIN),
        believable_ratio: draft.number("metric.believable-ratio"),
        ceiling: None,
    })
}

fn limits(draft: &mut Draft<'_>) -> Option<Limits> {
    Some(Limits {
        build_s: draft.seconds("limits.build-s", defaults::BUILD_S)?,
        ready_s: draft.seconds("limits.ready-s", defaults::READY_S)?,
        request_s: draft.seconds("limits.request-s", defaults::REQUEST_S)?,
        stall_s: draft.seconds("limits.stall-s", defaults::STALL_S)?,
        workload_s: draft.seconds("limits.workload-s", defaults::WORKLOAD_S)?,
        stop_s: draft.seconds("limits.stop-s", defaults::STOP_S)?,
        log_bytes: u64::from(draft.whole("limits.log-bytes").unwrap_or(defaults::LOG_BYTES)),
        failed_requests: draft.whole("limits.failed-requests").unwrap_or(defaults::FAILED_REQUESTS),
    })
}
