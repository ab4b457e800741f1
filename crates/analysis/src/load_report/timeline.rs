//! Counts over time, to the millisecond, in a bounded room.

/// The most intervals that are kept: at first 70 minutes of milliseconds.
const MOST: usize = 1 << 22;
const NS_PER_MS: u64 = 1_000_000;
const MS_PER_S: u64 = 1000;

/// Counts in equal intervals since the clock's zero. They are of a millisecond each, and twice as long each time that the
/// load outgrows their number.
#[derive(Debug)]
pub(super) struct Timeline {
    width_ms: u64,
    counts: Vec<u32>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { width_ms: 1, counts: Vec::new() }
    }
}

impl Timeline {
    /// Counts `more` at a moment.
    pub(super) fn add(&mut self, at_ns: u64, more: u32) {
        let mut place = self.place(at_ns);
        while place.is_none_or(|place| place >= MOST) {
            self.halve();
            place = self.place(at_ns);
        }
        let Some(place) = place else { return };
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(more);
        }
    }

    fn place(&self, at_ns: u64) -> Option<usize> {
        usize::try_from(at_ns / NS_PER_MS / self.width_ms).ok()
    }

    fn halve(&mut self) {
        self.width_ms *= 2;
        let sum = |pair: &[u32]| pair.iter().copied().fold(0, u32::saturating_add);
        self.counts = self.counts.chunks(2).map(sum).collect();
    }

    /// Returns the highest count of one second, of those that follow each other from `start_ns` on. An interval belongs to the
    /// second that it begins in.
    pub(super) fn peak_per_second(&self, start_ns: u64) -> u64 {
        let start_ms = start_ns / NS_PER_MS;
        let (mut peak, mut second, mut sum) = (0, 0, 0_u64);
        for (at_ms, count) in self.intervals().skip_while(|(at_ms, _)| *at_ms < start_ms) {
            let its = (at_ms - start_ms) / MS_PER_S;
            if its != second {
                (second, sum) = (its, 0);
            }
            sum += u64::from(count);
            peak = peak.max(sum);
        }
        peak
    }

    /// Returns the sum from one moment to before another. An interval belongs to where it begins.
    pub(super) fn sum(&self, from_ns: u64, to_ns: u64) -> u64 {
        let place = |at_ns: u64| {
            let place = (at_ns / NS_PER_MS).div_ceil(self.width_ms);
            usize::try_from(place).unwrap_or(usize::MAX).min(self.counts.len())
        };
        let within = self.counts.get(place(from_ns)..place(to_ns)).unwrap_or_default();
        within.iter().copied().map(u64::from).sum()
    }

    /// Returns what was counted from one moment to before another, with the nanoseconds at which the intervals begin.
    pub(super) fn within(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (u64, u32)> {
        let in_ns = self.intervals().map(|(at_ms, count)| (at_ms.saturating_mul(NS_PER_MS), count));
        in_ns.filter(move |(at_ns, count)| *count > 0 && *at_ns >= from_ns && *at_ns < to_ns)
    }

    /// Returns the intervals with the milliseconds at which they begin.
    fn intervals(&self) -> impl Iterator<Item = (u64, u32)> {
        (0..).step_by(usize::try_from(self.width_ms).unwrap_or(usize::MAX)).zip(self.counts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_seconds_from_the_start() {
        let mut timeline = Timeline::default();
        for at_ms in [100, 1499, 1500, 2499, 2500, 2501, 2502] {
            timeline.add(at_ms * NS_PER_MS + 7, 2);
        }
        assert_eq!(timeline.peak_per_second(500 * NS_PER_MS), 6);
        assert_eq!(timeline.peak_per_second(1600 * NS_PER_MS), 8);
        assert_eq!(Timeline::default().peak_per_second(0), 0);
        assert_eq!(timeline.sum(0, 1500 * NS_PER_MS), 4);
        assert_eq!(timeline.sum(1500 * NS_PER_MS, 2502 * NS_PER_MS), 8);
    }

    #[test]
    fn a_long_load_is_counted_in_the_same_room() {
        let mut timeline = Timeline::default();
        timeline.add(0, 1);
        timeline.add(7 * NS_PER_MS, 1);
        timeline.add(24 * 3600 * 1_000_000_000, 5);
        assert!(timeline.counts.len() <= MOST);
        assert_eq!(timeline.width_ms, 32);
        assert_eq!((timeline.counts[0], timeline.counts.iter().sum::<u32>()), (2, 7));
        assert_eq!(timeline.peak_per_second(0), 5);
        timeline.add(u64::MAX, 1);
        assert_eq!(timeline.counts.iter().sum::<u32>(), 8);
    }
}
