//! The exact sign-flip test of block differences.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::real;

/// The most differences for which every pattern of signs is counted; above it, patterns are drawn.
pub const EXACT_UP_TO: usize = 32;

/// Patterns drawn above [`EXACT_UP_TO`] differences.
const DRAWS: u32 = 100_000;

/// Sums this close together, relative to the sum of all sizes, are ties: their order of addition differs.
const TIE: f64 = 1e-12;

/// Returns the two-sided p of the sign-flip test: the share of all 2^n patterns of signs whose sum is at least as far
/// from zero as the sum seen (Fisher 1935, "The Design of Experiments", section 21). `None` of nothing or if one isn't
/// finite.
///
/// Up to [`EXACT_UP_TO`] differences the count is exact: all sums of each half are listed and sorted, and the pairs
/// beyond the threshold are counted in one pass. Above, 100,000 patterns are drawn from `seed`, and p is (hits +
/// 1)/(draws + 1) (Phipson and Smyth 2010).
pub fn sign_flip_p(differences: &[f64], seed: u64) -> Option<f64> {
    if differences.is_empty() || !differences.iter().all(|value| value.is_finite()) {
        return None;
    }
    let sizes: f64 = differences.iter().map(|value| value.abs()).sum();
    let threshold = differences.iter().sum::<f64>().abs() - TIE * sizes;
    if threshold <= 0.0 {
        return Some(1.0);
    }
    Some(if differences.len() <= EXACT_UP_TO {
        exact(differences, threshold)
    } else {
        drawn(differences, threshold, seed)
    })
}

fn exact(differences: &[f64], threshold: f64) -> f64 {
    let (first, second) = differences.split_at(differences.len() / 2);
    let (first, second) = (sorted_sums(first), sorted_sums(second));
    // As the sum from the first half grows, less is needed from the second.
    let mut needed = second.iter().rev().peekable();
    let mut reached = 0_u64;
    let mut beyond = 0_u64;
    for sum in &first {
        while needed.next_if(|other| sum + **other >= threshold).is_some() {
            reached += 1;
        }
        beyond += reached;
    }
    // The patterns below the negative threshold mirror those above the positive one.
    2.0 * real(beyond) / (real(u64::try_from(first.len()).unwrap_or(u64::MAX)) * super::length(second.len()))
}

/// Returns the sums of all patterns of signs, ascending.
fn sorted_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        sums = sums.iter().flat_map(|sum| [sum + value, sum - value]).collect();
    }
    sums.sort_by(f64::total_cmp);
    sums
}

fn drawn(differences: &[f64], threshold: f64, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut hits = 0_u32;
    for _ in 0..DRAWS {
        let mut sum = 0.0;
        for values in differences.chunks(64) {
            let mut signs = rng.next_u64();
            for value in values {
                sum += if signs & 1 == 0 { *value } else { -*value };
                signs >>= 1;
            }
        }
        hits += u32::from(sum.abs() >= threshold);
    }
    f64::from(hits + 1) / f64::from(DRAWS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::student::tests::{NEAR, NULL, STRONG};

    #[test]
    fn small_samples_are_those_of_scipy() {
        // scipy.stats.permutation_test((x,), numpy.mean, permutation_type='samples', n_resamples=numpy.inf).pvalue
        for (data, expected) in [(STRONG, 0.03125), (NULL, 0.742_187_5)] {
            assert!((sign_flip_p(data, 0).unwrap() - expected).abs() < NEAR);
        }
    }

    #[test]
    fn the_smallest_p_is_one_pattern_and_its_mirror() {
        for (count, expected) in
            [(1, 1.0), (6, 0.03125), (8, 0.007_812_5), (24, 2.0_f64.powi(-23)), (32, 2.0_f64.powi(-31))]
        {
            let data: Vec<f64> = (0..count).map(|i| 0.1 + 0.01 * f64::from(i)).collect();
            assert!((sign_flip_p(&data, 0).unwrap() / expected - 1.0).abs() < NEAR, "{count}");
        }
    }

    #[test]
    fn counting_in_halves_equals_counting_every_pattern() {
        let data = [0.3, -0.1, 0.25, 0.07, -0.31, 0.2, 0.11, 0.02, -0.05];
        let seen: f64 = data.iter().sum();
        let beyond = (0..512_u32)
            .filter(|signs| {
                let sum: f64 = data.iter().enumerate().map(|(i, d)| if signs >> i & 1 == 0 { *d } else { -*d }).sum();
                sum.abs() >= seen.abs() - 1e-12
            })
            .count();
        assert!((sign_flip_p(&data, 0).unwrap() - crate::stats::length(beyond) / 512.0).abs() < NEAR);
    }

    #[test]
    fn many_differences_are_drawn_from_the_seed() {
        let data: Vec<f64> = (0..40).map(|i| if i % 3 == 0 { -0.1 } else { 0.08 }).collect();
        let p = sign_flip_p(&data, 7).unwrap();
        assert_eq!(sign_flip_p(&data, 7).unwrap().to_bits(), p.to_bits());
        // numpy.random.default_rng(1), 2,000,000 drawn patterns: 0.2389; the standard error of 100,000 is 0.0013
        assert!((p - 0.2389).abs() < 0.006, "{p}");
    }

    #[test]
    fn differences_that_cancel_say_nothing() {
        assert_eq!(sign_flip_p(&[0.1, -0.1], 0), Some(1.0));
        assert_eq!((sign_flip_p(&[], 0), sign_flip_p(&[f64::NAN], 0)), (None, None));
    }
}
