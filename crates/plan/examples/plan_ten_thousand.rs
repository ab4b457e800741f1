//! Plans 10,000 tasks from one JSON Lines file and prints seconds and peak memory.
//!
//! Run it with `cargo run --release -p isobench-plan --example plan_ten_thousand`.
#![allow(clippy::print_stdout, reason = "an example's output is what it is for")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use isobench_plan::choose::{Choice, revisions_needed};
use isobench_plan::dataset::{self, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::next::Next;
use isobench_plan::planner::{self, PlanOptions};
use isobench_plan::progress::Progress;
use isobench_plan::statistics::Statistics;
use isobench_schema::event::{BlockEnd, Event, EventKind};
use isobench_schema::facts::{Facts, Host, ResolvedRevision};
use isobench_schema::format;
use isobench_schema::ids::{CommitId, Digest, RunId};
use isobench_schema::plan::{Forecast, Look, PlannedTask, Spending};
use isobench_schema::units::Millis;

const TASKS: usize = 10_000;

/// The dataset's file and one patch, in memory.
struct Memory(BTreeMap<String, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadFileError> {
        self.0.get(path).cloned().ok_or(ReadFileError::Missing)
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Err(ReadFileError::Missing)
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        self.0.contains_key(path).then_some(EntryKind::File)
    }
}

fn rows() -> String {
    let mut rows = String::new();
    for task in 0..TASKS {
        let _ = writeln!(
            rows,
            r#"{{"id":"task-{task}","title":"Speed up part {task}","repository":"engine","baseline":"before-{task}","human":"after-{task}","agent":[{{"name":"one","patch":"one.patch"}},{{"name":"two"}}],"engine":{{"kind":"vllm"}},"environment":{{"python":"venv","requirements":["vllm==0.16.0"],"overlay":"vllm"}},"server":{{"model":"org/model","options":{{"max-model-len":2048,"enforce-eager":true}}}},"workload":{{"kind":"serving","requests":700,"output-tokens":128,"arrival":{{"kind":"closed","concurrency":16}},"prompts":{{"kind":"token-ids","input-tokens":512,"vocabulary-size":32000}}}},"metric":{{"primary":"p99_ttft_ms","guards":["output_throughput"]}}}}"#
        );
    }
    rows
}

/// Levels that only look like ones: plans take as long with them.
struct EvenLevels;

impl Statistics for EvenLevels {
    fn looks(&self, _spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, String> {
        Ok(blocks.iter().map(|&blocks| Look { blocks, level: 0.01, equivalence_level: 0.01 }).collect())
    }

    fn forecast(&self, _task: &PlannedTask, _host: &Host) -> Option<Forecast> {
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let patch = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-slow\n+fast\n".repeat(10).into_bytes();
    let files =
        Memory([("rows.jsonl".to_owned(), rows().into_bytes()), ("one.patch".to_owned(), patch)].into_iter().collect());
    let start = Instant::now();
    let dataset = dataset::read(&files, "/data", "rows.jsonl", &[])?;
    println!("read {} tasks ({} problems): {:.3} s", dataset.tasks.len(), dataset.problems.len(), seconds(start));

    let mut facts = Facts::default();
    for (repository, revision) in revisions_needed(&dataset, &Choice::default()) {
        let commit = CommitId::new(Digest::of(revision.as_str().as_bytes()).as_str())?;
        let found = ResolvedRevision::Found { commit };
        facts.revisions.entry(repository).or_default().insert(revision.to_string(), found);
    }
    let planning = Instant::now();
    let options = PlanOptions { allow_unisolated: true, ..PlanOptions::new(1, "0.0.0") };
    let plan = planner::plan(&dataset, &facts, &options, &EvenLevels)?;
    println!("planned {} tasks: {:.3} s", plan.tasks.len(), seconds(planning));

    let writing = Instant::now();
    let text = format::to_pretty(&plan)?;
    println!("wrote {} MiB: {:.3} s", text.len() >> 20, seconds(writing));
    println!("in all: {:.3} s, peak memory {}", seconds(start), peak());

    let walking = Instant::now();
    let mut progress = Progress::new(RunId::new("run")?);
    let mut blocks = 0_u64;
    loop {
        let kind = match progress.next(&plan)? {
            Next::Block(spec) => {
                blocks += 1;
                let end = BlockEnd::Complete;
                EventKind::BlockEnded { id: spec.id, end, launches: Vec::new(), charged: BTreeMap::new() }
            }
            Next::Look { task, look } => {
                let (contrasts, reason) = (Vec::new(), String::new());
                EventKind::LookTaken { task, look, blocks: 0, contrasts, stops: false, reason }
            }
            Next::BudgetUsed { .. } | Next::Finished => break,
        };
        progress.apply(&Event { sequence: blocks, at_ms: Millis::new(0.0).ok_or("no time")?, kind });
    }
    println!("walked {blocks} blocks: {:.3} s, peak memory {}", seconds(walking), peak());
    Ok(())
}

fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}

/// Returns the process's peak resident memory, as the kernel writes it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let line = status.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("VmHWM:")));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
