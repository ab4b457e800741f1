//! Reading tasks that a benchmark script of the engine measures: what each key becomes, and what contradicts itself.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

mod example;

use example::read_task;
use isobench_plan::dataset::Dataset;
use isobench_plan::keys;
use isobench_schema::task::Task;

fn problems(dataset: &Dataset) -> Vec<&str> {
    dataset.problems.iter().map(|problem| problem.message.as_str()).collect()
}

fn only_task(dataset: &Dataset) -> &Task {
    assert_eq!(problems(dataset), [""; 0]);
    dataset.tasks.first().unwrap()
}

#[test]
fn a_benchmark_script_takes_its_keys_and_sends_no_probes() {
    let script = r#"tool = "benchmark_latency.py"
path = "old/latency.py"
of = "human"
arguments = ["--model", "{model}", "--batch-size", "2"]
output-json = false"#;
    let text = format!(
        r#"id = "x"
repository = "https://example.org/x.git"
baseline = "a"
human = "b"
[server]
model = "m"
[workload]
kind = "latency"
requests = 6
output-tokens = 4
arrival = {{kind = "closed", concurrency = 2}}
prompts = {{kind = "words", input-tokens = 8}}
[workload.script]
{script}
[metric]
primary = "p90_latency_s"
"#
    );
    for key in keys::task_keys().iter().filter(|key| key.path.starts_with("workload.script")) {
        let name = key.path.rsplit('.').next().unwrap();
        assert!(text.contains(name), "{name}");
    }
    let dataset = read_task(&text, &[]);
    let workload = only_task(&dataset).workload.clone();
    let found = workload.script.unwrap();
    assert_eq!((found.path.as_str(), found.of.as_str(), found.output_json), ("old/latency.py", "human", false));
    assert_eq!((found.tool.as_str(), found.arguments.len(), found.commit), ("benchmark_latency.py", 4, None));
    assert_eq!((workload.probes.count, workload.warm_up_requests), (0, 0));
    for (from, to, message) in [
        ("requests = 6", "requests = 7", "`workload.requests` is 7, which is no number of batches of 2"),
        (
            "\"--batch-size\", \"2\"",
            "\"--batch-size=3\"",
            "`--batch-size 3` in `workload.script.arguments` contradicts",
        ),
        ("human = \"b\"\n", "", "`workload.script.of` is `human`, and the task has no human arm"),
        ("[server]", "[environment]\npython = \"absent\"\n[server]", "a benchmark script needs Python"),
        ("model = \"m\"", "model = \"m\"\noptions = {x = 1}", "`server.options` mean nothing beside `workload.script`"),
        ("p90_latency_s", "p90_e2el_ms", "`benchmark_latency.py` says nothing of `p90_e2el_ms`"),
        ("old/latency.py", "latency.py", "`workload.script.path` must be in a folder"),
        ("tool = \"benchmark_latency.py\"", "", "required key `workload.script.tool` is missing"),
    ] {
        let changed = read_task(&text.replace(from, to), &[]);
        let found = problems(&changed).join("; ");
        assert!(found.contains(message), "{to}: {found}");
    }
}
