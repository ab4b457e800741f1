//! What is known of the public tasks before a device is used, and of rows that are made up.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a broken fixture must fail the test")]

use std::collections::BTreeMap;

use isobench_plan::assess::{AssessOptions, OfflineChoice, ProxyChoice};
use isobench_plan::dataset::{self, Dataset, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::knowledge::Knowledge;
use isobench_plan::planner::{self, PlanOptions};
use isobench_plan::requirements::History;
use isobench_plan::statistics::Statistics;
use isobench_schema::assessment::{Assessment, FactSource, PlannedFor, RevisionFacts, Standing};
use isobench_schema::deviation::DeviationKind;
use isobench_schema::environment::{Patch, Rung};
use isobench_schema::facts::{Device, Facts, Host};
use isobench_schema::ids::{AgentName, ArmId, CommitId, Moment};
use isobench_schema::plan::{ExclusionReason, Forecast, Look, Plan, PlannedTask, Spending};
use isobench_schema::task::AgentPatch;

const PUBLIC: &str = include_str!("../../../examples/iso-bench/vllm-96.jsonl");

/// One file, in memory.
struct One(String);

impl Files for One {
    fn read(&self, _: &str) -> Result<Vec<u8>, ReadFileError> {
        Ok(self.0.clone().into_bytes())
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Err(ReadFileError::Missing)
    }

    fn kind(&self, _: &str) -> Option<EntryKind> {
        Some(EntryKind::File)
    }
}

fn dataset(rows: &str) -> Dataset {
    let read = dataset::read(&One(rows.to_owned()), "/data", "rows.jsonl", &[]).expect("the rows are a dataset");
    assert_eq!(read.problems, []);
    read
}

/// Levels that only look like ones: the assessments don't depend on them.
struct EvenLevels;

impl Statistics for EvenLevels {
    fn looks(&self, _spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, String> {
        Ok(blocks.iter().map(|&blocks| Look { blocks, level: 0.01, equivalence_level: 0.01 }).collect())
    }

    fn forecast(&self, _task: &PlannedTask, _host: &Host) -> Option<Forecast> {
        None
    }
}

fn options(device: &str, count: u32) -> AssessOptions {
    AssessOptions {
        planned_for: PlannedFor { device: device.to_owned(), count, assumed: false },
        ..AssessOptions::default()
    }
}

fn plan(dataset: &Dataset, commits: AssessOptions) -> Plan {
    let options = PlanOptions { commits, allow_unisolated: true, ..PlanOptions::new(1, "0.0.0") };
    planner::plan(dataset, &Facts::default(), &options, &EvenLevels).expect("the choice fits the dataset")
}

/// Plans on a machine that has the device.
fn plan_there(dataset: &Dataset, commits: AssessOptions) -> Plan {
    let device = Device { name: "NVIDIA H100".to_owned(), memory_mib: 81_559, driver: "1".to_owned() };
    let facts = Facts { host: Host { devices: vec![device], ..Host::default() }, ..Facts::default() };
    let options = PlanOptions { commits, allow_unisolated: true, ..PlanOptions::new(1, "0.0.0") };
    planner::plan(dataset, &facts, &options, &EvenLevels).expect("the choice fits the dataset")
}

fn counts(plan: &Plan) -> BTreeMap<Standing, usize> {
    let mut counts = BTreeMap::new();
    for assessment in &plan.assessments {
        *counts.entry(assessment.standing).or_default() += 1;
    }
    counts
}

/// Plans one row of a known commit with a command of its own.
fn one(command: &str, commits: AssessOptions) -> Assessment {
    let commit = "eefbf4a68b7b0a5b8364a59647906be1b7f043e2";
    let row = serde_json::json!({ "project": "vllm", "commit": commit, "perf_command": command });
    plan(&dataset(&format!("{row}\n")), commits).assessments.remove(0)
}

const SERVE: &str =
    "vllm bench serve --dataset-name random --random-input-len 512 --random-output-len 64 --num-prompts 700";

#[test]
fn the_public_tasks_stand_where_they_stand() {
    let public = plan(&dataset(PUBLIC), options("h100-sxm", 1));
    let expected = [
        (Standing::AsIs, 3),
        (Standing::Repaired, 52),
        (Standing::MoreDevices, 12),
        (Standing::Build, 4),
        (Standing::Cannot, 25),
    ];
    assert_eq!(counts(&public), BTreeMap::from(expected));
    // Each either is planned or has its reason.
    for assessment in &public.assessments {
        let excluded = public.exclusions.iter().filter(|exclusion| exclusion.task == assessment.task).count();
        assert_eq!(usize::from(public.task(&assessment.task).is_some()) + excluded, 1, "{}", assessment.task);
        assert!(assessment.standing == Standing::AsIs || !assessment.reasons.is_empty(), "{}", assessment.task);
    }
}

#[test]
fn benchmarks_that_the_client_cannot_load_are_measured_by_their_own_scripts() {
    let public = plan_there(&dataset(PUBLIC), options("h100-sxm", 1));
    let scripts: Vec<_> = public.tasks.iter().filter_map(|task| Some((task, task.workload.script.as_ref()?))).collect();
    assert_eq!(scripts.len(), 11, "{:?}", scripts.iter().map(|(task, _)| &task.id).collect::<Vec<_>>());
    for (task, script) in &scripts {
        let told = |kind| task.deviations.iter().filter(|deviation| deviation.kind == kind).count();
        let counts = [DeviationKind::SelfReported, DeviationKind::OutputUnchecked, DeviationKind::OfflineThroughServer];
        assert_eq!(counts.map(told), [1, 1, 0], "{}: {:?}", task.id, task.deviations);
        assert_eq!(task.workload.probes.count, 0, "{}", task.id);
        assert!(task.server.options.is_empty() && script.commit.is_some(), "{}", task.id);
        // `--output-json` is 0.4.3's, and no program's that makes its prompts itself to show a cache.
        let has_json = !["vllm-bfdb1ba5", "vllm-2deb029d"].contains(&task.id.as_str());
        assert_eq!(script.output_json, has_json, "{}", task.id);
    }
    let of = |id: &str| scripts.iter().find(|(task, _)| task.id.as_str() == id).unwrap();
    let (latency, script) = of("vllm-fa63e710");
    let arguments = "--model {model} --input-len 1000 --batch-size 32 --tensor-parallel-size 1";
    assert_eq!(
        (script.path.as_str(), script.arguments.join(" ").as_str()),
        ("benchmarks/benchmark_latency.py", arguments)
    );
    assert_eq!(latency.metric.primary.as_str(), "avg_latency_s");
    assert_eq!((latency.workload.requests, latency.server.environment["VLLM_USE_V1"].as_str()), (960, "1"));
    assert_eq!(of("vllm-0ec82edd").1.path, "vllm/benchmarks/throughput.py");
    assert_eq!(of("vllm-2deb029d").0.metric.primary.as_str(), "cost_time_s");
    // Its engine needs an option that a server takes and the script doesn't.
    assert!(scripts.iter().all(|(task, _)| task.id.as_str() != "vllm-83450458"));
    let server =
        plan_there(&dataset(PUBLIC), AssessOptions { offline: OfflineChoice::Never, ..options("h100-sxm", 1) });
    assert!(server.tasks.iter().all(|task| task.workload.script.is_none()));
}

#[test]
fn the_five_commits_of_the_port_bug_are_not_excluded() {
    let public = plan(&dataset(PUBLIC), options("h100-sxm", 1));
    for commit in ["25ebed2f", "88693683", "9323a315", "b2e0ad3b", "f092153f"] {
        let found = public.assessments.iter().find(|found| found.task.as_str().ends_with(commit)).unwrap();
        assert_eq!(found.standing, Standing::Repaired, "{commit}: {:?}", found.reasons);
    }
}

#[test]
fn the_same_rows_give_the_same_plan_in_any_order_and_alone() {
    let public = dataset(PUBLIC);
    let whole = plan(&public, options("h100-sxm", 1));
    let mut turned = public.clone();
    turned.commit_tasks.reverse();
    let mut back = plan(&turned, options("h100-sxm", 1)).assessments;
    back.reverse();
    assert_eq!(whole.assessments, back);
}

#[test]
fn a_model_is_spread_over_the_devices_that_it_needs() {
    let command = format!("{SERVE} --model meta-llama/Meta-Llama-3-70B");
    let found = one(&command, options("h100-sxm", 8));
    let size = found.need.as_ref().unwrap().devices.unwrap().to_string();
    assert!(found.repairs.iter().any(|repair| repair.subject == "server.tensor-parallel-size"), "{:?}", found.repairs);
    let server = &found.command.as_ref().unwrap().server;
    let place = server.iter().position(|word| word == "--tensor-parallel-size").unwrap();
    assert_eq!(server.get(place + 1), Some(&size), "{server:?}");
    assert_eq!(one(&command, options("h100-sxm", 1)).standing, Standing::MoreDevices);
}

#[test]
fn a_proxy_is_taken_only_when_asked_for_and_is_a_deviation() {
    let command = format!("{SERVE} --model meta-llama/Meta-Llama-3-70B --tensor-parallel-size 4");
    let asked = AssessOptions { proxy: ProxyChoice::WhereTooLarge, ..options("h100-sxm", 1) };
    let found = one(&command, asked);
    assert!(found.repairs.iter().any(|repair| repair.subject == "server.model"), "{:?}", found.repairs);
    assert!(found.standing < Standing::MoreDevices, "{:?}", found.reasons);
    let run = found.command.as_ref().unwrap();
    let words: Vec<&String> = run.client.iter().chain(&run.server).collect();
    assert!(words.iter().all(|word| !word.contains("Llama-3-70B")), "{words:?}");
    assert!(run.server.windows(2).any(|pair| pair == ["--tensor-parallel-size", "1"]), "{words:?}");
}

#[test]
fn packages_older_than_the_device_are_found() {
    let is_found = |found: &Assessment| found.findings.iter().any(|finding| finding.message.contains("torch 2.7"));
    let public = dataset(PUBLIC);
    let mut counts = (0, 0);
    for found in &plan(&public, options("b200", 1)).assessments {
        let Some(baseline) = &found.baseline else { continue };
        let is_older = baseline.committed.as_str() < "2025-04-30T02:08:04Z";
        assert_eq!(is_found(found), is_older, "{}", found.task);
        if is_older { counts.0 += 1 } else { counts.1 += 1 }
    }
    assert!(counts.0 > 0 && counts.1 > 0, "{counts:?}");
    assert!(!plan(&public, options("h100-sxm", 1)).assessments.iter().any(is_found));
}

#[test]
fn a_conflict_is_mended_by_a_recipe_that_holds_as_long_as_it_does() {
    let knowledge = Knowledge::embedded();
    let mended: Vec<_> = knowledge.conflicts.conflict.iter().filter(|row| row.recipe.is_some()).collect();
    assert!(!mended.is_empty());
    for row in mended {
        let recipe = knowledge.recipes.find(row.recipe.as_deref().unwrap()).unwrap();
        assert_eq!((recipe.engine, &recipe.any), (row.engine, &row.when), "{}", row.id);
        assert_eq!((&recipe.since, &recipe.until), (&row.since, &row.until), "{}", row.id);
    }
}

#[test]
fn what_cannot_be_known_or_cannot_be_is_never_runnable() {
    let cases = [
        ("--model nobody/Imaginary-9000B", "nothing is known of the size"),
        ("--model facebook/opt-125m --random-input-len 100000", "don't fit the context"),
        ("--model facebook/opt-125m --max-model-len 100000", "is more than the 2048 tokens"),
        ("--model facebook/opt-125m --tensor-parallel-size 0", "tensor-parallel-size"),
    ];
    for (more, reason) in cases {
        let found = one(&format!("{SERVE} {more}"), options("h100-sxm", 1));
        assert_eq!(found.standing, Standing::Cannot, "{more}: {:?}", found.reasons);
        assert!(found.reasons.iter().any(|said| said.contains(reason)), "{more}: {:?}", found.reasons);
    }
    let amd = one(&format!("{SERVE} --model facebook/opt-125m"), options("mi300x", 1));
    assert_eq!(amd.standing, Standing::Cannot, "{:?}", amd.reasons);
}

#[test]
fn a_task_without_a_command_is_planned_only_with_a_named_workload() {
    let public = dataset(PUBLIC);
    let bare = plan(&public, options("h100-sxm", 1));
    let preset = Knowledge::embedded().presets.find("seed-local").unwrap().clone();
    let chosen = plan(&public, AssessOptions { preset: Some(preset), ..options("h100-sxm", 1) });
    let of = |plan: &Plan| plan.assessments.iter().find(|found| found.task.as_str().ends_with("ed250545")).cloned();
    assert_eq!(of(&bare).unwrap().standing, Standing::Cannot);
    let with = of(&chosen).unwrap();
    assert!(with.repairs.iter().any(|repair| repair.subject == "workload"), "{:?}", with.repairs);
}

#[test]
fn an_agents_native_change_is_built_however_its_patch_names_it() {
    let plain = "diff --git a/csrc/x.cu b/csrc/x.cu\n--- a/csrc/x.cu\n+++ b/csrc/x.cu\n@@ -1 +1 @@\n-a\n+b\n";
    let binary = "diff --git a/csrc/x.cu b/csrc/x.cu\nindex 1..2 100644\nGIT binary patch\nliteral 1\n";
    let python = "--- a/vllm/x.py\n+++ b/vllm/x.py\n@@ -1 +1 @@\n-a\n+b\n";
    let agent = AgentName::new("one").unwrap();
    for (text, rung) in [(plain, Rung::Source), (binary, Rung::Source), (python, Rung::NativeTree)] {
        let mut rows = dataset(PUBLIC);
        rows.commit_tasks.retain(|task| task.id.as_str().ends_with("9badee53"));
        let patch = Some(Patch::new("p", text.as_bytes().to_vec()));
        rows.commit_tasks
            .iter_mut()
            .for_each(|task| task.agents = vec![AgentPatch { name: agent.clone(), patch: patch.clone() }]);
        let found = plan(&rows, options("h100-sxm", 1)).assessments.remove(0);
        let taken =
            found.ladder.get(&ArmId::Agent(agent.clone())).and_then(|answers| isobench_plan::source::taken(answers));
        assert_eq!(taken.map(|answer| answer.rung), Some(rung), "{text}");
    }
}

#[test]
fn what_the_client_cannot_load_is_excluded_and_still_stands() {
    let public = plan_there(&dataset(PUBLIC), options("h100-sxm", 1));
    let lacking = public.exclusions.iter().filter(|exclusion| exclusion.reason == ExclusionReason::ClientLacks).count();
    assert_eq!(lacking + public.tasks.len(), 3 + 52 + 4);
}

/// Plans one row of a commit that only a clone knows, late enough for the client to load its server.
fn planned(commits: AssessOptions) -> Plan {
    let revision = |digit: &str, parent: Option<&str>| RevisionFacts {
        commit: CommitId::new(digit.repeat(40)).unwrap(),
        parent: parent.map(|digit| CommitId::new(digit.repeat(40)).unwrap()),
        committed: Moment::new("2025-09-01T00:00:00Z").unwrap(),
        subject: "Speed up".to_owned(),
        after_release: None,
        first_release: None,
        native_key: Some("key".to_owned()),
        files_changed: Some(vec!["vllm/v1/core/scheduler.py".to_owned()]),
        scripts: None,
        source: FactSource::Git,
    };
    let command = format!("{SERVE} --model facebook/opt-125m --max-concurrency 8");
    let row = serde_json::json!({ "project": "vllm", "commit": "a".repeat(40), "perf_command": command });
    let rows = dataset(&format!("{row}\n"));
    let known = [("a".repeat(40), revision("a", Some("b"))), ("b".repeat(40), revision("b", None))];
    let mut facts = Facts::default();
    facts.details.insert(rows.commit_tasks[0].repository.clone(), known.into_iter().collect());
    let device = Device { name: "NVIDIA H100".to_owned(), memory_mib: 81_559, driver: "1".to_owned() };
    facts.host.devices = vec![device];
    let options = PlanOptions { commits, ..PlanOptions::new(1, "0.0.0") };
    planner::plan(&rows, &facts, &options, &EvenLevels).expect("the choice fits the dataset")
}

#[test]
fn a_commit_that_only_a_clone_knows_is_planned_with_its_own_rung_and_no_overlay_deviation() {
    let plan = planned(options("h100-sxm", 1));
    assert_eq!(plan.tasks.len(), 1, "{:?} {:?}", plan.exclusions, plan.assessments[0].reasons);
    let kinds: Vec<DeviationKind> = plan.tasks[0].deviations.iter().map(|deviation| deviation.kind).collect();
    assert!(!kinds.contains(&DeviationKind::ReleaseOverlay), "{kinds:?}");
    let rungs: Vec<Rung> = plan.tasks[0].environments.values().map(|environment| environment.rung).collect();
    assert!(rungs.iter().all(|rung| matches!(rung, Rung::Wheel | Rung::NativeTree)), "{rungs:?}");
}

#[test]
fn what_launches_took_before_sets_their_deadlines() {
    let before = planned(options("h100-sxm", 1)).tasks[0].limits.ready_s.get();
    let history = History { ready_s: Some(2000.0), workload_s: None };
    let task = planned(options("h100-sxm", 1)).tasks[0].id.clone();
    let options = AssessOptions { history: BTreeMap::from([(task, history)]), ..options("h100-sxm", 1) };
    let after = planned(options).tasks[0].limits.ready_s.get();
    assert!(before < 2000.0 && after > 2000.0, "{before} {after}");
}
