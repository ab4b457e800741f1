//! Student's t: one sample of block differences against zero.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Continuous as _, ContinuousCDF as _, StudentsT};
use statrs::function::beta::beta_reg;

use super::{length, mean, standard_deviation};

/// Returns the quantile of Student's t distribution, or `None` unless 0 < `probability` < 1 and the degrees of freedom
/// are positive.
pub fn t_quantile(probability: f64, degrees_of_freedom: f64) -> Option<f64> {
    if !(probability > 0.0 && probability < 1.0) {
        return None;
    }
    // At the median the inverse of the incomplete beta function is at the end of its range.
    if (probability - 0.5).abs() < 1e-12 {
        return Some(0.0);
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    // By symmetry the upper half; the library's inverse is good to eight digits, two of Newton's steps give the rest.
    let tail = probability.min(1.0 - probability);
    let mut t = distribution.inverse_cdf(1.0 - tail);
    for _ in 0..2 {
        let excess = two_sided_p(t, degrees_of_freedom)? / 2.0 - tail;
        t += excess / distribution.pdf(t);
    }
    Some(if probability > 0.5 { t } else { -t })
}

/// Returns the two-sided p of `t`: the regularised incomplete beta function I(ν/(ν+t²); ν/2, 1/2) (Abramowitz and
/// Stegun 26.7.1), which keeps its digits in the far tail. `None` for a NaN or without degrees of freedom.
pub fn two_sided_p(t: f64, degrees_of_freedom: f64) -> Option<f64> {
    if t.is_nan() || !degrees_of_freedom.is_finite() || degrees_of_freedom <= 0.0 {
        return None;
    }
    if t.is_infinite() {
        return Some(0.0);
    }
    let x = degrees_of_freedom / (degrees_of_freedom + t * t);
    Some(beta_reg(degrees_of_freedom / 2.0, 0.5, x))
}

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Returns whether the interval lies strictly inside (−`bound`, `bound`).
    pub fn is_within(self, bound: f64) -> bool {
        self.low > -bound && self.high < bound
    }
}

/// A sample of at least two values, summed up for Student's t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneSample {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation.
    pub deviation: f64,
    /// How many values.
    pub count: usize,
}

impl OneSample {
    /// Returns the sample's summary, or `None` below two values or if one is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sample = Self { mean: mean(values)?, deviation: standard_deviation(values)?, count: values.len() };
        (sample.mean.is_finite() && sample.deviation.is_finite()).then_some(sample)
    }

    /// Returns the degrees of freedom, n − 1.
    pub fn degrees_of_freedom(&self) -> f64 {
        length(self.count) - 1.0
    }

    /// Returns the standard error of the mean.
    pub fn standard_error(&self) -> f64 {
        self.deviation / length(self.count).sqrt()
    }

    /// Returns the two-sided p of the mean being zero. A sample without any spread has p 0, or 1 if its mean is zero.
    pub fn p(&self) -> Option<f64> {
        let error = self.standard_error();
        if error == 0.0 {
            return Some(if self.mean == 0.0 { 1.0 } else { 0.0 });
        }
        two_sided_p(self.mean / error, self.degrees_of_freedom())
    }

    /// Returns the p of two one-sided tests of the mean lying outside (−`margin`, `margin`), the larger of both (Schuirmann
    /// 1987). Without any spread it is 0 inside the margins and 1 outside.
    pub fn equivalence_p(&self, margin: f64) -> Option<f64> {
        let (room, error) = (margin - self.mean.abs(), self.standard_error());
        if error == 0.0 {
            return Some(if room > 0.0 { 0.0 } else { 1.0 });
        }
        // The nearer margin has the larger p.
        let half = two_sided_p(room / error, self.degrees_of_freedom())? / 2.0;
        Some(if room > 0.0 { half } else { 1.0 - half })
    }

    /// Returns the interval that covers the mean with probability 1 − `level`; `level` lies between 0 and 1.
    ///
    /// With `level` = 2α it is the interval of two one-sided tests at α each (Schuirmann 1987): the tests find
    /// equivalence exactly if it lies inside the margins.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let half = t_quantile(1.0 - level / 2.0, self.degrees_of_freedom())? * self.standard_error();
        Some(Interval { low: self.mean - half, high: self.mean + half })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Differences of a clear effect.
    pub(in crate::stats) const STRONG: &[f64] = &[0.21, 0.18, 0.25, 0.19, 0.22, 0.17];
    /// Differences of no effect.
    pub(in crate::stats) const NULL: &[f64] = &[0.004, -0.012, 0.009, 0.001, -0.006, 0.003, 0.011, -0.002];
    /// How close two calculations of the same number must come.
    pub(in crate::stats) const NEAR: f64 = 1e-12;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{found} instead of {expected}");
    }

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy.stats.t.ppf(p, df)
        for (p, df, expected) in [
            (0.975, 5.0, 2.570_581_835_636_314_6),
            (0.95, 5.0, 2.015_048_373_333_023_3),
            (0.991, 5.0, 3.462_182_428_263_095),
            (0.8, 5.0, 0.919_543_780_240_827_1),
            (0.975, 1.0, 12.706_204_736_174_694),
            (0.9995, 3.0, 12.923_978_636_687_961),
            (0.975, 23.0, 2.068_657_610_419_048_6),
            (0.8, 999.0, 0.841_981_182_258_946_7),
            (0.6, 2.0, 0.288_675_134_594_812_8),
            (0.999_955, 5.0, 11.423_789_449_282_504),
        ] {
            close(t_quantile(p, df).unwrap(), expected);
            close(t_quantile(1.0 - p, df).unwrap(), -expected);
        }
        assert_eq!(t_quantile(0.5, 4.0), Some(0.0));
        assert_eq!((t_quantile(1.0, 5.0), t_quantile(0.9, 0.0)), (None, None));
    }

    #[test]
    fn p_values_are_those_of_scipy() {
        // 2 * scipy.stats.t.sf(abs(t), df)
        for (t, df, expected) in [
            (0.0, 5.0, 1.0),
            (1.0, 5.0, 0.363_217_467_649_122_9),
            (2.5, 7.0, 0.040_992_218_585_752_89),
            (-4.0, 5.0, 0.010_323_415_480_831_45),
            (0.001, 10.0, 0.999_221_783_374_741),
        ] {
            close(two_sided_p(t, df).unwrap(), expected);
        }
        for (t, df, expected) in [(30.0, 5.0, 7.718_648_620_496_053e-7), (8.0, 23.0, 4.289_191_519_676_225e-8)] {
            let found = two_sided_p(t, df).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} instead of {expected}");
        }
        assert_eq!(two_sided_p(f64::INFINITY, 3.0), Some(0.0));
        assert_eq!((two_sided_p(f64::NAN, 3.0), two_sided_p(1.0, 0.0)), (None, None));
    }

    #[test]
    fn the_test_and_its_intervals_are_those_of_scipy() {
        // r = scipy.stats.ttest_1samp(x, 0); r.pvalue; r.confidence_interval(1 - level)
        let strong = OneSample::of(STRONG).unwrap();
        close(strong.p().unwrap() * 1e5, 1.319_448_164_313_478_3);
        let null = OneSample::of(NULL).unwrap();
        close(null.p().unwrap(), 0.720_678_827_427_940_8);
        for (sample, level, low, high) in [
            (strong, 0.05, 0.172_438_784_612_789_75, 0.234_227_882_053_876_93),
            (strong, 0.10, 0.179_115_465_891_358_27, 0.227_551_200_775_308_4),
            (strong, 0.018, 0.161_723_079_099_623_3, 0.244_943_587_567_043_36),
            (null, 0.10, -0.004_088_728_701_589_597, 0.006_088_728_701_589_594),
        ] {
            let Interval { low: found_low, high: found_high } = sample.interval(level).unwrap();
            close(found_low, low);
            close(found_high, high);
        }
    }

    #[test]
    fn the_p_of_equivalence_is_that_of_scipy() {
        // max(ttest_1samp(x, -m, alternative='greater').pvalue, ttest_1samp(x, m, alternative='less').pvalue)
        for (data, margin, expected) in EQUIVALENCE {
            let sample = OneSample::of(data).unwrap();
            close(sample.equivalence_p(margin).unwrap(), expected);
            for level in [0.01, 0.05, 0.2] {
                let is_within = sample.interval(2.0 * level).unwrap().is_within(margin);
                assert_eq!(is_within, expected < level, "{margin} {level}");
            }
        }
        assert_eq!(OneSample::of(&[0.5; 6]).unwrap().equivalence_p(0.6), Some(0.0));
        assert_eq!(OneSample::of(&[0.5; 6]).unwrap().equivalence_p(0.5), Some(1.0));
    }

    const EQUIVALENCE: [(&[f64], f64, f64); 5] = [
        (NULL, 0.01, 0.006_118_850_556_857_13),
        (NULL, 0.02, 9.908_404_445_142_986e-5),
        (NULL, 0.0005, 0.571_198_290_347_255_2),
        (STRONG, 0.25, 0.005_803_915_678_222_053),
        (STRONG, 0.1, 0.999_824_469_850_500_1),
    ];

    #[test]
    fn a_sample_without_spread_decides_at_once() {
        assert_eq!(OneSample::of(&[0.5; 6]).unwrap().p(), Some(0.0));
        assert_eq!(OneSample::of(&[0.0; 6]).unwrap().p(), Some(1.0));
        assert_eq!(OneSample::of(&[0.5; 6]).unwrap().interval(0.05), Some(Interval { low: 0.5, high: 0.5 }));
        assert_eq!(OneSample::of(&[0.5]), None);
        assert_eq!(OneSample::of(&[0.5, f64::NAN]), None);
    }

    #[test]
    fn touching_the_margin_is_not_inside_it() {
        assert!(Interval { low: -0.01, high: 0.019 }.is_within(0.02));
        assert!(!Interval { low: -0.01, high: 0.02 }.is_within(0.02));
        assert!(!Interval { low: -0.03, high: 0.0 }.is_within(0.02));
    }
}
