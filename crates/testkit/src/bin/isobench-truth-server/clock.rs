//! The clocks that the truth is told by.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Bytes don't wait longer than this to be read, in nanoseconds: a stamp that is older is wrong.
const LONGEST_WAIT: u64 = 10_000_000_000;

/// Returns `CLOCK_MONOTONIC` in nanoseconds, which other processes of this machine can compare with their own.
pub(crate) fn now() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns `CLOCK_MONOTONIC` at the moment that a stamp of the wall clock names, which lies shortly before now; now, if it
/// can't be that.
pub(crate) fn at_wall(stamp: Option<u64>) -> u64 {
    let wall = nanoseconds(clock_gettime(ClockId::Realtime));
    let now = now();
    let ago = stamp.and_then(|stamp| wall.checked_sub(stamp)).filter(|ago| *ago < LONGEST_WAIT);
    now - ago.unwrap_or(0).min(now)
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
