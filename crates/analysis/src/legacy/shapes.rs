//! The shapes of result files: how each is told, and how it becomes records.

use isobench_schema::ids::{AgentName, ArmId};
use isobench_schema::legacy::{LegacyRecord, LegacySource, WrittenStatus};
use isobench_schema::plan::Problem;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::metrics::{is_metric, metrics};

/// Where an object stands.
pub(super) struct Place<'a> {
    /// The file, as it is to be named.
    pub(super) file: &'a str,
    /// The row, from 1, in a file of several.
    pub(super) row: Option<u64>,
}

impl Place<'_> {
    /// Returns the names of the path, the last first.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.file.rsplit('/')
    }

    fn name(&self) -> &str {
        self.parts().next().unwrap_or_default()
    }
}

/// What an object is.
pub(super) enum Shape {
    /// A result of a known shape.
    Known(LegacySource),
    /// None of them.
    Unknown { nearest: LegacySource, missing: Vec<&'static str> },
}

/// The keys that each shape must have; one of a `|` is enough.
const SHAPES: &[(LegacySource, &[&str])] = &[
    (LegacySource::Native, &["human_commit|human_commit_full", "status", "metrics|error", "runner"]),
    (LegacySource::ThreeWay, &["human_commit|human_commit_full", "status", "metrics|error"]),
    (LegacySource::Modal, &["status", "baseline_metrics|human_metrics|agent_metrics|baseline_version|gpu_config"]),
    (LegacySource::Modal, &["result", "instance|commit"]),
    (LegacySource::HfRow, &["commit_short|commit_hash", "agent_name", "human_*"]),
    (LegacySource::Docker, &["commit_hash|commit_short|model", "status", "benchmark_type|ttft_*|throughput_*"]),
    (LegacySource::ErrorReport, &["commit", "status", "error", "duration_s"]),
];

/// Says which shape an object has.
pub(super) fn recognise(object: &Map<String, Value>, file: &str) -> Shape {
    let lacks = |keys: &'static [&'static str]| {
        keys.iter().copied().filter(|&key| !key.split('|').any(|key| has(object, key))).collect::<Vec<_>>()
    };
    let mut nearest = (LegacySource::ThreeWay, Vec::new(), f64::INFINITY);
    for (source, keys) in SHAPES {
        let missing = lacks(keys);
        if missing.is_empty() {
            return Shape::Known(*source);
        }
        let share = crate::stats::length(missing.len()) / crate::stats::length(keys.len());
        // A name that one system alone gives weighs more than a key or two.
        let named = if named(*source, file) { 0.5 } else { 0.0 };
        if share - named < nearest.2 {
            nearest = (*source, missing, share - named);
        }
    }
    let (nearest, missing, _) = nearest;
    Shape::Unknown { nearest, missing }
}

fn has(object: &Map<String, Value>, key: &str) -> bool {
    match key.strip_suffix('*') {
        Some(prefix) => object.keys().any(|key| key.starts_with(prefix)),
        None => object.contains_key(key),
    }
}

/// Returns whether a file is named as that system names its files.
fn named(source: LegacySource, file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    match source {
        LegacySource::ThreeWay => arm_of_name(name).is_some(),
        LegacySource::Modal => name == "benchmark_result.json",
        LegacySource::Docker => {
            name.ends_with("_result.json") && name != "benchmark_result.json" && arm_of_name(name).is_none()
        }
        LegacySource::Native | LegacySource::HfRow | LegacySource::ErrorReport => false,
    }
}

/// Returns the arm in a name such as `015069b0_human_result.json`.
fn arm_of_name(name: &str) -> Option<&str> {
    let stem = name.strip_suffix("_result.json")?;
    let arm = stem.rsplit('_').next()?;
    matches!(arm, "baseline" | "human" | "agent").then_some(arm)
}

/// Returns the records of an object of a known shape, and what in it can't be read.
pub(super) fn records(
    object: Map<String, Value>,
    source: LegacySource,
    place: &Place<'_>,
) -> (Vec<LegacyRecord>, Vec<Problem>) {
    let mut fields = Fields::new(flat(object, source), place);
    let mut records = match source {
        LegacySource::ThreeWay | LegacySource::Native => vec![one_arm(&mut fields, source, place)],
        LegacySource::Modal => all_arms(&mut fields, place),
        LegacySource::Docker => vec![flat_arm(&mut fields, place)],
        LegacySource::HfRow => columns(&mut fields, place),
        LegacySource::ErrorReport => vec![head(&mut fields, source, place)],
    };
    let (left, problems) = fields.finish();
    // What belongs to the whole object is kept once, with its first record.
    if let Some(first) = records.first_mut() {
        first.other.extend(left);
    }
    (records, problems)
}

/// Returns a wrapped result with the fields of its wrapper beside its own. Where both have one, the result's counts, and
/// the wrapper's is kept.
fn flat(mut object: Map<String, Value>, source: LegacySource) -> Map<String, Value> {
    if source != LegacySource::Modal {
        return object;
    }
    for key in ["instance", "result"] {
        let Some(Value::Object(_)) = object.get(key) else { continue };
        let Some(Value::Object(inner)) = object.remove(key) else { continue };
        for (name, value) in inner {
            if let Some(outer) = object.insert(name.clone(), value).filter(|outer| !outer.is_null()) {
                object.insert(format!("outer.{name}"), outer);
            }
        }
    }
    object
}

/// Reads what all shapes have: commit, status, command, versions, error.
fn head(fields: &mut Fields<'_>, source: LegacySource, place: &Place<'_>) -> LegacyRecord {
    let written = fields.any_text(&["human_commit", "commit_short", "commit", "commit_hash"]);
    let full = fields.any_text(&["human_commit_full", "commit_hash", "full_commit", "commit_full"]);
    let commit = written.or_else(|| full.clone()).or_else(|| commit_of_path(place)).unwrap_or_default();
    let commit_full = full.or_else(|| (commit.len() == 40).then(|| commit.clone()));
    let parent = fields.any_text(&["parent_commit", "baseline_commit", "base_commit"]);
    let status = fields.text("status").map(|status| WrittenStatus::of(&status));
    let model = fields.text("model");
    let command = fields.any_text(&["perf_command", "command"]);
    let mut versions = std::collections::BTreeMap::new();
    for of in ["vllm", "baseline", "human", "agent"] {
        versions.extend(fields.text(&format!("{of}_version")).map(|version| (of.to_owned(), version)));
    }
    LegacyRecord {
        file: place.file.to_owned(),
        row: place.row,
        source,
        project: fields.text("project").or_else(|| project_of_path(place)),
        commit,
        commit_full,
        parent,
        arm: None,
        status,
        model,
        command,
        versions,
        duration_s: fields.number("duration_s"),
        timestamp: fields.any_text(&["timestamp", "benchmark_date"]),
        error: fields.text("error"),
        metrics: Vec::new(),
        remarks: Vec::new(),
        other: Map::new(),
    }
}

fn is_commit(text: &str) -> bool {
    (7..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the commit that the file or its folder is named after.
fn commit_of_path(place: &Place<'_>) -> Option<String> {
    let name = place.name().split(['_', '.']).next();
    let folder = place.parts().nth(1);
    [name, folder].into_iter().flatten().find(|part| is_commit(part)).map(str::to_owned)
}

fn project_of_path(place: &Place<'_>) -> Option<String> {
    place.parts().skip(1).find(|part| matches!(*part, "vllm" | "sglang")).map(str::to_owned)
}

/// Returns the arm of an agent: by its name if it is given, else `agent:unnamed`.
fn agent(name: Option<&str>) -> ArmId {
    let plain = |name: &str| name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
    let name = name.and_then(|name| AgentName::new(name).or_else(|_| AgentName::new(plain(name))).ok());
    ArmId::Agent(name.unwrap_or_else(|| AgentName::new("unnamed").expect("the name is plain")))
}

fn one_arm(fields: &mut Fields<'_>, source: LegacySource, place: &Place<'_>) -> LegacyRecord {
    let mut record = head(fields, source, place);
    let named = fields.any_text(&["agent_name", "agent"]);
    let written = fields.any_text(&["benchmark_type", "arm"]).filter(|arm| {
        let is_arm = matches!(arm.as_str(), "baseline" | "human" | "agent");
        if !is_arm {
            fields.keep("benchmark_type", Value::String(arm.clone()));
        }
        is_arm
    });
    record.arm = match written.as_deref().or_else(|| arm_of_name(place.name())) {
        Some("baseline") => Some(ArmId::Baseline),
        Some("human") => Some(ArmId::Human),
        Some(_) => Some(agent(named.as_deref())),
        None => None,
    };
    let numbers = fields.object("metrics").unwrap_or_default();
    record.metrics = metrics(numbers, "metrics.", fields);
    record
}

fn flat_arm(fields: &mut Fields<'_>, place: &Place<'_>) -> LegacyRecord {
    let mut record = head(fields, LegacySource::Docker, place);
    // This runner took images of the human revision only.
    record.arm = Some(ArmId::Human);
    let numbers = fields.matching(is_metric);
    record.metrics = metrics(numbers, "", fields);
    record
}

/// The arms of an object that holds all of them, with the beginning of their keys.
fn arms(name: Option<&str>) -> [(ArmId, &'static str); 3] {
    [(ArmId::Baseline, "baseline_"), (ArmId::Human, "human_"), (agent(name), "agent_")]
}

fn all_arms(fields: &mut Fields<'_>, place: &Place<'_>) -> Vec<LegacyRecord> {
    let whole = head(fields, LegacySource::Modal, place);
    let name = fields.any_text(&["agent_name", "agent"]);
    let mut records = Vec::new();
    for (arm, prefix) in arms(name.as_deref()) {
        let key = format!("{prefix}metrics");
        let numbers = fields.object(&key).unwrap_or_default();
        let metrics = metrics(numbers, &format!("{key}."), fields);
        if !metrics.is_empty() {
            records.push(LegacyRecord { arm: Some(arm), metrics, ..whole.clone() });
        }
    }
    // Without a number there is one outcome, and it is the commit's.
    if records.is_empty() { vec![whole] } else { records }
}

fn columns(fields: &mut Fields<'_>, place: &Place<'_>) -> Vec<LegacyRecord> {
    let whole = head(fields, LegacySource::HfRow, place);
    let name = fields.text("agent_name");
    let mut records = Vec::new();
    for (arm, prefix) in arms(name.as_deref()) {
        let all = fields.beginning(prefix);
        let (numbers, others): (Map<_, _>, Map<_, _>) = all.into_iter().partition(|(key, _)| is_metric(key));
        for (key, value) in others {
            fields.keep(&format!("{prefix}{key}"), value);
        }
        let metrics = metrics(numbers, prefix, fields);
        records.push(LegacyRecord { arm: Some(arm), metrics, ..whole.clone() });
    }
    records
}
