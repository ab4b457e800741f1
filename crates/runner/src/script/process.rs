//! The process of a benchmark script: started by an engine host, watched until it ends by itself or at its deadline.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isobench_schema::check::Check;
use isobench_schema::container::ContainerFacts;
use isobench_schema::environment::LiveProof;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::outcome::evidence;
use isobench_schema::script::SeenBar;
use isobench_schema::task::Limits;
use isobench_schema::units::Millis;

use super::bars::Followed;
use super::unproven;
use crate::block::RunBlockError;
use crate::host::engine_host::{Berth, Keeper};
use crate::host::guard::{GuardGoneError, Report};
use crate::host::process_table::{self, ProcessInfo};
use crate::launch::millis;
use crate::live;
use crate::log_evidence::telling_lines;
use crate::server::{Stopped, survived};

/// How often logs are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often the process is proven again, and its connections are looked at.
const PROVE: Duration = Duration::from_millis(500);
/// How long the process may take to be the planned program, or to follow a wrong one that it has only begun with.
const BEGIN: Duration = Duration::from_secs(2);

/// What a script is run within.
pub(crate) struct Run<'a> {
    /// The folder that log files are written to.
    pub(crate) logs: &'a Path,
    pub(crate) limits: &'a Limits,
    pub(crate) allow_network: bool,
    pub(crate) cancel: &'a AtomicBool,
}

/// What was seen of a script until its process had ended.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// From its start to its end, or until it was given up.
    pub(crate) wall: Duration,
    pub(crate) processor_ms: u64,
    pub(crate) bars: Vec<SeenBar>,
    /// The last proof that succeeded.
    pub(crate) proof: Option<LiveProof>,
    pub(crate) shared_memory: BTreeSet<PathBuf>,
}

/// What the live proof is held against, given the script's process and what is seen of its container.
pub(crate) type Expect<'a> = dyn Fn(u32, Option<ContainerFacts>) -> live::Expected<'a> + 'a;

/// How a script ended: what was seen of it, why it wasn't measured if so, and how its processes were stopped.
pub(crate) struct Ended {
    pub(crate) seen: Seen,
    pub(crate) outcome: Result<(), Failure>,
    pub(crate) stopped: Stopped,
}

/// Runs a script to its end, in the place that was made for it.
///
/// # Errors
/// Returns an error if its process can't be started.
pub(crate) fn run(run: &Run<'_>, berth: Box<dyn Berth>, expect: &Expect<'_>) -> Result<Ended, RunBlockError> {
    let path = |name: &str| run.logs.join(name);
    let grace = run.limits.stop_s.duration();
    let begun = Instant::now();
    let mut keeper = berth.start()?;
    let followed = [evidence::SERVER_STDERR, evidence::SERVER_STDOUT].map(|name| Followed::new(&path(name)));
    let mut watch = Watch { run, expect, begun, followed, seen: Seen::default(), process: None, refusal: None };
    let outcome = watch.until_end(keeper.as_mut());
    watch.seen.wall = begun.elapsed();
    watch.look();
    let farewell = keeper.stop(grace);
    let mut stopped = Stopped::default();
    if farewell.was_held {
        stopped.failure = Some(watch.unguarded(keeper.as_ref(), "was held by a signal while the script ran"));
    }
    match farewell.reports.into_iter().find(|report| matches!(report, Report::Ended { .. })) {
        Some(Report::Ended { forced, survivors, unkillable }) => {
            if forced {
                let message =
                    format!("the script didn't end within {} s of SIGTERM and was killed", grace.as_secs_f64());
                let failure = Failure::new(FailureStage::Workload, FailureClass::StopForced, message);
                stopped.incidents.push(failure);
            }
            stopped.incidents.extend(survived(&survivors));
            stopped.unkillable = unkillable;
        }
        Some(Report::Started { .. } | Report::Refused { .. } | Report::Exited { .. }) | None => {
            stopped.failure = Some(watch.unguarded(keeper.as_ref(), "was killed while the script ran"));
        }
    }
    let Watch { mut seen, followed, .. } = watch;
    seen.bars = followed.into_iter().flat_map(|followed| followed.into_bars().into_seen()).collect();
    seen.bars.sort_by(|a, b| a.first_ms.get().total_cmp(&b.first_ms.get()));
    Ok(Ended { seen, outcome, stopped })
}

/// A script under way.
struct Watch<'a, 'e> {
    run: &'a Run<'a>,
    expect: &'a Expect<'e>,
    begun: Instant,
    followed: [Followed; 2],
    seen: Seen,
    process: Option<u32>,
    /// Why the last proof failed.
    refusal: Option<Failure>,
}

impl Watch<'_, '_> {
    /// Watches the script until it has ended, or is to be ended.
    fn until_end(&mut self, keeper: &mut dyn Keeper) -> Result<(), Failure> {
        let limits = self.run.limits;
        let deadline = self.begun + limits.ready_s.duration() + limits.workload_s.duration();
        let mut prove_at = self.begun;
        loop {
            match keeper.report() {
                Ok(Some(Report::Started { process })) => self.process = Some(process),
                Ok(Some(Report::Refused { error })) => {
                    let message = format!("the benchmark script can't be started: {error}");
                    return Err(Failure::new(FailureStage::Start, FailureClass::SpawnFailed, message));
                }
                Ok(Some(Report::Exited { status, memory })) => return self.ended(&status, memory.as_deref()),
                Ok(Some(Report::Ended { .. })) | Err(GuardGoneError) => {
                    return Err(self.unguarded(keeper, "ended while the script ran"));
                }
                Ok(None) => thread::sleep(LOOK),
            }
            self.look();
            let now = Instant::now();
            if self.process.is_none() {
                self.process = first_child(keeper.root());
            }
            if now >= prove_at && self.process.is_some() {
                // Until it was proven once, as often as logs are looked at: a short script must be proven, too.
                let pause = if self.seen.proof.is_none() { LOOK } else { PROVE };
                prove_at = now + pause;
                self.prove(keeper)?;
            }
            if self.run.cancel.load(Ordering::Relaxed) {
                let failure =
                    Failure::new(FailureStage::Workload, FailureClass::Interrupted, "the run was interrupted");
                return Err(failure.transient());
            }
            if now >= deadline {
                let after = (deadline - self.begun).as_secs_f64();
                let message = format!("the benchmark script wasn't finished after {after} s");
                let failure = Failure::new(FailureStage::Workload, FailureClass::WorkloadTimeout, message);
                return Err(failure.with_evidence(self.log_end()));
            }
        }
    }

    /// Looks at what was logged.
    fn look(&mut self) {
        let Some(now) = millis(self.begun.elapsed()) else { return };
        for followed in &mut self.followed {
            followed.look(now);
        }
    }

    /// Proves that the process runs the planned program on the arm's engine, and that it is connected to nothing outside.
    fn prove(&mut self, keeper: &dyn Keeper) -> Result<(), Failure> {
        let Some(process) = self.process else { return Ok(()) };
        let processes = process_table::descendants(keeper.root());
        if !processes.is_empty() {
            self.seen.processor_ms = self.seen.processor_ms.max(process_table::processor_ms(&processes));
            self.seen.shared_memory.extend(process_table::shared_memory(&processes));
        }
        match live::prove(&(self.expect)(process, keeper.container(process))) {
            Ok(proof) => {
                self.seen.proof = Some(proof);
                self.refusal = None;
            }
            // One that has just ended can't be looked at.
            Err(_) if process_table::executable(process).is_none() => {}
            Err(failure) if self.begun.elapsed() < BEGIN && self.seen.proof.is_none() => self.refusal = Some(failure),
            Err(failure) => return Err(failure),
        }
        let among: &[ProcessInfo] = if self.run.allow_network { &[] } else { &processes };
        let outside = process_table::outside_connections(keeper.root(), among);
        if outside.is_empty() {
            return Ok(());
        }
        let message = format!("the script is connected to the network: {}", outside.join(", "));
        let lines = outside.iter().map(|line| EvidenceLine::new("/proc/net/tcp", None, line));
        let failure = Failure::new(FailureStage::Validity, FailureClass::NetworkAsked, message);
        Err(failure.breaking(Check::NoNetwork).with_evidence(lines))
    }

    /// Returns what the end of the script's process means.
    fn ended(&mut self, status: &str, memory: Option<&str>) -> Result<(), Failure> {
        self.look();
        if status != "exit status 0" {
            let (stage, class, when) = if self.followed.iter().any(Followed::has_bars) {
                (FailureStage::Workload, FailureClass::ServerDied, "while it measured")
            } else {
                (FailureStage::Start, FailureClass::StartCrashed, "before it measured anything")
            };
            if let Some(memory) = memory {
                let message = format!("the benchmark script was killed for the memory that it used, {when}");
                let line = EvidenceLine::new("container", None, memory);
                let failure = Failure::new(stage, FailureClass::MemoryExceeded, message);
                return Err(failure.with_evidence([line]).with_evidence(self.log_end()));
            }
            let message = format!("the benchmark script ended with {status} {when}");
            return Err(Failure::new(stage, class, message).with_evidence(self.log_end()));
        }
        match (&self.seen.proof, self.refusal.take()) {
            (Some(_), _) => Ok(()),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => {
                let message = "the script ended before its process could be looked at".to_owned();
                Err(unproven(message, Check::LiveProof, &[]))
            }
        }
    }

    fn log_end(&self) -> Vec<EvidenceLine> {
        let lines = |name: &'static str| telling_lines(&self.run.logs.join(name), name);
        [evidence::SERVER_STDERR, evidence::SERVER_STDOUT].into_iter().flat_map(lines).collect()
    }

    fn unguarded(&self, keeper: &dyn Keeper, what: &str) -> Failure {
        let (name, root) = (keeper.name(), keeper.root());
        let line = EvidenceLine::new("/proc", None, &format!("process {root}, the {name} of the script, {what}"));
        let message = format!("the {name} process of the script {what}");
        let failure = Failure::new(FailureStage::Workload, FailureClass::ServerDied, message);
        failure.with_evidence([line]).with_evidence(self.log_end())
    }
}

/// Returns the process that was started first of those that are right below a keeper's: in a container nobody else can tell how
/// this machine's process table names the script.
fn first_child(root: u32) -> Option<u32> {
    let children = process_table::descendants(root).into_iter().filter(|process| process.parent == root);
    children.min_by_key(|process| process.started).map(|process| process.pid)
}

/// Returns a number of milliseconds.
pub(crate) fn whole_millis(count: u64) -> Millis {
    let seconds = Duration::from_millis(count).as_secs_f64();
    Millis::new(seconds * 1000.0).unwrap_or_else(|| Millis::new(0.0).expect("0 is a number of milliseconds"))
}
