//! The rows of the table of keys, one line each.

use std::fmt;

use isobench_schema::environment::EngineKind;
use isobench_schema::measurement::{Direction, MetricName};
use isobench_schema::script::{Script, ScriptOf};
use isobench_schema::tool::Tool;
use isobench_schema::workload::{Api, TokenCounter, WorkloadKind};

use crate::defaults;
use crate::keys::{KeyDefault, KeyDoc, KeyKind, NumberRange};

/// Returns every key, tables before their keys.
pub(crate) fn all() -> Vec<KeyDoc> {
    [task(), environment(), server(), workload(), arrival_and_prompts(), deciding(), bounds()].concat()
}

const ANY: KeyKind = KeyKind::Whole { least: 0, most: u32::MAX };
const ONE_OR_MORE: KeyKind = KeyKind::Whole { least: 1, most: u32::MAX };

/// Returns a row of the table.
fn row(path: &'static str, kind: KeyKind, default: KeyDefault, doc: &'static str) -> KeyDoc {
    KeyDoc { path, kind, default, doc }
}

/// Returns a default as TOML writes it.
fn value(value: impl fmt::Display) -> KeyDefault {
    KeyDefault::Value(value.to_string())
}

/// Returns a text default as TOML writes it.
fn quoted(text: impl fmt::Display) -> KeyDefault {
    KeyDefault::Value(format!("\"{text}\""))
}

/// Returns the kind that takes the spellings of an enum.
fn one_of<T: Copy>(all: &[T], spelling: impl Fn(T) -> &'static str) -> KeyKind {
    KeyKind::OneOf(all.iter().map(|one| spelling(*one)).collect())
}

fn task() -> Vec<KeyDoc> {
    use KeyDefault::{Absent, Required, RequiredHere};
    use KeyKind::{Table, TableList, Text};
    vec![
        row("id", Text, Required, "The task's name, unique in its dataset: letters, digits, `.`, `_` and `-`."),
        row("title", Text, Absent, "One line for people."),
        row("repository", Text, Required, "The git repository: a URL, or a path relative to the task's file."),
        row("baseline", Text, Required, "The revision before the change: a commit, tag or branch."),
        row("human", Text, Absent, "The revision of the real change. Without it there is no `human` arm."),
        row("agent", TableList, Absent, "One `[[agent]]` table for each agent, each one arm `agent:NAME`."),
        row("agent.name", Text, RequiredHere, "The agent's name, unique in the task."),
        row("agent.patch", Text, Absent, "The patch on the baseline, relative to the task's file. Without it the arm is `not-run`."),
        row("engine", Table, Absent, "The engine under test."),
        row("engine.kind", one_of(EngineKind::ALL, EngineKind::as_str), quoted(defaults::ENGINE), "How the engine is prepared and served."),
    ]
}

fn environment() -> Vec<KeyDoc> {
    use KeyDefault::{Absent, RequiredHere};
    use KeyKind::{CommandList, Switch, Table, TableList, Text, TextList, TextMap};
    let python = KeyKind::OneOf(vec!["system", "venv", "absent"]);
    vec![
        row("environment", Table, Absent, "How the environment of every arm is made from its revision."),
        row("environment.python", python, quoted("system"), "The Python that the engine runs on: the machine's own, a virtual environment, or none."),
        row("environment.python-version", Text, Absent, "The virtual environment's Python version, such as `3.11`; else the machine's `python3`."),
        row("environment.requirements", TextList, value("[]"), "Packages to install into the virtual environment, as pip writes them; `{commit}` is replaced by each arm's commit."),
        row("environment.overrides", TextList, value("[]"), "Requirements that replace whatever a package asks for: a deviation."),
        row("environment.no-dependencies", TextList, value("[]"), "Requirements installed last, without their dependencies: a deviation."),
        row("environment.extra-indexes", TextList, value("[]"), "Further package indexes, by URL; `{commit}` is replaced by each arm's commit."),
        row("environment.exclude-newer", Text, Absent, "The moment up to which versions of packages must have been released, such as `2025-03-01T00:00:00Z`; needs uv, and indexes that say when each file came."),
        row("environment.aliases", TableList, value("[]"), "Second names under which installed packages are found: a deviation."),
        row("environment.aliases.name", Text, RequiredHere, "The second name."),
        row("environment.aliases.version", Text, RequiredHere, "The version that it reports."),
        row("environment.overlay", Text, Absent, "The installed package whose native files are laid under the revision's Python files."),
        row("environment.image", Text, Absent, "The image whose Python and packages the engine runs on, in a container of it; `{commit}` and `{commitN}` are replaced by each arm's commit and its first N digits. Takes the place of `environment.python`."),
        row("environment.baseline-image", Text, Absent, "The image of the baseline and the agents, if it is named otherwise, such as `engine:baseline-{commit12}`."),
        row("environment.image-python", Text, quoted(defaults::IMAGE_PYTHON), "The interpreter in the image: a path, or a name on its search path."),
        row("environment.native", Table, Absent, "The build of the native files alone, made once and shared by the arms whose native trees are equal."),
        row("environment.native.paths", TextList, RequiredHere, "The native tree: files and folders of the revision that are compiled or decide how. Nothing else of it is there when they are built."),
        row("environment.native.commands", CommandList, RequiredHere, "Commands, each an argument list; `{python}`, `{tree}` and `{jobs}` are replaced."),
        row("environment.native.environment", TextMap, value("{}"), "Variables for the commands."),
        row("environment.native.outputs", TextList, RequiredHere, "The files that must come of it, relative to the tree; `*` stands for any part of a name. They alone are laid into the arms' trees."),
        row("environment.native.memory-per-job-mib", ONE_OR_MORE, value(defaults::MEMORY_PER_JOB_MIB), "Main memory that one job needs, in MiB: it bounds `{jobs}` and `MAX_JOBS`."),
        row("environment.native.timeout-s", ONE_OR_MORE, Absent, "Seconds for each of its commands; else `limits.build-s`."),
        row("environment.toolkit", Table, Absent, "The container that `environment.native` and `environment.build` are built in. With `--isolation container` they are built in one also without this table: of the image for `cuda`, or else of `--image`."),
        row("environment.toolkit.image", Text, Absent, "The image that holds the compilers. If it is given, builds run in a container of it also where the engine runs as a bare process."),
        row("environment.toolkit.cuda", Text, Absent, "The version of CUDA that the revision is built with, such as `12.8`: with `--isolation container` the image is chosen by it."),
        row("environment.toolkit.network", Switch, value(false), "Whether the builds in it may reach the network."),
        row("environment.build", CommandList, value("[]"), "Build commands, each an argument list; `{python}` and `{tree}` are replaced."),
        row("environment.build-environment", TextMap, value("{}"), "Variables for the build commands."),
        row("environment.python-path", TextList, KeyDefault::Value(format!("[\"{}\"]; `[]` without Python", defaults::PYTHON_PATH)), "Folders of the tree that come first on Python's search path."),
        row("environment.modules", TextList, value("[]"), "Top-level Python modules that must be found inside the tree."),
        row("environment.allow-binary-patch", Switch, value(false), "Whether agent patches may hold binary content: a deviation."),
    ]
}

fn server() -> Vec<KeyDoc> {
    use KeyDefault::{Absent, Required};
    use KeyKind::{OptionMap, Switch, Table, Text, TextList, TextMap};
    vec![
        row("server", Table, Absent, "How the engine is served."),
        row("server.command", TextList, KeyDefault::Value("the engine's own; required for `generic`".to_owned()), "The command as an argument list; `{python}`, `{host}`, `{port}`, `{model}`, `{served-model-name}` and `{tree}` are replaced."),
        row("server.options", OptionMap, value("{}"), "Options appended to the command as `--name value`; `true` gives `--name`, `false` leaves it out."),
        row("server.environment", TextMap, value("{}"), "Variables for the engine."),
        row("server.pass-environment", TextList, value("[]"), "Names of variables that the engine gets from the environment of isobench, such as a token."),
        row("server.health", Text, quoted(defaults::HEALTH), "The path that answers 200 when the engine is ready."),
        row("server.model", Text, Required, "The model: a folder relative to the task's file if it exists there or starts with `./` or `../`, else a name."),
        row("server.model-revision", Text, KeyDefault::Value("`main` where the model is fetched".to_owned()), "The branch, tag or commit of a model on the hub. With it, and for `vllm` and `sglang` wherever the engine may not ask the network, a model named `OWNER/NAME` is fetched before the first block."),
        row("server.served-model-name", Text, KeyDefault::Value("`server.model` as written".to_owned()), "The name under which the model is served; requests name it."),
        row("server.allow-network", Switch, value(false), "Whether the engine may ask the network: a deviation."),
    ]
}

/// Returns the kind that takes a benchmark script.
fn script_tools() -> KeyKind {
    KeyKind::OneOf(Script::TOOLS.iter().map(|tool: &Tool| tool.as_str()).collect())
}

fn workload() -> Vec<KeyDoc> {
    use KeyDefault::{Absent, Required, RequiredHere};
    use KeyKind::{AnyMap, Number, Switch, Table, Text, TextList};
    vec![
        row("workload", Table, Absent, "What the engine is loaded with."),
        row("workload.kind", one_of(WorkloadKind::ALL, WorkloadKind::as_str), Required, "The kind of benchmark."),
        row("workload.api", one_of(Api::ALL, Api::as_str), quoted(defaults::API), "The interface that requests are sent to."),
        row("workload.requests", ONE_OR_MORE, Required, "Measured requests of each launch."),
        row("workload.output-tokens", ONE_OR_MORE, Required, "Tokens asked of each answer."),
        row("workload.ignore-eos", Switch, value(defaults::IGNORE_EOS), "Whether answers go on past the end-of-sequence token, so that each has the length asked."),
        row("workload.temperature", Number(NumberRange::NotNegative), value(defaults::TEMPERATURE), "The sampling temperature; above 0 the answers can't be checked, a deviation."),
        row("workload.warm-up-requests", ANY, value(defaults::WARM_UP_REQUESTS), "Requests before the window that are not measured."),
        row("workload.probes", Table, Absent, "Fixed greedy requests before and after the window that show whether the answers are right."),
        row("workload.probes.count", ANY, value(defaults::PROBES.count), "How many before and how many after; 0 turns the output check off, a deviation."),
        row("workload.probes.output-tokens", ONE_OR_MORE, value(defaults::PROBES.output_tokens), "Tokens asked of each probe."),
        row("workload.counter", one_of(TokenCounter::ALL, TokenCounter::as_str), KeyDefault::Value("\"token-ids\" for `vllm`, \"whitespace\" for `generic`".to_owned()), "How the client counts the tokens of an answer."),
        row("workload.tokenizer", Text, KeyDefault::Value("the model's own, where one is needed".to_owned()), "The tokenizer that the client counts and makes prompts with: a `tokenizer.json` or a folder that holds one, relative to the task's file if it exists there or starts with `./` or `../`, else a repository on the hub."),
        row("workload.tokenizer-revision", Text, quoted("main"), "The branch, tag or commit of a tokenizer on the hub."),
        row("workload.max-in-flight", ONE_OR_MORE, Absent, "The most requests under way where they have times of their own; one whose time has come waits, which counts in its latency."),
        row("workload.extra-body", AnyMap, value("{}"), "Further fields of each request's body, sent as they are."),
        row("workload.script", Table, Absent, "The engine's own benchmark script, which measures instead of isobench's client: its numbers are self-reported, a deviation. The rest of the workload is what it is asked for."),
        row("workload.script.tool", script_tools(), RequiredHere, "Which program it is, which tells how its output is read."),
        row("workload.script.path", Text, KeyDefault::Value("where the program usually is".to_owned()), "Its file in the repository. It is exported from git for each launch, with the folder that it lies in and without any patch."),
        row("workload.script.of", one_of(ScriptOf::ALL, ScriptOf::as_str), quoted(ScriptOf::Baseline), "Whose file is run, for every arm alike."),
        row("workload.script.arguments", TextList, value("[]"), "Its arguments, with `{model}` and `{tree}` replaced; what they say of requests and lengths must be what the workload says."),
        row("workload.script.output-json", Switch, value(defaults::SCRIPT_OUTPUT_JSON), "Whether it has the option `--output-json` (vLLM: from v0.4.3), and writes its result there; else what it prints is read."),
    ]
}

fn arrival_and_prompts() -> Vec<KeyDoc> {
    use KeyDefault::{Absent, Required, RequiredHere};
    use KeyKind::{Number, Table, TableList};
    let arrivals = KeyKind::OneOf(vec!["closed", "open", "constant", "stages", "bursts", "all-at-once"]);
    let prompts = KeyKind::OneOf(vec!["words", "token-ids", "dataset"]);
    vec![
        row("workload.arrival", Table, KeyDefault::Value("`all-at-once` for `throughput`, `closed` with concurrency 1 for `latency`, required for `serving`".to_owned()), "When requests are sent."),
        row("workload.arrival.kind", arrivals, RequiredHere, "`closed`: so many under way at any time; at times of their own: `open` with random gaps, `constant` with equal ones, `stages` of changing rates, `bursts`; `all-at-once`."),
        row("workload.arrival.concurrency", ONE_OR_MORE, RequiredHere, "For `closed`: requests under way."),
        row("workload.arrival.ramp-s", Number(NumberRange::NotNegative), Absent, "For `closed`: the seconds over which the loop is filled, evenly; at once without it."),
        row("workload.arrival.rate-per-s", Number(NumberRange::Positive), RequiredHere, "For `open` and `constant`: the mean rate in requests per second."),
        row("workload.arrival.burstiness", Number(NumberRange::Positive), KeyDefault::Value("1 for `open`, equal gaps for `stages`".to_owned()), "For `open` and `stages`: 1 is Poisson, below 1 is burstier, above 1 more regular."),
        row("workload.arrival.stages", TableList, RequiredHere, "For `stages`: steps and ramps, one after the other; the last one goes on at its final rate as long as there are requests."),
        row("workload.arrival.stages.seconds", Number(NumberRange::Positive), RequiredHere, "How long the stage lasts."),
        row("workload.arrival.stages.from-per-s", Number(NumberRange::NotNegative), RequiredHere, "The rate at its begin, in requests per second."),
        row("workload.arrival.stages.to-per-s", Number(NumberRange::NotNegative), KeyDefault::Value("`from-per-s`: a step".to_owned()), "The rate at its end, which it goes to evenly."),
        row("workload.arrival.size", ONE_OR_MORE, RequiredHere, "For `bursts`: requests at the same moment."),
        row("workload.arrival.period-s", Number(NumberRange::Positive), RequiredHere, "For `bursts`: seconds from burst to burst."),
        row("workload.prompts", Table, Required, "Where prompts come from."),
        row("workload.prompts.kind", prompts, RequiredHere, "`words`: seeded random words; `token-ids`: seeded random token ids, sent as ids; `dataset`: those of a dataset that `isobench load` knows, such as `sharegpt`."),
        row("workload.prompts.input-tokens", ONE_OR_MORE, RequiredHere, "For `words` and `token-ids`: the length of each prompt."),
        row("workload.prompts.vocabulary-size", ONE_OR_MORE, RequiredHere, "For `token-ids`: ids are drawn below this one."),
        row("workload.prompts.first-id", ANY, value(defaults::FIRST_TOKEN_ID), "For `token-ids`: the lowest id that is drawn, above the special tokens."),
        row("workload.prompts.name", KeyKind::Text, RequiredHere, "For `dataset`: its name, such as `random`, `sharegpt`, `custom` or `sonnet`."),
        row("workload.prompts.file", KeyKind::Text, Absent, "For `dataset`: its file, relative to the task's file; with `repository` the file's path there."),
        row("workload.prompts.repository", KeyKind::Text, Absent, "For `dataset`: the dataset's repository on the hub that holds the file, `OWNER/NAME`."),
        row("workload.prompts.revision", KeyKind::Text, quoted("main"), "For `dataset`: the branch, tag or commit of that repository."),
        row("workload.prompts.options", KeyKind::OptionMap, value("{}"), "For `dataset`: its options by the names that `isobench load --dataset-option` takes."),
    ]
}

fn deciding() -> Vec<KeyDoc> {
    use KeyDefault::{Absent, Required};
    use KeyKind::{Number, Table};
    let guards = KeyKind::TextList;
    vec![
        row("metric", Table, Absent, "What decides."),
        row("metric.primary", one_of(MetricName::ALL, MetricName::as_str), Required, "The metric that decides."),
        row("metric.direction", one_of(Direction::ALL, Direction::as_str), KeyDefault::Value("the metric's own".to_owned()), "Which way it improves; must be the metric's own way."),
        row("metric.margin", Number(NumberRange::Fraction), value(defaults::MARGIN), "The smallest relative difference that matters: 0.02 is 2 %."),
        row("metric.guards", guards, value("[]"), "Further metrics to report, by name."),
        row("metric.output-margin", Number(NumberRange::Share), value(defaults::OUTPUT_MARGIN), "How much less than with itself the baseline's answers may agree with an arm's."),
        row("metric.believable-ratio", Number(NumberRange::AboveOne), value(defaults::BELIEVABLE_RATIO), "How many times as fast as the baseline an arm may be; beyond it, it is `invalid: implausible` until a person confirms it (`isobench confirm`)."),
        row("design", Table, Absent, "The design of the run."),
        row("design.blocks", KeyKind::Whole { least: 1, most: 100_000 }, KeyDefault::Value("several looks".to_owned()), "Blocks of a design with one look: in each, every arm is launched once. Below 6 is a deviation."),
        row("design.max-blocks", KeyKind::Whole { least: 6, most: 10_000 }, value(f64::from(defaults::MAX_BLOCKS)), "The most blocks of a design with several looks: a task ends at the first look that decides everything."),
        row("design.min-window-s", Number(NumberRange::NotNegative), value(defaults::MIN_WINDOW_S), "The shortest measured window in seconds; a shorter one than the default is a deviation."),
    ]
}

fn bounds() -> Vec<KeyDoc> {
    use KeyDefault::Absent;
    use KeyKind::{Number, Table};
    let seconds = || Number(NumberRange::Positive);
    vec![
        row("limits", Table, Absent, "Deadlines and bounds of one launch."),
        row("limits.build-s", seconds(), value(defaults::BUILD_S), "Seconds for each build or install command."),
        row("limits.ready-s", seconds(), value(defaults::READY_S), "Seconds from the start of the engine until it is ready."),
        row("limits.request-s", seconds(), value(defaults::REQUEST_S), "Seconds for one request."),
        row("limits.stall-s", seconds(), value(defaults::STALL_S), "Seconds between two chunks of a stream."),
        row("limits.workload-s", seconds(), value(defaults::WORKLOAD_S), "Seconds for warm-up, probes and window together."),
        row("limits.stop-s", seconds(), value(defaults::STOP_S), "Seconds from SIGTERM until the engine is killed."),
        row("limits.log-bytes", ONE_OR_MORE, value(defaults::LOG_BYTES), "Log bytes above which an incident is recorded; the log is kept whole."),
        row("limits.failed-requests", ANY, value(defaults::FAILED_REQUESTS), "Failed requests of the window that don't invalidate the launch."),
        row("requirements", Table, Absent, "What a launch needs of a machine."),
        row("requirements.devices", ANY, value(defaults::DEVICES), "Accelerators; 0 is a CPU run."),
        row("requirements.memory-gib", Number(NumberRange::Positive), Absent, "Main memory in GiB."),
        row("requirements.disk-gib", Number(NumberRange::Positive), Absent, "Free disk in GiB."),
    ]
}
