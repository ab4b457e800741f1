//! Runs a plan: block after block as the plan and the events say, resuming whatever was cut short.

mod ended;
mod fault;
mod inputs;
mod recovery;
mod sink;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isobench_plan::budget::Budget;
use isobench_plan::next::Next;
use isobench_plan::progress::Progress;
use isobench_runner::block::{self, BlockContext, RunBlockError};
use isobench_runner::environment::KnownTrees;
use isobench_runner::host::client_thread::Scheduling;
use isobench_runner::inputs::Hub;
use isobench_schema::block::BlockSpec;
use isobench_schema::event::{BlockEnd, Event, EventKind, RunEnd};
use isobench_schema::facts::Host;
use isobench_schema::ids::Digest;
use isobench_schema::outcome::LaunchRecord;
use isobench_store::RunStore;

use isobench_analysis::validity::LaunchRules;

use crate::container_args;
use crate::evidence::{self, Digests, LaunchDigest};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::progress::Watch;
pub(crate) use ended::EndedBlocks;
pub(crate) use recovery::end_orphans;
use sink::StoreSink;

/// What a run needs of this machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// This program, which is also the guard of engines.
    pub(crate) program: PathBuf,
    /// The cache of environments.
    pub(crate) cache: PathBuf,
    /// How the measuring thread is scheduled.
    pub(crate) scheduling: Scheduling,
    /// The folder of leases.
    pub(crate) leases: PathBuf,
    /// The machine's facts.
    pub(crate) host: Host,
    /// Where inputs are taken from.
    pub(crate) hub: Arc<Hub>,
}

/// Returns what every process of the run in `dir` is marked with: the same for the same folder, and for no other.
pub(crate) fn marker(dir: &Path) -> String {
    let path = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    Digest::of(path.as_os_str().as_encoded_bytes()).short().to_owned()
}

/// Runs what the plan still wants, until it is done, interrupted or stopped by an error.
///
/// # Errors
/// Returns an error if the record can't be written or this machine can't do the work. The record is intact, and the same
/// command goes on once the cause is mended.
pub(crate) fn run(
    store: &mut RunStore,
    machine: &Machine,
    cancel: &AtomicBool,
    budget: &Budget,
    watch: &mut dyn Watch,
) -> Result<RunEnd, CommandError> {
    let marker = marker(store.dir());
    let run = store.run().clone();
    let (plan, plan_digest) = (store.plan().clone(), store.plan_digest().clone());
    let mut course = Course { progress: Progress::new(run.clone()), ended: EndedBlocks::default() };
    let trees = KnownTrees::default();
    let mut has_finished = false;
    for event in store.events().exit(Exit::Error)? {
        let event = event.exit(Exit::Error)?;
        course.apply(&event);
        recovery::note_trees(store.artifacts(), &event.kind, &trees);
        has_finished = match &event.kind {
            EventKind::RunEnded { end, .. } => *end == RunEnd::Finished,
            // What a person says of a run that has finished doesn't begin it anew.
            EventKind::Confirmed { .. } | EventKind::ConfirmationWithdrawn { .. } => has_finished,
            EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::BlockEnded { .. }
            | EventKind::LookTaken { .. } => false,
        };
        watch.seen(&event);
    }
    let orphans = end_orphans(&marker)?;
    // A design that isn't known here is refused before anything is written.
    course.progress.next(&plan).exit(Exit::Usage)?;
    // Without its last event the run was killed just before it, and gets it now.
    if has_finished && store.open_attempts().is_empty() {
        return Ok(RunEnd::Finished);
    }
    let kind = EventKind::RunStarted {
        run: run.clone(),
        plan: plan_digest,
        isobench: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
    };
    course.note(store, watch, kind)?;
    if !orphans.is_empty() {
        course.note(store, watch, EventKind::OrphansEnded { processes: orphans })?;
    }
    for kind in recovery::close_open_attempts(store, &plan, &course.progress)? {
        course.note(store, watch, kind)?;
    }
    recovery::sweep_work(store)?;
    let mut digests = Digests::open(store.dir());
    inputs::fetch(store, machine, cancel, watch)?;
    loop {
        let spec = match course.progress.next_within(&plan, budget).exit(Exit::Usage)? {
            Next::Block(spec) => spec,
            Next::Look { task, look } => {
                let kind = course.ended.look(store.artifacts(), &plan, &task, look, &mut digests)?;
                course.note(store, watch, kind)?;
                continue;
            }
            Next::BudgetUsed { reason } => return stop(store, RunEnd::BudgetUsed, Some(reason), watch),
            Next::Finished => return stop(store, RunEnd::Finished, None, watch),
        };
        if cancel.load(Ordering::Relaxed) {
            return stop(store, RunEnd::Interrupted, None, watch);
        }
        // First what recovery needs, then the event that makes it needed.
        recovery::keep_spec(&recovery::work_folder(store, &spec.id)?, &spec)?;
        let order = spec.launches.iter().map(|launch| launch.arm.clone()).collect();
        course.note(store, watch, EventKind::BlockStarted { id: spec.id.clone(), order })?;
        let later = course.progress.images_left(&plan, &spec.id.task);
        match run_block(store, machine, (&marker, &trees, &later), &spec, cancel, &mut digests, watch) {
            Ok(kind) => {
                let interrupted = matches!(&kind, EventKind::BlockEnded { end: BlockEnd::Interrupted, .. });
                course.note(store, watch, kind.clone())?;
                let rules = LaunchRules::of_block(&spec);
                let window_s = |record: &LaunchRecord| Some(digests.known(record, &rules)?.measurement.window_s);
                if let Some(line) = fault::ends_here(&course.progress, &kind, window_s) {
                    watch.note(&line);
                }
                recovery::remove_work(store, &spec.id)?;
                if interrupted {
                    return stop(store, RunEnd::Interrupted, None, watch);
                }
            }
            Err(error) => {
                // The disk may be too full even for this; the error itself is what counts.
                let _ = stop(store, RunEnd::Stopped, Some(error.message.clone()), watch);
                return Err(error);
            }
        }
        digests.save(store.dir())?;
    }
}

/// How far the run has come, kept up with each event.
struct Course {
    progress: Progress,
    ended: EndedBlocks,
}

impl Course {
    fn apply(&mut self, event: &Event) {
        self.progress.apply(event);
        self.ended.apply(event);
    }

    /// Writes an event into the record, and shows it.
    fn note(&mut self, store: &mut RunStore, watch: &mut dyn Watch, kind: EventKind) -> Result<(), CommandError> {
        let event = store.append(kind).map_err(not_written)?;
        self.apply(&event);
        watch.event(&event);
        Ok(())
    }
}

fn stop(
    store: &mut RunStore,
    end: RunEnd,
    message: Option<String>,
    watch: &mut dyn Watch,
) -> Result<RunEnd, CommandError> {
    let event = store.append(EventKind::RunEnded { end, message }).map_err(not_written)?;
    watch.event(&event);
    Ok(end)
}

/// Runs one block into the store, and returns how it ended.
fn run_block(
    store: &mut RunStore,
    machine: &Machine,
    (marker, trees, later): (&str, &KnownTrees, &BTreeSet<String>),
    spec: &BlockSpec,
    cancel: &AtomicBool,
    digests: &mut Digests,
    watch: &mut dyn Watch,
) -> Result<EventKind, CommandError> {
    let work = recovery::work_folder(store, &spec.id)?;
    let scratch = work.join("scratch");
    let context = BlockContext {
        program: &machine.program,
        cache: &machine.cache,
        trees,
        hub: &machine.hub,
        scratch: &scratch,
        marker,
        scheduling: machine.scheduling,
        leases: &machine.leases,
        host: &machine.host,
        later,
        cancel,
    };
    let mut sink = StoreSink { store, watch, work: &work };
    let result = block::run(spec, &context, &mut sink).map_err(block_error)?;
    let (end, charged) = if result.interrupted {
        (BlockEnd::Interrupted, std::collections::BTreeMap::new())
    } else {
        evidence::end_of_block(store.artifacts(), spec, &result.launches, digests)?
    };
    let rules = LaunchRules::of_block(spec);
    for record in &result.launches {
        // What doesn't count is no part of the running estimate.
        let counts = |digest: &&LaunchDigest| digest.findings.is_empty() && !charged.contains_key(&record.launch.arm);
        watch.measured(record, digests.known(record, &rules).filter(counts));
    }
    Ok(EventKind::BlockEnded { id: spec.id.clone(), end, launches: result.launches, charged })
}

/// Returns the error of a block with its exit code and the next step.
pub(crate) fn block_error(error: RunBlockError) -> CommandError {
    let disk_full = error.is_disk_full();
    let exit = match &error {
        RunBlockError::IsolationMissing { .. }
        | RunBlockError::ImageMissing
        | RunBlockError::ContainersMissing
        | RunBlockError::Workload(_) => Exit::Usage,
        RunBlockError::Container(_)
        | RunBlockError::ContainerNetwork(_)
        | RunBlockError::Lease(_)
        | RunBlockError::Guard(_)
        | RunBlockError::Reaper(_)
        | RunBlockError::Prepare(_) => Exit::Machine,
        RunBlockError::Sink(_) | RunBlockError::Scratch { .. } if disk_full => Exit::Machine,
        RunBlockError::Sink(_) | RunBlockError::Scratch { .. } | RunBlockError::Unkillable { .. } => Exit::Error,
    };
    let hint = match &error {
        _ if disk_full => Some("the disk is full: free some room, then give the same command again to resume"),
        RunBlockError::IsolationMissing { .. } => {
            Some("give `--allow-unisolated` if you trust the patch as much as a program that you would run yourself")
        }
        RunBlockError::Unkillable { .. } => Some("these processes hold the device; end them by hand before going on"),
        RunBlockError::ContainerNetwork(_) => Some("run isobench as root, whom the kernel allows it"),
        RunBlockError::Container(error) => Some(container_args::next_step(error)),
        RunBlockError::ImageMissing | RunBlockError::ContainersMissing => {
            Some("make the plan again with `--isolation container --image IMAGE`")
        }
        RunBlockError::Sink(_)
        | RunBlockError::Scratch { .. }
        | RunBlockError::Prepare(_)
        | RunBlockError::Guard(_)
        | RunBlockError::Reaper(_)
        | RunBlockError::Lease(_)
        | RunBlockError::Workload(_) => None,
    };
    let error = CommandError::from_error(exit, error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Returns the error of a record that can't be written.
fn not_written(error: isobench_store::AppendError) -> CommandError {
    let disk_full = isobench_store::is_disk_full(&error);
    let command = CommandError::from_error(if disk_full { Exit::Machine } else { Exit::Error }, error);
    if disk_full {
        command.hint("the disk is full: free some room, then give the same command again to resume")
    } else {
        command
    }
}
