//! A trend over time: the Mann–Kendall test and the Theil–Sen slope.

use statrs::function::erf::erfc;

use super::{Weighted, length, mean};

/// A trend of equally spaced values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The two-sided p of there being no trend.
    pub p: f64,
    /// The fitted change from the first value to the last, as a share of the mean; positive is growth.
    pub change: f64,
}

/// Returns the trend of equally spaced values, or `None` below three of them or if their mean isn't positive.
///
/// The test is Mann's and Kendall's with correction for ties and continuity, by the normal approximation (Kendall 1975,
/// "Rank Correlation Methods", chapter 4); the change is the median of all pairwise slopes (Sen 1968) over the whole
/// span.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    let mean = mean(values)?;
    if values.len() < 3 || !mean.is_finite() || mean <= 0.0 {
        return None;
    }
    let mut score = 0_i64;
    let mut slopes = Vec::with_capacity(values.len() * (values.len() - 1) / 2);
    for (early, first) in values.iter().enumerate() {
        for (steps, second) in values.iter().skip(early + 1).enumerate() {
            score += i64::from(second > first) - i64::from(second < first);
            slopes.push((second - first) / length(steps + 1));
        }
    }
    let p = p_of_score(score, variance(values));
    let slope = Weighted::plain(slopes).quantile(0.5)?;
    Some(Trend { p, change: slope * (length(values.len()) - 1.0) / mean })
}

fn p_of_score(score: i64, variance: f64) -> f64 {
    if score == 0 || variance <= 0.0 {
        return 1.0;
    }
    let distance = super::real(score.unsigned_abs() - 1);
    erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2)
}

fn variance(values: &[f64]) -> f64 {
    let term = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|tied| term(length(tied.len()))).sum();
    (term(length(values.len())) - ties) / 18.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], p: f64, slope: f64) {
        let trend = mann_kendall(values).unwrap();
        assert!((trend.p - p).abs() < 1e-9, "{} instead of {p}", trend.p);
        let change = slope * (length(values.len()) - 1.0) / mean(values).unwrap();
        assert!((trend.change - change).abs() < 1e-12, "{} instead of {change}", trend.change);
    }

    #[test]
    fn the_trend_is_that_of_scipy() {
        // 2 * scipy.stats.norm.sf((abs(S) - 1) / sqrt(variance with ties)); scipy.stats.theilslopes(y).slope
        check(&[1.0, 1.2, 1.1, 1.3, 1.5, 1.4, 1.6, 1.8, 1.7, 1.9], 0.000_676_764_180_121_045_7, 0.1);
        check(&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0], 0.319_302_036_482_854_8, 1.0 / 3.0);
        check(&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0], 0.000_370_577_214_714_586_3, 0.5);
    }

    #[test]
    fn a_level_series_has_no_trend() {
        let trend = mann_kendall(&[2.0; 12]).unwrap();
        assert_eq!((trend.p, trend.change), (1.0, 0.0));
        assert_eq!(mann_kendall(&[1.0, 2.0]), None);
        assert_eq!(mann_kendall(&[0.0; 5]), None);
    }
}
