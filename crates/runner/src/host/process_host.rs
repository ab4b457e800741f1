//! The process host: engines as bare processes of this machine, each under its guard.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isobench_schema::container::{ContainerFacts, ImageFacts};
use isobench_schema::failure::Failure;

use super::engine_host::{Berth, EngineHost, EngineLaunch, Keeper, Ports, SharedFolders};
use super::guard::{Farewell, Guard, GuardGoneError, Launch, Report};
use super::in_network::InNetwork;
use super::network_trap::NetworkTrap;
use crate::block::RunBlockError;
use crate::server::free_port;

/// Engines as bare processes.
#[derive(Debug)]
pub(crate) struct ProcessHost {
    program: PathBuf,
}

impl ProcessHost {
    /// Returns the host whose guards are `program`, which is this one.
    pub(crate) fn new(program: &Path) -> Self {
        Self { program: program.to_owned() }
    }
}

impl EngineHost for ProcessHost {
    fn variables(&self, _own: Option<&ImageFacts>) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn ports(&self) -> io::Result<Ports> {
        let trap = NetworkTrap::open(0)?;
        Ok(Ports { engine: free_port()?, trap: trap.port(), open_trap: Some(trap) })
    }

    fn shared_folders(&self) -> SharedFolders {
        SharedFolders::Seen
    }

    fn image<'a>(&'a self, _own: Option<&'a ImageFacts>) -> Option<&'a ImageFacts> {
        None
    }

    fn berth(&self, launch: EngineLaunch) -> Result<Result<Box<dyn Berth>, Failure>, RunBlockError> {
        let launch = Launch {
            command: launch.command,
            environment: launch.environment,
            folder: launch.folder,
            stdout: launch.stdout,
            stderr: launch.stderr,
            grace_ms: u64::try_from(launch.grace.as_millis()).unwrap_or(u64::MAX),
        };
        Ok(Ok(Box::new(ProcessBerth { program: self.program.clone(), launch })))
    }
}

/// What a guard will be told.
#[derive(Debug)]
struct ProcessBerth {
    program: PathBuf,
    launch: Launch,
}

impl Berth for ProcessBerth {
    fn enter_network(&self) -> Result<Option<InNetwork>, RunBlockError> {
        Ok(None)
    }

    fn start(self: Box<Self>) -> Result<Box<dyn Keeper>, RunBlockError> {
        Ok(Box::new(Guard::start(&self.program, &self.launch)?))
    }
}

impl Keeper for Guard {
    fn root(&self) -> u32 {
        self.process()
    }

    fn name(&self) -> &'static str {
        "guard"
    }

    fn report(&mut self) -> Result<Option<Report>, GuardGoneError> {
        self.next_report(Duration::ZERO)
    }

    fn stop(&mut self, grace: Duration) -> Farewell {
        self.ask_to_stop(grace)
    }

    fn container(&self, _engine: u32) -> Option<ContainerFacts> {
        None
    }
}
