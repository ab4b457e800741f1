//! How long bytes lay in the kernel before this program read them.

use hdrhistogram::Histogram;

/// The longest lag that is told apart, in nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;
/// Two decimal digits: each bound is within 1 % of the values that it stands for.
const DIGITS: u8 = 2;

/// The lags of many reads.
#[derive(Debug)]
pub(crate) struct Lag {
    lags: Histogram<u64>,
    longest_ns: u64,
}

impl Lag {
    pub(crate) fn new() -> Self {
        // The bounds are constants for which there is a histogram; without one nothing is told apart.
        let lags = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .unwrap_or_else(|_error| Histogram::new(0).expect("there is a histogram of no digits"));
        Self { lags, longest_ns: 0 }
    }

    /// Takes the lag of one read.
    pub(crate) fn take(&mut self, lag_ns: u64) {
        self.lags.saturating_record(lag_ns.max(1));
        self.longest_ns = self.longest_ns.max(lag_ns);
    }

    /// Takes all lags of another one.
    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.lags.add(&other.lags);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }

    /// Returns the number of reads.
    pub(crate) fn reads(&self) -> u64 {
        self.lags.len()
    }

    /// Returns the longest lag, in nanoseconds.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Returns pairs of an upper bound in nanoseconds and the number of reads up to it and above the bound before.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        self.lags.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lags_of_workers_are_counted_together() {
        let (mut a, mut b) = (Lag::new(), Lag::new());
        (1..=100).for_each(|n| a.take(n * 1000));
        b.take(5_000_000);
        a.add(&b);
        assert_eq!((a.reads(), a.longest_ns()), (101, 5_000_000));
        let counts = a.counts();
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 101);
        assert!(counts.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let (last, _) = *counts.last().unwrap();
        assert!((5_000_000..5_050_000).contains(&last), "{last}");
    }
}
