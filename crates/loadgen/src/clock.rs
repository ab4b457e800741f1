//! The one clock of all time stamps: monotonic nanoseconds since a zero shortly before the first request.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use isobench_schema::ids::Digest;
use isobench_schema::record::RecordHeader;

/// What the clock of these records is, as the header of the records names it.
pub const CLOCK_NAME: &str = "monotonic, the kernel's receive stamp where there is one, else after each read";

/// A monotonic clock with a zero of its own.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
    epoch_unix_ns: u64,
}

impl Clock {
    /// Returns a clock whose zero is now.
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { zero: Instant::now(), epoch_unix_ns: nanoseconds(wall) }
    }

    /// Returns the nanoseconds since the clock's zero.
    pub fn now_ns(&self) -> u64 {
        nanoseconds(self.zero.elapsed())
    }

    /// Returns the moment that lies `at_ns` nanoseconds after the clock's zero.
    pub fn instant(&self, at_ns: u64) -> Instant {
        self.zero + Duration::from_nanos(at_ns)
    }

    /// Returns the wall-clock time of the clock's zero, in nanoseconds since 1970-01-01 UTC.
    pub fn epoch_unix_ns(&self) -> u64 {
        self.epoch_unix_ns
    }

    /// Returns the header of records whose times are of this clock.
    pub fn header(&self, seed: u64, workload: Digest) -> RecordHeader {
        RecordHeader {
            client: format!("isobench {}", env!("CARGO_PKG_VERSION")),
            clock: CLOCK_NAME.to_owned(),
            epoch_unix_ns: self.epoch_unix_ns,
            seed,
            workload,
        }
    }
}

/// Returns `duration` in nanoseconds; one of over 584 years counts as 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
