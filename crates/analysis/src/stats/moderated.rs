//! Moderated variances: each of many estimated from few values leans on what all of them are like.
//!
//! The model is that of Smyth (2004, "Linear models and empirical Bayes methods for assessing differential expression in
//! microarray experiments", SAGMB 3:3, section 6.2): an estimated variance s² with d degrees of freedom is σ² χ²(d)/d, and
//! the true variances of the group are drawn from a scaled inverse chi-squared distribution, d₀ s₀²/χ²(d₀). Then log s² has
//! a distribution with known cumulants (Fisher's z), and d₀ and s₀² follow from mean and variance of the group's
//! logarithms. A moderated variance is the posterior's, (d₀ s₀² + d s²)/(d₀ + d), with d₀ + d degrees of freedom.
//!
//! Where the logarithms vary less than chance alone would make them, d₀ is infinite and s₀² the exponential of the mean of
//! the corrected logarithms, as published. (limma does this since 2004, but takes the plain mean of variances in that case
//! since 2017.) Variances of zero are lifted to 10⁻⁵ of the median, as in limma's `fitFDist`.

use statrs::function::gamma::digamma;

use super::{length, mean};

/// What true variances of a group are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VariancePrior {
    /// The square root of the prior's variance s₀².
    pub deviation: f64,
    /// Its degrees of freedom d₀; infinite if the group's variances differ no more than chance makes them.
    pub degrees: f64,
}

/// An estimated standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The standard deviation.
    pub deviation: f64,
    /// Its degrees of freedom.
    pub degrees: f64,
}

/// Variances of zero are lifted to this part of the median.
const LIFT: f64 = 1e-5;

impl VariancePrior {
    /// Returns the prior that the spreads of a group give, or `None` below two of them, if one isn't a positive finite number
    /// of degrees of freedom and a finite deviation, or if half of them are zero.
    pub fn fit(group: &[Spread]) -> Option<Self> {
        let is_sound = |spread: &Spread| {
            spread.deviation.is_finite()
                && spread.deviation >= 0.0
                && spread.degrees.is_finite()
                && spread.degrees > 0.0
        };
        if group.len() < 2 || !group.iter().all(is_sound) {
            return None;
        }
        let mut variances: Vec<f64> = group.iter().map(|spread| spread.deviation.powi(2)).collect();
        let least = LIFT * median(&variances)?;
        if least <= 0.0 {
            return None;
        }
        for variance in &mut variances {
            *variance = variance.max(least);
        }
        let corrected: Vec<f64> = variances
            .iter()
            .zip(group)
            .map(|(variance, Spread { degrees, .. })| variance.ln() - digamma(degrees / 2.0) + (degrees / 2.0).ln())
            .collect();
        let center = mean(&corrected)?;
        let squares: f64 = corrected.iter().map(|value| (value - center).powi(2)).sum();
        let by_chance: f64 = group.iter().map(|spread| trigamma(spread.degrees / 2.0)).sum();
        let excess = squares / (length(group.len()) - 1.0) - by_chance / length(group.len());
        if excess <= 0.0 {
            return Some(Self { deviation: (center / 2.0).exp(), degrees: f64::INFINITY });
        }
        let half = inverse_trigamma(excess);
        Some(Self { deviation: ((center + digamma(half) - half.ln()) / 2.0).exp(), degrees: 2.0 * half })
    }

    /// Returns the moderated spread of a member of the group: with no degrees of freedom of its own it is the prior's.
    pub fn moderate(&self, own: Spread) -> Spread {
        if self.degrees.is_infinite() {
            return Spread { deviation: self.deviation, degrees: self.degrees };
        }
        let degrees = self.degrees + own.degrees;
        let squares = self.degrees * self.deviation.powi(2) + own.degrees * own.deviation.powi(2);
        Spread { deviation: (squares / degrees).sqrt(), degrees }
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(*sorted.get(sorted.len() / 2 - 1)?, upper)) }
}

/// Returns ψ'(x), the derivative of the digamma function, for x above 0: the recurrence ψ'(x) = ψ'(x+1) + 1/x² up to 20, then
/// the asymptotic series (Abramowitz and Stegun 6.4.6 and 6.4.12), good to 15 digits.
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 20.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    // Bernoulli numbers 1/6, -1/30, 1/42, -1/30, 5/66.
    let series = y * (1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y * (1.0 / 30.0 - y * 5.0 / 66.0))));
    sum + 1.0 / x + y / 2.0 + series / x
}

/// Returns ψ''(x) for x above 0, in the same way.
fn tetragamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 20.0 {
        sum -= 2.0 / (x * x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y * y * (0.5 - y * (1.0 / 6.0 - y * (1.0 / 6.0 - y * (3.0 / 10.0 - y * 5.0 / 6.0))));
    sum - y - y / x - series
}

/// Returns the x above 0 with ψ'(x) = y, for y above 0: Newton's method on 1/ψ', which is nearly linear and convex, from
/// x = 1/2 + 1/y (Smyth 2004, appendix); it comes closer from one side and doesn't overshoot.
fn inverse_trigamma(y: f64) -> f64 {
    // Where the method would lose digits, the ends of the function: 1/x² near 0, and 1/x far out.
    if y > 1e7 {
        return 1.0 / y.sqrt();
    }
    if y < 1e-6 {
        return 1.0 / y;
    }
    let mut x = 0.5 + 1.0 / y;
    for _ in 0..50 {
        let found = trigamma(x);
        let step = found * (1.0 - found / y) / tetragamma(x);
        x += step;
        if -step / x < 1e-12 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::draws::Draws;
    use crate::stats::real;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn the_trigamma_function_and_its_inverse_are_those_of_mpmath() {
        // mpmath.psi(1, x) with 40 digits; the inverse by bisection of it.
        for (x, expected) in [
            (0.1, 101.433_299_150_792_75),
            (0.5, 4.934_802_200_544_679),
            (1.0, 1.644_934_066_848_226_4),
            (2.5, 0.490_357_756_100_234_86),
            (5.0, 0.221_322_955_737_115_33),
            (11.5, 0.090_846_661_274_546_23),
            (100.0, 0.010_050_166_663_333_571),
        ] {
            near(trigamma(x), expected);
            near(tetragamma(x), (trigamma(x * 1.000_01) - trigamma(x / 1.000_01)) / (x * (1.000_01 - 1.0 / 1.000_01)));
        }
        for (y, expected) in [
            (1e-3, 1_000.499_916_666_682),
            (0.05, 20.495_835_239_154_605),
            (0.5, 2.459_952_948_352_307_4),
            (1.644_934_066_848_226_4, 1.0),
            (4.934_802_200_544_679, 0.5),
            (200.0, 0.070_975_430_067_388_61),
        ] {
            near(inverse_trigamma(y), expected);
        }
        assert!((inverse_trigamma(1e8) / 0.000_100_000_000_822 - 1.0).abs() < 1e-7);
        assert!((inverse_trigamma(1e-8) / 1e8 - 1.0).abs() < 1e-7);
    }

    fn spreads(deviations: &[f64], degrees: &[f64]) -> Vec<Spread> {
        { deviations.iter().zip(degrees) }.map(|(&deviation, &degrees)| Spread { deviation, degrees }).collect()
    }

    #[test]
    fn priors_and_posteriors_are_those_of_limmas_formula() {
        // The formula of limma's fitFDist and squeezeVar, in mpmath with 40 digits.
        for (deviations, degrees, prior, posterior) in FITS {
            let group = spreads(deviations, degrees);
            let fit = VariancePrior::fit(&group).unwrap();
            near(fit.degrees, prior.0);
            near(fit.deviation, prior.1);
            for (own, expected) in group.iter().zip(*posterior) {
                near(fit.moderate(*own).deviation, *expected);
                near(fit.moderate(*own).degrees, prior.0 + own.degrees);
            }
        }
    }

    type Fit = (&'static [f64], &'static [f64], (f64, f64), &'static [f64]);

    const FITS: &[Fit] = &[
        (
            &[0.010, 0.020, 0.050, 0.012],
            &[11.0, 11.0, 5.0, 23.0],
            (1.737_818_343_240_105, 0.014_034_098_101_629_415),
            &[0.010_640_849_490_973_839, 0.019_295_044_182_838_035, 0.043_657_746_019_078_2, 0.012_154_016_783_307_56],
        ),
        (
            &[0.002, 0.08, 0.03, 0.009, 0.2],
            &[5.0, 7.0, 9.0, 11.0, 23.0],
            (0.592_570_363_149_720_6, 0.008_084_109_577_559_403),
            &[
                0.003_240_485_125_000_407_7,
                0.076_847_938_244_011_69,
                0.029_128_003_697_693_27,
                0.008_955_454_930_690_822,
                0.197_476_501_440_939_4,
            ],
        ),
        (
            &[0.01, 0.03],
            &[5.0, 5.0],
            (1.799_375_518_764_423_2, 0.013_923_086_161_112_395),
            &[0.011_173_044_584_975_997, 0.026_704_423_701_797_53],
        ),
        (
            &[0.004, 0.02, 0.007],
            &[11.0, 5.0, 17.0],
            (1.468_406_109_418_315_7, 0.005_821_626_191_533_117),
            &[0.004_255_239_695_976_361, 0.017_801_374_156_878_176, 0.006_913_662_094_853_472],
        ),
    ];

    #[test]
    fn variances_that_differ_by_chance_alone_are_one() {
        let group = spreads(&[0.010, 0.0105, 0.0098], &[11.0; 3]);
        let fit = VariancePrior::fit(&group).unwrap();
        assert!(fit.degrees.is_infinite());
        near(fit.deviation, 0.010_579_749_158_327_854);
        near(fit.moderate(group[0]).deviation, fit.deviation);
    }

    #[test]
    fn without_own_degrees_the_prior_speaks() {
        let fit = VariancePrior { deviation: 0.02, degrees: 3.0 };
        assert_eq!(fit.moderate(Spread { deviation: 0.0, degrees: 0.0 }), Spread { deviation: 0.02, degrees: 3.0 });
    }

    #[test]
    fn what_cannot_be_fitted_gives_no_prior() {
        assert_eq!(VariancePrior::fit(&spreads(&[0.01], &[5.0])), None);
        assert_eq!(VariancePrior::fit(&spreads(&[0.0, 0.0, 0.1], &[5.0; 3])), None);
        assert_eq!(VariancePrior::fit(&spreads(&[0.1, f64::NAN], &[5.0; 2])), None);
        assert_eq!(VariancePrior::fit(&spreads(&[0.1, 0.2], &[5.0, 0.0])), None);
        let lifted = VariancePrior::fit(&spreads(&[0.0, 0.1, 0.1], &[5.0; 3])).unwrap();
        assert!(lifted.deviation > 0.0 && lifted.degrees < 1.0, "{lifted:?}");
    }

    /// Returns the mean squared error of the logarithm of standard deviations of a group, plain and moderated: `keys` true
    /// ones with a log standard deviation of `apart`, each estimated with `degrees` degrees of freedom.
    fn errors(keys: usize, degrees: u32, apart: f64, groups: u32) -> (f64, f64) {
        let mut draws = Draws::new(20_260_711);
        let (mut plain, mut moderated) = (0.0, 0.0);
        for _ in 0..groups {
            let truths: Vec<f64> = (0..keys).map(|_| 0.01 * (apart * draws.normal()).exp()).collect();
            let found: Vec<Spread> = truths
                .iter()
                .map(|truth| Spread {
                    deviation: truth * (draws.chi_squared(degrees) / f64::from(degrees)).sqrt(),
                    degrees: f64::from(degrees),
                })
                .collect();
            let prior = VariancePrior::fit(&found).unwrap();
            for (truth, own) in truths.iter().zip(&found) {
                plain += (own.deviation / truth).ln().powi(2);
                moderated += (prior.moderate(*own).deviation / truth).ln().powi(2);
            }
        }
        let count = length(keys) * real(u64::from(groups));
        (plain / count, moderated / count)
    }

    #[test]
    fn moderated_spreads_are_nearer_to_the_truth_if_keys_are_alike_and_hardly_farther_if_not() {
        for (keys, degrees, apart, expected) in ERRORS {
            let (plain, moderated) = errors(keys, degrees, apart, 2_000);
            let found = moderated / plain;
            assert!((found - expected).abs() < 0.001, "{keys} {degrees} {apart}: {found:.4} instead of {expected}");
            assert!(if apart < 0.5 { found < 0.6 } else { found < 1.06 }, "{keys} {degrees} {apart}: {found}");
        }
    }

    /// Keys, degrees of freedom of each, how far the true logarithms are apart, and the error of moderated spreads as a part of
    /// that of plain ones: the table of `docs/methodology.md`.
    const ERRORS: [(usize, u32, f64, f64); 9] = [
        (3, 5, 0.0, 0.466),
        (3, 11, 0.0, 0.480),
        (8, 5, 0.0, 0.203),
        (8, 11, 0.0, 0.204),
        (8, 5, 0.3, 0.553),
        (3, 5, 1.0, 0.996),
        (3, 11, 1.0, 1.032),
        (8, 5, 1.0, 1.014),
        (8, 11, 1.0, 1.049),
    ];
}
