//! The interval beside the Hodges–Lehmann estimate, from the distribution of Wilcoxon's signed ranks.

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::location::walsh_averages;
use super::{Interval, length};

/// Up to so many values the distribution is counted; above, it is normal to many digits.
const COUNTED_UP_TO: usize = 100;

/// Returns the interval that covers the centre of a symmetric distribution with a probability of at least 1 − `level`,
/// whatever else the distribution is: between the k-th smallest and the k-th largest of the means of all pairs, each value
/// paired with itself too, where k is the largest with P(W < k) ≤ `level`/2 and W is the sum of the ranks of the positive
/// values (Hollander, Wolfe and Chicken 2014, Nonparametric Statistical Methods, section 3.3).
///
/// `None` if one isn't finite, if `level` isn't between 0 and 1, or if there are too few values: n of them can't do better
/// than 2^(1−n), which is 0.0625 for 5 and 0.0078 for 8.
pub fn hodges_lehmann_interval(values: &[f64], level: f64) -> Option<Interval> {
    if !(values.iter().all(|value| value.is_finite()) && level > 0.0 && level < 1.0) {
        return None;
    }
    let outside = outside(values.len(), level / 2.0)?;
    let averages = walsh_averages(values);
    let low = *averages.get(outside)?;
    let high = *averages.get(averages.len().checked_sub(outside + 1)?)?;
    (low <= high).then_some(Interval { low, high })
}

/// Returns how many averages lie outside on each side: the largest k with P(W < k) ≤ `tail`, less one. `None` if even the
/// outermost averages leave out more.
fn outside(count: usize, tail: f64) -> Option<usize> {
    if count == 0 {
        return None;
    }
    let sums = count * (count + 1) / 2;
    if count > COUNTED_UP_TO {
        return Some(approximate(count, tail));
    }
    // The shares of all patterns of signs that have each sum of positive ranks, up to half of the largest.
    let mut shares = vec![0.0; sums / 2 + 1];
    if let Some(first) = shares.first_mut() {
        *first = 1.0;
    }
    for rank in 1..=count {
        let with: Vec<f64> = std::iter::repeat_n(0.0, rank).chain(shares.iter().copied()).collect();
        for (share, with) in shares.iter_mut().zip(with) {
            *share = f64::midpoint(*share, with);
        }
    }
    let mut below = 0.0;
    let enclosed = shares.iter().take_while(|share| {
        below += **share;
        // Sums of powers of two: what is equal up to rounding is equal.
        below <= tail * (1.0 + 1e-12)
    });
    enclosed.count().checked_sub(1)
}

/// Returns the same from the normal distribution with the mean n(n + 1)/4 and the variance n(n + 1)(2n + 1)/24, corrected
/// for continuity.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number between 0 and the number of averages"
)]
fn approximate(count: usize, tail: f64) -> usize {
    let n = length(count);
    let (mean, deviation) = (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt());
    (mean + deviation * Normal::standard().inverse_cdf(tail) - 0.5).floor().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::draws::Draws;
    use crate::stats::student::tests::{NULL, STRONG};

    #[test]
    fn how_many_averages_are_left_out_is_what_the_counted_distribution_says() {
        // c = numpy.ones(1); for r in range(1, n+1): c = numpy.convolve(c, [1] + [0]*(r-1) + [1]);
        // numpy.searchsorted(numpy.cumsum(c)/2**n, tail, side='right') - 1
        for (count, tail, expected) in [
            (5, 0.025, None),
            (6, 0.025, Some(0)),
            (7, 0.025, Some(2)),
            (8, 0.025, Some(3)),
            (10, 0.025, Some(8)),
            (24, 0.025, Some(81)),
            (10, 0.0065, Some(3)),
            (24, 0.0095, Some(68)),
            (100, 0.025, Some(1955)),
            (0, 0.025, None),
        ] {
            assert_eq!(outside(count, tail), expected, "{count} {tail}");
        }
        let counted = outside(COUNTED_UP_TO, 0.005).unwrap();
        assert!(counted.abs_diff(approximate(COUNTED_UP_TO, 0.005)) <= 4, "{counted}");
    }

    #[test]
    fn intervals_are_those_of_the_sorted_averages() {
        // w = numpy.sort([(x[i] + x[j])/2 for i in range(n) for j in range(i, n)]); w[k], w[-k - 1]
        for (values, level, expected) in [
            (STRONG, 0.05, Some((0.17, 0.25))),
            (NULL, 0.05, Some((-0.006, 0.0075))),
            (NULL, 0.2, Some((-0.0025, 0.005))),
            (STRONG, 0.03, None),
        ] {
            let found = hodges_lehmann_interval(values, level);
            assert_eq!(found.is_some(), expected.is_some(), "{values:?} {level}");
            for (found, (low, high)) in found.iter().zip(expected) {
                assert!((found.low - low).abs() < 1e-12 && (found.high - high).abs() < 1e-12, "{found:?}");
            }
        }
        assert_eq!(hodges_lehmann_interval(&[0.1, f64::NAN], 0.05), None);
        assert_eq!((hodges_lehmann_interval(STRONG, 0.0), hodges_lehmann_interval(&[], 0.05)), (None, None));
    }

    #[test]
    fn it_covers_the_centre_of_heavy_tails() {
        let mut draws = Draws::new(6);
        let runs = 4_000;
        let mut hits = 0;
        for _ in 0..runs {
            // Student's t with two degrees of freedom about 0.3.
            let mut heavy = || 0.3 + draws.normal() / (draws.chi_squared(2) / 2.0).sqrt();
            let values: Vec<f64> = (0..12).map(|_| heavy()).collect();
            let found = hodges_lehmann_interval(&values, 0.05).unwrap();
            hits += u32::from(found.low <= 0.3 && found.high >= 0.3);
        }
        let covered = f64::from(hits) / f64::from(runs);
        assert!((0.945..=0.965).contains(&covered), "{covered}");
    }
}
