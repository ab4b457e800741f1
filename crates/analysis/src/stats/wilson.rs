//! The Wilson interval of a rate.

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::real;

/// The Wilson score interval of `successes` out of `trials` at the two-sided `level`, such as 0.95 (Wilson 1927, JASA
/// 22:209, without correction for continuity). Both ends are within 0 and 1.
///
/// Returns `None` if there are no trials, more successes than trials, or the level isn't between 0 and 1.
pub fn wilson_interval(successes: u64, trials: u64, level: f64) -> Option<(f64, f64)> {
    if trials == 0 || successes > trials || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let z = Normal::standard().inverse_cdf(f64::midpoint(1.0, level));
    let (n, rate) = (real(trials), real(successes) / real(trials));
    let square = z * z;
    let middle = (rate + square / (2.0 * n)) / (1.0 + square / n);
    let half = z * (rate * (1.0 - rate) / n + square / (4.0 * n * n)).sqrt() / (1.0 + square / n);
    // At no or only successes one end is exactly 0 or 1, which rounding must not move.
    let low = if successes == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if successes == trials { 1.0 } else { (middle + half).min(1.0) };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(successes: u64, trials: u64, level: f64, expected: (f64, f64)) {
        let (low, high) = wilson_interval(successes, trials, level).unwrap();
        assert!((low - expected.0).abs() < 1e-11, "{successes} of {trials}: {low}");
        assert!((high - expected.1).abs() < 1e-11, "{successes} of {trials}: {high}");
    }

    #[test]
    fn intervals_are_those_of_statsmodels() {
        // statsmodels 0.14: statsmodels.stats.proportion.proportion_confint(successes, trials, 0.05, 'wilson')
        check(18, 39, 0.95, (0.315_668_856_067_278, 0.614_305_517_294_843));
        check(22, 39, 0.95, (0.409_756_916_486_695, 0.706_952_461_243_104));
        check(2, 15, 0.95, (0.037_361_259_103_065_3, 0.378_819_828_323_224));
        check(0, 10, 0.95, (0.0, 0.277_532_799_862_889));
        check(10, 10, 0.95, (0.722_467_200_137_111, 1.0));
        check(1, 1, 0.95, (0.206_549_314_377_237, 1.0));
        check(500, 1000, 0.95, (0.469_069_600_368_104, 0.530_930_399_631_896));
        check(3, 100_000, 0.95, (1.020_275_854_451_73e-5, 8.820_804_925_176_73e-5));
    }

    #[test]
    fn other_levels_are_those_of_statsmodels() {
        // the same with 0.10 in the place of 0.05
        check(18, 39, 0.90, (0.337_035_964_692_998, 0.591_031_151_773_137));
        check(0, 1, 0.90, (0.0, 0.730_134_051_215_946));
        check(500, 1000, 0.90, (0.474_027_691_478_42, 0.525_972_308_521_58));
    }

    #[test]
    fn what_is_no_rate_has_no_interval() {
        for (successes, trials, level) in [(0, 0, 0.95), (2, 1, 0.95), (1, 2, 0.0), (1, 2, 1.0), (1, 2, f64::NAN)] {
            assert_eq!(wilson_interval(successes, trials, level), None);
        }
    }
}
