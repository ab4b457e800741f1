//! What an engine runs in: a bare process of this machine, or a container. Servers and launches know these three traits only.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use isobench_schema::container::{ContainerFacts, ImageFacts};
use isobench_schema::failure::Failure;

use super::guard::{Farewell, GuardGoneError, Report};
use super::in_network::InNetwork;
use super::network_trap::NetworkTrap;
use crate::block::RunBlockError;

/// What an engine is started with, whatever it runs in.
#[derive(Debug, Clone)]
pub(crate) struct EngineLaunch {
    /// The command as an argument list.
    pub(crate) command: Vec<String>,
    /// The whole environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// The working folder: the arm's files.
    pub(crate) folder: PathBuf,
    /// The file that its standard output is appended to.
    pub(crate) stdout: PathBuf,
    /// The file that its standard error is appended to.
    pub(crate) stderr: PathBuf,
    /// From SIGTERM until it is killed.
    pub(crate) grace: Duration,
    /// How long it may live at most, whoever still watches over it.
    pub(crate) lifetime: Duration,
    /// Files and folders that it reads, beside its working folder.
    pub(crate) reads: Vec<PathBuf>,
    /// Empty folders that it alone writes.
    pub(crate) writes: Vec<PathBuf>,
    /// The image that its environment comes from, if it comes from one.
    pub(crate) image: Option<ImageFacts>,
}

/// The ports of a launch, on its own loopback address.
#[derive(Debug)]
pub(crate) struct Ports {
    /// The engine's.
    pub(crate) engine: u16,
    /// The network trap's.
    pub(crate) trap: u16,
    /// The trap, if it could be opened already: before the engine's own network exists, it can't.
    pub(crate) open_trap: Option<NetworkTrap>,
}

/// Whether engines see folders that every process of the machine shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedFolders {
    /// They do.
    Seen,
    /// They have their own.
    Own,
}

/// Where the engines of a block run.
pub(crate) trait EngineHost: Debug + Sync {
    /// Returns the variables that engines find there, below those that they are given. `own` is the image that the engine's
    /// environment comes from, if it comes from one.
    fn variables(&self, own: Option<&ImageFacts>) -> BTreeMap<String, String>;

    /// Returns ports that the next launch may use.
    fn ports(&self) -> io::Result<Ports>;

    /// Returns whether engines see folders that every process of the machine shares.
    fn shared_folders(&self) -> SharedFolders;

    /// Returns the image that engines run on, if it isn't this machine's own files.
    fn image<'a>(&'a self, own: Option<&'a ImageFacts>) -> Option<&'a ImageFacts>;

    /// Makes the place in which one engine will run. Nothing of the engine runs yet.
    fn berth(&self, launch: EngineLaunch) -> Result<Result<Box<dyn Berth>, Failure>, RunBlockError>;
}

/// The place of one engine that doesn't run yet. Dropping it leaves nothing behind.
pub(crate) trait Berth: Debug {
    /// Lets the calling thread into the engine's network, until the returned value is dropped.
    fn enter_network(&self) -> Result<Option<InNetwork>, RunBlockError>;

    /// Starts the engine.
    fn start(self: Box<Self>) -> Result<Box<dyn Keeper>, RunBlockError>;
}

/// Who keeps a running engine: tells of its end, and ends it. Dropping it ends every process of the engine.
pub(crate) trait Keeper: Debug {
    /// Returns the process below which every process of the engine is. It is in the engine's network.
    fn root(&self) -> u32;

    /// Returns what a report calls the keeper.
    fn name(&self) -> &'static str;

    /// Returns the next report, or `None` when there is none yet.
    fn report(&mut self) -> Result<Option<Report>, GuardGoneError>;

    /// Asks for a graceful stop, and returns what is told until every process is gone.
    fn stop(&mut self, grace: Duration) -> Farewell;

    /// Returns what is seen of the engine's container, given the engine's process; `None` without a container.
    fn container(&self, engine: u32) -> Option<ContainerFacts>;
}
