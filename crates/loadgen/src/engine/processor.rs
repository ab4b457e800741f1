//! What the kernel counts for the current thread, and for this machine's TCP.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of the current thread, and its waiting for a processor, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) busy_ns: u64,
    pub(crate) waited_ns: Option<u64>,
}

impl Times {
    /// Returns what is counted now.
    pub(crate) fn now() -> Self {
        let busy = clock_gettime(ClockId::ThreadCPUTime);
        let busy_ns =
            u64::try_from(busy.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(busy.tv_nsec).unwrap_or(0);
        let waited_ns = fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
        Self { busy_ns, waited_ns }
    }

    /// Returns what was counted since.
    pub(crate) fn since(self) -> Self {
        let now = Self::now();
        let waited = now.waited_ns.zip(self.waited_ns).map(|(now, then)| now.saturating_sub(then));
        Self { busy_ns: now.busy_ns.saturating_sub(self.busy_ns), waited_ns: waited }
    }
}

/// Returns the TCP segments that were sent again in this network namespace since it is there.
pub(crate) fn retransmits() -> Option<u64> {
    retransmits_in(&fs::read_to_string("/proc/thread-self/net/snmp").ok()?)
}

/// Finds `RetransSegs` in the two lines `Tcp:`, names and numbers.
fn retransmits_in(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|name| name == "RetransSegs")?;
    numbers.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmits_are_found_by_their_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: RtoMin OutSegs RetransSegs InErrs\nTcp: 200 10 7 0\nUdp: X\nUdp: 1\n";
        assert_eq!(retransmits_in(text), Some(7));
        assert_eq!(retransmits_in("Tcp: OutSegs\nTcp: 1\n"), None);
        assert_eq!(retransmits_in(""), None);
    }

    #[test]
    fn work_of_this_thread_is_counted() {
        let before = Times::now();
        let mut sum = 0_u64;
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 20 {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        assert!(before.since().busy_ns > 0, "{sum}");
    }
}
