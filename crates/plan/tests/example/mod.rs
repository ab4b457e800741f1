//! A dataset in memory, its facts, and a sample task that tests change.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;

use isobench_plan::choose::{Choice, inputs_needed, revisions_needed};
use isobench_plan::dataset::{self, Dataset, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::planner::{self, DesignOptions, PlanOptions};
use isobench_plan::setting::Setting;
use isobench_plan::statistics::Statistics;
use isobench_schema::facts::{Facts, Host, ResolvedRevision};
use isobench_schema::ids::{CommitId, Digest};
use isobench_schema::plan::{Forecast, Look, Plan, PlannedTask, Spending};

/// A task that has only what it must, and an agent with and one without a patch.
pub(crate) const SAMPLE: &str = r#"id = "sample"
repository = "../repo"
baseline = "before"
human = "after"
[[agent]]
name = "fast"
patch = "fast.patch"
[[agent]]
name = "absent"
[server]
command = ["{python}", "-m", "tinyserve", "{port}"]
model = "tiny"
[workload]
kind = "serving"
requests = 100
output-tokens = 16
arrival = {kind = "closed", concurrency = 8}
prompts = {kind = "words", input-tokens = 32}
[metric]
primary = "output_throughput"
"#;

/// Files in memory, by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(pub(crate) BTreeMap<String, Vec<u8>>);

impl Memory {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect())
    }
}

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadFileError> {
        self.0.get(path).cloned().ok_or(ReadFileError::Missing)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadFileError> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries = BTreeMap::new();
        for rest in self.0.keys().filter_map(|file| file.strip_prefix(&prefix)) {
            match rest.split_once('/') {
                Some((folder, _)) => entries.insert(folder.to_owned(), EntryKind::Folder),
                None => entries.insert(rest.to_owned(), EntryKind::File),
            };
        }
        if entries.is_empty() {
            return Err(ReadFileError::Missing);
        }
        Ok(entries.into_iter().rev().map(|(name, kind)| Entry { name, kind }).collect())
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        if self.0.contains_key(path) {
            return Some(EntryKind::File);
        }
        self.list(path).ok().map(|_| EntryKind::Folder)
    }
}

/// Returns the sample with a text replaced, or with a line added if nothing is to be replaced.
pub(crate) fn changed(from: &str, to: &str) -> String {
    if from.is_empty() {
        return format!("{to}\n{SAMPLE}");
    }
    assert!(SAMPLE.contains(from), "the sample has no `{from}`");
    SAMPLE.replace(from, to)
}

/// Reads one task from a text, with settings.
pub(crate) fn read_task(text: &str, settings: &[&str]) -> Dataset {
    let files = Memory::new(&[("set/t/task.toml", text), ("set/t/fast.patch", "patch"), ("set/t/weights/a", "")]);
    let settings: Vec<Setting> = settings.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
    dataset::read(&files, "/data", "set", &settings).expect("a dataset")
}

/// Returns facts in which everything that a dataset needs is found, on a machine with 8 GiB and no device.
pub(crate) fn facts(dataset: &Dataset) -> Facts {
    let host = Host { memory_mib: Some(8192), disk_free_mib: Some(10_240), processors: 2, ..Host::default() };
    let mut facts = Facts { host, ..Facts::default() };
    for (repository, revision) in revisions_needed(dataset, &Choice::default()) {
        let digest = Digest::of(revision.as_str().as_bytes());
        let commit = CommitId::new(digest.as_str()).expect("64 digits");
        let found = ResolvedRevision::Found { commit };
        facts.revisions.entry(repository).or_default().insert(revision.to_string(), found);
    }
    for path in inputs_needed(dataset, &Choice::default()) {
        let digest = Digest::of(path.as_bytes()).to_string();
        facts.inputs.insert(path, Some(digest));
    }
    facts
}

/// Returns options that allow everything, with one look after six blocks for tasks that don't say their own.
pub(crate) fn options() -> PlanOptions {
    let design = DesignOptions { max_blocks: Some(6), ..DesignOptions::default() };
    PlanOptions { allow_unisolated: true, design, ..PlanOptions::new(7, "0.0.0") }
}

/// Levels that are easily told, instead of real ones.
pub(crate) struct EvenLevels;

impl Statistics for EvenLevels {
    fn looks(&self, _spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, String> {
        if !blocks.is_sorted_by(|one, next| one < next) {
            return Err("each look must come after the one before it".to_owned());
        }
        let looks = u32::try_from(blocks.len()).map_err(|error| error.to_string())?;
        let level = 0.05 / f64::from(looks);
        Ok(blocks.iter().map(|&blocks| Look { blocks, level, equivalence_level: level }).collect())
    }

    fn forecast(&self, _task: &PlannedTask, _host: &Host) -> Option<Forecast> {
        None
    }
}

/// Plans a dataset with facts in which everything is found.
pub(crate) fn plan(dataset: &Dataset) -> Plan {
    planner::plan(dataset, &facts(dataset), &options(), &EvenLevels).expect("a plan")
}
