//! Writes a record of 10,000 launches, opens it again, and prints the times and the peak memory.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use isobench_schema::comparability::{ComparabilityKey, KeyField};
use isobench_schema::environment::Isolation;
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::facts::Facts;
use isobench_schema::ids::{ArmId, BlockId, Digest, EnvironmentId, LaunchId, RunId, TaskId};
use isobench_schema::outcome::{Artifact, LaunchRecord, Outcome, Timeline, evidence};
use isobench_schema::plan::Plan;
use isobench_store::{RunReader, RunStore};

const LAUNCHES: u32 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut out = std::io::stdout();
    let arms: Vec<ArmId> = ["baseline", "human"].iter().map(|arm| arm.parse()).collect::<Result<_, _>>()?;

    let started = Instant::now();
    let mut store = RunStore::create(dir.path(), &RunId::new("bench")?, &plan(), &Facts::default())?;
    for block in 0..LAUNCHES / 2 {
        let id = BlockId { task: TaskId::new(format!("task-{}", block / 6))?, block: block % 6, attempt: 1 };
        store.append(EventKind::BlockStarted { id: id.clone(), order: arms.clone() })?;
        let launches = (0..).zip(&arms).map(|(position, arm)| record(&id, position, arm)).collect();
        store.append(EventKind::BlockEnded { id, end: BlockEnd::Complete, launches, charged: BTreeMap::new() })?;
    }
    drop(store);
    writeln!(out, "write {LAUNCHES} launches, each line synced: {:?}", started.elapsed())?;
    let bytes = dir.path().join("events.jsonl").metadata()?.len();

    let started = Instant::now();
    drop(RunStore::open(dir.path())?);
    writeln!(out, "open for writing: {:?}", started.elapsed())?;

    let started = Instant::now();
    let mut launches = 0;
    for event in RunReader::open(dir.path())?.events()? {
        if let EventKind::BlockEnded { launches: records, .. } = event?.kind {
            launches += records.len();
        }
    }
    writeln!(out, "read {launches} launches from {bytes} bytes: {:?}", started.elapsed())?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    writeln!(out, "peak memory: {}", peak.trim_start_matches("VmHWM:").trim())?;
    Ok(())
}

fn plan() -> Plan {
    Plan {
        planner: "isobench bench".to_owned(),
        dataset: "bench".to_owned(),
        facts: Digest::of(b""),
        seed: 1,
        isolation: Isolation::None,
        container: None,
        allow_unisolated: true,
        tasks: Vec::new(),
        exclusions: Vec::new(),
        problems: Vec::new(),
        assessments: Vec::new(),
        planned_for: None,
    }
}

fn record(id: &BlockId, position: u32, arm: &ArmId) -> LaunchRecord {
    let artifact =
        |name: &str| Artifact { digest: Digest::of(format!("{id}/{arm}/{name}").as_bytes()), bytes: 100_000 };
    let names = [
        evidence::REQUESTS,
        evidence::SERVER_STDOUT,
        evidence::SERVER_STDERR,
        evidence::ENVIRONMENT_LOG,
        evidence::STATIC_PROOF,
        evidence::LIVE_PROOF,
        evidence::LAUNCH,
    ];
    let key: BTreeMap<KeyField, String> = KeyField::ALL.iter().map(|field| (*field, "a value".to_owned())).collect();
    LaunchRecord {
        launch: LaunchId { block: id.clone(), arm: arm.clone() },
        position,
        environment: EnvironmentId::from(Digest::of(b"environment")),
        outcome: Outcome::Measured,
        incidents: Vec::new(),
        evidence: names.iter().map(|name| ((*name).to_owned(), artifact(name))).collect(),
        timeline: Timeline::default(),
        client: None,
        device: None,
        key: ComparabilityKey(key),
    }
}
