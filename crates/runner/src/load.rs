//! The workload of a launch: ready, first request, live proof, probes, warm-up, the measured window, probes again.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isobench_loadgen::cancel::{Cancel, StopCause};
use isobench_loadgen::client::{Client, LoadError, LoadOptions};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::counting::Counting;
use isobench_loadgen::get::get;
use isobench_loadgen::record::RecordWriter;
use isobench_loadgen::schedule::Schedules;
use isobench_schema::block::BlockSpec;
use isobench_schema::check::Check;
use isobench_schema::environment::LiveProof;
use isobench_schema::event::LaunchStage;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::LaunchId;
use isobench_schema::outcome::{Artifact, ClientLoad, DeviceClocks, Timeline, evidence};
use isobench_schema::record::{Phase, PhaseAudit, RequestRecord};

use crate::block::{BlockContext, RunBlockError};
use crate::host::client_thread::Scheduling;
use crate::host::process_table;
use crate::inventory::device_watch::DeviceWatch;
use crate::launch::{millis, write_json};
use crate::live;
use crate::server::Server;
use crate::sink::Sink;

/// How often it is looked whether the engine still lives while it is under load.
const WATCH: Duration = Duration::from_millis(10);
/// How long an engine whose requests fail may take to be seen as ended.
const DEATH_NOTICE: Duration = Duration::from_millis(500);
/// How long the engine may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(5);

/// What is sent, and where its records go.
pub(crate) struct Load<'a> {
    pub(crate) spec: &'a BlockSpec,
    pub(crate) schedules: &'a Schedules,
    /// Counts tokens where the model's tokenizer does it.
    pub(crate) counting: &'a Counting,
    /// The machine.
    pub(crate) block: &'a BlockContext<'a>,
    pub(crate) launch: &'a LaunchId,
    pub(crate) folder: &'a Path,
    pub(crate) records: &'a File,
}

/// What the live proof is held against, given the process that owns the port.
pub(crate) type Expect<'a> = dyn Fn(u32) -> live::Expected<'a> + 'a;

type Step<T> = Result<Result<T, Failure>, RunBlockError>;

/// Returns early with a failure, which is no error.
macro_rules! attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(failure) => return Ok(Err(failure)),
        }
    };
}

/// What is noted of a launch's workload besides its records.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) timeline: Timeline,
    pub(crate) client: Option<ClientLoad>,
    /// What the driver said of the devices over the window.
    pub(crate) device: Option<DeviceClocks>,
    /// What was written to the request records.
    pub(crate) records: Option<Artifact>,
    /// Shared memory that the engine has mapped, by path.
    pub(crate) shared_memory: BTreeSet<PathBuf>,
}

/// Makes the file of records, before the engine starts and could put something in its place. What is written to it is
/// appended, so that whatever the engine writes to it stays and shows.
///
/// # Errors
/// Returns an error if it can't be made.
pub(crate) fn create_records(folder: &Path) -> Result<File, RunBlockError> {
    let path = folder.join(evidence::REQUESTS);
    let file = OpenOptions::new().append(true).create_new(true).open(&path);
    file.map_err(|source| RunBlockError::Scratch { path, source })
}

/// Waits for the engine, proves it, and sends the workload. Call it from a thread of its own.
///
/// # Errors
/// Returns an error if the record can't be written.
pub(crate) fn measure(
    load: &Load<'_>,
    server: &mut Server,
    expect: &Expect<'_>,
    notes: &mut Notes,
    sink: &mut dyn Sink,
) -> Step<()> {
    let path = load.folder.join(evidence::REQUESTS);
    let failed = |source| RunBlockError::Scratch { path: path.clone(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let clock = Clock::start();
    let header = clock.header(load.spec.prompt_seed, load.schedules.digest());
    let mut writer = RecordWriter::new(BufWriter::with_capacity(1 << 16, load.records), &header).map_err(failed)?;
    let stop = Cancel::new();
    let prepare_thread = || {
        Scheduling::take();
    };
    let options = LoadOptions { prepare_thread, ..LoadOptions::from(&load.spec.limits) };
    let client = Client::new(server.target().clone(), options, clock, stop.clone());
    let mut session = Session { load, clock, client, stop, deadline: None, audit: None };
    let result = runtime.block_on(session.run(server, &mut writer, (expect, notes), sink))?;
    writer.flush().map_err(failed)?;
    notes.records = Some(writer.written());
    Ok(result)
}

type Writer<'a> = RecordWriter<BufWriter<&'a File>>;

/// A launch's workload under way.
struct Session<'a> {
    load: &'a Load<'a>,
    clock: Clock,
    client: Client,
    stop: Cancel,
    /// When the workload is stopped; known once the engine is ready.
    deadline: Option<Instant>,
    /// What the client saw of itself in the last phase.
    audit: Option<PhaseAudit>,
}

impl Session<'_> {
    async fn run(
        &mut self,
        server: &mut Server,
        writer: &mut Writer<'_>,
        (expect, notes): (&Expect<'_>, &mut Notes),
        sink: &mut dyn Sink,
    ) -> Step<()> {
        attempt!(self.wait_ready(server).await);
        let ready = Instant::now();
        notes.timeline.start_ms = millis(ready - server.started());
        self.deadline = Some(ready + self.load.spec.limits.workload_s.duration());
        let ready_ns = self.clock.now_ns();
        let records = attempt!(self.phase(server, writer, Phase::First).await?);
        let record = records.first();
        let sent = record.and_then(|record| record.sent_ns).unwrap_or(ready_ns).saturating_sub(ready_ns);
        notes.timeline.first_request_ms = millis(Duration::from_nanos(sent));
        if let Err(failure) = check_first(server, record) {
            return Ok(Err(stranger(server, expect).unwrap_or(failure)));
        }
        sink.stage(self.load.launch, LaunchStage::Ready)?;
        let proof = attempt!(self.prove(server, expect).await?);

        sink.stage(self.load.launch, LaunchStage::WarmUp)?;
        let warming = Instant::now();
        attempt!(self.phase(server, writer, Phase::ProbeBefore).await?);
        attempt!(self.phase(server, writer, Phase::WarmUp).await?);
        notes.timeline.warm_up_ms = millis(warming.elapsed());
        attempt!(self.check_network(server));
        sink.stage(self.load.launch, LaunchStage::Measuring)?;
        let engine_ms = process_table::processor_ms(&server.processes());
        let devices = DeviceWatch::start(self.load.block.host, self.load.block.marker, self.load.folder);
        let measuring = Instant::now();
        attempt!(self.phase(server, writer, Phase::Measure).await?);
        notes.timeline.window_ms = millis(measuring.elapsed());
        notes.device = devices.and_then(DeviceWatch::stop);
        notes.client = self.audit.as_ref().and_then(client_load);
        let taken = process_table::processor_ms(&server.processes()).checked_sub(engine_ms);
        if let (Some(client), Some(taken)) = (notes.client.as_mut(), taken) {
            client.engine_ms = millis(Duration::from_millis(taken));
        }
        notes.shared_memory = process_table::shared_memory(&server.processes());
        attempt!(self.phase(server, writer, Phase::ProbeAfter).await?);
        attempt!(self.check_network(server));
        Ok(still_proven(server, expect, &proof))
    }

    /// Waits until the engine is ready, or the run is interrupted.
    async fn wait_ready(&self, server: &mut Server) -> Result<(), Failure> {
        let cancel = self.load.block.cancel;
        tokio::select! {
            ready = server.wait_ready() => ready,
            () = flag(cancel) => Err(interrupted()),
        }
    }

    /// Sends one phase while watching the engine, and stores its records. Returns those of the first and failed requests.
    async fn phase(&mut self, server: &mut Server, writer: &mut Writer<'_>, phase: Phase) -> Step<Vec<RequestRecord>> {
        let mut telling = Vec::new();
        let mut death = None;
        let result = {
            let counting = self.load.counting;
            let take = |mut record: RequestRecord| {
                counting.count(&mut record)?;
                let written = writer.write(&record);
                if record.failure.is_some() || record.index == 0 {
                    telling.push(record);
                }
                written
            };
            let running = self.client.run_phase(self.load.schedules.phase(phase), take);
            tokio::pin!(running);
            loop {
                tokio::select! {
                    result = &mut running => break result,
                    () = tokio::time::sleep(WATCH) => {
                        if death.is_none() {
                            death = server.ended(FailureStage::Workload);
                        }
                        self.stop_if_due(death.is_some());
                    }
                }
            }
        };
        match result {
            Ok(summary) => {
                let written = writer.write_audit(summary.audit.clone());
                self.audit = Some(summary.audit);
                written.map_err(|source| self.load_error(LoadError::Record { source }))?;
            }
            Err(error) => return Err(self.load_error(error)),
        }
        if death.is_none() && telling.iter().any(|record| record.failure.is_some()) {
            death = notice_death(server).await;
        }
        match (death, self.stop.cause()) {
            (Some(failure), _) => Ok(Err(failure)),
            (None, Some(StopCause::Interrupted)) => Ok(Err(interrupted())),
            (None, Some(StopCause::WorkloadTimeout | StopCause::ServerDied)) => Ok(Err(self.too_late(server, phase))),
            (None, None) => Ok(Ok(telling)),
        }
    }

    /// Stops the load if the engine is dead, the run was interrupted, or the time is up.
    fn stop_if_due(&self, dead: bool) {
        if dead {
            self.stop.stop(StopCause::ServerDied);
        } else if self.load.block.cancel.load(Ordering::Relaxed) {
            self.stop.stop(StopCause::Interrupted);
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.stop.stop(StopCause::WorkloadTimeout);
        }
    }

    fn load_error(&self, error: LoadError) -> RunBlockError {
        let path = self.load.folder.join(evidence::REQUESTS);
        match error {
            LoadError::Record { source } | LoadError::Engine { source } | LoadError::Bind { source, .. } => {
                RunBlockError::Scratch { path, source }
            }
            LoadError::Thread => RunBlockError::Scratch { path, source: std::io::Error::other(LoadError::Thread) },
        }
    }

    fn too_late(&self, server: &Server, phase: Phase) -> Failure {
        let limit = self.load.spec.limits.workload_s;
        let message = format!("the workload wasn't finished after {limit}, in the phase `{phase}`");
        let lines = server.log_end();
        Failure::new(FailureStage::Workload, FailureClass::WorkloadTimeout, message).with_evidence(lines)
    }

    async fn prove(&self, server: &Server, expect: &Expect<'_>) -> Step<LiveProof> {
        let process = attempt!(server.owner());
        let mut proof = attempt!(live::prove(&seen(server, expect, process)));
        let path = crate::engine::version_path(self.load.spec.engine);
        if let Ok(reply) = get(server.target().endpoint(), path, VERSION_PATIENCE).await
            && reply.status == 200
        {
            proof.claimed_version = Some(String::from_utf8_lossy(&reply.body).chars().take(300).collect());
        }
        write_json(&self.load.folder.join(evidence::LIVE_PROOF), &proof)?;
        Ok(Ok(proof))
    }

    fn check_network(&self, server: &Server) -> Result<(), Failure> {
        if self.load.spec.server.allow_network {
            return Ok(());
        }
        let outside = process_table::outside_connections(server.network(), &server.processes());
        if outside.is_empty() {
            return Ok(());
        }
        let message = format!("the engine is connected to the network: {}", outside.join(", "));
        let lines = outside.iter().map(|line| EvidenceLine::new("/proc/net/tcp", None, line));
        let failure = Failure::new(FailureStage::Validity, FailureClass::NetworkAsked, message);
        Err(failure.breaking(Check::NoNetwork).with_evidence(lines))
    }
}

/// Returns how busy the client's thread was, where the kernel counts its waiting.
fn client_load(audit: &PhaseAudit) -> Option<ClientLoad> {
    let of = |ns: u64| millis(Duration::from_nanos(ns));
    Some(ClientLoad {
        window_ms: of(audit.ended_ns.saturating_sub(audit.began_ns))?,
        busy_ms: of(audit.busiest_ns)?,
        waited_ms: of(audit.waited_ns?)?,
        engine_ms: None,
    })
}

fn check_first(server: &Server, record: Option<&RequestRecord>) -> Result<(), Failure> {
    let Some(failure) = record.and_then(|record| record.failure.as_ref()) else { return Ok(()) };
    let message = format!("the engine is ready but fails its first request: {}: {}", failure.class, failure.message);
    // The header is the first line of the records.
    let line = EvidenceLine::new(evidence::REQUESTS, Some(2), &failure.message);
    let failure = Failure::new(FailureStage::Ready, FailureClass::FirstRequestFailed, message);
    Err(failure.with_evidence([line]).with_evidence(server.log_end()))
}

/// Returns what a process of the engine must be, with what is seen of its container now.
fn seen<'a>(server: &Server, expect: &Expect<'a>, process: u32) -> live::Expected<'a> {
    live::Expected { container: server.container(process), ..expect(process) }
}

/// Returns the failure of an engine whose port is answered by a process that isn't the planned program: that comes before
/// how it answers.
fn stranger(server: &Server, expect: &Expect<'_>) -> Option<Failure> {
    let process = server.owner().ok()?;
    let failure = live::prove(&seen(server, expect, process)).err()?;
    // One that has ended meanwhile can't be looked at, which proves nothing.
    process_table::executable(process).map(|_| failure)
}

/// Checks that the program that has answered last is the one that was proven before the first: it may have given its port
/// to another one meanwhile, or have become another one.
fn still_proven(server: &mut Server, expect: &Expect<'_>, before: &LiveProof) -> Result<(), Failure> {
    let found = server.owner().map_err(|failure| {
        live::unproven(failure.message).breaking(Check::SameProcess).with_evidence(failure.evidence)
    });
    let proven = found.and_then(|process| live::prove(&seen(server, expect, process)));
    let same = proven.and_then(|after| live::compare(before, &after));
    // One that has just ended has no port either.
    same.map_err(|failure| server.ended(FailureStage::Workload).unwrap_or(failure))
}

/// Returns the failure of an engine whose requests fail because it is about to be seen as ended.
async fn notice_death(server: &mut Server) -> Option<Failure> {
    let until = Instant::now() + DEATH_NOTICE;
    loop {
        let death = server.ended(FailureStage::Workload);
        if death.is_some() || Instant::now() >= until {
            return death;
        }
        tokio::time::sleep(WATCH).await;
    }
}

fn interrupted() -> Failure {
    Failure::new(FailureStage::Workload, FailureClass::Interrupted, "the run was interrupted").transient()
}

async fn flag(flag: &AtomicBool) {
    while !flag.load(Ordering::Relaxed) {
        tokio::time::sleep(WATCH).await;
    }
}
