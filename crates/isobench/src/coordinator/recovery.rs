//! What a coordinator that died left behind: processes are ended, attempts are closed with what was kept of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use isobench_plan::progress::Progress;
use isobench_runner::block;
use isobench_runner::container::{self, Daemon};
use isobench_runner::environment::KnownTrees;
use isobench_runner::host::guard::is_guard;
use isobench_runner::host::removal::{EVICTED, remove_folder, remove_or_evict};
use isobench_runner::host::{process_table, reaper};
use isobench_schema::block::BlockSpec;
use isobench_schema::environment::StaticProof;
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::format;
use isobench_schema::ids::{BlockId, LaunchId};
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_schema::plan::Plan;
use isobench_store::{Artifacts, RunStore, StoreError, write_atomically};

use crate::exit::{CommandError, Exit, WithExit as _};

/// How long orphans may take to be gone.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);
/// How many looks in a row must find nobody: a process that forks while the table is read may be missed by one.
const LOOKS: u32 = 2;
const SPEC: &str = "spec.json";

/// Ends the run's containers and those that are nobody's, every process that carries the run's mark and every descendant of one, removes their temporary folders, and
/// returns their ids. The run's lock is held, so that they are nobody's.
///
/// # Errors
/// Returns an error if some can't be ended.
pub(crate) fn end_orphans(marker: &str) -> Result<Vec<u32>, CommandError> {
    // A daemon that doesn't answer has no say; a run that needs it finds out. Its containers carry the mark as well.
    let swept = container::ask(async { container::sweep(&Daemon::connect().await?, Some(marker)).await });
    let mut ended: BTreeSet<u32> = swept.into_iter().flatten().filter_map(|swept| swept.process).collect();
    let deadline = Instant::now() + PATIENCE;
    let mut quiet = 0;
    while quiet < LOOKS {
        let marked = process_table::marked(marker);
        let unmarked = marked.iter().flat_map(|process| process_table::descendants(process.pid));
        // A guard is the last that still knows those which threw the mark away, and what they fork while they are ended:
        // it goes when it has nobody left.
        let (guards, marked): (Vec<_>, Vec<_>) = marked.iter().cloned().partition(|process| is_guard(process.pid));
        let others: Vec<_> = unmarked.chain(marked).filter(|process| !is_guard(process.pid)).collect();
        let orphans = if others.is_empty() { guards } else { others };
        if orphans.is_empty() {
            quiet += 1;
            continue;
        }
        quiet = 0;
        if Instant::now() > deadline {
            let left = reaper::names(&orphans).join(", ");
            let message = format!("processes that an earlier command of this run has left can't be ended: {left}");
            return Err(CommandError::new(Exit::Error, message).hint("end them by hand before going on"));
        }
        for orphan in &orphans {
            process_table::kill(orphan);
            ended.insert(orphan.pid);
        }
        thread::sleep(STEP);
    }
    block::sweep_tmp(marker);
    Ok(ended.into_iter().collect())
}

/// Returns the folder of what only lives as long as an attempt.
pub(super) fn work_folder(store: &RunStore, id: &BlockId) -> Result<PathBuf, CommandError> {
    let folder = store.work().exit(Exit::Error)?.join(name(id));
    fs::create_dir_all(&folder).exit(Exit::Error)?;
    Ok(folder)
}

fn name(id: &BlockId) -> String {
    let BlockId { task, block, attempt } = id;
    format!("{task}.block-{block}.attempt-{attempt}")
}

/// Removes the attempt's folder, once its end is in the record. If a stranger's program has made it so that it can't be
/// removed, it is set aside: the run needs nothing of it.
pub(super) fn remove_work(store: &RunStore, id: &BlockId) -> Result<(), CommandError> {
    let work = store.work().exit(Exit::Error)?;
    remove_or_evict(&work.join(name(id)), &work).exit(Exit::Error).map(drop)
}

/// Removes what attempts left whose end is in the record: their process was killed before it could.
pub(super) fn sweep_work(store: &RunStore) -> Result<(), CommandError> {
    let work = store.work().exit(Exit::Error)?;
    for entry in fs::read_dir(&work).exit(Exit::Error)? {
        let entry = entry.exit(Exit::Error)?;
        if entry.file_name().to_string_lossy().starts_with(EVICTED) {
            // It is in nobody's way if it still can't be removed.
            let _ = remove_folder(&entry.path());
        } else {
            remove_or_evict(&entry.path(), &work).exit(Exit::Error)?;
        }
    }
    Ok(())
}

/// Keeps the attempt's specification, so that it can be closed if this process dies.
pub(super) fn keep_spec(work: &Path, spec: &BlockSpec) -> Result<(), CommandError> {
    let text = format::to_pretty(spec).exit(Exit::Error)?;
    write_atomically(&work.join(SPEC), text.as_bytes()).exit(Exit::Error)
}

/// Keeps the record of a finished launch until the attempt's end is in the run's record.
pub(super) fn keep_record(work: &Path, record: &LaunchRecord) -> Result<(), StoreError> {
    let text = serde_json::to_string(record).expect("a launch record has only string keys");
    write_atomically(&record_path(work, &record.launch), text.as_bytes())
}

fn record_path(work: &Path, launch: &LaunchId) -> PathBuf {
    work.join(format!("{}.json", launch.file_name()))
}

/// Remembers the trees with which the launches of a block that has ended were proven.
pub(super) fn note_trees(artifacts: &Artifacts, event: &EventKind, trees: &KnownTrees) {
    let EventKind::BlockEnded { launches, .. } = event else { return };
    for launch in launches.iter().filter(|launch| trees.of(&launch.environment).is_none()) {
        let proof = launch.evidence.get(evidence::STATIC_PROOF).and_then(|proof| artifacts.read(&proof.digest).ok());
        // One that can't be read was never a proof, or is for `isobench verify` to find.
        let proof = proof.and_then(|bytes| serde_json::from_slice::<StaticProof>(&bytes).ok());
        if let Some(tree) = proof.and_then(|proof| proof.tree) {
            trees.note(&launch.environment, &tree);
        }
    }
}

/// Returns the ends of attempts that have begun and not ended: every launch `interrupted`, with what was kept of it.
pub(super) fn close_open_attempts(
    store: &RunStore,
    plan: &Plan,
    progress: &Progress,
) -> Result<Vec<EventKind>, CommandError> {
    let mut ends = Vec::new();
    for (id, order) in store.open_attempts() {
        let work = work_folder(store, &id)?;
        let kept = fs::read(work.join(SPEC)).ok().and_then(|bytes| format::from_slice::<BlockSpec>(&bytes).ok());
        let spec = match kept {
            Some(spec) => Some(spec),
            None => progress.spec_of(plan, &id).exit(Exit::Usage)?,
        };
        let Some(spec) = spec else {
            let message = format!("the plan has no block `{id}`, which the record says has begun");
            return Err(CommandError::new(Exit::Error, message).hint("`isobench verify` tells what else is wrong"));
        };
        let mut launches = Vec::new();
        for (position, arm) in (0..).zip(order) {
            let launch = LaunchId { block: id.clone(), arm };
            let bytes = fs::read(record_path(&work, &launch)).ok();
            let record = bytes.and_then(|bytes| serde_json::from_slice::<LaunchRecord>(&bytes).ok());
            launches.push(match record {
                Some(record) => LaunchRecord { outcome: Outcome::Interrupted, ..record },
                None => salvage(store, &spec, launch, position, &work)?,
            });
        }
        remove_work(store, &id)?;
        let end = BlockEnd::Interrupted;
        ends.push(EventKind::BlockEnded { id, end, launches, charged: BTreeMap::new() });
    }
    Ok(ends)
}

/// Returns the record of a launch that was cut short, with the evidence that it left.
fn salvage(
    store: &RunStore,
    spec: &BlockSpec,
    launch: LaunchId,
    position: u32,
    work: &Path,
) -> Result<LaunchRecord, CommandError> {
    let left = block::evidence_in(&work.join("scratch"), &launch);
    let Some(mut record) = block::interrupted(spec, launch, position) else {
        let message = format!("the block `{}` was begun with an arm that its specification lacks", spec.id);
        return Err(CommandError::new(Exit::Error, message));
    };
    for (name, path) in left {
        match store.put_file(&path) {
            Ok(artifact) => {
                record.evidence.insert(name.to_owned(), artifact);
            }
            // What an engine has made of its own evidence is no reason to stop.
            Err(StoreError::Io { path: unread, .. }) if unread == path => {}
            Err(error @ (StoreError::Io { .. } | StoreError::DiskFull { .. })) => return Err(error).exit(Exit::Error),
        }
    }
    Ok(record)
}
