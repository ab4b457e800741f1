//! What the tables say of the public commits, held against vLLM's real history, where a clone of it is at hand: the native trees
//! of the 96 pairs, the benchmark scripts that would be run, and the server of a revision from before `/health`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr, reason = "all of it is test code")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use isobench_schema::plan::{Plan, PlannedTask};
use support::Place;

/// Returns the clone, or says that there is none.
fn clone() -> Option<PathBuf> {
    let found = std::env::var_os("ISOBENCH_VLLM_CLONE").map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: ISOBENCH_VLLM_CLONE names no clone of vLLM");
    }
    found
}

fn plan(place: &Place, arguments: &[&str]) -> (Plan, String) {
    let finished = place.finish([&["plan"], arguments, &["--json"]].concat());
    (isobench_schema::format::from_slice(finished.stdout.as_bytes()).unwrap(), finished.stderr)
}

fn public() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("examples/iso-bench/vllm-96.jsonl").display().to_string()
}

#[test]
fn the_native_trees_of_the_96_pairs_are_those_of_the_real_history() {
    let Some(clone) = clone() else { return };
    let place = Place::new();
    let (dataset, argument) = (public(), format!("vllm={}", clone.display()));
    let begun = Instant::now();
    let (from_clone, _) = plan(&place, &[&dataset, "--device", "h100-sxm", "--clone", &argument]);
    eprintln!("96 pairs from the clone in {:.2} s", begun.elapsed().as_secs_f64());
    let (from_table, _) = plan(&place, &[&dataset, "--device", "h100-sxm"]);
    let keys = |plan: &Plan| -> Vec<_> {
        let of = |facts: &Option<std::sync::Arc<isobench_schema::assessment::RevisionFacts>>| {
            facts.as_ref().map(|facts| (facts.commit.clone(), facts.native_key.clone().unwrap()))
        };
        plan.assessments.iter().map(|found| (of(&found.baseline).unwrap(), of(&found.human).unwrap())).collect()
    };
    let pairs = keys(&from_clone);
    assert_eq!(pairs, keys(&from_table));
    let same = pairs.iter().filter(|((_, baseline), (_, human))| baseline == human).count();
    assert_eq!((pairs.len(), same), (96, 89));
}

#[test]
fn the_scripts_that_would_run_are_there_and_have_the_options_that_they_are_given() {
    let Some(clone) = clone() else { return };
    let place = Place::new();
    let (plan, _) = plan(&place, &[&public(), "--device", "h100-sxm", "--devices", "16", "--offline", "script"]);
    let scripts: Vec<_> = plan.tasks.iter().filter_map(|task| Some((task, task.workload.script.as_ref()?))).collect();
    assert!(scripts.len() >= 15, "{}", scripts.len());
    for (task, script) in scripts {
        let object = format!("{}:{}", script.commit.as_ref().unwrap(), script.path);
        let shown = Command::new("git").arg("-C").arg(&clone).args(["show", &object]).output().unwrap();
        assert!(shown.status.success(), "{}: {object}", task.id);
        let text = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(text.contains("--output-json"), script.output_json, "{}: {object}", task.id);
        // Options of the engine come from its own list where the script takes all of them.
        let own = |name: &&String| name.starts_with("--") && !text.contains("EngineArgs.add_cli_args");
        for name in script.arguments.iter().filter(own) {
            let name = name.split('=').next().unwrap();
            assert!(text.contains(name), "{}: {object} has no `{name}`", task.id);
        }
    }
}

/// Returns the only task of a plan for a hand-written one at this revision, or why there is none.
fn by_hand(place: &Place, clone: &Path, revision: &str, options: &str) -> Result<PlannedTask, String> {
    let text = format!(
        r#"id = "by-hand"
repository = "{}"
baseline = "{revision}"

[engine]
kind = "vllm"

[server]
model = "tiny"
options = {{ {options} }}

[workload]
kind = "serving"
requests = 16
output-tokens = 8
arrival = {{ kind = "closed", concurrency = 4 }}
prompts = {{ kind = "words", input-tokens = 8 }}

[metric]
primary = "output_throughput"

[requirements]
devices = 0
"#,
        clone.display()
    );
    std::fs::write(place.path("task").join("task.toml"), text).unwrap();
    let (plan, said) = plan(place, &["task"]);
    plan.tasks.into_iter().next().ok_or_else(|| format!("{:?} {:?} {said}", plan.exclusions, plan.problems))
}

#[test]
fn a_hand_written_task_of_an_old_revision_is_asked_as_that_revision_can_answer() {
    let Some(clone) = clone() else { return };
    let place = Place::new();
    // Of 2023-10-12, before there was `/health`; and of 2025-08.
    let (old, new) = ("6368e777a8ead7fb62054d3779c6237361ec0d86", "88faa466d788e25082c02dc9688931d7976361f9");
    let task = by_hand(&place, &clone, old, "max-model-len = 2048").unwrap();
    assert_eq!(task.server.health, "/v1/models");
    assert!(task.deviations.iter().any(|deviation| deviation.subject == "server.health"), "{:?}", task.deviations);
    assert_eq!(by_hand(&place, &clone, new, "max-model-len = 2048").unwrap().server.health, "/health");
    let refused = by_hand(&place, &clone, old, "enable-chunked-prefill = true").unwrap_err();
    assert!(refused.contains("`--enable-chunked-prefill` is no option of `vllm serve` at"), "{refused}");
    let refused = by_hand(&place, &clone, new, "max-num-seq = 4").unwrap_err();
    assert!(refused.contains("did you mean `--max-num-seqs`?"), "{refused}");
}
