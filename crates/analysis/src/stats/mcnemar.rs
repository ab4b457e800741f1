//! The exact `McNemar` test of two paired rates.

use statrs::function::factorial::ln_binomial;

use super::real;

/// Returns the two-sided p of the exact `McNemar` test: `first_only` pairs in which only the first succeeded, `second_only`
/// in which only the second did; pairs in which both or neither did say nothing. It is twice the smaller tail of
/// Binomial(n, 1/2), and 1 at most (`McNemar` 1947, Psychometrika 12:153; the exact form is the sign test).
pub fn mcnemar_exact(first_only: u64, second_only: u64) -> f64 {
    let n = first_only.saturating_add(second_only);
    let fewer = first_only.min(second_only);
    // Each term follows from the one before, from the largest down: a small term can't lower the sum, and the loop ends
    // where terms no longer count.
    let mut term = (ln_binomial(n, fewer) - real(n) * std::f64::consts::LN_2).exp();
    let mut tail = term;
    let mut count = fewer;
    while count > 0 && term > tail * f64::EPSILON {
        term *= real(count) / real(n - count + 1);
        tail += term;
        count -= 1;
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_those_of_statsmodels() {
        // statsmodels 0.14: statsmodels.stats.contingency_tables.mcnemar([[5, first], [second, 7]], exact=True).pvalue;
        // scipy.stats.binomtest(first, first + second).pvalue is the same
        for (first, second, expected) in [
            (8, 12, 0.503_444_671_630_859_4),
            (13, 6, 0.167_068_481_445_312_5),
            (13, 3, 0.021_270_751_953_125),
            (18, 3, 0.001_489_639_282_226_562_5),
            (0, 8, 0.007_812_5),
            (0, 0, 1.0),
            (5, 5, 1.0),
            (1, 0, 1.0),
            (40, 70, 0.005_447_429_511_444_476),
            (600, 500, 0.002_819_544_991_436_428_4),
            (1500, 1300, 0.000_168_411_622_643_764_23),
        ] {
            let p = mcnemar_exact(first, second);
            assert!((p / expected - 1.0).abs() < 1e-9, "{first} {second}: {p}");
            assert!((mcnemar_exact(second, first) - p).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn small_counts_equal_the_sum_over_every_pattern() {
        for n in 0..16_u64 {
            for first in 0..=n {
                let fewer = u32::try_from(first.min(n - first)).unwrap();
                let patterns = (0..1_u32 << n).filter(|pattern| pattern.count_ones() <= fewer).count();
                let expected = (2.0 * crate::stats::length(patterns) / real(1 << n)).min(1.0);
                assert!((mcnemar_exact(first, n - first) - expected).abs() < 1e-12, "{first} of {n}");
            }
        }
    }
}
