//! What is typed on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use isobench_schema::ids::{ArmId, TaskId};

use crate::commit_args::CommitArgs;
use crate::container_args::ContainerArgs;
use crate::design_args::{BudgetArgs, DesignArgs};
use crate::disk_args::{DiskArgs, EnvironmentsArgs};
use crate::images_args::ImagesArgs;
use crate::load_args::LoadArgs;
use crate::noise_args::NoiseArgs;
use crate::terminal::ColorChoice;
use crate::wheels_args::WheelsArgs;

/// Did this change make the inference engine faster?
///
/// isobench serves each side of a change (baseline, human, agent) on the same device, loads it with its own client, and
/// says which is better, equal or undecided, with the evidence kept.
#[derive(Debug, Parser)]
#[command(name = "isobench", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print data as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no status, only data and errors.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Colour the output.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a real three-way evaluation on a tiny engine that needs only git and python3.
    Demo(DemoArgs),
    /// Say what would run, on what, and at what cost.
    Plan(PlanArgs),
    /// Say what is wrong with a dataset, before a device is used.
    Lint(LintArgs),
    /// Say what a lint rule, the reason of an exclusion, or a signature or class of failures is about; without an id, list
    /// all rules.
    Explain(ExplainArgs),
    /// Run a plan or a dataset; the same command resumes what was cut short.
    Run(RunArgs),
    /// Run one block of a plan anywhere, and leave a folder to be taken in.
    Block(BlockArgs),
    /// Run the baseline against itself, and keep how far block differences spread in a library that plans use.
    Noise(Box<NoiseArgs>),
    /// Judge a run from its stored evidence.
    Judge(JudgeArgs),
    /// Write a report of a run, of imported results of an earlier system, or of published tables.
    Report(ReportArgs),
    /// Load a server with requests, and say how fast and how well it answers.
    #[command(after_long_help = crate::load_args::AFTER_HELP)]
    Load(Box<LoadArgs>),
    /// Say which images of commits a registry has; fetch and send images.
    Images(Box<ImagesArgs>),
    /// List, prove or remove what the cache holds: environments, virtual environments and inputs.
    Environments(EnvironmentsArgs),
    /// Say what this machine lacks.
    Doctor,
    /// List the runs in a folder.
    Runs(RunsArgs),
    /// Compare what two runs measured.
    Compare(CompareArgs),
    /// Confirm that an arm which is hard to believe counts all the same, or take that back; the run keeps who said it and why.
    Confirm(ConfirmArgs),
    /// Check a run: hashes, completeness, and the same verdicts again.
    Verify(VerifyArgs),
    /// Say what files of benchmark output measure, or precisely why they measure nothing.
    Parse(ParseArgs),
    /// Say why a run failed, from the logs that it left.
    Classify(ClassifyArgs),
    /// Read a dataset of commits as it was published, and write it as tasks; or results of an earlier system as evidence.
    Import(ImportArgs),
    /// Write the rows of a dataset of commits in the published form, or a run's results in an earlier system's.
    Export(ExportArgs),
    /// Say what package indexes have, whether a wheel is what it says, and which revisions of a dataset have one.
    Wheels(Box<WheelsArgs>),
    /// Watch over one engine (isobench starts this itself).
    #[command(hide = true)]
    Guard,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder that the demo is laid down and run in.
    #[arg(long, default_value = "isobench-demo")]
    pub(crate) out: PathBuf,
    /// How many blocks to run.
    #[arg(long, default_value_t = 6)]
    pub(crate) blocks: u32,
    /// Run the engine with a part in C instead, which needs a C compiler: arms of equal C files share one build.
    #[arg(long)]
    pub(crate) native: bool,
    /// Only lay the demo's repository and task down, to look at or to run in another way.
    #[arg(long)]
    pub(crate) lay_down: bool,
    /// The folder of environments, shared by runs.
    #[arg(long, value_name = "DIR", env = "ISOBENCH_CACHE")]
    pub(crate) cache: Option<PathBuf>,
}

/// What of a dataset is run, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct ChoiceArgs {
    /// Run only this task: its name, its commit, or the beginning of one (repeatable).
    #[arg(long = "task", value_name = "TASK")]
    pub(crate) tasks: Vec<String>,
    /// Run only this arm: `baseline`, `human` or `agent:NAME` (repeatable).
    #[arg(long = "arm", value_name = "ARM")]
    pub(crate) arms: Vec<String>,
    /// Run only tasks of this kind.
    #[arg(long, value_enum)]
    pub(crate) kind: Option<KindArg>,
    /// Run only the first N tasks.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Set a value of every `task.toml`, such as `server.max-model-len=2048` (repeatable); a deviation.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// The seed of orders, prompts and arrival times.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Let agent patches, which are strangers' programs, run without isolation.
    #[arg(long)]
    pub(crate) allow_unisolated: bool,
    /// Compare the baseline with itself (A/A): the arm `human` is the baseline again.
    #[arg(long)]
    pub(crate) against_itself: bool,
    /// The folder of environments, shared by runs.
    #[arg(long, value_name = "DIR", env = "ISOBENCH_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) disk: DiskArgs,
    /// The library of spreads, which forecasts are made by; by default `noise.jsonl` in the folder of environments.
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) design: DesignArgs,
    #[command(flatten)]
    pub(crate) containers: ContainerArgs,
    #[command(flatten)]
    pub(crate) commits: CommitArgs,
}

/// The kind of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Requests that arrive over time.
    Serving,
    /// One batch at a time.
    Latency,
    /// Every request at once.
    Throughput,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A folder of tasks, a JSONL file, or one `task.toml`.
    #[arg(required_unless_present = "from")]
    pub(crate) dataset: Option<PathBuf>,
    /// Make a new plan of this run's plan: of the tasks whose failures have a cause that a recipe mends, with the recipe on
    /// every arm.
    #[arg(long, value_name = "RUN", conflicts_with = "dataset")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// Write `plan.json` and `facts.json` to this folder, for `isobench run DIR`; without it nothing is written.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write nothing, whatever `--out` says.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Tell the whole story of one task: its name, its commit, or the beginning of one.
    #[arg(long, value_name = "COMMIT")]
    pub(crate) explain: Option<String>,
    /// The form in which the plan is shown.
    #[arg(long, value_enum, default_value_t = PlanFormatArg::Terminal, conflicts_with = "explain")]
    pub(crate) format: PlanFormatArg,
}

/// The form in which a plan is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormatArg {
    /// Tables for a terminal.
    Terminal,
    /// Markdown.
    Markdown,
    /// The whole plan as JSON.
    Json,
    /// One self-contained HTML file with a table that sorts.
    Html,
}

/// Arguments of `lint`.
#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// A dataset of commits: rows as published, a mapping, or a folder of tasks.
    pub(crate) dataset: PathBuf,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// How findings are grouped.
    #[arg(long, value_enum, default_value_t = GroupArg::Task)]
    pub(crate) by: GroupArg,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The rule's id, such as `option-refused`, the reason of an exclusion, such as `not-chosen`, a signature or class of
    /// failures, such as `B1` or `window-too-short`, or a verdict, standing or deviation, such as `nothing-to-beat`.
    pub(crate) rule: Option<String>,
}

/// How findings are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupArg {
    /// By task, in the dataset's order.
    Task,
    /// By rule, the commonest first.
    Rule,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A dataset, a `plan.json`, or the folder of a plan or of a run to resume.
    pub(crate) what: PathBuf,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// The run's folder; by default named after the dataset and the plan, in `runs/`.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the plan that would run, or of a run's folder the specification of its next block, and run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take in the folder that `isobench block` left for a block of this run, before going on (repeatable).
    #[arg(long, value_name = "DIR")]
    pub(crate) take_in: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}

/// Arguments of `block`.
#[derive(Debug, Args)]
pub(crate) struct BlockArgs {
    /// The block's specification.
    pub(crate) spec: PathBuf,
    /// The folder that is left behind.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// The folder of environments, shared by runs.
    #[arg(long, value_name = "DIR", env = "ISOBENCH_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) disk: DiskArgs,
}

/// Arguments of `judge`.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// The run's folder.
    pub(crate) run: PathBuf,
    /// Say in one sentence for each contrast, and for all tasks together, what was found, on what it rests and what it means.
    #[arg(long)]
    pub(crate) explain: bool,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Tables for a terminal.
    Terminal,
    /// Markdown.
    Markdown,
    /// All of it as JSON.
    Json,
    /// One self-contained HTML file with plots, of a run only.
    Html,
    /// One line for each contrast, of a run only.
    Csv,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run's folder, a file of legacy evidence, or a folder with published per-commit results.
    pub(crate) run: PathBuf,
    /// The form.
    #[arg(long, value_enum, default_value_t = FormatArg::Terminal)]
    pub(crate) format: FormatArg,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write every plot of a run as an SVG file into this folder, and no report.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "out"])]
    pub(crate) svg: Option<PathBuf>,
}

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// The folder that holds runs.
    #[arg(default_value = "runs")]
    pub(crate) folder: PathBuf,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The first run's folder.
    pub(crate) first: PathBuf,
    /// The second run's folder.
    pub(crate) second: PathBuf,
}

/// Arguments of `confirm`.
#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// The run's folder.
    pub(crate) run: PathBuf,
    /// The task; may be left out if the run has only one.
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<TaskId>,
    /// The arm that is hard to believe: `human` or `agent:NAME`.
    #[arg(long, value_name = "ARM")]
    pub(crate) arm: ArmId,
    /// Why it is true, for everybody who reads the report.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Who says so; by default the user's name on this machine.
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Take an earlier word back, with the reason for that.
    #[arg(long)]
    pub(crate) withdraw: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The run's folder.
    pub(crate) run: PathBuf,
}

/// Arguments of `parse`.
#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    /// Console output or result files of a benchmark tool, `isobench load` too; `-` is standard input. With `--json`, each file is one object,
    /// and of several files one line, in their order.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Read them as output of this tool only, such as `vllm-serve`; without it, the tool is recognised.
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// The tool's version, such as `0.9.1`: a layout that it doesn't print is refused.
    #[arg(long)]
    pub(crate) version: Option<String>,
    /// How many requests were asked for, where the file doesn't say it: fewer that were completed are no measurement.
    #[arg(long, value_name = "N")]
    pub(crate) asked: Option<u64>,
}

/// Arguments of `classify`.
#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// The logs of one failure, or a folder of them (`-` is standard input): with `--json` they are one object. Or the
    /// folder of a run, each of whose failed launches is then explained: with `--json` a list.
    #[arg(required = true, value_name = "FILE|RUN")]
    pub(crate) paths: Vec<PathBuf>,
    /// How the process ended: its exit status, or minus the number of the signal that ended it.
    #[arg(long, value_name = "STATUS", allow_negative_numbers = true)]
    pub(crate) exit_status: Option<i32>,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A JSONL, JSON or Parquet file, or a folder of them.
    pub(crate) source: PathBuf,
    /// What it holds; by default what it looks like.
    #[arg(long = "as", value_enum)]
    pub(crate) kind: Option<ImportAsArg>,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// What is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportAsArg {
    /// Rows that name commits to be measured: they become tasks.
    Dataset,
    /// Result files of an earlier system: they become legacy evidence.
    Legacy,
}

/// The form of what is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowsArg {
    /// The rows of a dataset as ISO-Bench publishes them.
    Published,
    /// The results of a run as the earlier system's files: one for each task and arm.
    Legacy,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// An imported dataset, or any other that `import` reads; for `--format legacy` the folder of a run.
    pub(crate) source: PathBuf,
    /// The file to write, JSON Lines or Parquet by its name; for `--format legacy` the folder.
    #[arg(long, short, value_name = "FILE.{jsonl,parquet}|DIR")]
    pub(crate) out: PathBuf,
    /// The form.
    #[arg(long, value_enum, default_value_t = RowsArg::Published)]
    pub(crate) format: RowsArg,
    /// Replace files that are there.
    #[arg(long)]
    pub(crate) force: bool,
}
