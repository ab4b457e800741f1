//! Makes the record of 10,008 launches (417 tasks, three arms, eight blocks), then times `isobench judge`, `report` and
//! `verify` on it, each as a process of its own, and prints seconds and peak memory.
//!
//! Run it with `cargo build --release && cargo run --release -p isobench --example ten_thousand_launches`.
#![allow(clippy::print_stdout, reason = "an example's output is what it is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isobench_analysis::stats::sequential::looks;
use isobench_loadgen::record::RecordWriter;
use isobench_plan::dataset::{self, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::next::Next;
use isobench_plan::planner::{self, PlanOptions};
use isobench_plan::progress::Progress;
use isobench_plan::statistics::Statistics;
use isobench_schema::block::BlockSpec;
use isobench_schema::comparability::{ComparabilityKey, KeyField};
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::facts::{Facts, Host, ResolvedRevision};
use isobench_schema::ids::{ArmId, CommitId, Digest, LaunchId, RunId};
use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline, evidence};
use isobench_schema::plan::{Forecast, Look, PlannedTask, Spending};
use isobench_schema::record::{Phase, RecordHeader, RequestRecord};
use isobench_store::RunStore;

const TASKS: usize = 417;
const BLOCKS: usize = 8;
const REQUESTS: u32 = 16;
const TOKENS: u32 = 32;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Levels as a plan has them.
struct ExactLevels;

impl Statistics for ExactLevels {
    fn looks(&self, spending: Spending, blocks: &[u32]) -> std::result::Result<Vec<Look>, String> {
        looks(spending, blocks).map_err(|error| error.to_string())
    }

    fn forecast(&self, _task: &PlannedTask, _host: &Host) -> Option<Forecast> {
        None
    }
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let launches = make(&run)?;
    println!("made the record of {launches} launches");
    let program = program()?;
    let html = folder.path().join("report.html");
    let html = html.to_str().ok_or("the scratch folder is not UTF-8")?;
    for (name, arguments) in [
        ("judge, nothing derived", vec!["judge"]),
        ("judge, digests kept", vec!["judge"]),
        ("report --format terminal", vec!["report"]),
        ("report --format html", vec!["report", "--format", "html", "--out", html]),
        ("verify", vec!["verify"]),
    ] {
        measure(&program, name, &arguments, &run)?;
    }
    Ok(())
}

/// Runs the command and prints how long it took and its peak memory, as far as it is seen every few milliseconds.
fn measure(program: &Path, name: &str, arguments: &[&str], run: &Path) -> Result<()> {
    let begun = Instant::now();
    let mut child = Command::new(program).args(arguments).arg(run).arg("--quiet").stdout(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = None;
    let status = loop {
        let seen = std::fs::read_to_string(&status_file).unwrap_or_default();
        let line = seen.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.map(|line| line.trim().to_owned()).or(peak);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let seconds = begun.elapsed().as_secs_f64();
    let peak = peak.unwrap_or_else(|| "unknown".to_owned());
    println!("{name}: {seconds:.2} s, peak memory {peak}, exit {:?}", status.code());
    Ok(())
}

/// Returns the command's path, which stands beside the folder of examples.
fn program() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let folder = this.parent().and_then(Path::parent).ok_or("this program has no folder")?;
    let program = folder.join("isobench");
    if program.is_file() { Ok(program) } else { Err("build the command first: cargo build --release".into()) }
}

struct Rows(String);

impl Files for Rows {
    fn read(&self, path: &str) -> std::result::Result<Vec<u8>, ReadFileError> {
        let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-slow\n+fast\n";
        Ok(if path == "one.patch" { patch.as_bytes().to_vec() } else { self.0.clone().into_bytes() })
    }

    fn list(&self, _path: &str) -> std::result::Result<Vec<Entry>, ReadFileError> {
        Err(ReadFileError::Missing)
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        ["rows.jsonl", "one.patch"].contains(&path).then_some(EntryKind::File)
    }
}

fn rows() -> String {
    let row = |task: usize| {
        format!(
            r#"{{"id":"task-{task}","repository":"engine","baseline":"before","human":"after","agent":[{{"name":"one","patch":"one.patch"}}],"environment":{{"python":"absent"}},"server":{{"command":["x"],"model":"m"}},"workload":{{"kind":"serving","requests":{REQUESTS},"output-tokens":{TOKENS},"ignore-eos":true,"arrival":{{"kind":"closed","concurrency":4}},"prompts":{{"kind":"words","input-tokens":8}},"warm-up-requests":0,"probes":{{"count":2,"output-tokens":{TOKENS}}}}},"metric":{{"primary":"output_throughput"}},"design":{{"blocks":{BLOCKS},"min-window-s":0.001}}}}"#
        )
    };
    (0..TASKS).map(row).collect::<Vec<_>>().join("\n")
}

/// Makes the run, and returns how many launches it has.
fn make(folder: &Path) -> Result<usize> {
    let dataset = dataset::read(&Rows(rows()), "/data", "rows.jsonl", &[])?;
    if let Some(problem) = dataset.problems.first() {
        return Err(problem.message.clone().into());
    }
    let mut facts = Facts::default();
    for revision in ["before", "after"] {
        let commit = CommitId::new(Digest::of(revision.as_bytes()).as_str())?;
        let found = ResolvedRevision::Found { commit };
        facts.revisions.entry("/data/engine".to_owned()).or_default().insert(revision.to_owned(), found);
    }
    let options = PlanOptions { allow_unisolated: true, ..PlanOptions::new(1, env!("CARGO_PKG_VERSION")) };
    let plan = planner::plan(&dataset, &facts, &options, &ExactLevels)?;
    let run = RunId::new("run")?;
    let mut store = RunStore::create(folder, &run, &plan, &facts)?;
    let digest = store.plan_digest().clone();
    let started = EventKind::RunStarted { run: run.clone(), plan: digest, isobench: "x".to_owned(), process: 1 };
    store.append(started)?;
    let mut progress = Progress::new(run);
    let mut launches = 0;
    loop {
        let spec = match progress.next(&plan)? {
            Next::Block(spec) => spec,
            Next::Look { task, look } => {
                let (contrasts, reason) = (Vec::new(), String::new());
                let taken = EventKind::LookTaken { task, look, blocks: 0, contrasts, stops: false, reason };
                progress.apply(&store.append(taken)?);
                continue;
            }
            Next::BudgetUsed { .. } | Next::Finished => break,
        };
        let order = spec.launches.iter().map(|launch| launch.arm.clone()).collect();
        progress.apply(&store.append(EventKind::BlockStarted { id: spec.id.clone(), order })?);
        let records = (0_u32..)
            .zip(&spec.launches)
            .map(|(position, launch)| record(&store, &spec, position, &launch.arm))
            .collect::<Result<Vec<_>>>()?;
        launches += records.len();
        let (id, end) = (spec.id.clone(), BlockEnd::Complete);
        progress.apply(&store.append(EventKind::BlockEnded {
            id,
            end,
            launches: records,
            charged: BTreeMap::new(),
        })?);
    }
    Ok(launches)
}

fn record(store: &RunStore, spec: &BlockSpec, position: u32, arm: &ArmId) -> Result<LaunchRecord> {
    let speed = match arm {
        ArmId::Baseline => 10_u64,
        ArmId::Human => 5,
        ArmId::Agent(_) => 7,
    };
    let bytes = requests(spec, speed * 1_000_000 + u64::from(spec.id.block * 10_007 + position * 101))?;
    let planned = spec.launches.iter().find(|launch| launch.arm == *arm).ok_or("an arm without a launch")?;
    let key = [(KeyField::Host, "host".to_owned()), (KeyField::Seed, spec.prompt_seed.to_string())];
    Ok(LaunchRecord {
        launch: LaunchId { block: spec.id.clone(), arm: arm.clone() },
        position,
        environment: planned.environment.id()?,
        outcome: Outcome::Measured,
        incidents: Vec::new(),
        evidence: [(evidence::REQUESTS.to_owned(), store.put_bytes(&bytes)?)].into(),
        timeline: Timeline::default(),
        client: None,
        device: None,
        key: ComparabilityKey(key.into()),
    })
}

/// Returns the records of a launch whose tokens come `gap_ns` apart.
fn requests(spec: &BlockSpec, gap_ns: u64) -> Result<Vec<u8>> {
    let header = RecordHeader {
        client: "example".to_owned(),
        clock: "example".to_owned(),
        epoch_unix_ns: 0,
        seed: spec.prompt_seed,
        workload: Digest::of(b"workload"),
    };
    let mut writer = RecordWriter::new(Vec::new(), &header)?;
    let phases = [(Phase::First, 1), (Phase::ProbeBefore, 2), (Phase::Measure, REQUESTS), (Phase::ProbeAfter, 2)];
    let mut begun = 0;
    for (phase, count) in phases {
        for index in 0..count {
            let chunk_ns: Vec<u64> = (1..=u64::from(TOKENS)).map(|token| begun + token * gap_ns).collect();
            let end_ns = begun + u64::from(TOKENS + 1) * gap_ns;
            writer.write(&RequestRecord {
                input_tokens: 8,
                output_tokens_asked: TOKENS,
                sent_ns: Some(begun),
                first_byte_ns: chunk_ns.first().copied(),
                chunk_tokens: vec![1; chunk_ns.len()],
                chunk_ns,
                end_ns,
                status: Some(200),
                finish_reason: Some("length".to_owned()),
                text: " word".repeat(usize::try_from(TOKENS)?),
                ..RequestRecord::intended(phase, index, begun)
            })?;
            begun = end_ns;
        }
    }
    Ok(writer.finish()?)
}
