//! The container host: each engine in a container of its own, with this machine's environments mounted to be read.
//!
//! The measuring client never runs in that container. It is let into the container's network, which has a loopback address
//! and nothing else, so that it reaches the engine as on a bare process host and nobody else can.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use isobench_schema::container::{ContainerSpec, DaemonFacts, ImageFacts};
use isobench_schema::failure::Failure;

use super::init::Start;
use super::init_files::InitFiles;
use super::keeper::{Container, Plan};
use super::labels::labels;
use super::options::{ContainerOptions, Devices, Input, Log, Network, RootFiles};
use super::pull::PullWatch;
use super::watched::LOADER_VARIABLES;
use super::{ContainerError, Daemon, ask, limits};
use crate::block::RunBlockError;
use crate::host::engine_host::{Berth, EngineHost, EngineLaunch, Keeper, Ports, SharedFolders};
use crate::host::in_network::InNetwork;
use crate::host::process_table::RUN_MARKER;

/// A folder in memory that programs take for granted.
const TMP: &str = "/tmp";

/// What the containers of a block are made with.
#[derive(Debug, Clone)]
pub(crate) struct Asked<'a> {
    /// The bounds, and the image of engines that bring none.
    pub(crate) container: &'a ContainerSpec,
    /// The images that engines bring.
    pub(crate) own: Vec<&'a ImageFacts>,
    /// The network.
    pub(crate) network: Network,
    /// The devices.
    pub(crate) devices: Devices,
}

/// Engines in containers.
#[derive(Debug)]
pub(crate) struct ContainerHost {
    socket: PathBuf,
    daemon: DaemonFacts,
    spec: ContainerSpec,
    network: Network,
    devices: Devices,
    /// What each image brings along, by its id.
    variables: BTreeMap<String, BTreeMap<String, String>>,
    init: InitFiles,
    marker: String,
    /// Containers made so far.
    made: AtomicU64,
}

impl ContainerHost {
    /// Finds the daemon, and the images that the plan has pinned.
    ///
    /// # Errors
    /// Returns an error if no daemon answers, or an image isn't there, or is another one.
    pub(crate) fn open(asked: &Asked<'_>, program: &Path, marker: &str) -> Result<Self, ContainerError> {
        let images = asked.container.image.iter().chain(asked.own.iter().copied());
        let (socket, daemon, variables) = ask(async {
            let daemon = Daemon::connect().await?;
            let facts = daemon.facts().await?;
            let mut variables = BTreeMap::new();
            for planned in images {
                if !variables.contains_key(&planned.id) {
                    variables.insert(planned.id.clone(), pinned(&daemon, planned).await?);
                }
            }
            Ok((daemon.socket().to_owned(), facts, variables))
        })?;
        Ok(Self {
            socket,
            daemon,
            spec: asked.container.clone(),
            network: asked.network.clone(),
            devices: asked.devices.clone(),
            variables,
            init: InitFiles::of(program),
            marker: marker.to_owned(),
            made: AtomicU64::new(0),
        })
    }

    fn options(&self, launch: &EngineLaunch, image: &ImageFacts) -> ContainerOptions {
        let mut command = self.init.command.clone();
        command.push(launch.lifetime.as_secs().to_string());
        let mut environment: BTreeMap<String, String> =
            LOADER_VARIABLES.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        environment.insert(RUN_MARKER.to_owned(), self.marker.clone());
        let same = |path: &PathBuf| (path.clone(), path.clone());
        let mut reads = self.init.files.clone();
        reads.push(same(&launch.folder));
        reads.extend(launch.reads.iter().map(same));
        let mut in_memory = vec![PathBuf::from(TMP)];
        in_memory.extend(launch.writes.iter().cloned());
        let user = format!("{}:{}", rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        ContainerOptions {
            image: image.id.clone(),
            command,
            environment,
            folder: Some(PathBuf::from("/")),
            // What it reads belongs to this user, and needs no right to be read by it.
            user: Some(user),
            limits: self.spec.limits.clone(),
            // The first process sees to it that no core is dumped: daemons raise other bounds along with one that is named.
            ulimits: Vec::new(),
            devices: self.devices.clone(),
            reads,
            writes: Vec::new(),
            in_memory,
            root: RootFiles::ReadOnly,
            seccomp: self.spec.seccomp.clone(),
            network: self.network.clone(),
            labels: labels(&self.marker, launch.lifetime),
            input: Input::Attached,
            // Docker passes everything on; Podman may stop before the last lines, which are the telling ones.
            log: if self.daemon.engine == "podman" { Log::Kept } else { Log::Passed },
        }
    }
}

/// Returns the variables of the image that the plan has pinned. If it isn't here, it is fetched by the digest that registries
/// know it by.
pub(super) async fn pinned(daemon: &Daemon, planned: &ImageFacts) -> Result<BTreeMap<String, String>, ContainerError> {
    let found = match (daemon.image(&planned.id).await, planned.repo_digests.first()) {
        (Err(error), Some(digest)) if error.is_not_found() => {
            let cancel = std::sync::atomic::AtomicBool::new(false);
            let (mut say, mut has_room) = (|_: &str| (), || true);
            let mut watch = PullWatch { bytes: None, cancel: &cancel, say: &mut say, has_room: &mut has_room };
            daemon.pull(digest, &mut watch).await?;
            daemon.image(digest).await
        }
        (found, _) => found,
    };
    let (found, variables) = found?;
    if found.id != planned.id {
        let (name, planned) = (planned.name.clone(), planned.id.clone());
        return Err(ContainerError::OtherImage { name, found: found.id, planned });
    }
    Ok(variables)
}

impl EngineHost for ContainerHost {
    fn variables(&self, own: Option<&ImageFacts>) -> BTreeMap<String, String> {
        self.image(own).and_then(|image| self.variables.get(&image.id)).cloned().unwrap_or_default()
    }

    fn ports(&self) -> io::Result<Ports> {
        // Two that are free here at once, so that they differ; in the container's own network every port is free.
        let sockets = [TcpListener::bind(("127.0.0.1", 0))?, TcpListener::bind(("127.0.0.1", 0))?];
        let [engine, trap] = sockets.map(|socket| socket.local_addr().map(|address| address.port()));
        Ok(Ports { engine: engine?, trap: trap?, open_trap: None })
    }

    fn shared_folders(&self) -> SharedFolders {
        SharedFolders::Own
    }

    fn image<'a>(&'a self, own: Option<&'a ImageFacts>) -> Option<&'a ImageFacts> {
        own.or(self.spec.image.as_ref())
    }

    fn berth(&self, launch: EngineLaunch) -> Result<Result<Box<dyn Berth>, Failure>, RunBlockError> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let image = self.image(launch.image.as_ref()).ok_or(RunBlockError::ImageMissing)?;
        let plan = Plan {
            socket: self.socket.clone(),
            name: format!("isobench-{}-{}-{number}", self.marker, std::process::id()),
            options: self.options(&launch, image),
            stdout: launch.stdout.clone(),
            stderr: launch.stderr.clone(),
        };
        let container = match Container::open(plan, self.daemon.clone()) {
            Ok(container) => container,
            Err(error) => return Ok(Err(error.into_failure()?)),
        };
        let facts = container.facts(container.process());
        if let Err(failure) = limits::check(&self.spec.limits, &self.network, &facts) {
            return Ok(Err(failure));
        }
        let EngineLaunch { command, environment, folder, .. } = launch;
        Ok(Ok(Box::new(ContainerBerth { container, start: Start { command, environment, folder } })))
    }
}

/// A container in which nothing but this program runs yet.
#[derive(Debug)]
struct ContainerBerth {
    container: Container,
    start: Start,
}

impl Berth for ContainerBerth {
    fn enter_network(&self) -> Result<Option<InNetwork>, RunBlockError> {
        InNetwork::of(self.container.process()).map(Some).map_err(RunBlockError::ContainerNetwork)
    }

    fn start(self: Box<Self>) -> Result<Box<dyn Keeper>, RunBlockError> {
        self.container.start(self.start);
        Ok(Box::new(self.container))
    }
}
