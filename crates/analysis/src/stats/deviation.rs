//! How sure a standard deviation is.

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use super::Interval;

/// Returns the interval that covers a standard deviation with probability 1 − `level`, from its estimate with so many degrees
/// of freedom, which may be a fraction: d s²/σ² is chi-squared with d degrees of freedom for normal values. `None` unless
/// the level lies between 0 and 1, the degrees of freedom are finite and above 0, and the estimate is finite.
pub fn deviation_interval(deviation: f64, degrees_of_freedom: f64, level: f64) -> Option<Interval> {
    if !(level > 0.0 && level < 1.0 && degrees_of_freedom.is_finite() && deviation.is_finite()) {
        return None;
    }
    let distribution = ChiSquared::new(degrees_of_freedom).ok()?;
    let end = |probability: f64| deviation * (degrees_of_freedom / distribution.inverse_cdf(probability)).sqrt();
    Some(Interval { low: end(1.0 - level / 2.0), high: end(level / 2.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_ends_are_those_of_mpmath() {
        // sqrt(d / q), q by bisection of mpmath.gammainc(d/2, 0, q/2, regularized=True) with 40 digits
        for (degrees, low, high) in [
            (1.0, 0.446_149_184_920_708_9, 31.910_159_349_643_964),
            (4.0, 0.599_133_139_134_140_8, 2.873_555_634_078_219_3),
            (5.0, 0.624_208_002_258_982_5, 2.452_613_988_548_297_3),
            (7.5, 0.668_585_315_479_104, 1.970_996_080_680_417_1),
            (11.0, 0.708_395_150_862_265_8, 1.697_878_017_724_006_3),
            (23.0, 0.777_213_587_971_521_6, 1.402_760_611_848_431_7),
            (47.0, 0.832_468_798_312_659_9, 1.252_580_364_906_603_3),
            (200.0, 0.910_865_635_148_615_2, 1.108_622_983_052_086_1),
        ] {
            let found = deviation_interval(2.0, degrees, 0.05).unwrap();
            assert!((found.low / low / 2.0 - 1.0).abs() < 1e-7, "{degrees}: {found:?}");
            assert!((found.high / high / 2.0 - 1.0).abs() < 1e-7, "{degrees}: {found:?}");
        }
    }

    #[test]
    fn nothing_is_sure_without_degrees_of_freedom() {
        for (deviation, degrees, level) in
            [(1.0, 0.0, 0.05), (1.0, f64::INFINITY, 0.05), (1.0, 5.0, 0.0), (1.0, 5.0, 1.0), (f64::NAN, 5.0, 0.05)]
        {
            assert_eq!(deviation_interval(deviation, degrees, level), None);
        }
        assert_eq!(deviation_interval(0.0, 5.0, 0.05), Some(Interval { low: 0.0, high: 0.0 }));
    }
}
