//! Our own results in the shape of the earlier system's files, so that scripts which read those go on working.

use std::collections::BTreeMap;

use isobench_schema::environment::Source;
use isobench_schema::failure::Charge;
use isobench_schema::ids::{ArmId, RunId};
use isobench_schema::measurement::MetricName;
use isobench_schema::plan::PlannedTask;
use isobench_schema::verdict::{ArmJudgement, TaskJudgement};
use serde_json::{Map, Value, json};

/// A file to write.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedFile {
    /// Its path in the folder of results.
    pub path: String,
    /// What is in it.
    pub object: Value,
}

/// What is known of a task that was run.
#[derive(Debug, Clone, Copy)]
pub struct ExportInput<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The task as it was planned.
    pub task: &'a PlannedTask,
    /// What its evidence says.
    pub judgement: &'a TaskJudgement,
    /// How long the launches of each arm took together, in seconds.
    pub durations_s: &'a BTreeMap<ArmId, f64>,
    /// When its last block ended, as `2026-01-10 12:00:00` in UTC.
    pub timestamp: Option<&'a str>,
}

/// Returns a file for each arm of each task that was run. Values are means over the launches that count; an arm that
/// couldn't be measured has a status, an error, and no number. An arm without a patch has no file, as before.
pub fn export(inputs: &[ExportInput<'_>]) -> Vec<ExportedFile> {
    let mut tasks_of: BTreeMap<String, usize> = BTreeMap::new();
    for input in inputs {
        *tasks_of.entry(stem(input)).or_default() += 1;
    }
    let mut files = Vec::new();
    for input in inputs {
        let stem = stem(input);
        // Several tasks of one commit are told by their own names.
        let is_alone = tasks_of.get(&stem).is_none_or(|tasks| *tasks == 1);
        let stem = if is_alone { stem } else { input.task.id.to_string() };
        let agents = input.judgement.arms.iter().filter(|arm| matches!(arm.arm, ArmId::Agent(_))).count();
        let file =
            |arm: &ArmJudgement| ExportedFile { path: path(&stem, &arm.arm, agents), object: object(input, arm) };
        files.extend(input.judgement.arms.iter().map(file));
    }
    files
}

fn path(stem: &str, arm: &ArmId, agents: usize) -> String {
    match arm {
        ArmId::Baseline => format!("baseline_benchmark_results/{stem}_baseline_result.json"),
        ArmId::Human => format!("agent_benchmark_results/{stem}_human_result.json"),
        ArmId::Agent(_) if agents == 1 => format!("agent_benchmark_results/{stem}_agent_result.json"),
        ArmId::Agent(name) => format!("agent_benchmark_results/{stem}_{name}_agent_result.json"),
    }
}

/// Returns the first eight digits of the human side's commit.
fn stem(input: &ExportInput<'_>) -> String {
    commit(input.task, &ArmId::Human).map_or_else(|| input.task.id.to_string(), |commit| short(&commit))
}

fn short(commit: &str) -> String {
    commit.get(..8).unwrap_or(commit).to_owned()
}

/// Returns the commit that an arm's files are of.
fn commit(task: &PlannedTask, arm: &ArmId) -> Option<String> {
    let planned = task.arms.iter().find(|planned| planned.arm == *arm)?;
    let Source { commit, .. } = &task.environments.get(&planned.environment)?.source;
    Some(commit.to_string())
}

fn object(input: &ExportInput<'_>, arm: &ArmJudgement) -> Value {
    let human = commit(input.task, &ArmId::Human);
    let is_measured = arm.valid > 0 && !arm.means.is_empty() && !failed_by_itself(input, arm);
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("human_commit", json!(human.as_deref().map(short)));
    put("human_commit_full", json!(human));
    put("parent_commit", json!(commit(input.task, &ArmId::Baseline)));
    put("model", json!(input.task.server.model));
    put("status", json!(if is_measured { "success" } else { "error" }));
    if !is_measured {
        put("error", json!(error(arm)));
    }
    put("metrics", if is_measured { metrics(arm) } else { json!({}) });
    put("duration_s", json!(input.durations_s.get(&arm.arm)));
    put("timestamp", json!(input.timestamp));
    if let ArmId::Agent(name) = &arm.arm {
        put("agent_name", json!(name.as_str()));
    }
    put("isobench_run", json!(input.run.as_str()));
    put("isobench_task", json!(input.task.id.as_str()));
    put("isobench_launches", json!(arm.valid));
    put("isobench_deviations", json!(input.judgement.deviations.len()));
    Value::Object(object)
}

/// Returns whether an arm failed so often that it decides the arm's verdict. The numbers of its other launches are no result.
fn failed_by_itself(input: &ExportInput<'_>, arm: &ArmJudgement) -> bool {
    let contrasts = || input.judgement.contrasts.iter().filter(|contrast| contrast.of == arm.arm);
    let of_arm = arm.failures.iter().any(|counted| counted.failure.class.charge() == Charge::Arm);
    of_arm && contrasts().any(|contrast| contrast.against == ArmId::Baseline && contrast.verdict.is_failure())
}

/// Returns why an arm has no numbers.
fn error(arm: &ArmJudgement) -> String {
    match arm.failures.first() {
        Some(counted) => format!("{}: {}", counted.failure.class, counted.failure.message),
        None if arm.launches == 0 => "no launch was completed".to_owned(),
        None => "no launch counts".to_owned(),
    }
}

fn metrics(arm: &ArmJudgement) -> Value {
    let old = |(name, value): (&MetricName, &f64)| (old_key(*name).to_owned(), json!(value));
    Value::Object(arm.means.iter().map(old).collect())
}

/// Returns the key that the earlier system has for a metric: its own for rates, where the unit is part of the key, and
/// vLLM's for times.
fn old_key(name: MetricName) -> &'static str {
    match name {
        MetricName::RequestThroughput => "throughput_req_s",
        MetricName::OutputThroughput => "throughput_tok_s",
        MetricName::TotalTokenThroughput => "throughput_total_tok_s",
        MetricName::MeanTtftMs
        | MetricName::MedianTtftMs
        | MetricName::P90TtftMs
        | MetricName::P99TtftMs
        | MetricName::MeanTpotMs
        | MetricName::MedianTpotMs
        | MetricName::P90TpotMs
        | MetricName::P99TpotMs
        | MetricName::MeanItlMs
        | MetricName::MedianItlMs
        | MetricName::P90ItlMs
        | MetricName::P99ItlMs
        | MetricName::MeanE2elMs
        | MetricName::MedianE2elMs
        | MetricName::P90E2elMs
        | MetricName::P99E2elMs
        | MetricName::AvgLatencyS
        | MetricName::P50LatencyS
        | MetricName::P90LatencyS
        | MetricName::P99LatencyS
        | MetricName::CostTimeS => name.as_str(),
    }
}
