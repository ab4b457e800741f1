//! A served engine: started in a process group of its own, proven to be ours, awaited until ready, and stopped for good.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use isobench_loadgen::get::get;
use isobench_loadgen::target::Target;
use isobench_schema::check::Check;
use isobench_schema::container::ContainerFacts;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::outcome::evidence;

use crate::elsewhere::Elsewhere;
use crate::host::engine_host::Keeper;
use crate::host::guard::{Farewell, GuardGoneError, Report};
use crate::host::process_table;
use crate::log_evidence::telling_lines;

/// The address that engines listen on.
pub const HOST: &str = "127.0.0.1";
/// How often an engine that isn't ready yet is asked.
const POLL: Duration = Duration::from_millis(5);
/// How often it is looked whether somebody else listens on the engine's port.
const OWNER_POLL: Duration = Duration::from_millis(500);
/// How long one health request may take.
const HEALTH_PATIENCE: Duration = Duration::from_secs(5);

/// What a server is known by.
#[derive(Debug, Clone)]
pub struct Serving<'a> {
    /// Where requests go.
    pub target: Target,
    /// The path that answers 200 when it is ready.
    pub health: &'a str,
    /// The port that it was given.
    pub port: u16,
    /// The files that its output goes to.
    pub stdout: PathBuf,
    /// The same for what it writes of errors.
    pub stderr: PathBuf,
    /// How long it may take to be ready.
    pub ready: Duration,
    /// How long it may take to follow SIGTERM.
    pub grace: Duration,
}

/// A running engine. Dropping it ends every process of it.
#[derive(Debug)]
pub struct Server {
    keeper: Box<dyn Keeper>,
    target: Target,
    health: String,
    stdout: PathBuf,
    stderr: PathBuf,
    port: u16,
    ready_by: Instant,
    grace: Duration,
    started: Instant,
    exited: Option<String>,
    /// What shows that the memory it used was the end of it.
    memory: Option<String>,
    /// The keeper's last report, once every process is gone.
    last: Option<Report>,
}

/// How an engine ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// What was wrong with its end; none of it undoes a measurement.
    pub incidents: Vec<Failure>,
    /// Why the launch can't be believed: the engine wasn't guarded until its end.
    pub failure: Option<Failure>,
    /// Processes that can't be killed: they would disturb every later launch.
    pub unkillable: Vec<String>,
}

/// Returns a port of [`HOST`] that is free now.
///
/// # Errors
/// Returns the operating system's error if there is none.
pub fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((HOST, 0))?.local_addr()?.port())
}

impl Server {
    /// Takes over an engine that was started at that moment. It isn't ready yet.
    pub(crate) fn new(keeper: Box<dyn Keeper>, serving: Serving<'_>, started: Instant) -> Self {
        Self {
            keeper,
            target: serving.target,
            health: serving.health.to_owned(),
            stdout: serving.stdout,
            stderr: serving.stderr,
            port: serving.port,
            ready_by: started + serving.ready,
            grace: serving.grace,
            started,
            exited: None,
            memory: None,
            last: None,
        }
    }

    /// Returns when the process was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns where requests go.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns every living process of the engine.
    pub fn processes(&self) -> Vec<process_table::ProcessInfo> {
        process_table::descendants(self.keeper.root())
    }

    /// Returns a process that is in the engine's network.
    pub fn network(&self) -> u32 {
        self.keeper.root()
    }

    /// Returns what is seen of the engine's container, given the engine's process; `None` without a container.
    pub fn container(&self, engine: u32) -> Option<ContainerFacts> {
        self.keeper.container(engine)
    }

    /// Returns the failure of an engine that has ended or couldn't be started, as seen by now. Takes no time.
    pub fn ended(&mut self, stage: FailureStage) -> Option<Failure> {
        let gone = loop {
            match self.keeper.report() {
                Ok(Some(Report::Started { .. })) => {}
                Ok(Some(Report::Refused { error })) => {
                    let message = format!("the engine can't be started: {error}");
                    return Some(Failure::new(FailureStage::Start, FailureClass::SpawnFailed, message));
                }
                Ok(Some(Report::Exited { status, memory })) => {
                    self.exited = Some(status);
                    self.memory = memory;
                }
                Ok(Some(last @ Report::Ended { .. })) => self.last = Some(last),
                Ok(None) => break false,
                Err(GuardGoneError) => break self.last.is_none(),
            }
        };
        let Some(status) = self.exited.as_ref() else {
            return gone.then(|| self.unguarded(stage, "was killed while the engine ran"));
        };
        let (class, when) = match stage {
            FailureStage::Workload => (FailureClass::ServerDied, "while it was measured"),
            FailureStage::Dataset
            | FailureStage::Acquire
            | FailureStage::Build
            | FailureStage::Verify
            | FailureStage::Start
            | FailureStage::Ready
            | FailureStage::Parse
            | FailureStage::Validity => (FailureClass::StartCrashed, "before it was ready"),
        };
        if let Some(memory) = &self.memory {
            let message = format!("the engine was killed for the memory that it used, {when}");
            let line = EvidenceLine::new("container", None, memory);
            let failure = Failure::new(stage, FailureClass::MemoryExceeded, message);
            return Some(failure.with_evidence([line]).with_evidence(self.log_end()));
        }
        let message = format!("the engine ended with {status} {when}");
        Some(Failure::new(stage, class, message).with_evidence(self.log_end()))
    }

    /// Waits until the engine answers its health endpoint on a socket that is its own.
    ///
    /// # Errors
    /// Returns the failure: it ended, another process owns the port, or it isn't ready at the deadline.
    pub async fn wait_ready(&mut self) -> Result<(), Failure> {
        let mut last_answer = String::from("nothing listens on its port");
        let mut look_at_owner = Instant::now() + OWNER_POLL;
        let mut elsewhere = Elsewhere::default();
        loop {
            if let Some(failure) = self.ended(FailureStage::Start) {
                return Err(failure);
            }
            match self.ask_health().await? {
                Some((200, _)) => return self.check_owner(),
                Some((status, body)) => {
                    let body: String = String::from_utf8_lossy(&body).chars().take(200).collect();
                    last_answer = format!("`{}` answers {status} {body}", self.health);
                }
                None => {}
            }
            let now = Instant::now();
            if now >= look_at_owner {
                look_at_owner = now + OWNER_POLL;
                if !process_table::listeners(self.network(), self.port).is_empty() {
                    self.check_owner()?;
                } else if let Some(failure) = self.look_elsewhere(&mut elsewhere).await {
                    return Err(failure.with_evidence(self.log_end()));
                }
            }
            if now >= self.ready_by {
                let waited = self.started.elapsed().as_secs_f64();
                let message = format!("the engine was not ready after {waited:.1} s: {last_answer}");
                let failure = Failure::new(FailureStage::Ready, FailureClass::NeverReady, message);
                return Err(failure.with_evidence(self.log_end()));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn look_elsewhere(&self, elsewhere: &mut Elsewhere) -> Option<Failure> {
        elsewhere.look((self.network(), &self.processes()), self.port, &self.health).await
    }

    /// Returns the health endpoint's answer, or `None` if there is none; stops waiting for it when the engine ends.
    async fn ask_health(&mut self) -> Result<Option<(u16, Vec<u8>)>, Failure> {
        let patience = HEALTH_PATIENCE.min(self.ready_by.saturating_duration_since(Instant::now()) + POLL);
        let (target, health) = (self.target.clone(), self.health.clone());
        let answer = get(target.endpoint(), &health, patience);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return Ok(answer.ok().map(|reply| (reply.status, reply.body))),
                () = tokio::time::sleep(POLL * 4) => {
                    if let Some(failure) = self.ended(FailureStage::Start) {
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// Returns the process that owns the listening socket.
    ///
    /// # Errors
    /// Returns a failure if the socket isn't held by a process of this engine.
    pub fn owner(&self) -> Result<u32, Failure> {
        let listeners = process_table::listeners(self.network(), self.port);
        let ours: Vec<u32> = self.processes().iter().map(|process| process.pid).collect();
        let address = |text: &str| text.parse::<SocketAddr>().ok();
        let wanted = [address(&format!("{HOST}:{}", self.port)), address(&format!("0.0.0.0:{}", self.port))];
        let mut evidence = Vec::new();
        for listener in &listeners {
            if let Some(process) = process_table::socket_owner(listener.inode, ours.iter().copied()) {
                return Ok(process);
            }
            let everyone = process_table::processes();
            let other = process_table::socket_owner(listener.inode, everyone.iter().map(|process| process.pid));
            let name = other.and_then(|pid| everyone.into_iter().find(|process| process.pid == pid));
            let name = name.map_or_else(
                || "a process of another user".to_owned(),
                |process| format!("`{}` (process {})", process.command, process.pid),
            );
            let exact = if wanted.contains(&Some(listener.address)) { "" } else { ", another address" };
            let text = format!("{} is listened on by {name}{exact}", listener.address);
            evidence.push(EvidenceLine::new("/proc/net/tcp", None, &text));
        }
        let message = format!("port {} is owned by a process that isn't the engine's", self.port);
        Err(Failure::new(FailureStage::Ready, FailureClass::PortOwnedByOther, message)
            .breaking(Check::PortOwner)
            .with_evidence(evidence)
            .with_evidence(self.log_end()))
    }

    fn check_owner(&mut self) -> Result<(), Failure> {
        match self.owner() {
            Ok(_) => Ok(()),
            // An engine that lost the race for its port most likely says so as it ends.
            Err(failure) => Err(self.ended(FailureStage::Start).unwrap_or(failure)),
        }
    }

    /// Returns the telling lines of the engine's log.
    pub fn log_end(&self) -> Vec<EvidenceLine> {
        let mut lines = telling_lines(&self.stderr, evidence::SERVER_STDERR);
        lines.extend(telling_lines(&self.stdout, evidence::SERVER_STDOUT));
        lines
    }

    /// Returns the failure of an engine whose keeper was killed or held: only a process that isn't ours does that.
    fn unguarded(&self, stage: FailureStage, what: &str) -> Failure {
        let (process, keeper) = (self.keeper.root(), self.keeper.name());
        let line = EvidenceLine::new("/proc", None, &format!("process {process}, the {keeper} of the engine, {what}"));
        let message = format!("the {keeper} process of the engine {what}");
        Failure::new(stage, FailureClass::ServerDied, message).with_evidence([line]).with_evidence(self.log_end())
    }

    /// Stops the engine: gracefully, then by force. Returns when every process that its keeper knows of is gone; without
    /// it the engine may still run.
    pub fn stop(mut self) -> Stopped {
        let stage = FailureStage::Workload;
        let Farewell { reports, was_held } = self.keeper.stop(self.grace);
        let last = reports.into_iter().chain(self.last.take()).find(|report| matches!(report, Report::Ended { .. }));
        let mut stopped = Stopped::default();
        if was_held {
            stopped.failure = Some(self.unguarded(stage, "was held by a signal while the engine ran"));
        }
        match last {
            Some(Report::Ended { forced, survivors, unkillable }) => {
                if forced {
                    let grace = self.grace.as_secs_f64();
                    let message = format!("the engine didn't end within {grace} s of SIGTERM and was killed");
                    let lines = telling_lines(&self.stderr, evidence::SERVER_STDERR);
                    let failure = Failure::new(stage, FailureClass::StopForced, message).with_evidence(lines);
                    stopped.incidents.push(failure);
                }
                stopped.incidents.extend(survived(&survivors));
                stopped.unkillable = unkillable;
            }
            Some(Report::Started { .. } | Report::Refused { .. } | Report::Exited { .. }) | None => {
                stopped.failure = Some(self.unguarded(stage, "was killed while the engine ran"));
            }
        }
        stopped
    }
}

/// Returns the incident of processes that outlived their engine and were ended, given as `name (id)`.
pub(crate) fn survived(survivors: &[String]) -> Option<Failure> {
    if survivors.is_empty() {
        return None;
    }
    let message = format!("{} outlived the engine and were ended", survivors.join(", "));
    let line = |survivor: &String| EvidenceLine::new("/proc", None, survivor);
    let failure = Failure::new(FailureStage::Workload, FailureClass::ProcessSurvived, message);
    Some(failure.with_evidence(survivors.iter().map(line)))
}
