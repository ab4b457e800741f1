//! A worker's share of one phase: when what is begun, and what follows what.

use std::collections::VecDeque;
use std::io;

use isobench_schema::record::RequestRecord;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventFlags};
use rustix::io::Errno;

use super::connection::Stage;
use super::flight::{Flight, Run};
use super::lag::Lag;
use super::processor::Times;
use super::realtime::Realtime;
use super::releases::Wait;
use super::table::Key;
use super::work::{GettingReady, Work};
use super::worker::{TIMER, Worker, WorkerReport};
use super::{Records, reading};
use crate::clock::nanoseconds;
use crate::failing::failure;
use crate::schedule::Pace;
use crate::target::HttpVersion;

/// How often it is looked whether the load is to be stopped, at least.
const TICK_NS: u64 = 10_000_000;
/// Events that are closer than this on average are let gather.
const BUSY_GAP_NS: u64 = 30_000;
/// For so long at least, and at most. Between them it is a part of the time between two chunks of one stream, so that what
/// gathers is chunks of many streams, each with its own stamp, and not several of one stream under the stamp of the last.
const SHORTEST_NAP_NS: u64 = 100_000;
const LONGEST_NAP_NS: u64 = 500_000;
const NAPS_PER_CHUNK: u64 = 4;
/// How many sockets one look at the kernel names at most.
const MOST_EVENTS: usize = 512;
/// How many connections are opened beforehand where all requests go out at once.
const MOST_PRECONNECTED: u32 = 1024;
/// How long connections may take that are opened before the phase begins.
const PRECONNECT_NS: u64 = 5_000_000_000;

/// One worker's share of a phase under way.
pub(super) struct PhaseRun<'a> {
    pub(super) worker: &'a mut Worker,
    pub(super) work: &'a Work,
    records: Records,
    pub(super) realtime: Realtime,
    pub(super) lag: Lag,
    pub(super) reads: u64,
    pub(super) reconnects: u32,
    pub(super) opened: u64,
    /// Runs that are begun at once, with the times at which they should have been; `None` is now.
    pub(super) ready: VecDeque<(Option<u64>, Run)>,
    /// Runs whose time has come while too many requests are under way.
    queue: VecDeque<(u64, Run)>,
    under_way: usize,
    most_under_way: Option<usize>,
    /// The next head of an open loop, and the phase's start: before that, while connections are made, nothing is due.
    next_head: usize,
    start_ns: Option<u64>,
    times: Times,
    check_ns: u64,
    checked_ns: u64,
    events: Vec<Event>,
    /// The mean time between events, and when the last look for them ended.
    event_gap_ns: u64,
    looked_ns: u64,
}

impl<'a> PhaseRun<'a> {
    pub(super) fn new(worker: &'a mut Worker, work: &'a Work, records: Records) -> Self {
        let options = &work.context.options;
        let check = options.request_timeout.min(options.stall_timeout) / 8;
        let next_head = worker.number;
        let most_under_way = work.most_under_way(worker.number);
        Self {
            realtime: Realtime::now(&work.context.clock),
            worker,
            work,
            records,
            lag: Lag::new(),
            reads: 0,
            reconnects: 0,
            opened: 0,
            ready: VecDeque::new(),
            queue: VecDeque::new(),
            under_way: 0,
            most_under_way,
            next_head,
            start_ns: None,
            times: Times::default(),
            check_ns: nanoseconds(check).clamp(1_000_000, 50_000_000),
            checked_ns: 0,
            events: Vec::with_capacity(MOST_EVENTS),
            event_gap_ns: 1_000_000,
            looked_ns: 0,
        }
    }

    /// Runs the share to its end.
    pub(super) fn run(mut self, getting_ready: GettingReady<'_>) -> io::Result<WorkerReport> {
        // The others wait for this worker too, whatever comes of its connections.
        let prepared = self.preconnect();
        drop(getting_ready);
        prepared?;
        // Naps and waits end when they should, not up to 50 µs later.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
        self.times = Times::now();
        let start_ns = self.work.start_ns();
        self.start_ns = Some(start_ns);
        self.fill(start_ns);
        loop {
            let now_ns = self.now_ns();
            if self.stop_if_asked() {
                break;
            }
            self.release_due(now_ns)?;
            if self.is_done() {
                break;
            }
            self.check(now_ns)?;
            self.look(now_ns)?;
        }
        let Times { busy_ns, waited_ns } = self.times.since();
        Ok(WorkerReport {
            lag: self.lag,
            reads: self.reads,
            busy_ns,
            waited_ns,
            reconnects: self.reconnects,
            connections: self.opened,
        })
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.work.context.clock.now_ns()
    }

    fn since_start_ns(&self, now_ns: u64) -> u64 {
        self.start_ns.map_or(0, |start_ns| now_ns.saturating_sub(start_ns))
    }

    /// Opens the connections of a closed loop, or of requests that all go out at once, before their clock starts: an engine
    /// isn't slower because a client connects.
    ///
    /// With TLS or HTTP/2 one connection is opened before any loop, which shows what the server speaks: in HTTP/2 it is
    /// enough.
    fn preconnect(&mut self) -> io::Result<()> {
        let endpoint = self.work.context.target.endpoint();
        let may_multiplex = match endpoint.http() {
            HttpVersion::Http1 => false,
            HttpVersion::Auto => endpoint.secure().is_some(),
            HttpVersion::Http2 => true,
        };
        if may_multiplex && self.worker.idle.is_empty() && self.worker.multiplexed.is_empty() {
            self.open(None)?;
            self.finish_connecting()?;
        }
        let most = match self.work.schedule.pace() {
            Pace::Closed { concurrency, .. } => concurrency,
            // All at once.
            Pace::Open { max_in_flight } if self.work.schedule.entries().iter().all(|entry| entry.offset_ns == 0) => {
                max_in_flight.unwrap_or(MOST_PRECONNECTED)
            }
            Pace::Open { .. } => return Ok(()),
        };
        if !self.worker.multiplexed.is_empty() {
            return Ok(());
        }
        let slots = usize::try_from(most).unwrap_or(usize::MAX).min(self.work.heads());
        let wanted = self.work.share(slots, self.worker.number);
        for _ in self.worker.idle.len()..wanted {
            self.open(None)?;
        }
        self.finish_connecting()
    }

    /// Waits until no connection is being made any more.
    fn finish_connecting(&mut self) -> io::Result<()> {
        let until_ns = self.now_ns().saturating_add(PRECONNECT_NS);
        while self.worker.connections.iter().any(|(_, connection)| connection.stage != Stage::Open) {
            let now_ns = self.now_ns();
            if now_ns >= until_ns || self.is_stopped() {
                break;
            }
            self.look(now_ns)?;
        }
        Ok(())
    }

    /// Gives each slot of a closed loop its first run.
    fn fill(&mut self, start_ns: u64) {
        let Pace::Closed { concurrency, ramp_ns } = self.work.schedule.pace() else { return };
        let slots = (0..concurrency).skip(self.worker.number).step_by(self.work.workers.max(1));
        for slot in slots {
            let after = u128::from(ramp_ns) * u128::from(slot) / u128::from(concurrency.max(1));
            let after_ns = u64::try_from(after).unwrap_or(u64::MAX);
            let Some(index) = self.work.next_head(after_ns) else { return };
            match after_ns {
                0 => self.ready.push_back((None, Run::new(index))),
                after_ns => self.worker.releases.push(start_ns.saturating_add(after_ns), Run::new(index)),
            }
        }
    }

    /// Returns the time of the next head of an open loop that is this worker's.
    fn next_open_ns(&self) -> Option<u64> {
        let Pace::Open { .. } = self.work.schedule.pace() else { return None };
        let entry = self.work.entry(self.work.head(self.next_head)?)?;
        if !self.work.sending.goes_on(entry.offset_ns) {
            return None;
        }
        Some(self.start_ns?.saturating_add(entry.offset_ns))
    }

    /// Returns when the next run is due.
    fn next_ns(&self) -> Option<u64> {
        match (self.next_open_ns(), self.worker.releases.next_ns()) {
            (Some(open), Some(waiting)) => Some(open.min(waiting)),
            (open, waiting) => open.or(waiting),
        }
    }

    /// Begins every run whose time has come.
    pub(super) fn release_due(&mut self, now_ns: u64) -> io::Result<()> {
        let mut now_ns = now_ns;
        loop {
            if let Some((intended_ns, run)) = self.ready.pop_front() {
                now_ns = self.now_ns();
                self.begin(run, intended_ns.unwrap_or(now_ns), now_ns)?;
                continue;
            }
            if self.most_under_way.is_none_or(|most| self.under_way < most)
                && let Some((intended_ns, run)) = self.queue.pop_front()
            {
                now_ns = self.now_ns();
                self.begin(run, intended_ns, now_ns)?;
                continue;
            }
            let (open, waiting) = (self.next_open_ns(), self.worker.releases.next_ns());
            let due = match (open, waiting) {
                (Some(at_ns), other) if at_ns <= now_ns && other.is_none_or(|other| at_ns <= other) => {
                    let index = self.work.head(self.next_head);
                    self.next_head += self.work.workers.max(1);
                    index.map(|index| (at_ns, Run::new(index)))
                }
                (_, Some(at_ns)) if at_ns <= now_ns => self.worker.releases.pop(),
                _ => None,
            };
            let Some((intended_ns, run)) = due else { return Ok(()) };
            if self.most_under_way.is_some_and(|most| self.under_way >= most) {
                self.queue.push_back((intended_ns, run));
            } else {
                now_ns = self.now_ns();
                self.begin(run, intended_ns, now_ns)?;
            }
        }
    }

    /// Sends the request of a run, on a kept connection if there is one.
    fn begin(&mut self, run: Run, intended_ns: u64, now_ns: u64) -> io::Result<()> {
        let flight = Flight::new(self.work, run, intended_ns, now_ns);
        self.under_way += 1;
        self.work.context.gauge.begin();
        if let Some(key) = self.roomy() {
            return self.send_frames(key, flight);
        }
        match self.worker.idle.pop() {
            Some(key) => self.send(key, flight),
            None => self.open(Some(flight)),
        }
    }

    /// Takes what came of a request, and goes on with its run.
    pub(super) fn land(&mut self, flight: Flight) -> io::Result<()> {
        self.under_way = self.under_way.saturating_sub(1);
        self.work.context.gauge.end();
        let (record, mut run) = flight.land(&self.work.context);
        let next = self.work.turn_after(run.index);
        let is_closed = matches!(self.work.schedule.pace(), Pace::Closed { .. });
        match (next, &record.failure) {
            (Some(turn), None) => {
                let think_ns = self.work.entry(turn).map_or(0, |entry| entry.think_ns);
                if let Some(entry) = self.work.entry(run.index) {
                    self.work.schedule.write_message(entry, &mut run.history)?;
                }
                reading::write_answer(&record.text, &mut run.history)?;
                run.index = turn;
                self.worker.releases.push(record.end_ns.saturating_add(think_ns), run);
            }
            (Some(_), Some(_)) => self.give_up_turns(&record),
            (None, _) => {}
        }
        if is_closed && (next.is_none() || record.failure.is_some()) {
            let since_ns = self.since_start_ns(self.now_ns());
            self.ready.extend(self.work.next_head(since_ns).map(|index| (None, Run::new(index))));
        }
        self.hand_out(record);
        Ok(())
    }

    /// Hands out a record of failure for each turn behind one that failed: a conversation can't go on without an answer.
    fn give_up_turns(&mut self, failed: &RequestRecord) {
        let mut index = failed.index;
        while let (Some(next), Some(cause)) = (self.work.turn_after(index), &failed.failure) {
            index = next;
            let mut record = RequestRecord::intended(failed.phase, index, failed.end_ns);
            if let Some(entry) = self.work.entry(index) {
                (record.input_tokens, record.output_tokens_asked) = (entry.input_tokens, entry.output_tokens);
                record.turn = entry.turn;
            }
            let message = format!("not sent, as request {} before it in its conversation failed", failed.index);
            record.failure = Some(failure(cause.class, message));
            self.hand_out(record);
        }
    }

    fn hand_out(&self, record: RequestRecord) {
        // Nobody listens any more only if the phase was given up.
        let _ = self.records.send(record);
    }

    fn is_done(&self) -> bool {
        self.under_way == 0
            && self.ready.is_empty()
            && self.queue.is_empty()
            && self.worker.releases.is_empty()
            && self.next_open_ns().is_none()
    }

    fn is_stopped(&self) -> bool {
        self.work.abandoned.load(std::sync::atomic::Ordering::Relaxed) || self.work.context.cancel.cause().is_some()
    }

    /// Ends every request under way if the load was stopped; those that weren't begun have no record.
    fn stop_if_asked(&mut self) -> bool {
        if !self.is_stopped() {
            return false;
        }
        drop(self.worker.releases.drain());
        for key in self.worker.connections.keys() {
            for mut flight in self.close(key) {
                let Some(cause) = self.work.context.cancel.cause() else { continue };
                flight.state.answer.fail_by(cause.class(), cause.message());
                self.work.context.gauge.end();
                self.hand_out(flight.land(&self.work.context).0);
            }
        }
        self.worker.idle.clear();
        true
    }

    /// Ends the requests that have missed a deadline.
    fn check(&mut self, now_ns: u64) -> io::Result<()> {
        if now_ns < self.checked_ns.saturating_add(self.check_ns) {
            return Ok(());
        }
        self.checked_ns = now_ns;
        let busy_ns = self.times.since().busy_ns;
        self.work.context.gauge.note_busy(self.worker.number, busy_ns, self.since_start_ns(now_ns));
        self.realtime = Realtime::now(&self.work.context.clock);
        let options = &self.work.context.options;
        let due = |flight: &Flight| flight.overdue(options, now_ns).is_some() || flight.is_drained(now_ns);
        let connections = self.worker.connections.iter();
        let late: Vec<Key> =
            connections.filter(|(_, connection)| connection.flights().any(due)).map(|(key, _)| key).collect();
        for key in late {
            for mut flight in self.give_up(key, due)? {
                if let Some(overdue) = flight.overdue(options, now_ns) {
                    flight.state.answer.fail_by(overdue.class, overdue.message);
                }
                self.land(flight)?;
            }
        }
        Ok(())
    }

    /// Lets events gather for a moment where they come so fast that this thread would be woken for each of them.
    ///
    /// What is read later has the same time, which is the kernel's stamp; only requests that follow an answer go out later, by
    /// a part of the nap. Without stamps, or with a request due soon, there is none.
    fn nap(&mut self, timeout: Timespec, now_ns: u64) {
        let is_stamped = self.lag.reads() >= self.reads / 2;
        let streams = u64::try_from(self.under_way).unwrap_or(u64::MAX);
        let chunk_gap_ns = self.event_gap_ns.saturating_mul(streams);
        let nap_ns = (chunk_gap_ns / NAPS_PER_CHUNK).clamp(SHORTEST_NAP_NS, LONGEST_NAP_NS);
        let is_free = self.next_ns().is_none_or(|next_ns| next_ns.saturating_sub(now_ns) > 4 * nap_ns);
        if self.event_gap_ns < BUSY_GAP_NS && is_stamped && is_free && timeout != Timespec::default() {
            // A nap that a signal ends is only shorter.
            let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: nap_ns.cast_signed() });
        }
    }

    /// Follows how far apart events are, on average over the last looks.
    fn note_events(&mut self, count: usize) {
        let now_ns = self.now_ns();
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        let gap_ns = passed_ns / u64::try_from(count).unwrap_or(u64::MAX).max(1);
        self.event_gap_ns = (7 * self.event_gap_ns + gap_ns.min(1_000_000)) / 8;
    }

    /// Waits for sockets and for the next run's time, and takes what has come.
    fn look(&mut self, now_ns: u64) -> io::Result<()> {
        let timeout = match self.worker.releases.arm(self.next_ns(), now_ns)? {
            Wait::Awake => Timespec::default(),
            Wait::Asleep => Timespec { tv_sec: 0, tv_nsec: TICK_NS.min(self.check_ns).cast_signed() },
        };
        self.nap(timeout, now_ns);
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(&self.worker.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.note_events(events.len());
        for event in &events {
            let (data, flags) = (event.data.u64(), event.flags);
            if data == TIMER {
                continue;
            }
            let key = Key::from_bits(data);
            if flags.contains(EventFlags::OUT) {
                self.writable(key)?;
            }
            let is_near_end = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            if is_near_end || flags.contains(EventFlags::IN) {
                let at_ns = self.readable(key, is_near_end)?;
                // A run that has come due while many sockets were read doesn't wait for the last of them.
                if !self.ready.is_empty() || self.next_ns().is_some_and(|next_ns| next_ns <= at_ns) {
                    self.release_due(at_ns)?;
                }
            }
        }
        self.events = events;
        Ok(())
    }
}
