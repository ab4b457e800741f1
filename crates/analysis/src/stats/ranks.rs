//! Intervals of quantiles from order statistics, without any assumption about the distribution.

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// Returns the ranks, from 0, of the two of `count` independent values that enclose the quantile, `share` between 0 and 1,
/// with at least the probability `level`.
///
/// The number of values up to the quantile is binomial, so that the r-th value (from 1) is above it with the probability
/// P(B ≤ r − 1) (David and Nagaraja 2003, Order Statistics, 7.1). Both tails get the same half of what `level` leaves.
/// `None` if there are too few values for that: then an end of the interval lies outside of all of them.
pub fn quantile_ranks(count: u64, share: f64, level: f64) -> Option<(u64, u64)> {
    if count == 0 || !(share > 0.0 && share < 1.0 && level > 0.0 && level < 1.0) {
        return None;
    }
    let binomial = Binomial::new(share, count).ok()?;
    let tail = (1.0 - level) / 2.0;
    // The smallest k with P(B ≤ k) ≥ probability.
    let first = |probability: f64| {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if binomial.cdf(middle) >= probability { high = middle } else { low = middle + 1 }
        }
        low
    };
    let low = first(tail).checked_sub(1)?;
    let high = first(1.0 - tail);
    (high < count).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_scipy() {
        // l, u = scipy.stats.binom.ppf([tail, 1 - tail], n, p); (l - 1, u) where l >= 1 and u < n, SciPy 1.17
        for (count, share, level, expected) in [
            (10, 0.5, 0.95, Some((1, 8))),
            (100, 0.5, 0.95, Some((39, 60))),
            (1000, 0.99, 0.95, Some((982, 996))),
            (1000, 0.9, 0.95, Some((880, 918))),
            (1_000_000, 0.99, 0.95, Some((989_804, 990_195))),
            (662, 0.99, 0.95, Some((649, 660))),
            (366, 0.99, 0.95, None),
            (5, 0.5, 0.95, None),
            (6, 0.5, 0.95, Some((0, 5))),
            (0, 0.5, 0.95, None),
            (10, 1.0, 0.95, None),
        ] {
            assert_eq!(quantile_ranks(count, share, level), expected, "{share} of {count}");
        }
    }
}
