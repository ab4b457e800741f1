//! What a boundary finds: power, the blocks it takes, the smallest effect, and how many blocks an effect needs.
//!
//! Given this look's angle, whether an earlier look crossed doesn't depend on the true mean: sum and sum of squares are
//! sufficient for the sample, and the latter is independent of the angles so far. So the functions of [`super::chain`]
//! hold for every effect, and only the density of the angle changes: by the mean of exp(√n d √Q sin φ − n d²/2), Q being
//! chi-squared with n degrees of freedom, for an effect of d standard deviations. That is the density of the noncentral
//! t distribution over that of the central one (Johnson, Kotz and Balakrishnan 1995, chapter 31), and powers are exact.

use std::f64::consts::{FRAC_PI_2, LN_2};

use isobench_schema::order::default_schedule;
use isobench_schema::plan::Spending;
use statrs::function::gamma::ln_gamma;

use super::super::quadrature::Rule;
use super::chain::{Passed, Sides, density};
use super::{Boundary, BoundaryError, Interim};

/// No effect is asked for that is larger, in standard deviations.
const LARGEST_EFFECT: f64 = 64.0;

/// The most blocks that a schedule may need before it is called hopeless.
const MOST_NEEDED: u32 = 1_000;

impl Boundary {
    /// Returns the probability to cross at some look if the true mean is `effect` standard deviations.
    pub fn power(&self, effect: f64) -> f64 {
        self.passed.last().map_or(0.0, |last| 1.0 - self.undecided(last, effect))
    }

    /// Returns the mean number of blocks if sampling ends where a look crosses.
    pub fn mean_blocks(&self, effect: f64) -> f64 {
        let mut mean = self.passed.first().map_or(0.0, |first| f64::from(first.blocks));
        for (look, next) in self.passed.iter().zip(self.passed.iter().skip(1)) {
            mean += f64::from(next.blocks - look.blocks) * self.undecided(look, effect);
        }
        mean
    }

    /// Returns the smallest effect, in standard deviations, that is found with this `power`, or `None` if none up to 64
    /// is.
    pub fn minimum_detectable_effect(&self, power: f64) -> Option<f64> {
        if !(self.power(LARGEST_EFFECT) >= power && power > self.error()) {
            return None;
        }
        let (mut low, mut high) = (0.0, LARGEST_EFFECT);
        while high - low > 1e-9 * high {
            let middle = f64::midpoint(low, high);
            if self.power(middle) < power { low = middle } else { high = middle }
        }
        Some(high)
    }

    /// Returns the probability that no look up to this one crosses.
    fn undecided(&self, look: &Passed, effect: f64) -> f64 {
        let (angles, sizes) = (Rule::new(48), Rule::new(64));
        let part = |low: f64, high: f64| {
            angles.integrate(low, high, |angle| {
                let shift = likelihood_ratio(look.blocks, effect, angle.sin(), &sizes);
                look.unseen.at(angle) * density(angle, look.blocks) * shift
            })
        };
        // Below the floor nothing was ever taken; only a large negative effect comes there.
        let below = match self.sides {
            Sides::One => part(-FRAC_PI_2, look.floor),
            Sides::Two => 0.0,
        };
        (below + part(look.floor, look.top)).clamp(0.0, 1.0)
    }
}

/// Returns the mean of exp(√n d √Q sin φ − n d²/2) over Q, the square of s with the density s^(n−1) e^(−s²/2) / (2^(n/2−1)
/// Γ(n/2)).
fn likelihood_ratio(blocks: u32, effect: f64, sine: f64, sizes: &Rule) -> f64 {
    let blocks = f64::from(blocks);
    let shift = effect * blocks.sqrt();
    let slope = shift * sine;
    let constant = shift * shift / 2.0 + (blocks / 2.0 - 1.0) * LN_2 + ln_gamma(blocks / 2.0);
    // The integrand is log-concave with this mode, and this width there.
    let mode = f64::midpoint(slope, slope.hypot(2.0 * (blocks - 1.0).sqrt()));
    let width = 1.0 / (1.0 + (blocks - 1.0) / (mode * mode)).sqrt();
    let exponent = |size: f64| slope * size - size * size / 2.0 + (blocks - 1.0) * size.ln() - constant;
    sizes.integrate((mode - 8.0 * width).max(0.0), mode + 20.0 * width, |size| exponent(size).exp())
}

/// Returns the default schedule with the fewest blocks at most that finds an effect of so many standard deviations with
/// this `power`, in sets of orders of `set` blocks, or `None` if 1,000 blocks are too few.
///
/// # Errors
/// Returns what is wrong with the error.
pub fn blocks_for_sequential(
    spending: Spending,
    error: f64,
    effect: f64,
    power: f64,
    set: u32,
) -> Result<Option<Vec<u32>>, BoundaryError> {
    let set = set.max(1);
    let schedule = |sets: u32| default_schedule(sets.saturating_mul(set), set);
    let is_enough = |sets: u32| -> Result<bool, BoundaryError> {
        let boundary = Boundary::spending(Sides::Two, spending, error, &Interim::schedule(&schedule(sets)))?;
        Ok(boundary.power(effect.abs()) >= power)
    };
    let most = (MOST_NEEDED / set).max(1);
    let (mut too_few, mut sufficient) = (0, 1);
    while !is_enough(sufficient)? {
        if sufficient == most {
            return Ok(None);
        }
        (too_few, sufficient) = (sufficient, sufficient.saturating_mul(2).min(most));
    }
    while sufficient - too_few > 1 {
        let middle = too_few.midpoint(sufficient);
        if is_enough(middle)? { sufficient = middle } else { too_few = middle }
    }
    Ok(Some(schedule(sufficient)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(blocks: u32, level: f64) -> Boundary {
        Boundary::of_levels(Sides::Two, &[(blocks, level)]).unwrap()
    }

    #[test]
    fn the_power_of_one_look_is_that_of_the_noncentral_t_distribution() {
        // c = scipy.stats.t.ppf(1 - level/2, n-1); nct.sf(c, n-1, d*sqrt(n)) + nct.cdf(-c, n-1, d*sqrt(n))
        for (blocks, level, effect, expected) in NONCENTRAL {
            let found = fixed(blocks, level).power(effect);
            assert!((found - expected).abs() < 1e-7, "{blocks} {level} {effect}: {found} instead of {expected}");
        }
    }

    const NONCENTRAL: [(u32, f64, f64, f64); 8] = [
        (3, 0.1, 1.0, 0.323_187_171_112_555_8),
        (6, 0.05, 0.7, 0.286_746_155_314_774_3),
        (6, 0.018, 2.0, 0.862_786_108_250_819),
        (10, 0.013, 1.0, 0.554_981_774_623_637_8),
        (24, 0.05, 0.5, 0.650_391_834_154_540_8),
        (24, 0.019, 0.7, 0.809_411_491_176_403_2),
        (100, 0.05, 0.3, 0.843_947_102_737_415_8),
        (400, 0.001, 0.2, 0.752_483_303_544_832_7),
    ];

    #[test]
    fn the_smallest_effect_of_one_look_is_that_of_scipy() {
        // brentq of the power above less 0.8
        for (blocks, level, expected) in SMALLEST {
            let found = fixed(blocks, level).minimum_detectable_effect(0.8).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-6, "{blocks} {level}: {found} instead of {expected}");
        }
        assert_eq!(fixed(6, 0.05).minimum_detectable_effect(0.04), None);
        assert_eq!(fixed(3, 1e-9).minimum_detectable_effect(0.8), None);
    }

    const SMALLEST: [(u32, f64, f64); 6] = [
        (5, 0.05, 1.681_996_965_955_557),
        (6, 0.05, 1.434_544_782_040_280_1),
        (10, 0.05, 0.996_001_371_455_477_3),
        (24, 0.05, 0.597_184_100_291_212_7),
        (6, 0.018, 1.843_374_192_086_895_8),
        (100, 0.05, 0.282_912_632_781_391_2),
    ];

    #[test]
    fn without_an_effect_the_power_is_the_error() {
        for sides in [Sides::One, Sides::Two] {
            let looks = Interim::schedule(&[6, 10, 16, 24]);
            let boundary = Boundary::spending(sides, Spending::Pocock, 0.05, &looks).unwrap();
            assert!((boundary.power(0.0) - boundary.error()).abs() < 1e-7, "{sides:?}: {}", boundary.power(0.0));
            let effects = [0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0];
            let powers: Vec<f64> = effects.iter().map(|&effect| boundary.power(effect)).collect();
            assert!(powers.is_sorted() && powers[6] > 0.999_999, "{sides:?}: {powers:?}");
        }
        let looks = Interim::schedule(&[6, 12]);
        let one = Boundary::spending(Sides::One, Spending::Pocock, 0.05, &looks).unwrap();
        assert!(one.power(-0.5) < 0.01 && one.power(-10.0) < 1e-6, "{} {}", one.power(-0.5), one.power(-10.0));
    }

    #[test]
    fn the_blocks_needed_are_the_fewest_that_are_enough() {
        let power = |looks: &[u32], effect| {
            Boundary::spending(Sides::Two, Spending::Pocock, 0.05, &Interim::schedule(looks)).unwrap().power(effect)
        };
        let needed = blocks_for_sequential(Spending::Pocock, 0.05, 0.7, 0.8, 2).unwrap().unwrap();
        assert!(power(&needed, 0.7) >= 0.8, "{needed:?}");
        assert!(power(&default_schedule(needed[needed.len() - 1] - 2, 2), 0.7) < 0.8, "{needed:?}");
        assert_eq!(blocks_for_sequential(Spending::Pocock, 0.05, 0.01, 0.8, 6), Ok(None));
        assert!(blocks_for_sequential(Spending::Pocock, 0.7, 0.5, 0.8, 2).is_err());
    }
}
