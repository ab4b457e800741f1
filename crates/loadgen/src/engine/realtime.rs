//! The kernel's receive stamps, which are of the wall clock, as times of this client's clock.

use rustix::time::{ClockId, clock_gettime};

use crate::clock::Clock;

/// How often both clocks are read: the closest pair counts.
const TRIES: u32 = 3;
/// A stamp that lies further back isn't believed: the wall clock was set.
const FURTHEST_NS: u64 = 10_000_000_000;

/// What the wall clock is ahead of the client's, at one moment. It changes slowly, as the wall clock is disciplined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Realtime {
    ahead_ns: u64,
}

impl Realtime {
    /// Compares the clocks.
    pub(crate) fn now(clock: &Clock) -> Self {
        let mut best = (u64::MAX, 0);
        for _ in 0..TRIES {
            let before_ns = clock.now_ns();
            let wall = clock_gettime(ClockId::Realtime);
            let after_ns = clock.now_ns();
            let wall_ns =
                u64::try_from(wall.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(wall.tv_nsec).unwrap_or(0);
            let width_ns = after_ns - before_ns;
            if width_ns < best.0 {
                best = (width_ns, wall_ns.saturating_sub(before_ns + width_ns / 2));
            }
        }
        Self { ahead_ns: best.1 }
    }

    /// Returns the time of a stamp on the client's clock, if it can be that of a read that returned at `read_ns`.
    pub(crate) fn at(self, stamped_unix_ns: u64, read_ns: u64) -> Option<u64> {
        let at_ns = stamped_unix_ns.checked_sub(self.ahead_ns)?;
        (at_ns <= read_ns && read_ns - at_ns < FURTHEST_NS).then_some(at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_believed_only_shortly_before_its_read() {
        let realtime = Realtime { ahead_ns: 1_000 };
        assert_eq!(realtime.at(1_500, 600), Some(500));
        assert_eq!(realtime.at(1_700, 600), None);
        assert_eq!(realtime.at(900, 600), None);
        assert_eq!(realtime.at(1_001, FURTHEST_NS + 2), None);
    }

    #[test]
    fn the_wall_clock_now_is_now() {
        let clock = Clock::start();
        let realtime = Realtime::now(&clock);
        let wall = clock_gettime(ClockId::Realtime);
        let wall_ns = u64::try_from(wall.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(wall.tv_nsec).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(realtime.at(wall_ns, clock.now_ns()).is_some());
    }
}
