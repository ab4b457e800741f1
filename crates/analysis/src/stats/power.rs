//! How small a difference some blocks can find, and how many blocks a difference needs.
//!
//! With standard deviation s over n blocks, the effect that a two-sided test at level α finds with power 1 − β is close
//! to (t(1−α/2, n−1) + t(1−β, n−1))·s/√n: the usual approximation of the noncentral t distribution by t quantiles
//! (Chow, Shao and Wang, "Sample Size Calculations in Clinical Research", section 3.1). It is off the exact value: at a
//! level of 5 % by 1.2 % for 5 blocks and 0.7 % for 6, at 1.8 % by 3 % for 6. From 24 blocks on it is exact to 0.1 %.

use super::{length, t_quantile};

/// The power for which effects and numbers of blocks are stated.
const POWER: f64 = 0.8;

/// Beyond this many blocks, a number of blocks is no help.
const MOST_BLOCKS: usize = 10_000;

/// Returns the smallest effect that a two-sided test at `level` over `blocks` blocks finds with a power of 80 %, in the
/// unit of `deviation`, or `None` below two blocks.
fn minimum_detectable_effect(deviation: f64, blocks: usize, level: f64) -> Option<f64> {
    effect(deviation, blocks, 1.0 - level / 2.0, POWER)
}

/// Returns the fewest blocks with which a two-sided test at `level` finds `difference` with a power of 80 %, or `None`
/// if 10,000 are too few.
pub fn blocks_for_difference(deviation: f64, difference: f64, level: f64) -> Option<usize> {
    fewest(|blocks| minimum_detectable_effect(deviation, blocks, level).is_some_and(|mde| mde <= difference.abs()))
}

/// Returns the fewest blocks with which two one-sided tests at `level` each find that `difference` lies within
/// ±`margin` with a power of 80 %, or `None` if 10,000 are too few or if it doesn't lie within.
///
/// Both tests must hold, so each is asked to hold with 90 %: together then with at least 80 %. Where the difference
/// lies near one margin only that margin's test is in doubt, and the number is somewhat larger than needed.
pub fn blocks_for_equivalence(deviation: f64, difference: f64, margin: f64, level: f64) -> Option<usize> {
    let room = margin - difference.abs();
    if room <= 0.0 {
        return None;
    }
    let both = f64::midpoint(1.0, POWER);
    fewest(|blocks| effect(deviation, blocks, 1.0 - level, both).is_some_and(|needed| needed <= room))
}

fn effect(deviation: f64, blocks: usize, significance: f64, power: f64) -> Option<f64> {
    if blocks < 2 {
        return None;
    }
    let degrees = length(blocks) - 1.0;
    let quantiles = t_quantile(significance, degrees)? + t_quantile(power, degrees)?;
    Some(quantiles * deviation / length(blocks).sqrt())
}

/// Returns the fewest blocks, at least two, that are `enough`; once enough, more are too.
fn fewest(enough: impl Fn(usize) -> bool) -> Option<usize> {
    if !enough(MOST_BLOCKS) {
        return None;
    }
    let (mut too_few, mut sufficient) = (1, MOST_BLOCKS);
    while sufficient - too_few > 1 {
        let middle = usize::midpoint(too_few, sufficient);
        if enough(middle) {
            sufficient = middle;
        } else {
            too_few = middle;
        }
    }
    Some(sufficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_effect_is_close_to_the_exact_one_of_scipy() {
        // brentq of scipy.stats.nct.sf(t.ppf(1 - level/2, n-1), n-1, x*sqrt(n)) - 0.8
        for (blocks, level, exact) in [
            (5, 0.05, 1.681_997),
            (6, 0.05, 1.434_545),
            (10, 0.05, 0.996_002),
            (24, 0.05, 0.597_185),
            (6, 0.018, 1.843_374),
            (100, 0.05, 0.282_913),
        ] {
            let found = minimum_detectable_effect(1.0, blocks, level).unwrap();
            assert!((found / exact - 1.0).abs() < 0.03, "{blocks} blocks: {found} instead of {exact}");
        }
        assert_eq!(minimum_detectable_effect(1.0, 1, 0.05), None);
    }

    #[test]
    fn the_blocks_needed_are_the_fewest() {
        let blocks = blocks_for_difference(0.05, 0.03, 0.05).unwrap();
        assert!(minimum_detectable_effect(0.05, blocks, 0.05).unwrap() <= 0.03);
        assert!(minimum_detectable_effect(0.05, blocks - 1, 0.05).unwrap() > 0.03);
        assert_eq!(blocks_for_difference(0.05, -0.03, 0.05), Some(blocks));
        assert_eq!(blocks_for_difference(1.0, 1e-6, 0.05), None);
    }

    #[test]
    fn equivalence_needs_room() {
        let blocks = blocks_for_equivalence(0.02, 0.0, 0.02, 0.05).unwrap();
        assert!((8..=13).contains(&blocks), "{blocks}");
        assert!(blocks_for_equivalence(0.02, 0.01, 0.02, 0.05).unwrap() > 2 * blocks);
        assert_eq!(blocks_for_equivalence(0.02, 0.02, 0.02, 0.05), None);
    }
}
