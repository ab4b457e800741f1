//! What the workers of a phase share: the requests, who takes which, and how they begin.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use isobench_schema::workload::Api;

use super::Context;
use crate::gauge::Sending;
use crate::schedule::{Entry, Pace, Schedule};

/// How often a worker that waits for the others looks whether the phase was given up.
const GIVEN_UP: Duration = Duration::from_millis(20);

/// One phase's work.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) context: Arc<Context>,
    pub(crate) schedule: Arc<Schedule>,
    /// The path of every request, and what it accepts.
    pub(crate) path: String,
    /// See `path`.
    pub(crate) accept: &'static str,
    /// The head of every request in HTTP/1.1, up to the value of its last header, the body's length.
    pub(crate) head: Vec<u8>,
    /// The first turns of conversations; `None` if every request stands for itself.
    heads: Option<Vec<u32>>,
    /// The next head of a closed loop.
    next: AtomicUsize,
    pub(crate) workers: usize,
    pub(crate) sending: Sending,
    /// How many workers are ready.
    ready: Mutex<usize>,
    one_more: Condvar,
    start_ns: OnceLock<u64>,
    /// Nobody waits for the phase any more.
    pub(crate) abandoned: AtomicBool,
}

impl Work {
    pub(crate) fn new(context: Arc<Context>, schedule: Arc<Schedule>, sending: Sending, workers: usize) -> Self {
        let entries = schedule.entries();
        let heads = entries.iter().any(|entry| entry.turn.is_some()).then(|| {
            let is_head = |entry: &Entry| entry.turn.is_none_or(|turn| turn.turn == 0);
            (0..).zip(entries).filter(|(_, entry)| is_head(entry)).map(|(index, _)| index).collect()
        });
        let (route, accept) = match schedule.api() {
            Api::Completions => ("/v1/completions", "text/event-stream"),
            Api::Chat => ("/v1/chat/completions", "text/event-stream"),
            Api::Embeddings => ("/v1/embeddings", "application/json"),
        };
        let path = context.target.path(route);
        Self {
            head: head(&context, &path, accept),
            path,
            accept,
            context,
            schedule,
            heads,
            next: AtomicUsize::new(0),
            workers,
            sending,
            ready: Mutex::new(0),
            one_more: Condvar::new(),
            start_ns: OnceLock::new(),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Returns the number of heads.
    pub(crate) fn heads(&self) -> usize {
        self.heads.as_ref().map_or(self.schedule.entries().len(), Vec::len)
    }

    /// Returns the request that the head at `place` is.
    pub(crate) fn head(&self, place: usize) -> Option<u32> {
        match &self.heads {
            Some(heads) => heads.get(place).copied(),
            None => u32::try_from(place).ok().filter(|_| place < self.schedule.entries().len()),
        }
    }

    /// Returns the next head of a closed loop.
    ///
    /// There is none where no request may be begun any more at `since_start_ns`.
    pub(crate) fn next_head(&self, since_start_ns: u64) -> Option<u32> {
        if !self.sending.goes_on(since_start_ns) {
            return None;
        }
        self.head(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns a request.
    pub(crate) fn entry(&self, index: u32) -> Option<&Entry> {
        self.schedule.entries().get(usize::try_from(index).ok()?)
    }

    /// Returns the turn that follows the request at `index` in its conversation.
    pub(crate) fn turn_after(&self, index: u32) -> Option<u32> {
        let turn = self.entry(index)?.turn?;
        let next = index.checked_add(1)?;
        let follows = |other: &Entry| other.turn.is_some_and(|other| other.session == turn.session && other.turn > 0);
        self.entry(next).filter(|entry| follows(entry)).map(|_| next)
    }

    /// Returns how many of `total` fall to the worker `number`, as evenly as can be.
    pub(crate) fn share(&self, total: usize, number: usize) -> usize {
        let workers = self.workers.max(1);
        total / workers + usize::from(number < total % workers)
    }

    /// Returns the most requests under way that the worker `number` may have, if there is a bound.
    pub(crate) fn most_under_way(&self, number: usize) -> Option<usize> {
        match self.schedule.pace() {
            Pace::Closed { .. } | Pace::Open { max_in_flight: None } => None,
            Pace::Open { max_in_flight: Some(most) } => {
                Some(self.share(usize::try_from(most).unwrap_or(usize::MAX), number))
            }
        }
    }

    /// Says that a worker is ready, and waits for the others unless the phase is given up.
    fn wait_for_all(&self) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        *ready += 1;
        self.one_more.notify_all();
        while *ready < self.workers && !self.abandoned.load(Ordering::Relaxed) {
            let waited = self.one_more.wait_timeout(ready, GIVEN_UP);
            ready = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the phase's start, which is when the first worker asks for it after all were ready.
    pub(crate) fn start_ns(&self) -> u64 {
        *self.start_ns.get_or_init(|| self.context.clock.now_ns())
    }

    /// Returns the phase's start if it has begun.
    pub(crate) fn started_ns(&self) -> Option<u64> {
        self.start_ns.get().copied()
    }
}

/// A worker that gets ready. Dropped, it is, also where its thread breaks down before: the others would wait for it for ever.
#[derive(Debug)]
pub(crate) struct GettingReady<'w>(pub(crate) &'w Work);

impl Drop for GettingReady<'_> {
    fn drop(&mut self) {
        self.0.wait_for_all();
    }
}

/// Returns the head of every request. Nothing in it names the client, so that a server can't treat it in its own way.
fn head(context: &Context, path: &str, accept: &str) -> Vec<u8> {
    let host = context.target.endpoint().host();
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nAccept-Encoding: identity\r\nContent-Type: \
         application/json\r\n"
    );
    for (name, value) in context.target.endpoint().headers() {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    head.push_str("Content-Length: ");
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use isobench_schema::record::Phase;

    use super::*;
    use crate::cancel::Cancel;
    use crate::client::LoadOptions;
    use crate::clock::Clock;
    use crate::gauge::Gauge;
    use crate::schedule::Resources;
    use crate::schedule::tests::workload;
    use crate::target::{Endpoint, Target};

    fn work(workers: usize) -> Arc<Work> {
        let schedule = Schedule::new(&workload(), 1, Phase::Measure, &Resources::default()).unwrap();
        let target = Target::new(Endpoint::parse("http://127.0.0.1:9").unwrap(), "m".to_owned());
        let options = LoadOptions::new(Duration::from_secs(1), Duration::from_secs(1));
        let context =
            Context { target, options, clock: Clock::start(), cancel: Cancel::new(), gauge: Gauge::default() };
        Arc::new(Work::new(Arc::new(context), Arc::new(schedule), Sending::all(), workers))
    }

    #[test]
    fn nobody_waits_for_a_worker_that_broke_down() {
        let work = work(2);
        let other = Arc::clone(&work);
        let broken = std::thread::spawn(move || {
            let _getting_ready = GettingReady(&other);
            std::panic::panic_any("broken on purpose");
        });
        drop(GettingReady(&work));
        assert!(broken.join().is_err());
    }

    #[test]
    fn nobody_waits_where_the_phase_was_given_up() {
        let work = work(3);
        let other = Arc::clone(&work);
        let waiting = std::thread::spawn(move || drop(GettingReady(&other)));
        work.abandoned.store(true, Ordering::Relaxed);
        waiting.join().unwrap();
    }
}
