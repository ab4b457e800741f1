//! The thread that measures: given its processor at once where that is allowed.
//!
//! An engine that spins on every core starves a client of ordinary priority, which then reports its own waiting as the
//! engine's latency. A real-time thread that is mostly asleep takes little from the engine, and takes it alike from every
//! arm.

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

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
    pub fn take() -> Self {
        let Ok(lowest) = ThreadPriorityValue::try_from(1) else { return Self::Ordinary };
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        match set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(lowest), policy) {
            Ok(()) => Self::RealTime,
            Err(_) => Self::Ordinary,
        }
    }
}
