//! From a failed run to one that works: the cause of a failure names a recipe, `plan --from RUN` puts it on every arm, and the
//! running engine shows it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

#[path = "support/mod.rs"]
mod support;

use isobench_schema::comparability::KeyField;
use isobench_schema::event::EventKind;
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use serde_json::Value;
use support::{Place, events};

/// What a vLLM says whose worker was forked after the device had been used.
const SAYS: &str = "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method";

/// Returns a task whose engine fails as such a vLLM does, unless it is told to spawn its workers.
fn task(place: &Place) -> String {
    let script = format!(
        "0 if [ \"$VLLM_WORKER_MULTIPROC_METHOD\" != spawn ]; then echo \"{SAYS}\" >&2; sleep 0.2; kill -9 $PPID; fi"
    );
    let mut text = place.task_text();
    text.arguments = vec!["--fault".to_owned(), format!("shell={script}")];
    text.toml()
        .replace("kind = \"generic\"", "kind = \"vllm\"")
        .replace("[workload]\n", "[workload]\ncounter = \"token-ids\"\n")
}

fn launches(place: &Place, run: &str) -> Vec<LaunchRecord> {
    let ended = events(&place.path(run)).into_iter().filter_map(|event| {
        let EventKind::BlockEnded { launches, .. } = event.kind else { return None };
        Some(launches)
    });
    ended.flatten().collect()
}

/// Returns a piece of a launch's evidence.
fn piece(place: &Place, run: &str, record: &LaunchRecord, name: &str) -> Value {
    let reader = isobench_store::RunReader::open(&place.path(run)).unwrap();
    let mut artifact = reader.artifacts().open(&record.evidence[name].digest).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut artifact, &mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_run_that_failed_by_a_known_cause_is_planned_anew_with_its_recipe_and_runs() {
    let place = Place::new();
    std::fs::write(place.path("task/task.toml"), task(&place)).unwrap();
    place.expect(100, &["run", "task/task.toml", "--out", "first"]);
    let failed = launches(&place, "first");
    assert!(failed.iter().all(|record| matches!(record.outcome, Outcome::Failed { .. })), "{failed:?}");
    let classified = place.finish(["classify", "first"]);
    assert!(classified.stdout.contains("B18") && classified.stdout.contains("spawn-workers"), "{classified:?}");

    let planned = place.expect(0, &["plan", "--from", "first", "--out", "second-plan"]);
    planned.says(&["task: spawn-workers on every arm"]);
    assert!(
        planned.stdout.contains("recipe-applied") || planned.stdout.contains("VLLM_WORKER_MULTIPROC_METHOD=spawn"),
        "{}",
        planned.stdout
    );
    let run = place.expect(0, &["run", "second-plan", "--out", "second"]);
    let measured = launches(&place, "second");
    assert!(measured.len() >= 4 && measured.iter().all(|record| record.outcome == Outcome::Measured), "{run:?}");
    for record in &measured {
        // Read back from the process itself, on every arm, and part of what must be equal.
        let proof = piece(&place, "second", record, evidence::LIVE_PROOF);
        assert_eq!(proof["recipes"]["spawn-workers"], "the process has VLLM_WORKER_MULTIPROC_METHOD=spawn");
        assert!(record.key.0.contains_key(&KeyField::Recipes), "{:?}", record.key);
    }
    assert_ne!(failed[0].key.0.get(&KeyField::Recipes), measured[0].key.0.get(&KeyField::Recipes));
    let judged = place.judgement("second");
    assert!(
        judged.deviations.iter().any(|deviation| deviation.reason.contains("an earlier run failed by B18")),
        "{judged:?}"
    );
    place.check_sound("second");

    // A run without such a failure has nothing to repair.
    let nothing = place.expect(4, &["plan", "--from", "second"]);
    nothing.says(&["no failure of the run `second` has a cause whose recipe is known"]);
}

#[test]
fn what_only_an_agents_log_says_changes_no_plan() {
    use isobench_testkit::Fault;
    let place = Place::new();
    let script = format!("echo \"{SAYS}\" >&2; sleep 0.2; kill -9 $PPID");
    let text = place.with_faults(place.task_text(), "liar", &[Fault::Shell(0, script)]);
    let toml = text
        .toml()
        .replace("kind = \"generic\"", "kind = \"vllm\"")
        .replace("[workload]\n", "[workload]\ncounter = \"token-ids\"\n");
    std::fs::write(place.path("task/task.toml"), toml).unwrap();
    place.expect(100, &["run", "task/task.toml", "--allow-unisolated", "--out", "run"]);
    let planned = place.expect(4, &["plan", "--from", "run"]);
    planned.says(&["B18 stands only in the logs of agent:liar, which isn't believed"]);
}
