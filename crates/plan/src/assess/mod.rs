//! Everything that can be known of a task of a dataset of commits before a device is used, and the task that is planned.
//!
//! Here the parts meet: the command is read and fitted ([`crate::command`]), the rules look for faults ([`crate::lint`]), the
//! need for devices is reckoned ([`crate::requirements`]), each arm's environment is looked for ([`crate::source`]), recipes
//! and costs are added ([`crate::recipe`], [`crate::cost`]). What comes out is data: an [`Assessment`], and a
//! [`Task`] where one can be planned.

mod client;
mod load;
mod metric;
mod script;
mod sources;
mod standing;
mod task;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use isobench_schema::assessment::{
    AssessedCommand, Assessment, Finding, PlannedFor, RevisionFacts, Severity, Standing,
};
use isobench_schema::commit_task::CommitTask;
use isobench_schema::deviation::Deviation;
use isobench_schema::environment::{EngineKind, Rung};
use isobench_schema::facts::Facts;
use isobench_schema::ids::{ArmId, CommitId, Revision, TaskId};
use isobench_schema::plan::ExclusionReason;
use isobench_schema::task::Task;
use isobench_schema::tool::ToolKind;
use isobench_schema::workload::WorkloadKind;

use crate::cost::CostSettings;
use crate::knowledge::Knowledge;
use crate::knowledge::devices::DeviceRow;
use crate::knowledge::presets::Preset;
use crate::knowledge::recipes::Action;
use crate::recipe;
use crate::requirements::{History, Place};
use crate::source::{self, Images};

use load::Load;
use sources::Sources;

/// The device that is reckoned with where the machine has none that is known: the hardware of the public runs.
pub const ASSUMED_DEVICE: &str = "h100-sxm";

/// How many assessments are kept to be shared: alike rows stand near each other, and memory has an end.
const KEPT: usize = 4096;

/// Whether a smaller model may stand in for one that doesn't fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyChoice {
    /// It may not: the task needs more devices.
    #[default]
    Never,
    /// It may, as a deviation.
    WhereTooLarge,
}

/// What becomes of a benchmark that holds the engine in its own process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OfflineChoice {
    /// It runs through the server, loaded by isobench's own client; where the client can't do that, the script itself runs, and
    /// its numbers are self-reported.
    #[default]
    WhereNeeded,
    /// The script itself runs wherever it can.
    Always,
    /// It runs through the server or not at all.
    Never,
}

/// What tasks are assessed with.
#[derive(Debug, Clone, PartialEq)]
pub struct AssessOptions {
    /// The devices.
    pub planned_for: PlannedFor,
    /// The workload of tasks without a command.
    pub preset: Option<Preset>,
    /// Whether a smaller model may stand in.
    pub proxy: ProxyChoice,
    /// Whether benchmark scripts of the engine may measure.
    pub offline: OfflineChoice,
    /// Whether engines can run from images.
    pub images: Images,
    /// What costs are reckoned with.
    pub cost: CostSettings,
    /// How long launches of tasks took before, by the task's name.
    pub history: BTreeMap<TaskId, History>,
}

impl Default for AssessOptions {
    /// One assumed device, no preset, no proxy.
    fn default() -> Self {
        Self {
            planned_for: PlannedFor { device: ASSUMED_DEVICE.to_owned(), count: 1, assumed: true },
            preset: None,
            proxy: ProxyChoice::default(),
            offline: OfflineChoice::default(),
            images: Images::default(),
            cost: CostSettings::default(),
            history: BTreeMap::new(),
        }
    }
}

/// A task's assessment, and what is planned of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessed {
    /// What is known.
    pub assessment: Assessment,
    /// The task, with its deviations; absent if it can't be run.
    pub task: Option<Arc<(Task, Vec<Deviation>)>>,
}

/// What of a row its assessment follows from, besides the patches of agents.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Alike<'t> {
    engine: EngineKind,
    repository: &'t str,
    revisions: (&'t Revision, Option<&'t Revision>),
    texts: [Option<&'t str>; 5],
    files: &'t [String],
}

impl<'t> Alike<'t> {
    fn of(task: &'t CommitTask) -> Option<Self> {
        if has_patch(task) {
            return None;
        }
        let CommitTask { subject, model, benchmark_kind, command, server_command, .. } = task;
        let texts = [subject, model, benchmark_kind, command, server_command].map(Option::as_deref);
        Some(Self {
            engine: task.engine,
            repository: &task.repository,
            revisions: (&task.commit, task.parent.as_ref()),
            texts,
            files: &task.files_changed,
        })
    }
}

/// Assesses the tasks of one dataset. Rows that say the same are assessed once, and share what is known of them.
pub struct Assessor<'t> {
    facts: &'t Facts,
    knowledge: &'t Knowledge,
    options: &'t AssessOptions,
    known: HashMap<Alike<'t>, Assessed>,
    sources: SourcesOf<'t>,
}

/// Where the environments of a pair of baseline and human commit come from, without any patch.
type SourcesOf<'t> = HashMap<(EngineKind, &'t str, CommitId, CommitId), Arc<Sources>>;

impl<'t> Assessor<'t> {
    /// Returns an assessor that has seen no task yet.
    pub fn new(facts: &'t Facts, knowledge: &'t Knowledge, options: &'t AssessOptions) -> Self {
        Self { facts, knowledge, options, known: HashMap::new(), sources: HashMap::new() }
    }

    /// Assesses one task. The same task, facts and options give the same assessment, whatever was assessed before.
    pub fn assess(&mut self, task: &'t CommitTask) -> Assessed {
        let alike = Alike::of(task).filter(|_| !self.options.history.contains_key(&task.id));
        let Some(alike) = alike else { return self.anew(task) };
        let known = self.known.get(&alike).cloned();
        let mut assessed = known.unwrap_or_else(|| {
            let assessed = self.anew(task);
            if self.known.len() >= KEPT {
                self.known.clear();
            }
            self.known.insert(alike, assessed.clone());
            assessed
        });
        assessed.assessment.task = task.id.clone();
        assessed
    }

    fn anew(&mut self, task: &'t CommitTask) -> Assessed {
        let subject = Subject::new(task, self.facts, self.knowledge, self.options);
        let commits = subject.baseline.zip(subject.human).filter(|_| !has_patch(task));
        let sources = match commits {
            None => Arc::new(Sources::new(&subject)),
            Some((baseline, human)) => {
                let pair = (task.engine, task.repository.as_str(), baseline.commit.clone(), human.commit.clone());
                let known = self.sources.entry(pair);
                Arc::clone(known.or_insert_with(|| Arc::new(Sources::new(&subject))))
            }
        };
        assess(&subject, &sources)
    }
}

fn has_patch(task: &CommitTask) -> bool {
    task.agents.iter().any(|agent| agent.patch.is_some())
}

impl Assessed {
    /// Returns the rung that each arm takes.
    pub(crate) fn rungs(&self) -> BTreeMap<ArmId, Rung> {
        let ladder = self.assessment.ladder.iter();
        ladder.filter_map(|(arm, answers)| Some((arm.clone(), source::taken(answers)?.rung))).collect()
    }

    /// Returns the kind of the task's workload: of what is planned, else of what its command's program measures.
    pub(crate) fn kind(&self) -> Option<WorkloadKind> {
        if let Some(planned) = &self.task {
            return Some(planned.0.workload.kind);
        }
        match self.assessment.command.as_ref()?.tool.kind() {
            ToolKind::Serving => Some(WorkloadKind::Serving),
            ToolKind::OfflineThroughput => Some(WorkloadKind::Throughput),
            ToolKind::OfflineLatency => Some(WorkloadKind::Latency),
            ToolKind::Server => None,
        }
    }

    /// Returns why nothing of it is run, if so.
    pub fn exclusion(&self) -> Option<(ExclusionReason, String)> {
        let first = || self.assessment.reasons.first().cloned().unwrap_or_default();
        match self.assessment.standing {
            Standing::Cannot => Some((ExclusionReason::CannotRun, first())),
            Standing::MoreDevices => Some((ExclusionReason::MachineTooSmall, first())),
            Standing::AsIs | Standing::Repaired | Standing::Build => match &self.task {
                Some(planned) => {
                    let (task, _) = planned.as_ref();
                    let moment = self.assessment.baseline.as_ref().map(|facts| &facts.committed);
                    let lacks = || client::lacks(task.engine, &task.workload.prompts, &task.inputs, moment);
                    let lacks = if task.workload.script.is_some() { None } else { lacks() };
                    lacks.map(|message| (ExclusionReason::ClientLacks, message))
                }
                None => Some((ExclusionReason::CannotRun, "no environment can be made for every arm".to_owned())),
            },
        }
    }
}

fn assess(subject: &Subject<'_>, sources: &Sources) -> Assessed {
    let Subject { task, knowledge, .. } = *subject;
    let load = Load::new(subject);
    let case = load.case(subject);
    let mut findings = load.findings(&case);
    findings.sort_by_key(|finding| (severity_rank(finding), rank(&finding.rule)));
    let mut recipes = recipe::needed(&case, &sources.pins);
    if !sources.is_built() {
        recipes.retain(|recipe| !is_for_builds(&recipe.id, knowledge));
    }
    if sources.is_of_images() {
        // What is installed in an image is what its builders took for this revision, and nothing is added to it.
        recipes.retain(|recipe| !is_for_packages(&recipe.id, knowledge));
    }
    let mut repairs = [load.repairs.clone(), sources.deviations.clone()].concat();
    let (mut left, mut faults) = (Vec::new(), Vec::new());
    let planned = task::task(subject, &load, sources).map(|mut task| {
        let applied = recipe::apply(&recipes, &mut task.environment, &mut task.server);
        repairs.extend(applied.deviations);
        task.recipes = applied.recipes;
        left = applied.left;
        script::take_options(&mut task);
        faults = task::faults(&task);
        task
    });
    let (standing, reasons) = standing::decide(&standing::Grounds {
        findings: &findings,
        bugs: &recipe::bugs(&case),
        repairs: &load.repairs,
        recipes: &recipes,
        left: &left,
        faults: &faults,
        unknown: is_unread(subject),
        ladder: &sources.ladder,
        has_workload: load.workload.is_some(),
    });
    let is_script = load.workload.as_ref().is_some_and(|workload| workload.script.is_some());
    let cost = load.cost(subject, sources);
    let assessment = Assessment {
        task: task.id.clone(),
        subject: subject.human.map(|human| human.subject.clone()).or_else(|| task.subject.clone()),
        asked: task.command.clone(),
        standing,
        reasons: Arc::new(reasons),
        baseline: sources.baseline.clone(),
        human: sources.human.clone(),
        command: load
            .fitted
            .as_ref()
            .map(|fitted| AssessedCommand {
                tool: fitted.tool,
                variables: fitted.variables.clone(),
                client: fitted.client_argv(),
                // A script's engine has no server.
                server: if is_script { Vec::new() } else { fitted.server_argv() },
            })
            .map(Arc::new),
        findings: Arc::new(findings),
        repairs: Arc::new(repairs.clone()),
        need: load.need.clone().map(Arc::new),
        ladder: Arc::clone(&sources.ladder),
        recipes: Arc::new(recipes),
        cost: cost.map(Arc::new),
    };
    let planned = planned.filter(|_| standing != Standing::Cannot).map(|task| Arc::new((task, repairs)));
    Assessed { assessment, task: planned }
}

/// Returns why nothing can be said of a command, if the baseline isn't known.
fn is_unread(subject: &Subject<'_>) -> Option<String> {
    if subject.baseline.is_some() {
        return None;
    }
    let what = match &subject.task.parent {
        Some(parent) => format!("the parent `{parent}`"),
        None => format!("the parent of `{}`", subject.task.commit),
    };
    Some(format!("nothing is known of {what}; name a clone that has it with `--clone {}=DIR`", subject.task.engine))
}

/// Returns whether a recipe only mends a build from source.
fn is_for_builds(id: &str, knowledge: &Knowledge) -> bool {
    knowledge.recipes.find(id).is_some_and(|row| matches!(row.action, Action::BuildRequire { .. }))
}

/// Returns whether a recipe changes what is installed.
fn is_for_packages(id: &str, knowledge: &Knowledge) -> bool {
    knowledge.recipes.find(id).is_some_and(|row| match &row.action {
        Action::Require { .. } | Action::Override { .. } | Action::LeaveOut { .. } | Action::StubModule { .. } => true,
        Action::BuildRequire { .. } | Action::KeepFile { .. } | Action::Variable { .. } | Action::Option { .. } => {
            false
        }
    })
}

/// Errors first.
fn severity_rank(finding: &Finding) -> u8 {
    match finding.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Note => 2,
    }
}

/// The place of a rule in the list of all.
fn rank(rule: &str) -> usize {
    crate::lint::ids::ALL.iter().position(|id| *id == rule).unwrap_or(usize::MAX)
}

/// A task with the facts and tables that concern it.
#[derive(Debug, Clone, Copy)]
struct Subject<'a> {
    task: &'a CommitTask,
    facts: &'a Facts,
    knowledge: &'a Knowledge,
    options: &'a AssessOptions,
    baseline: Option<&'a RevisionFacts>,
    human: Option<&'a RevisionFacts>,
    device: Option<&'a DeviceRow>,
}

impl<'a> Subject<'a> {
    fn new(task: &'a CommitTask, facts: &'a Facts, knowledge: &'a Knowledge, options: &'a AssessOptions) -> Self {
        let details = facts.details.get(&task.repository);
        let of = |revision: &str| {
            let found = details.and_then(|details| details.get(revision));
            found.or_else(|| knowledge.commits.find(task.engine, revision))
        };
        let human = of(task.commit.as_str());
        let parent = task.parent.as_ref().map(ToString::to_string);
        let parent = parent.or_else(|| human?.parent.as_ref().map(ToString::to_string));
        let baseline = parent.as_deref().and_then(of);
        let device = knowledge.devices.find(&options.planned_for.device);
        Self { task, facts, knowledge, options, baseline, human, device }
    }

    /// Returns the engine at the baseline on the planned device.
    fn place(&self) -> Option<Place<'a>> {
        Some(Place {
            engine: self.task.engine,
            moment: self.baseline.map(|facts| &facts.committed),
            device: self.device?,
            architectures: &self.knowledge.architectures,
        })
    }
}
