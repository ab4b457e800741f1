//! Benchmark scripts of the engine's own history, run in process on each arm's engine, to a judged verdict: of three
//! generations, and in every way in which they or the engine can lie.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

mod support;

use std::fs;

use isobench_schema::check::Check;
use isobench_schema::comparability::KeyField;
use isobench_schema::failure::{Failure, FailureClass};
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_schema::script::ScriptSeen;
use isobench_schema::verdict::Verdict;
use isobench_testkit::ScriptRepository;
use support::{Place, arm, complete_launches};

/// A place with a repository of the engine and its scripts.
struct Scripts {
    place: Place,
    repository: ScriptRepository,
    agents: String,
}

/// How a task's script is asked for.
struct Asked {
    script: &'static str,
    kind: &'static str,
    requests: u32,
    metric: &'static str,
    blocks: u32,
}

/// Text and JSON, as in v0.4.3 to v0.10.1, with a window that is long enough for lies about it to show.
const LATENCY: Asked = Asked {
    script: r#"tool = "benchmark_latency.py"
arguments = ["--model", "{model}", "--batch-size", "4", "--input-len", "8", "--num-iters", "20", "--num-iters-warmup", "2"]"#,
    kind: "latency",
    requests: 80,
    metric: "avg_latency_s",
    blocks: 1,
};

/// The same with a short window.
const SHORT: Asked = Asked {
    script: r#"tool = "benchmark_latency.py"
arguments = ["--model", "{model}", "--batch-size", "4", "--input-len", "8", "--num-iters", "6", "--num-iters-warmup", "1"]"#,
    requests: 24,
    blocks: 6,
    ..LATENCY
};

impl Scripts {
    fn new() -> Self {
        let place = Place::new();
        let repository = ScriptRepository::create(&place.path("engine")).unwrap();
        Self { place, repository, agents: String::new() }
    }

    /// Adds an agent whose engine has this much work in a step, and behaves in this way.
    fn agent(mut self, name: &str, work: u32, mode: &str) -> Self {
        self.repository.write_patch(&self.place.path("task").join(format!("{name}.patch")), work, mode).unwrap();
        self.name(name);
        self
    }

    /// Adds an agent that puts a line before everything else in a file.
    fn first_line(mut self, name: &str, file: &str, line: &str) -> Self {
        let patch = self.place.path("task").join(format!("{name}.patch"));
        self.repository.write_first_line_patch(&patch, file, line).unwrap();
        self.name(name);
        self
    }

    fn name(&mut self, name: &str) {
        let table = ["[[agent]]\nname = \"", name, "\"\npatch = \"", name, ".patch\"\n\n"];
        self.agents.extend(table);
    }

    /// Writes the task.
    fn task(&self, asked: &Asked, more: &str) {
        let Asked { script, kind, requests, metric, blocks } = asked;
        let arrival = if *kind == "latency" { "arrival = { kind = \"closed\", concurrency = 4 }\n" } else { "" };
        let (repository, agents) = (self.repository.dir.display(), &self.agents);
        let text = format!(
            r#"id = "task"
repository = "{repository}"
baseline = "baseline"
human = "human"

{agents}[engine]
kind = "vllm"

[environment]
python = "system"
modules = ["vllm"]

[server]
model = "tiny"

[workload]
kind = "{kind}"
requests = {requests}
output-tokens = 128
{arrival}prompts = {{ kind = "words", input-tokens = 8 }}

[workload.script]
{script}

[metric]
primary = "{metric}"
margin = 0.1

[design]
blocks = {blocks}

[limits]
ready-s = 20
workload-s = 40
stop-s = 5
{more}"#
        );
        fs::write(self.place.path("task").join("task.toml"), text).unwrap();
    }

    /// Runs the task to its end with this exit code, and returns the records of its launches.
    fn run(&self, code: i32) -> Vec<LaunchRecord> {
        self.place.expect(code, &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
        self.place.check_sound("run");
        complete_launches(&self.place.path("run"))
    }

    fn seen(&self, record: &LaunchRecord) -> ScriptSeen {
        let text = support::evidence(&self.place.path("run"), record, evidence::SCRIPT_SEEN);
        isobench_schema::format::from_slice(&text).unwrap()
    }
}

fn of<'r>(records: &'r [LaunchRecord], arm: &str) -> &'r LaunchRecord {
    records.iter().find(|record| record.launch.arm.to_string() == arm).unwrap()
}

/// Returns the failure of an arm's launch, seen when it ended or by the judge.
fn failure(scripts: &Scripts, records: &[LaunchRecord], name: &str) -> Failure {
    if let Outcome::Failed { failure } = &of(records, name).outcome {
        return failure.clone();
    }
    let task = scripts.place.judgement("run");
    arm(&task, name).failures.first().unwrap_or_else(|| panic!("{name}: {task:#?}")).failure.clone()
}

#[test]
fn a_faster_engine_is_better_by_the_scripts_own_word_which_every_page_says() {
    let scripts = Scripts::new().agent("faster", 60_000, "honest");
    scripts.task(&SHORT, "");
    let records = scripts.run(0);
    let task = scripts.place.judgement("run");
    for (of, expected) in [("human", Verdict::Better), ("agent:faster", Verdict::Better)] {
        let contrast = task.contrasts.iter().find(|c| c.of.to_string() == of && c.against.to_string() == "baseline");
        let contrast = contrast.unwrap();
        assert_eq!(contrast.verdict, expected, "{contrast:#?}");
        assert!(contrast.reason.starts_with("self-reported: "), "{}", contrast.reason);
    }
    assert!(
        task.deviations.iter().any(|deviation| deviation.kind.as_str() == "self-reported"),
        "{:?}",
        task.deviations
    );
    let baseline = of(&records, "baseline");
    let commit = &scripts.repository.baseline[..12];
    let author = format!("self-reported by `benchmarks/benchmark_latency.py` of {commit}");
    assert_eq!(baseline.key.0[&KeyField::Client], author);
    assert_eq!(baseline.key.0[&KeyField::Definition], "self-reported/1");
    for name in [evidence::STATIC_PROOF, evidence::LIVE_PROOF, evidence::SCRIPT_RESULT, evidence::SERVER_STDOUT] {
        assert!(baseline.evidence.contains_key(name), "{name}: {:?}", baseline.evidence);
    }
    let seen = scripts.seen(baseline);
    let captions: Vec<_> = seen.bars.iter().map(|bar| (bar.caption.as_str(), bar.percent)).collect();
    assert_eq!(captions, [("Warmup iterations", 100), ("Profiling iterations", 100)]);
    assert_eq!(seen.commit.as_str(), scripts.repository.baseline);
    for format in ["terminal", "markdown", "html", "csv"] {
        let page = scripts.place.expect(0, &["report", "run", "--format", format]).stdout;
        assert!(format == "csv" || page.contains("self-reported"), "{format}: {page}");
    }
}

#[test]
fn an_engine_that_lies_crashes_hangs_or_touches_its_script_is_told_apart() {
    let scripts = Scripts::new()
        .agent("crash", 240_000, "crash")
        .agent("later", 240_000, "crash-later")
        .agent("silent", 240_000, "silent")
        .agent("short", 240_000, "short-clock")
        .agent("long", 240_000, "long-clock")
        .agent("editor", 240_000, "edit-script")
        .first_line("patcher", "benchmarks/benchmark_latency.py", "raise SystemExit(\"patched\")");
    scripts.task(&LATENCY, "");
    let records = scripts.run(100);
    for (name, class, check, line) in [
        ("crash", "start-crashed", None, "No available memory for the cache blocks"),
        ("later", "server-died", None, "an illegal memory access"),
        ("silent", "result-missing", None, ""),
        ("short", "implausible", Some(Check::ClaimedTime), "avg_latency_s"),
        ("long", "implausible", Some(Check::ClaimedTime), "avg_latency_s"),
        ("editor", "environment-modified", Some(Check::TreeUnmodified), "benchmarks/benchmark_latency.py"),
    ] {
        let failure = failure(&scripts, &records, &format!("agent:{name}"));
        assert_eq!(Some(failure.class), FailureClass::parse(class), "{name}: {failure:#?}");
        assert_eq!(failure.check.map(|broken| broken.name), check, "{name}: {failure:#?}");
        assert!(failure.evidence.iter().any(|found| found.text.contains(line)), "{name}: {failure:#?}");
    }
    // The patch of the script changes nothing of what is run, and doesn't go unseen.
    let patcher = of(&records, "agent:patcher");
    assert_eq!(patcher.outcome, Outcome::Measured);
    let incident = patcher.incidents.iter().find(|incident| incident.class == FailureClass::ScriptPatched).unwrap();
    assert!(incident.message.contains("`benchmarks/benchmark_latency.py`"), "{incident}");
    assert_eq!(scripts.seen(patcher).files, scripts.seen(of(&records, "baseline")).files);
    let judged = scripts.place.judgement("run");
    assert_eq!(arm(&judged, "agent:patcher").valid, 1);
}

#[test]
fn a_script_that_hangs_is_ended_at_its_deadline() {
    let scripts = Scripts::new().agent("hang", 240_000, "hang");
    scripts.task(&LATENCY, "");
    let text = fs::read_to_string(scripts.place.path("task").join("task.toml")).unwrap();
    let text = text.replace("ready-s = 20\nworkload-s = 40", "ready-s = 10\nworkload-s = 10");
    fs::write(scripts.place.path("task").join("task.toml"), text).unwrap();
    let records = scripts.run(100);
    let failure = failure(&scripts, &records, "agent:hang");
    assert_eq!(failure.class, FailureClass::WorkloadTimeout, "{failure:#?}");
}

#[test]
fn a_script_that_only_prints_text_and_a_subcommand_of_the_engine_are_read_too() {
    for (asked, file, caption) in [
        (
            Asked {
                script: "tool = \"benchmark_throughput.py\"\noutput-json = false\narguments = [\"--model\", \"{model}\", \"--input-len\", \"8\", \
                         \"--output-len\", \"128\", \"--num-prompts\", \"24\"]",
                kind: "throughput",
                requests: 24,
                metric: "total_token_throughput",
                blocks: 6,
            },
            "benchmarks/benchmark_throughput.py",
            "Processed prompts",
        ),
        (
            Asked {
                script: "tool = \"vllm bench latency\"\narguments = [\"--model\", \"{model}\", \"--batch-size\", \"4\", \"--input-len\", \"8\", \
                         \"--num-iters\", \"6\", \"--num-iters-warmup\", \"1\"]",
                ..SHORT
            },
            "vllm/benchmarks/latency.py",
            "Bench iterations",
        ),
    ] {
        let scripts = Scripts::new().first_line("patcher", file, "raise SystemExit(\"patched\")");
        scripts.task(&asked, "");
        let records = scripts.run(0);
        let task = scripts.place.judgement("run");
        let contrast = &task.contrasts.iter().find(|contrast| contrast.of.to_string() == "human").unwrap();
        assert_eq!(contrast.verdict, Verdict::Better, "{file}: {contrast:#?}");
        let patcher = of(&records, "agent:patcher");
        assert!(patcher.incidents.iter().any(|incident| incident.class == FailureClass::ScriptPatched), "{patcher:#?}");
        assert_eq!(arm(&task, "agent:patcher").valid, 6, "{file}: {task:#?}");
        assert!(scripts.seen(patcher).bars.iter().any(|bar| bar.caption == caption && bar.percent == 100));
    }
}

#[test]
fn what_contradicts_itself_is_refused_before_anything_runs() {
    let scripts = Scripts::new();
    for (script, metric, message) in [
        (LATENCY.script, "mean_e2el_ms", "`benchmark_latency.py` says nothing of `mean_e2el_ms`"),
        ("tool = \"benchmark_latency.py\"\narguments = [\"--num-iters\", \"7\"]", "avg_latency_s", "`--num-iters 7`"),
        ("tool = \"benchmark_latency.py\"\npath = \"../x.py\"", "avg_latency_s", "`workload.script.path`"),
        ("tool = \"benchmark_throughput.py\"", "total_token_throughput", "measures `throughput`"),
        ("tool = \"benchmark_latency.py\"\narguments = [\"--num_iters=7\"]", "avg_latency_s", "`--num-iters 7`"),
        ("tool = \"benchmark_latency.py\"", "avg_latency_s", "have no `--model`"),
        ("tool = \"benchmark_latency.py\"\narguments = [\"--model=b\"]", "avg_latency_s", "`--model b`"),
        ("tool = \"vllm bench serve\"", "avg_latency_s", "`workload.script.tool`"),
    ] {
        scripts.task(&Asked { script, metric, ..LATENCY }, "");
        let finished = scripts.place.finish(["plan", "task"]);
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.contains(message), "{script}: {said}");
    }
}
