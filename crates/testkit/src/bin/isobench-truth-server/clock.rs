//! The clocks that the truth is told by.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns `CLOCK_MONOTONIC` in nanoseconds, which other processes of this machine can compare with their own.
pub(crate) fn now() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the processor time that this process has used, in nanoseconds.
pub(crate) fn processor_time() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns a duration as the kernel takes it.
pub(crate) fn timespec(nanoseconds: u64) -> Timespec {
    let seconds = i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX);
    let rest = i64::try_from(nanoseconds % 1_000_000_000).unwrap_or(0);
    Timespec { tv_sec: seconds, tv_nsec: rest }
}

fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
