//! One block: a launch of each arm, back to back, on one leased device.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isobench_loadgen::schedule::ScheduleError;
use isobench_schema::block::{BlockLaunch, BlockSpec};
use isobench_schema::check::Check;
use isobench_schema::comparability::ComparabilityKey;
use isobench_schema::environment::Isolation;
use isobench_schema::facts::Host;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{ArmId, LaunchId};
use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline};

use crate::container::{Asked, ContainerError, ContainerHost, Devices, Network};
use crate::environment::KnownTrees;
use crate::host::client_thread::Scheduling;
use crate::host::engine_host::EngineHost;
use crate::host::process_host::ProcessHost;
use crate::host::reaper::{self, Reaper, UnkillableError};
use crate::host::removal;
use crate::host::shared_folders::LAUNCH_PREFIX;
use crate::inputs::Hub;
use crate::launch::{self, Folders, LaunchContext};
use crate::launch_inputs;
use crate::lease::{Lease, LeaseError};
use crate::run_images::{self, BlockImages};
use crate::sink::{Sink, SinkError};

/// How long a block waits for the device.
const LEASE_PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// Where the temporary folders of launches are: the path of a socket in one must stay below 108 bytes.
const TMP: &str = "/tmp";

/// What a block needs of this machine.
#[derive(Debug, Clone)]
pub struct BlockContext<'a> {
    /// This program, which is also the guard of engines.
    pub program: &'a Path,
    /// The cache of environments.
    pub cache: &'a Path,
    /// The trees that the run's environments have had.
    pub trees: &'a KnownTrees,
    /// Where inputs are taken from.
    pub hub: &'a Hub,
    /// A folder for what only lives as long as a launch.
    pub scratch: &'a Path,
    /// What every process of the run is marked with; unique to the run on this machine.
    pub marker: &'a str,
    /// How the measuring thread is scheduled.
    pub scheduling: Scheduling,
    /// The folder of leases.
    pub leases: &'a Path,
    /// The machine.
    pub host: &'a Host,
    /// The ids of images that other tasks of the run will need: they go last when room is needed.
    pub later: &'a BTreeSet<String>,
    /// Set from elsewhere to cut the block short.
    pub cancel: &'a AtomicBool,
}

/// Why a block can't be run at all. A launch that can't be measured is no such error.
#[derive(Debug, thiserror::Error)]
pub enum RunBlockError {
    /// The record can't be written.
    #[error("the record can't be written")]
    Sink(#[from] SinkError),
    /// A file that the launch needs can't be written or read.
    #[error("failed to use `{path}`")]
    Scratch {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An environment can't be made, for a reason that is this machine's.
    #[error("failed to prepare an environment")]
    Prepare(#[source] crate::environment::EnvironmentError),
    /// The guard can't be started.
    #[error("failed to start an engine")]
    Guard(#[from] crate::host::guard::StartGuardError),
    /// This process can't become the owner of what the run starts.
    #[error("failed to become the reaper of the run's processes")]
    Reaper(#[source] io::Error),
    /// The device can't be had.
    #[error("the device can't be leased")]
    Lease(#[source] LeaseError),
    /// Agent patches would run without isolation.
    #[error("the arm `{arm}` would run a stranger's patch without isolation")]
    IsolationMissing {
        /// The arm.
        arm: ArmId,
    },
    /// The workload can't be sent as it stands.
    #[error("the workload can't be sent")]
    Workload(#[source] ScheduleError),
    /// Engines can't be run in containers here.
    #[error("engines can't be run in containers")]
    Container(#[from] ContainerError),
    /// The client can't be let into the network of a container.
    #[error("the client can't be let into the network of the engine's container")]
    ContainerNetwork(#[source] io::Error),
    /// The block asks for containers, but doesn't say of what.
    #[error("the block asks for isolation by containers and names no image")]
    ImageMissing,
    /// The environment of an arm comes from an image, and no container is asked for.
    #[error("the block's environments come from images, and it doesn't ask for containers")]
    ContainersMissing,
    /// An engine can't be ended and would disturb every later launch.
    #[error("processes of the engine can't be ended: {processes}")]
    Unkillable {
        /// The processes.
        processes: String,
    },
}

impl RunBlockError {
    /// Returns whether a full disk is the cause, so that the run can go on once there is room.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Sink(error) => error.disk_full,
            Self::Scratch { source, .. } => is_disk_full(source),
            Self::Prepare(error) => error.is_disk_full(),
            Self::Guard(_)
            | Self::Reaper(_)
            | Self::Lease(_)
            | Self::IsolationMissing { .. }
            | Self::Workload(_)
            | Self::Container(_)
            | Self::ContainerNetwork(_)
            | Self::ImageMissing
            | Self::ContainersMissing
            | Self::Unkillable { .. } => false,
        }
    }
}

impl From<UnkillableError> for RunBlockError {
    fn from(error: UnkillableError) -> Self {
        Self::Unkillable { processes: reaper::names(&error.left).join(", ") }
    }
}

/// Returns whether an error says that there is no room.
pub fn is_disk_full(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG))
}

/// How a block ended.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockResult {
    /// The records of its launches, one for each, in their order.
    pub launches: Vec<LaunchRecord>,
    /// Whether it was cut short; then every launch is `interrupted`.
    pub interrupted: bool,
}

/// Runs a block. Every launch of it gets exactly one outcome.
///
/// # Errors
/// Returns an error if the record can't be written or this machine can't do the work. Nothing is left running then.
pub fn run(spec: &BlockSpec, context: &BlockContext<'_>, sink: &mut dyn Sink) -> Result<BlockResult, RunBlockError> {
    refuse_unisolated(spec)?;
    // Engines run in another folder than this program, so that what they are given must not depend on it.
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|source| RunBlockError::Scratch { path: path.to_owned(), source })
    };
    let [cache, scratch, leases] = [absolute(context.cache)?, absolute(context.scratch)?, absolute(context.leases)?];
    let context = &BlockContext { cache: &cache, scratch: &scratch, leases: &leases, ..context.clone() };
    let ready = launch_inputs::ready(spec, context, sink)?;
    let reaper = Reaper::new(context.marker).map_err(RunBlockError::Reaper)?;
    let device = if context.host.devices.is_empty() { "cpu" } else { "gpu" };
    let images = run_images::hold(spec, context, sink)?;
    if images.is_cancelled {
        return cut_short(spec, sink);
    }
    let failed = |planned: &BlockLaunch| {
        let environment = &planned.environment;
        let toolkit = environment.toolkit.as_ref().map(|toolkit| &toolkit.image);
        environment.python.image().into_iter().chain(toolkit).find_map(|image| images.failed.get(&image.id))
    };
    let engines = engine_host(spec, context, &images)?;
    let mut lease = take_lease(context, device, sink)?;
    let mut launches = Vec::new();
    for (position, planned) in (0..).zip(&spec.launches) {
        let launch = LaunchId { block: spec.id.clone(), arm: planned.arm.clone() };
        // A launch that loses the lease's file, or takes it away, doesn't cost the later ones theirs.
        if lease.as_ref().is_some_and(|lease| !lease.is_held()) {
            drop(lease.take());
            lease = take_lease(context, device, sink)?;
        }
        let (reaper, ready, engines) = (&reaper, &ready, engines.as_ref());
        let context = LaunchContext { spec, planned, position, ready, block: context, reaper, engines };
        let cancelled = context.block.cancel.load(Ordering::Relaxed);
        let settled = planned.settled.as_ref().or(ready.schedules.as_ref().err()).or_else(|| failed(planned));
        let record = match (&lease, cancelled, settled) {
            (None, ..) | (_, true, _) => launch::unlaunched(&context, launch, Outcome::Interrupted),
            (_, _, Some(failure)) => launch::unlaunched(&context, launch, Outcome::Failed { failure: failure.clone() }),
            (Some(lease), false, None) => {
                let mut record = run_in_scratch(&context, launch, sink)?;
                if !lease.is_held() && record.outcome == Outcome::Measured {
                    record.outcome = Outcome::Failed { failure: lease_lost() };
                }
                record
            }
        };
        sink.launched(&record)?;
        launches.push(record);
    }
    let interrupted = context.cancel.load(Ordering::Relaxed) || lease.is_none();
    if interrupted {
        for record in &mut launches {
            record.outcome = Outcome::Interrupted;
        }
    }
    Ok(BlockResult { launches, interrupted })
}

/// Returns what becomes of a block that is given up before its first launch.
fn cut_short(spec: &BlockSpec, sink: &mut dyn Sink) -> Result<BlockResult, RunBlockError> {
    let id = |arm: &ArmId| LaunchId { block: spec.id.clone(), arm: arm.clone() };
    let records = (0..).zip(&spec.launches);
    let launches: Vec<LaunchRecord> =
        records.filter_map(|(position, planned)| interrupted(spec, id(&planned.arm), position)).collect();
    for record in &launches {
        sink.launched(record)?;
    }
    Ok(BlockResult { launches, interrupted: true })
}

/// Takes the lease of the device. Returns `None` if the run is cancelled while it waits.
fn take_lease(context: &BlockContext<'_>, device: &str, sink: &mut dyn Sink) -> Result<Option<Lease>, RunBlockError> {
    let lease = Lease::take(context.leases, device, LEASE_PATIENCE, context.cancel, |holder| {
        sink.note(&format!("waiting for the {device}, which {holder} holds"));
    });
    match lease {
        Ok(lease) => Ok(Some(lease)),
        Err(LeaseError::Cancelled { .. }) => Ok(None),
        Err(error @ (LeaseError::File { .. } | LeaseError::Untrusted { .. } | LeaseError::Held { .. })) => {
            Err(RunBlockError::Lease(error))
        }
    }
}

fn lease_lost() -> Failure {
    let message = "the lease's lock file was removed or replaced during the launch";
    Failure::new(FailureStage::Validity, FailureClass::LeaseLost, message).breaking(Check::LeaseHeld).transient()
}

/// Returns the record of a launch whose coordinator died before it could write one. Its evidence is the caller's to add.
pub fn interrupted(spec: &BlockSpec, launch: LaunchId, position: u32) -> Option<LaunchRecord> {
    let planned = spec.launches.iter().find(|planned| planned.arm == launch.arm)?;
    Some(LaunchRecord {
        launch,
        position,
        environment: launch::environment_id(planned),
        outcome: Outcome::Interrupted,
        incidents: Vec::new(),
        evidence: BTreeMap::new(),
        timeline: Timeline::default(),
        client: None,
        device: None,
        key: ComparabilityKey::default(),
    })
}

/// Returns the pieces of evidence that a launch has left in its scratch folder, by name.
pub fn evidence_in(scratch: &Path, launch: &LaunchId) -> Vec<(&'static str, PathBuf)> {
    launch::evidence_in(&scratch.join(launch.file_name()))
}

/// Runs a launch with folders of its own, which are gone afterwards.
fn run_in_scratch(
    context: &LaunchContext<'_>,
    launch: LaunchId,
    sink: &mut dyn Sink,
) -> Result<LaunchRecord, RunBlockError> {
    let folder = context.block.scratch.join(launch.file_name());
    let failed = |source| RunBlockError::Scratch { path: folder.clone(), source };
    fs::create_dir_all(context.block.scratch).map_err(failed)?;
    removal::remove_or_evict(&folder, context.block.scratch).map_err(failed)?;
    fs::create_dir(&folder).map_err(failed)?;
    let tmp = make_tmp(context.block.marker)?;
    let folders = Folders { scratch: &folder, tmp: tmp.path() };
    let record = std::thread::scope(|scope| {
        // A thread of its own, because the client's scheduling is the thread's and must not be inherited by later work.
        let running = std::thread::Builder::new().name("launch".to_owned());
        let running = running.spawn_scoped(scope, || launch::run(context, launch, folders, sink)).map_err(failed)?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    // Also when the launch has ended in an error, nothing of it goes on.
    let strays = context.reaper.end_strays();
    let tmp = tmp.keep();
    let left = [(&folder, context.block.scratch), (&tmp, Path::new(TMP))].map(|(folder, place)| remove(folder, place));
    let mut record = record?;
    strays?;
    record.incidents.extend(left.into_iter().flatten());
    Ok(record)
}

/// Removes a folder of a launch. What a stranger's program has made there doesn't stop the run: if it can't be removed,
/// an incident is returned.
fn remove(folder: &Path, place: &Path) -> Option<Failure> {
    let (what, source) = match removal::remove_or_evict(folder, place) {
        Ok(None) => return None,
        Ok(Some(evicted)) => (format!("was renamed to `{}`", evicted.path.display()), evicted.source),
        Err(source) => ("stays where it is".to_owned(), source),
    };
    let message = format!("the launch's folder `{}` can't be removed and {what}: {source}", folder.display());
    Some(Failure::new(FailureStage::Workload, FailureClass::HostError, message))
}

/// Makes a fresh folder for a launch's temporary files, which no other user can have put there before.
fn make_tmp(marker: &str) -> Result<tempfile::TempDir, RunBlockError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut builder = tempfile::Builder::new();
    let prefix = tmp_prefix(marker);
    builder.prefix(&prefix).permissions(fs::Permissions::from_mode(0o700));
    builder.tempdir_in(TMP).map_err(|source| RunBlockError::Scratch { path: PathBuf::from(TMP), source })
}

fn tmp_prefix(marker: &str) -> String {
    format!("{LAUNCH_PREFIX}{marker}-")
}

/// Removes the temporary folders that launches of the run have left when it was killed. Nothing of it may run any more.
///
/// What another user has put there under such a name stays.
pub fn sweep_tmp(marker: &str) {
    use std::os::unix::fs::MetadataExt as _;
    let prefix = tmp_prefix(marker);
    for entry in fs::read_dir(TMP).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(&prefix);
        // This looks at the entry itself, also if it is a link.
        let is_own = entry
            .metadata()
            .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw());
        if is_named && is_own {
            // One that can't be removed is in nobody's way: the names are fresh.
            let _ = removal::remove_folder(&entry.path());
        }
    }
}

/// Returns where the engines of a block run.
fn engine_host(
    spec: &BlockSpec,
    context: &BlockContext<'_>,
    images: &BlockImages,
) -> Result<Box<dyn EngineHost>, RunBlockError> {
    let mut own: Vec<_> = spec.launches.iter().filter_map(|launch| launch.environment.python.image()).collect();
    own.retain(|image| !images.failed.contains_key(&image.id));
    match (spec.isolation, &spec.container) {
        (Isolation::None, _) if !own.is_empty() => Err(RunBlockError::ContainersMissing),
        (Isolation::None, _) => Ok(Box::new(ProcessHost::new(context.program))),
        (Isolation::Container, None) => Err(RunBlockError::ImageMissing),
        (Isolation::Container, Some(container)) => {
            let network = if spec.server.allow_network { Network::Default } else { Network::None };
            let gpus = if context.host.devices.is_empty() { Devices::None } else { Devices::AllGpus };
            let asked = Asked { container, own, network, devices: Devices::of(&container.devices, gpus) };
            Ok(Box::new(ContainerHost::open(&asked, context.program, context.marker)?))
        }
    }
}

/// Refuses what would let a stranger's patch run on the machine itself: its engine without a container, or its build, which
/// no container holds.
fn refuse_unisolated(spec: &BlockSpec) -> Result<(), RunBlockError> {
    let runs_freely = |launch: &&BlockLaunch| {
        let environment = &launch.environment;
        let builds_freely =
            environment.toolkit.is_none() && (environment.native.is_some() || !environment.build.is_empty());
        let is_kept = spec.isolation == Isolation::Container && !builds_freely;
        environment.source.patch.is_some() && !is_kept
    };
    match spec.launches.iter().find(runs_freely) {
        Some(launch) if !spec.allow_unisolated => Err(RunBlockError::IsolationMissing { arm: launch.arm.clone() }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_temporary_folders_of_a_killed_run_are_removed_and_a_link_leads_nowhere() {
        let marker = format!("test{}", std::process::id());
        let [mut tmp, mut other] = [&marker, &format!("{marker}x")].map(|marker| make_tmp(marker).unwrap());
        for folder in [&mut tmp, &mut other] {
            folder.disable_cleanup(true);
            fs::write(folder.path().join("file"), "").unwrap();
        }
        let link = Path::new(TMP).join(format!("{}link", tmp_prefix(&marker)));
        std::os::unix::fs::symlink(other.path(), &link).unwrap();
        sweep_tmp(&marker);
        let [is_there, is_other_there] = [&tmp, &other].map(|folder| folder.path().join("file").exists());
        fs::remove_file(link).unwrap();
        fs::remove_dir_all(other.path()).unwrap();
        assert!(!is_there && is_other_there);
    }

    #[test]
    fn a_temporary_folder_is_new_and_private() {
        use std::os::unix::fs::MetadataExt as _;
        let [first, second] = ["test", "test"].map(|marker| make_tmp(marker).unwrap());
        assert_ne!(first.path(), second.path());
        assert_eq!(first.path().metadata().unwrap().mode() & 0o777, 0o700);
    }
}
