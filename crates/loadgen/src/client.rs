//! Sending a phase's requests at their times, and handing out their records.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::task::Limits;
use isobench_schema::workload::Api;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cancel::{Cancel, StopCause};
use crate::clock::Clock;
use crate::connection::Pool;
use crate::exchange::{Context, Exchanged, Prepared, exchange};
use crate::pace::Pacer;
use crate::schedule::{Pace, Schedule};
use crate::target::Target;

/// The deadlines of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// From the intended send until the answer is complete.
    pub request_timeout: Duration,
    /// Between two events of an answer, once its first chunk has come.
    pub stall_timeout: Duration,
}

impl From<&Limits> for LoadOptions {
    fn from(limits: &Limits) -> Self {
        Self { request_timeout: limits.request_s.duration(), stall_timeout: limits.stall_s.duration() }
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
    /// The kernel's timer doesn't work.
    #[error("failed to wait for a request's time")]
    Timer {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A part of the load client has broken down, which is a bug.
    #[error("a task of the load client broke down")]
    Task {
        /// The cause.
        #[source]
        source: tokio::task::JoinError,
    },
}

/// What came of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Requests that were sent once more because their kept connection turned out to be closed.
    pub reconnects: u32,
    /// Why the load was stopped, if it was.
    pub stopped: Option<StopCause>,
}

/// A client of one server. Connections are kept from phase to phase.
#[derive(Debug)]
pub struct Client {
    target: Target,
    context: Arc<Context>,
}

impl Client {
    /// Returns a client without connections; every time in its records is of `clock`, and `cancel` stops it.
    pub fn new(target: Target, options: LoadOptions, clock: Clock, cancel: Cancel) -> Self {
        let pool = Pool::new(target.endpoint().clone());
        Self { target, context: Arc::new(Context { pool, clock, options, cancel }) }
    }

    /// Sends everything in `schedule` and hands each record to `sink` as its request ends.
    ///
    /// All requests are serialised before the first one is sent. `sink` runs between reads on the same thread: what it
    /// does slowly makes time stamps late. When the load is stopped, requests under way end at once with the cause as
    /// their failure, and no others are begun. Dropping the future closes every connection in use.
    ///
    /// # Errors
    /// Returns an error if `sink` does, or if the client itself breaks down; the load is then over.
    pub async fn run_phase(
        &self,
        schedule: &Schedule,
        mut sink: impl FnMut(RequestRecord) -> io::Result<()>,
    ) -> Result<PhaseSummary, LoadError> {
        let (records, mut incoming) = mpsc::unbounded_channel();
        let requests = self.prepare(schedule);
        let mut summary = PhaseSummary {
            phase: schedule.phase(),
            asked: u32::try_from(requests.len()).unwrap_or(u32::MAX),
            completed: 0,
            failed: 0,
            first_intended_ns: None,
            last_end_ns: None,
            reconnects: 0,
            stopped: None,
        };
        let context = Arc::clone(&self.context);
        let work = Arc::new(Work { context, requests, next: AtomicUsize::new(0), records });
        let mut tasks = spawn(schedule, work);
        while let Some(Exchanged { record, reconnects }) = incoming.recv().await {
            match record.failure {
                None => summary.completed += 1,
                Some(_) => summary.failed += 1,
            }
            let first = summary.first_intended_ns.map_or(record.intended_ns, |first| first.min(record.intended_ns));
            summary.first_intended_ns = Some(first);
            summary.last_end_ns = summary.last_end_ns.max(Some(record.end_ns));
            summary.reconnects += reconnects;
            sink(record).map_err(|source| LoadError::Record { source })?;
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|source| LoadError::Task { source })??;
        }
        summary.stopped = self.context.cancel.cause();
        Ok(summary)
    }

    /// Returns the bytes of every request.
    fn prepare(&self, schedule: &Schedule) -> Vec<Prepared> {
        let route = match schedule.api() {
            Api::Completions => "/v1/completions",
            Api::Chat => "/v1/chat/completions",
            Api::Embeddings => "/v1/embeddings",
        };
        // Nothing here names the client, so that a server can't treat it in its own way.
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nAccept-Encoding: identity\r\n\
             Content-Type: application/json\r\nContent-Length: ",
            self.target.endpoint().path(route),
            self.target.endpoint().host(),
        );
        let body = |entry| {
            let mut body = Vec::new();
            schedule.write_body(entry, self.target.model(), &[], &mut body).expect("for now");
            body
        };
        (0..)
            .zip(schedule.entries().iter().map(|entry| (entry, body(entry))))
            .map(|(index, (request, body))| Prepared {
                index,
                phase: schedule.phase(),
                counter: schedule.counter(),
                input_tokens: request.input_tokens,
                output_tokens: request.output_tokens,
                bytes: [head.as_bytes(), body.len().to_string().as_bytes(), b"\r\n\r\n", &body].concat(),
            })
            .collect()
    }
}

/// What the tasks of a phase share.
struct Work {
    context: Arc<Context>,
    requests: Vec<Prepared>,
    next: AtomicUsize,
    records: mpsc::UnboundedSender<Exchanged>,
}

impl Work {
    /// Returns the request at `index`, unless the load was stopped.
    fn get(&self, index: usize) -> Option<&Prepared> {
        self.requests.get(index).filter(|_| self.context.cancel.cause().is_none())
    }

    /// Returns the next request in order, unless the load was stopped.
    fn next(&self) -> Option<&Prepared> {
        self.get(self.next.fetch_add(1, Ordering::Relaxed))
    }

    async fn send(&self, request: &Prepared, intended_ns: u64) {
        let exchanged = exchange(&self.context, request, intended_ns).await;
        // Nobody listens any more only if the phase was given up.
        let _ = self.records.send(exchanged);
    }
}

type Tasks = JoinSet<Result<(), LoadError>>;

/// Starts the tasks of a phase. They own `work`, and with it the sending side of the records.
fn spawn(schedule: &Schedule, work: Arc<Work>) -> Tasks {
    let mut tasks = Tasks::new();
    match schedule.pace() {
        Pace::Closed { concurrency, .. } => {
            let workers = work.requests.len().min(usize::try_from(concurrency).unwrap_or(usize::MAX));
            for _ in 0..workers {
                tasks.spawn(closed_loop(Arc::clone(&work)));
            }
        }
        Pace::Open { .. } => {
            let offsets_ns = schedule.entries().iter().map(|request| request.offset_ns).collect();
            tasks.spawn(open_loop(work, offsets_ns));
        }
    }
    tasks
}

/// Sends one request after the other, each when the one before has ended.
async fn closed_loop(work: Arc<Work>) -> Result<(), LoadError> {
    while let Some(request) = work.next() {
        work.send(request, work.context.clock.now_ns()).await;
    }
    Ok(())
}

/// Sends one request.
async fn one(work: Arc<Work>, index: usize, intended_ns: u64) -> Result<(), LoadError> {
    if let Some(request) = work.get(index) {
        work.send(request, intended_ns).await;
    }
    Ok(())
}

/// Sends each request at its own time, however many are under way.
///
/// Times are absolute, so that lateness never adds up.
async fn open_loop(work: Arc<Work>, offsets_ns: Vec<u64>) -> Result<(), LoadError> {
    let timer = |source| LoadError::Timer { source };
    let pacer = Pacer::new().map_err(timer)?;
    let mut under_way = Tasks::new();
    let start_ns = work.context.clock.now_ns();
    for (index, offset_ns) in offsets_ns.into_iter().enumerate() {
        let intended_ns = start_ns.saturating_add(offset_ns);
        tokio::select! {
            biased;
            _ = work.context.cancel.stopped() => break,
            waited = pacer.until(work.context.clock.instant(intended_ns)) => waited.map_err(timer)?,
        }
        under_way.spawn(one(Arc::clone(&work), index, intended_ns));
        while let Some(ended) = under_way.try_join_next() {
            ended.map_err(|source| LoadError::Task { source })??;
        }
    }
    while let Some(ended) = under_way.join_next().await {
        ended.map_err(|source| LoadError::Task { source })??;
    }
    Ok(())
}
