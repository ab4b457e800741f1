//! The thread that measures: given its processor at once where that is allowed, and watched for waiting.
//!
//! An engine that spins on every core starves a client of ordinary priority, which then reports its own waiting as the
//! engine's latency. A real-time thread that is mostly asleep takes little from the engine, and takes it alike from every
//! arm.

use std::fs;
use std::time::Instant;

use isobench_schema::outcome::ClientLoad;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::launch::millis;

/// How the measuring thread is scheduled; part of the comparability key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// Before every ordinary thread.
    RealTime,
    /// Like every other thread, because this process may not have more.
    Ordinary,
}

impl Scheduling {
    /// Returns the machine spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RealTime => "real-time thread",
            Self::Ordinary => "ordinary thread",
        }
    }

    /// Returns what a measuring thread of this process gets, found out on a thread that does nothing else.
    pub fn available() -> Self {
        std::thread::spawn(Self::take).join().unwrap_or(Self::Ordinary)
    }

    /// Gives the current thread its processor before every ordinary thread, if that is allowed.
    pub(crate) fn take() -> Self {
        let Ok(lowest) = ThreadPriorityValue::try_from(1) else { return Self::Ordinary };
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        match set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(lowest), policy) {
            Ok(()) => Self::RealTime,
            Err(_) => Self::Ordinary,
        }
    }
}

/// What the kernel had counted for the current thread at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    at: Instant,
    busy_ns: u64,
    waited_ns: u64,
}

impl Stamp {
    /// Returns what is counted now, or `None` if the kernel doesn't count.
    pub(crate) fn now() -> Option<Self> {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        let (busy_ns, waited_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self { at: Instant::now(), busy_ns, waited_ns })
    }

    /// Returns what was counted since.
    pub(crate) fn since(self) -> Option<ClientLoad> {
        let now = Self::now()?;
        let passed = |later: u64, earlier: u64| millis(std::time::Duration::from_nanos(later.saturating_sub(earlier)));
        Some(ClientLoad {
            window_ms: millis(now.at - self.at)?,
            busy_ms: passed(now.busy_ns, self.busy_ns)?,
            waited_ms: passed(now.waited_ns, self.waited_ns)?,
            engine_ms: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_this_thread_is_counted() {
        let Some(stamp) = Stamp::now() else {
            println!("skipped: this kernel doesn't count what threads do");
            return;
        };
        let mut sum = 0_u64;
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 50 {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        let load = stamp.since().unwrap();
        assert!(load.busy_ms.get() > 0.0, "{sum}");
        assert!(load.busy_ms.get() + load.waited_ms.get() <= load.window_ms.get() * 1.5 + 10.0);
    }
}
