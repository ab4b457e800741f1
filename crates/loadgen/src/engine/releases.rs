//! When the next request of a worker is due, and a timer for it that is exact to some ten microseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::flight::Run;

/// How long before its moment the timer goes off: the rest is waited for awake, as waking up takes that long.
const AWAKE_NS: u64 = 60_000;

/// A run that waits for its moment.
#[derive(Debug)]
struct Waiting {
    at_ns: u64,
    /// Of runs with the same moment the one that came first is first.
    order: u64,
    run: Run,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.order) == (other.at_ns, other.order)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

/// Runs by their moments.
#[derive(Debug)]
pub(crate) struct Releases {
    waiting: BinaryHeap<Reverse<Waiting>>,
    order: u64,
    timer: OwnedFd,
    /// What the timer is set to.
    armed_ns: Option<u64>,
}

/// How a worker waits for the next moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The moment is so near that it is waited for awake.
    Awake,
    /// The timer says when.
    Asleep,
}

impl Releases {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { waiting: BinaryHeap::new(), order: 0, timer, armed_ns: None })
    }

    /// Returns the timer, which is to be watched for edges.
    pub(crate) fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    pub(crate) fn push(&mut self, at_ns: u64, run: Run) {
        self.order += 1;
        self.waiting.push(Reverse(Waiting { at_ns, order: self.order, run }));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the moment of the next run.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.at_ns)
    }

    /// Takes the next run out, with its moment.
    pub(crate) fn pop(&mut self) -> Option<(u64, Run)> {
        self.waiting.pop().map(|Reverse(Waiting { at_ns, run, .. })| (at_ns, run))
    }

    /// Takes every run out.
    pub(crate) fn drain(&mut self) -> Vec<(u64, Run)> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Prepares to wait for the moment `next_ns`.
    pub(crate) fn arm(&mut self, next_ns: Option<u64>, now_ns: u64) -> io::Result<Wait> {
        let Some(next_ns) = next_ns else { return Ok(Wait::Asleep) };
        let left = next_ns.saturating_sub(now_ns);
        if left <= AWAKE_NS {
            return Ok(Wait::Awake);
        }
        if self.armed_ns != Some(next_ns) {
            let left = std::time::Duration::from_nanos(left - AWAKE_NS);
            let it_value = Timespec::try_from(left).map_err(|_overflow| io::ErrorKind::InvalidInput)?;
            let once = Itimerspec { it_interval: Timespec::default(), it_value };
            rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
            self.armed_ns = Some(next_ns);
        }
        Ok(Wait::Asleep)
    }
}
