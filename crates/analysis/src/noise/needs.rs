//! What the looks of a design find in a spread, and how many blocks a difference needs.

use isobench_schema::noise::LookEffect;
use isobench_schema::plan::Look;

use crate::judge::levels;
use crate::stats::{blocks_for_difference, length};

/// Returns the smallest difference that all these looks together find with a power of 80 %, in standard deviations of block
/// differences. Exact for normal differences (`stats::sequential`).
pub fn smallest_effect(looks: &[Look]) -> Option<f64> {
    levels::smallest_effect(looks)
}

/// Returns for each look what it and those before it find with a power of 80 % in a spread.
pub fn look_effects(looks: &[Look], deviation: f64) -> Vec<LookEffect> {
    let effect = |place: usize| {
        let upto = looks.get(..=place)?;
        Some(LookEffect { blocks: upto.last()?.blocks, mde: deviation * smallest_effect(upto)? })
    };
    (0..looks.len()).filter_map(effect).collect()
}

/// Returns the most blocks of a design that finds a log ratio of `difference` with a power of 80 %, in whole sets of orders
/// of `set` blocks, or `None` if 10,000 blocks are too few, or there is nothing to find.
///
/// It is the number of a design with one look at 5 %, times what these looks cost: the square of the ratio of the smallest
/// effects that the two find with as many blocks (the inflation factor of Jennison and Turnbull 2000, section 2.3). Where
/// the design itself finds the difference, it needs no more blocks than that has, and where it doesn't, more.
pub fn blocks_needed(looks: &[Look], set: u32, deviation: f64, difference: f64) -> Option<u32> {
    let (set, most) = (set.max(1), looks.last()?.blocks);
    if difference.is_nan() || difference == 0.0 {
        return None;
    }
    let effect = smallest_effect(looks)?;
    let one = Look { blocks: most, level: levels::ERROR, equivalence_level: levels::ERROR };
    let inflation = (effect / smallest_effect(&[one])?).powi(2);
    let single = blocks_for_difference(deviation, difference, levels::ERROR)?;
    // A small number of blocks, far below 2^32.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a few times 10,000")]
    let blocks = (length(single) * inflation).ceil() as u32;
    let in_sets = blocks.max(1).div_ceil(set).saturating_mul(set);
    Some(if deviation * effect <= difference.abs() { in_sets.min(most) } else { in_sets.max(most.saturating_add(set)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sequential::{self, Boundary, Interim, Sides, blocks_for_sequential};
    use isobench_schema::plan::Spending;

    fn looks(blocks: &[u32]) -> Vec<Look> {
        sequential::looks(Spending::Even, blocks).unwrap()
    }

    #[test]
    fn effects_have_a_power_of_80_percent_at_every_look() {
        let looks = looks(&[6, 10, 16, 24]);
        let found = look_effects(&looks, 0.02);
        assert_eq!(found.iter().map(|look| look.blocks).collect::<Vec<_>>(), [6, 10, 16, 24]);
        let boundary = |upto: usize| {
            let schedule = Interim::schedule(&[6, 10, 16, 24]);
            Boundary::spending(Sides::Two, Spending::Even, 0.05, &schedule[..upto]).unwrap()
        };
        for (upto, look) in (1..).zip(&found) {
            let power = boundary(upto).power(look.mde / 0.02);
            assert!((power - 0.8).abs() < 1e-3, "{look:?}: {power}");
        }
    }

    #[test]
    fn the_blocks_needed_are_about_those_of_the_exact_search() {
        let looks = looks(&[6, 10, 16, 24]);
        for effect in [0.4, 0.7, 1.2] {
            let exact = blocks_for_sequential(Spending::Even, 0.05, effect, 0.8, 2).unwrap().unwrap();
            let exact = f64::from(*exact.last().unwrap());
            let found = f64::from(blocks_needed(&looks, 2, 0.02, 0.02 * effect).unwrap());
            assert!((found - exact).abs() <= (0.06 * exact).max(2.0), "{effect}: {found} instead of {exact}");
        }
    }

    #[test]
    fn a_design_needs_no_more_blocks_than_its_own_for_what_it_finds() {
        let looks = looks(&[6, 10, 16, 24]);
        let effect = smallest_effect(&looks).unwrap();
        assert!(blocks_needed(&looks, 2, 0.01, 0.01 * effect * 1.000_1).unwrap() <= 24);
        assert!(blocks_needed(&looks, 2, 0.01, -0.01 * effect * 0.999_9).unwrap() >= 26);
        assert_eq!(blocks_needed(&looks, 6, 0.01, 0.1).unwrap() % 6, 0);
        assert_eq!(blocks_needed(&looks, 2, 0.01, 0.0), None);
        assert_eq!(blocks_needed(&looks, 2, 1.0, 1e-6), None);
        assert_eq!(blocks_needed(&[], 2, 0.01, 0.1), None);
    }
}
