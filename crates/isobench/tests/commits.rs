//! What is chosen of a dataset of commits, and what is refused, from the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/iso-bench/vllm-96.jsonl")
}

/// Runs the command in this folder, whose cache and models are its own.
fn isobench(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isobench"));
    command.args(arguments).current_dir(folder).env("ISOBENCH_CACHE", folder.join("cache"));
    command.env("HF_HUB_CACHE", folder.join("hub")).output().expect("the command runs")
}

/// Plans with these options, and returns the plan.
fn plan(folder: &Path, dataset: &Path, options: &[&str]) -> Value {
    let dataset = dataset.to_str().expect("a path");
    let output = isobench(folder, &[&["plan", dataset, "--dry-run", "--json"], options].concat());
    assert!(!output.stdout.is_empty(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a plan")
}

fn assessed(plan: &Value) -> Vec<&str> {
    let assessments = plan["assessments"].as_array().map(Vec::as_slice).unwrap_or_default();
    assessments.iter().map(|assessment| assessment["task"].as_str().expect("a name")).collect()
}

/// Checks that the command fails with exit code 2 and says this.
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let output = isobench(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?}: `{part}` isn't in:\n{said}");
    }
}

#[test]
fn options_choose_commits_as_they_choose_tasks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (here, dataset) = (folder.path(), example());
    let all = plan(here, &dataset, &[]);
    let first: Vec<&str> = assessed(&all).into_iter().take(3).collect();
    let limited = plan(here, &dataset, &["--limit", "3"]);
    assert_eq!(assessed(&limited), first);
    let left = limited["exclusions"].as_array().expect("a list").iter();
    let beyond = left.filter(|exclusion| exclusion["reason"] == "not-chosen").count();
    assert_eq!(beyond, assessed(&all).len() - 3);
    let mut of_kinds: Vec<String> = Vec::new();
    for kind in ["serving", "latency", "throughput"] {
        let found = plan(here, &dataset, &["--kind", kind]);
        assert!(!assessed(&found).is_empty(), "{kind}");
        of_kinds.extend(assessed(&found).into_iter().map(str::to_owned));
        let limited = plan(here, &dataset, &["--kind", kind, "--limit", "1"]);
        assert_eq!(assessed(&limited), assessed(&found)[..1]);
    }
    of_kinds.sort_unstable();
    of_kinds.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1], "a task of two kinds"));
    assert!(of_kinds.len() < assessed(&all).len(), "a task without a command is of no kind");
    let commit = assessed(&all)[0].strip_prefix("vllm-").expect("a commit");
    for name in [commit, commit.get(..6).expect("digits"), assessed(&all)[0]] {
        assert_eq!(assessed(&plan(here, &dataset, &["--task", name])), first[..1], "{name}");
    }
}

#[test]
fn what_commits_cannot_be_planned_with_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (here, dataset) = (folder.path(), example());
    let dataset = dataset.to_str().expect("a path");
    fs::create_dir(here.join("empty")).expect("a folder");
    let of_empty = format!("vllm={}", here.join("empty").display());
    for (options, parts) in [
        (
            &["--set", "server.options.max-num-seqs=2"][..],
            &["`server.options.max-num-seqs`", "`task.toml` only", "stand in its command"][..],
        ),
        (&["--devices", "4000000000"], &["4096"]),
        (&["--devices", "0"], &["1..=4096"]),
        (&["--price", "inf"], &["from 0 to 10000"]),
        (&["--price", "-1"], &["from 0 to 10000"]),
        (&["--price", "NaN"], &["from 0 to 10000"]),
        (&["--price", "10001"], &["from 0 to 10000"]),
        (&["--clone", "vllm=/nonexist"], &["`/nonexist`", "--clone vllm=DIR"]),
        (&["--clone", &of_empty], &["empty", "not a git repository"]),
        (&["--task", "0000000"], &["unknown task `0000000`"]),
    ] {
        refused(here, &[&["plan", dataset, "--dry-run"], options].concat(), parts);
    }
}

#[test]
fn configs_of_models_are_read_from_the_cache_and_never_by_a_path() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    let put = |folder: PathBuf, name: &str, text: &str| {
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(name), text).expect("a file");
    };
    put(here.join("private"), "config.json", r#"{"secret": "s3cr3t"}"#);
    for (model, config) in [("a", r#"{"model_type": "llama"}"#), ("b", "{")] {
        let model = here.join(format!("hub/models--org--{model}"));
        put(model.join("refs"), "main", "abc");
        put(model.join("snapshots/abc"), "config.json", config);
    }
    let row = |commit: &str, command: &str| {
        serde_json::json!({ "commit": commit, "project": "vllm", "perf_command": command }).to_string() + "\n"
    };
    let private = here.join("private");
    let rows = row("aaaaaaaa", "vllm bench latency --model 'org/a'")
        + &row("bbbbbbbb", "vllm bench latency --model=org/b")
        + &row("cccccccc", &format!("vllm bench latency --model {}", private.display()));
    fs::write(here.join("rows.jsonl"), rows).expect("a file");
    let output = isobench(here, &["plan", "rows.jsonl", "--out", "plan"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the config of the model `org/b` isn't used"), "{said}");
    let facts = fs::read_to_string(here.join("plan/facts.json")).expect("facts");
    assert!(facts.contains("org/a") && !facts.contains("org/b") && !facts.contains("s3cr3t"), "{facts}");
}
