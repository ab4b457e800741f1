//! How many requests are under way at a time.

use super::{Sample, Window};
use crate::stats::real;

/// When requests began and ended, each sorted.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl InFlight {
    /// Returns the requests' times: from when the client turned to one until it ended, well or not.
    pub(super) fn of(samples: &[Sample]) -> Self {
        let mut starts: Vec<u64> = samples.iter().map(Sample::start_ns).collect();
        let mut ends: Vec<u64> = samples.iter().map(|sample| sample.end_ns.max(sample.start_ns())).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        Self { starts, ends }
    }

    /// Returns the most requests that were under way at one moment. One that ends makes room for one that starts at the
    /// same moment.
    pub(super) fn most(&self) -> u64 {
        let mut ends = self.ends.iter().peekable();
        let (mut now, mut most) = (0_u64, 0);
        for start in &self.starts {
            while ends.next_if(|end| *end <= start).is_some() {
                // A request that took no time ends before it is counted.
                now = now.saturating_sub(1);
            }
            now += 1;
            most = most.max(now);
        }
        most
    }

    /// Returns the mean number under way in each stretch of time; the stretches follow each other.
    pub(super) fn means(&self, stretches: impl Iterator<Item = Window>) -> Vec<f64> {
        let (mut starts, mut ends) = (Steps::of(&self.starts), Steps::of(&self.ends));
        let mean = |stretch: Window| {
            let mut until = |at_ns| starts.area(at_ns) - ends.area(at_ns);
            let (from, to) = (until(stretch.start_ns), until(stretch.end_ns));
            let length = real(stretch.end_ns - stretch.start_ns);
            if length > 0.0 { (to - from).max(0.0) / length } else { 0.0 }
        };
        stretches.map(mean).collect()
    }
}

/// A step of one at each of some sorted times, and the area under the steps.
struct Steps<'a> {
    times: &'a [u64],
    passed: usize,
    sum: u128,
}

impl<'a> Steps<'a> {
    fn of(times: &'a [u64]) -> Self {
        Self { times, passed: 0, sum: 0 }
    }

    /// Returns the area up to a moment, in nanoseconds; no later moment may have been asked for.
    #[expect(clippy::cast_precision_loss, reason = "an area is a sum of times, of which 53 bits are enough")]
    fn area(&mut self, at_ns: u64) -> f64 {
        while let Some(time) = self.times.get(self.passed).filter(|time| **time <= at_ns) {
            self.sum += u128::from(*time);
            self.passed += 1;
        }
        (u128::from(at_ns) * self.passed as u128 - self.sum) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[(u64, u64)]) -> InFlight {
        let (mut starts, mut ends): (Vec<u64>, Vec<u64>) = times.iter().copied().unzip();
        starts.sort_unstable();
        ends.sort_unstable();
        InFlight { starts, ends }
    }

    #[test]
    fn the_most_under_way_is_counted_at_moments() {
        assert_eq!(of(&[(0, 10), (5, 15), (10, 20), (30, 40)]).most(), 2);
        assert_eq!(of(&[(0, 10), (10, 20), (20, 30)]).most(), 1);
        assert_eq!(of(&[(0, 9), (1, 8), (2, 7), (7, 9)]).most(), 3);
        assert_eq!(of(&[]).most(), 0);
    }

    #[test]
    fn the_mean_under_way_is_an_area() {
        let in_flight = of(&[(0, 10), (5, 15), (12, 40)]);
        let stretches = [(0, 10), (10, 20), (20, 20), (20, 60)];
        let windows = stretches.map(|(start_ns, end_ns)| Window { start_ns, end_ns });
        assert_eq!(in_flight.means(windows.into_iter()), [1.5, 1.3, 0.0, 0.5]);
    }
}
