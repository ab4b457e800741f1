//! How many values a percentile needs before it is an estimate rather than a guess.

use super::real;

/// The probability with which the tail may hold too few values.
const RISK: f64 = 0.01;

/// Returns the smallest number of values from which the quantile, `share` between 0 and 1, is an estimate: with 99 %
/// probability at least two of them lie beyond it, on the side of the nearer end. `None` at the ends themselves, which
/// no number of values estimates.
///
/// This is Wilks' (1941) one-sided tolerance limit of the second order at 99 % confidence, a binomial probability: with
/// t = min(share, 1 − share) the smallest n with (1 − t)ⁿ + n t (1 − t)ⁿ⁻¹ ≤ 0.01, which is 662 for the 99th percentile,
/// 130 for the 95th and 64 for the 90th.
pub fn enough_for_quantile(share: f64) -> Option<u64> {
    let tail = share.min(1.0 - share);
    if tail.is_nan() || tail <= 0.0 {
        return None;
    }
    let is_enough = |count: u64| {
        let none = (1.0 - tail).powf(real(count));
        none * (1.0 + real(count) * tail / (1.0 - tail)) <= RISK
    };
    let mut high = 2;
    while !is_enough(high) {
        high = u64::checked_mul(high, 2)?;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_binomial_distribution() {
        // next(n for n in itertools.count(2) if scipy.stats.binom.cdf(1, n, t) <= 0.01), SciPy 1.17
        for (share, expected) in
            [(0.5, 11), (0.75, 24), (0.9, 64), (0.95, 130), (0.99, 662), (0.995, 1325), (0.999, 6636), (0.9999, 66_381)]
        {
            assert_eq!(enough_for_quantile(share), Some(expected), "{share}");
        }
        for low in [0.1, 0.05, 0.01] {
            assert_eq!(enough_for_quantile(low), enough_for_quantile(1.0 - low), "{low}");
        }
    }

    #[test]
    fn the_ends_are_never_estimated() {
        for share in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
            assert_eq!(enough_for_quantile(share), None, "{share}");
        }
    }
}
