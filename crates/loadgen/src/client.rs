//! Sending a phase's requests at their times, and handing out their records.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use isobench_schema::record::{Phase, PhaseAudit, RequestRecord};
use isobench_schema::task::Limits;
use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::sync::mpsc;

use crate::cancel::{Cancel, StopCause};
use crate::clock::Clock;
use crate::engine::{Context, GettingReady, Lag, Records, Work, Worker, WorkerReport, retransmits};
use crate::gauge::{Gauge, Sending};
use crate::schedule::Schedule;
use crate::target::Target;

/// The deadlines of each request, and how its load is carried.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// From the intended send until the answer is complete.
    pub request_timeout: Duration,
    /// Between two events of an answer, once its first chunk has come.
    pub stall_timeout: Duration,
    /// Whether an answer with fewer tokens than asked has failed.
    pub exact_lengths: bool,
    /// Threads that send and read, at least one.
    pub workers: usize,
    /// The processors that those threads are bound to, one each, again from the first where there are more threads; none
    /// leaves it to the system.
    pub processors: Vec<usize>,
    /// Called first on each of those threads, for example to give it its processor before others.
    pub prepare_thread: fn(),
}

impl LoadOptions {
    /// Returns options with these deadlines, one thread, nothing bound, and answers of any length.
    pub fn new(request_timeout: Duration, stall_timeout: Duration) -> Self {
        Self {
            request_timeout,
            stall_timeout,
            exact_lengths: false,
            workers: 1,
            processors: Vec::new(),
            prepare_thread: || {},
        }
    }
}

impl From<&Limits> for LoadOptions {
    fn from(limits: &Limits) -> Self {
        Self::new(limits.request_s.duration(), limits.stall_s.duration())
    }
}

/// Why a load couldn't be carried on. Failed requests are no error: their records say so.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A record couldn't be stored.
    #[error("failed to store the record of a request")]
    Record {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The kernel's timer or its watch over sockets doesn't work, or prepared requests can't be read back.
    #[error("failed to carry the load")]
    Engine {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A thread can't be bound to its processor.
    #[error("failed to bind a thread of the load client to processor {processor}")]
    Bind {
        /// The processor.
        processor: usize,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A part of the load client has broken down, which is a bug.
    #[error("a thread of the load client broke down")]
    Thread,
}

/// What came of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseSummary {
    /// The phase.
    pub phase: Phase,
    /// Requests in the schedule. Those that were not begun when the load was stopped have no record.
    pub asked: u32,
    /// Requests with a whole answer.
    pub completed: u32,
    /// Requests without one.
    pub failed: u32,
    /// The intended time of the first request that was begun, in nanoseconds of the clock.
    pub first_intended_ns: Option<u64>,
    /// The end of the last request to end, in nanoseconds of the clock.
    pub last_end_ns: Option<u64>,
    /// What the client saw of itself.
    pub audit: PhaseAudit,
    /// Why the load was stopped, if it was.
    pub stopped: Option<StopCause>,
}

/// A client of one server. Connections are kept from phase to phase.
#[derive(Debug)]
pub struct Client {
    context: Arc<Context>,
    /// The workers that no phase uses at the moment.
    workers: Mutex<Vec<Worker>>,
}

/// A worker's thread: it brings the worker back.
type Running = JoinHandle<Result<(Worker, WorkerReport), LoadError>>;

impl Client {
    /// Returns a client without connections; every time in its records is of `clock`, and `cancel` stops it.
    pub fn new(target: Target, options: LoadOptions, clock: Clock, cancel: Cancel) -> Self {
        let context = Context { target, clock, options, cancel, gauge: Gauge::default() };
        Self { context: Arc::new(context), workers: Mutex::new(Vec::new()) }
    }

    /// Returns the gauge of what is under way.
    pub fn gauge(&self) -> Gauge {
        self.context.gauge.clone()
    }

    /// Sends everything in `schedule` and hands each record to `sink` as its request ends.
    ///
    /// Requests are sent and answers read on threads of their own; `sink` runs on the caller's, and makes no time stamp
    /// late as long as that thread's processor isn't theirs. When the load is stopped, requests under way end at once
    /// with the cause as their failure, and no others are begun. Dropping the future closes every connection in use.
    ///
    /// # Errors
    /// Returns an error if `sink` does, or if the client itself breaks down; the load is then over.
    pub async fn run_phase(
        &self,
        schedule: &Arc<Schedule>,
        sink: impl FnMut(RequestRecord) -> io::Result<()>,
    ) -> Result<PhaseSummary, LoadError> {
        self.run_phase_while(schedule, Sending::all(), sink).await
    }

    /// The same, but begins requests only as long as `sending` goes on. Those that weren't begun have no record.
    ///
    /// # Errors
    /// As [`Client::run_phase`].
    pub async fn run_phase_while(
        &self,
        schedule: &Arc<Schedule>,
        sending: Sending,
        mut sink: impl FnMut(RequestRecord) -> io::Result<()>,
    ) -> Result<PhaseSummary, LoadError> {
        let (records, mut incoming) = mpsc::unbounded_channel();
        let count = self.context.options.workers.max(1);
        let work = Work::new(Arc::clone(&self.context), Arc::clone(schedule), sending, count);
        let mut phase = Underway { work: Arc::new(work), threads: Vec::new() };
        let began_ns = self.context.clock.now_ns();
        let retransmits_before = retransmits();
        let workers: Vec<Worker> = (0..count).map(|number| self.take_worker(number)).collect::<Result<_, _>>()?;
        for worker in workers {
            phase.threads.push(start(worker, &phase.work, records.clone())?);
        }
        // The channel ends with the last thread.
        drop(records);
        let mut summary = Tally::default();
        while let Some(record) = incoming.recv().await {
            summary.take(&record);
            sink(record).map_err(|source| LoadError::Record { source })?;
        }
        let mut reports = Vec::new();
        for thread in std::mem::take(&mut phase.threads) {
            let (worker, report) = thread.join().map_err(|_panic| LoadError::Thread)??;
            self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
            reports.push(report);
        }
        let retransmits = retransmits().zip(retransmits_before).map(|(now, then)| now.saturating_sub(then));
        let span = (phase.work.started_ns().unwrap_or(began_ns), self.context.clock.now_ns());
        Ok(PhaseSummary {
            phase: schedule.phase(),
            asked: u32::try_from(schedule.entries().len()).unwrap_or(u32::MAX),
            completed: summary.completed,
            failed: summary.failed,
            first_intended_ns: summary.first_intended_ns,
            last_end_ns: summary.last_end_ns,
            audit: audit(schedule.phase(), span, &reports, retransmits),
            stopped: self.context.cancel.cause(),
        })
    }

    /// Returns the worker with that number, with the connections that it kept.
    fn take_worker(&self, number: usize) -> Result<Worker, LoadError> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        match workers.iter().position(|worker| worker.number() == number) {
            Some(place) => Ok(workers.swap_remove(place)),
            None => Worker::new(number).map_err(|source| LoadError::Engine { source }),
        }
    }
}

/// A phase under way: its threads end if nobody waits for them any more.
struct Underway {
    work: Arc<Work>,
    threads: Vec<Running>,
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.work.abandoned.store(true, Ordering::Relaxed);
    }
}

/// Starts a worker's thread.
fn start(mut worker: Worker, work: &Arc<Work>, records: Records) -> Result<Running, LoadError> {
    let work = Arc::clone(work);
    let number = worker.number();
    let body = move || {
        let options = &work.context.options;
        let getting_ready = GettingReady(&work);
        // The others wait for this one too, so it says only afterwards that it couldn't be bound.
        let bound = bind(&options.processors, number);
        (options.prepare_thread)();
        let report = worker.run(&work, getting_ready, records).map_err(|source| LoadError::Engine { source });
        bound?;
        Ok((worker, report?))
    };
    let name = format!("load-{number}");
    std::thread::Builder::new().name(name).spawn(body).map_err(|source| LoadError::Engine { source })
}

/// Checks on a thread of its own that threads can be bound to these processors.
///
/// # Errors
/// Returns the first processor to which none can be bound.
pub fn check_processors(processors: &[usize]) -> Result<(), LoadError> {
    std::thread::scope(|scope| {
        let check = || (0..processors.len()).try_for_each(|number| bind(processors, number));
        scope.spawn(check).join().unwrap_or(Err(LoadError::Thread))
    })
}

/// Binds the current thread, the one with that number, to its processor, if there are any to be bound to.
fn bind(processors: &[usize], number: usize) -> Result<(), LoadError> {
    let Some(&processor) = processors.get(number % processors.len().max(1)) else { return Ok(()) };
    let failed = |source| LoadError::Bind { processor, source };
    if processor >= CpuSet::MAX_CPU {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).map_err(|error| failed(error.into()))
}

/// What is counted of records as they come.
#[derive(Default)]
struct Tally {
    completed: u32,
    failed: u32,
    first_intended_ns: Option<u64>,
    last_end_ns: Option<u64>,
}

impl Tally {
    fn take(&mut self, record: &RequestRecord) {
        match record.failure {
            None => self.completed += 1,
            Some(_) => self.failed += 1,
        }
        let first = self.first_intended_ns.map_or(record.intended_ns, |first| first.min(record.intended_ns));
        self.first_intended_ns = Some(first);
        self.last_end_ns = self.last_end_ns.max(Some(record.end_ns));
    }
}

/// Puts together what the workers saw of themselves.
fn audit(
    phase: Phase,
    (began_ns, ended_ns): (u64, u64),
    reports: &[WorkerReport],
    retransmits: Option<u64>,
) -> PhaseAudit {
    let mut lag = Lag::new();
    for report in reports {
        lag.add(&report.lag);
    }
    let busiest = reports.iter().max_by_key(|report| report.busy_ns);
    PhaseAudit {
        phase,
        began_ns,
        ended_ns,
        workers: u32::try_from(reports.len()).unwrap_or(u32::MAX),
        busiest_ns: busiest.map_or(0, |report| report.busy_ns),
        processor_ns: reports.iter().map(|report| report.busy_ns).sum(),
        waited_ns: reports.iter().filter_map(|report| report.waited_ns).max(),
        reads: reports.iter().map(|report| report.reads).sum(),
        stamped_reads: lag.reads(),
        lag_ns: lag.counts(),
        longest_lag_ns: lag.longest_ns(),
        reconnects: reports.iter().map(|report| report.reconnects).sum(),
        connections: reports.iter().map(|report| report.connections).sum(),
        retransmits,
    }
}
