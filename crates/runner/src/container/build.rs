//! A command that builds files of this machine in a container of a toolkit image: the folders that it writes are mounted at
//! their own paths, and nothing else of the machine can be written.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use isobench_schema::container::ContainerLimits;
use isobench_schema::environment::Toolkit;

use super::host::pinned;
use super::init::Start;
use super::watched::{self, Watched};
use super::{ContainerError, ContainerOptions, Daemon, Network, limits, sweep};
use crate::environment::PrepareContext;
use crate::host::process_table::RUN_MARKER;

/// A folder in memory that programs take for granted.
const TMP: &str = "/tmp";
/// The most processes and threads of a build: more than builds have, fewer than a machine bears.
const PROCESSES: u64 = 16_384;

/// How many containers this process has made for builds.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A build command.
#[derive(Debug)]
pub(crate) struct BuildCommand<'a> {
    /// The container that it runs in.
    pub(crate) toolkit: &'a Toolkit,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The variables that it gets above those of the image.
    pub(crate) environment: BTreeMap<String, String>,
    /// Where programs are looked for before the image's own.
    pub(crate) programs: Option<PathBuf>,
    /// The folder that it is run in.
    pub(crate) folder: PathBuf,
    /// Folders that it may write.
    pub(crate) writes: Vec<PathBuf>,
    /// Folders that it may read.
    pub(crate) reads: Vec<PathBuf>,
    /// The most memory that it may take.
    pub(crate) memory_bytes: Option<u64>,
}

/// Runs a build command to its end. Its container has no rights and, unless the toolkit says otherwise, no network; it runs on
/// the processors of this program, and lives no longer than it. Containers that nobody watches over are ended before.
///
/// # Errors
/// Returns an error if the daemon refuses or doesn't answer, or the log can't be written.
pub(crate) async fn run_build(
    build: &BuildCommand<'_>,
    context: &PrepareContext<'_>,
) -> Result<Watched, ContainerError> {
    let daemon = Daemon::connect().await?;
    // A killed command's build could still write to the folders.
    sweep(&daemon, None).await?;
    let marker = context.reaper.map_or("none", |reaper| reaper.marker());
    let mut environment = watched::variables_of(pinned(&daemon, &build.toolkit.image).await?);
    if let (Some(programs), Some(path)) = (&build.programs, environment.get_mut("PATH")) {
        *path = format!("{}:{path}", programs.display());
    }
    environment.extend(build.environment.clone());
    environment.insert(RUN_MARKER.to_owned(), marker.to_owned());
    let same = |path: &PathBuf| (path.clone(), path.clone());
    let user = format!("{}:{}", rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let options = ContainerOptions {
        image: build.toolkit.image.id.clone(),
        environment: BTreeMap::from([(RUN_MARKER.to_owned(), marker.to_owned())]),
        folder: Some(PathBuf::from("/")),
        // What it makes is to belong to this user.
        user: Some(user),
        limits: ContainerLimits {
            memory_bytes: build.memory_bytes,
            processors: limits::own_processors(),
            processes: Some(PROCESSES),
            shared_memory_bytes: None,
        },
        reads: build.reads.iter().map(same).collect(),
        writes: build.writes.iter().map(same).collect(),
        in_memory: vec![PathBuf::from(TMP)],
        network: if build.toolkit.network { Network::Default } else { Network::None },
        ..ContainerOptions::default()
    };
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("isobench-{marker}-{}-build-{number}", std::process::id());
    let container = watched::make(&daemon, (marker, &name), options, context.timeout).await?;
    let start = Start { command: build.command.clone(), environment, folder: build.folder.clone() };
    let ended = watched::finish(&daemon, &container, &start, context, &|_| {}).await;
    daemon.remove(&container).await?;
    ended
}
