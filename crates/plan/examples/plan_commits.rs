//! Assesses and plans 100,000 tasks of a dataset of commits and prints seconds and peak memory.
//!
//! The rows are the 96 public ones, over and over under other names; with the argument `distinct`, each has a seed of its own in
//! its command, so that none can be assessed by another. Run it with
//! `cargo run --release -p isobench-plan --example plan_commits [distinct]`.
#![allow(clippy::print_stdout, reason = "an example's output is what it is for")]

use std::collections::BTreeMap;
use std::time::Instant;

use isobench_plan::dataset::{self, Dataset, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::planner::{self, PlanOptions};
use isobench_plan::statistics::Statistics;
use isobench_schema::assessment::Standing;
use isobench_schema::commit_task::CommitTask;
use isobench_schema::facts::{Device, Facts, Host};
use isobench_schema::ids::TaskId;
use isobench_schema::plan::{Forecast, Look, PlannedTask, Spending};

const TASKS: usize = 100_000;

/// The public rows.
const ROWS: &[u8] = include_bytes!("../../../examples/iso-bench/vllm-96.jsonl");

struct Rows;

impl Files for Rows {
    fn read(&self, _: &str) -> Result<Vec<u8>, ReadFileError> {
        Ok(ROWS.to_vec())
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Err(ReadFileError::Missing)
    }

    fn kind(&self, _: &str) -> Option<EntryKind> {
        Some(EntryKind::File)
    }
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
    let public = dataset::read(&Rows, "/data", "rows.jsonl", &[])?;
    let start = Instant::now();
    let of_public = public.commit_tasks.iter().cycle().take(TASKS);
    let distinct = std::env::args().any(|argument| argument == "distinct");
    let named = |(number, task): (usize, &CommitTask)| {
        let mut named = CommitTask { id: TaskId::new(format!("task-{number}"))?, ..task.clone() };
        if let Some(command) = named.command.as_mut().filter(|_| distinct) {
            *command = format!("{command} --seed {number}");
        }
        Ok(named)
    };
    let tasks: Result<Vec<CommitTask>, Box<dyn std::error::Error>> = of_public.enumerate().map(named).collect();
    let dataset = Dataset { name: "many".to_owned(), commit_tasks: tasks?, ..Dataset::default() };
    println!("made {} tasks: {:.3} s, peak memory {}", TASKS, seconds(start), peak());

    let mut facts = Facts::default();
    facts.host.devices = vec![Device { name: "NVIDIA H100".to_owned(), memory_mib: 81_559, driver: "1".to_owned() }];
    let planning = Instant::now();
    let plan = planner::plan(&dataset, &facts, &PlanOptions::new(1, "0.0.0"), &EvenLevels)?;
    println!("assessed and planned {} tasks: {:.3} s, peak memory {}", TASKS, seconds(planning), peak());
    let mut standings: BTreeMap<Standing, usize> = BTreeMap::new();
    for assessment in &plan.assessments {
        *standings.entry(assessment.standing).or_default() += 1;
    }
    println!("{} of them planned; {standings:?}", plan.tasks.len());
    Ok(())
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// Returns the peak of the resident memory, as the kernel counts it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.trim_start_matches("VmHWM:").trim().to_owned()
}
