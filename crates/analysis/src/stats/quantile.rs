//! Exact quantiles by one definition: linear interpolation, type 7 of Hyndman and Fan (1996), which is `NumPy`'s
//! default.

use super::real;
use super::summary::Rank;

/// Values that count several times each, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    sorted: Vec<(f64, u64)>,
    total: u64,
}

impl Weighted {
    /// Sorts finite values with the number of times that each counts.
    pub fn new(mut values: Vec<(f64, u64)>) -> Self {
        values.retain(|(value, times)| value.is_finite() && *times > 0);
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = values.iter().map(|(_, times)| times).sum();
        Self { sorted: values, total }
    }

    /// Sorts finite values that count once each.
    pub fn plain(values: impl IntoIterator<Item = f64>) -> Self {
        Self::new(values.into_iter().map(|value| (value, 1)).collect())
    }

    /// Returns the mean, or `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.sorted.iter().map(|(value, times)| value * real(*times)).sum();
        (self.total > 0).then(|| sum / real(self.total))
    }

    /// Returns the quantile, `share` from 0 to 1, or `None` of nothing.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = Rank::of(share, self.total)?;
        Some(rank.between(self.order_statistic(rank.below)?, self.order_statistic(rank.above)?))
    }

    /// Returns how many values there are, each counted as often as it counts.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the values in ascending order with the number of times that each counts.
    pub(crate) fn values(&self) -> &[(f64, u64)] {
        &self.sorted
    }

    /// Returns the value with `rank` values before it.
    fn order_statistic(&self, rank: u64) -> Option<f64> {
        let mut before = 0;
        for (value, times) in &self.sorted {
            before += times;
            if rank < before {
                return Some(*value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(weighted: &Weighted, cases: &[(f64, f64)]) {
        for (share, expected) in cases {
            let found = weighted.quantile(*share).unwrap();
            assert!((found - expected).abs() < 1e-12, "{share}: {found} instead of {expected}");
        }
    }

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy.percentile(v, 100 * share)
        let plain = Weighted::plain([3.1, 0.4, 2.2, 9.9, 5.0, 1.7, 7.3]);
        check(&plain, &[(0.0, 0.4), (0.25, 1.95), (0.5, 3.1), (0.9, 8.34), (0.99, 9.744), (1.0, 9.9)]);
    }

    #[test]
    fn a_value_that_counts_several_times_is_repeated() {
        // numpy.percentile(numpy.repeat([1.0, 2.5, 4.0], [3, 1, 4]), ..)
        let weighted = Weighted::new(vec![(4.0, 4), (1.0, 3), (2.5, 1), (9.0, 0)]);
        check(&weighted, &[(0.1, 1.0), (0.5, 3.25), (0.9, 4.0)]);
        assert_eq!(weighted.mean(), Some((3.0 + 2.5 + 16.0) / 8.0));
    }

    #[test]
    fn nothing_has_no_quantile() {
        let nothing = Weighted::plain([f64::NAN]);
        assert_eq!((nothing.mean(), nothing.quantile(0.5)), (None, None));
    }
}
