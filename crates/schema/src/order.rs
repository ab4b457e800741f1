//! The order of arms in each block: balanced over positions and over who follows whom, seeded.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::ids::Digest;

/// The version of everything in this module and of the seeds below it. A plan names it, so that an old plan runs again as
/// it did.
pub const ALGORITHM: u32 = 1;

/// Returns a seed of its own for one purpose, derived from `seed`.
///
/// The first 8 bytes of the SHA-256 digest of the seed and the purpose, so that streams don't overlap.
pub fn derive_seed(seed: u64, purpose: &str) -> u64 {
    let digest = Digest::of(format!("isobench seed {ALGORITHM}\n{seed}\n{purpose}").as_bytes());
    // 53 bits, so that every JSON reader keeps the number exact.
    digest.as_str().get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok()).map_or(0, |bits| bits >> 11)
}

/// Returns the order of `arms` arms (as indices) for each of `blocks` blocks.
///
/// - Two arms: quadruples ABBA, that is pairs of blocks AB, BA, each pair with a random orientation.
/// - Three arms: the six permutations, in a shuffled sequence for every six blocks; they are Williams-balanced.
/// - More: the rows of a Williams square (Williams 1949, "Experimental designs balanced for the estimation of residual
///   effects of treatments"), with arms relabelled at random and rows shuffled, for every such set of rows.
pub fn orders(arms: usize, blocks: u32, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = ChaCha8Rng::seed_from_u64(derive_seed(seed, "orders"));
    let wanted = usize::try_from(blocks).unwrap_or(usize::MAX);
    let mut orders = Vec::new();
    while orders.len() < wanted {
        let mut set = if arms == 3 { permutations_of_three() } else { williams(arms) };
        let mut labels: Vec<usize> = (0..arms).collect();
        shuffle(&mut labels, &mut rng);
        if arms != 2 {
            shuffle(&mut set, &mut rng);
        }
        orders.extend(set.iter().map(|row| row.iter().filter_map(|&place| labels.get(place).copied()).collect()));
    }
    orders.truncate(wanted);
    orders
}

/// Returns how many blocks make an order-balanced set for this many arms.
pub fn balanced_set(arms: usize) -> u32 {
    let rows = match arms {
        0 | 1 => 1,
        3 => 6,
        even if even % 2 == 0 => even,
        odd => 2 * odd,
    };
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// The largest set of orders that looks are rounded to.
const LARGEST_SET: u32 = 10;

/// Returns the set of blocks that looks at this many arms are rounded to: a balanced one, up to 10 blocks. Larger sets would
/// make the first look too dear; looks at so many arms come after pairs of blocks.
pub fn look_set(arms: usize) -> u32 {
    let set = balanced_set(arms);
    if set <= LARGEST_SET { set } else { 2 }
}

/// Returns after how many blocks to look if there are at most `most`: at 6, 10, 16 and 24 of 24 parts, each rounded up to
/// whole sets of `set` blocks and at least 6; looks that fall together are one.
pub fn default_schedule(most: u32, set: u32) -> Vec<u32> {
    let set = set.max(1);
    let mut looks: Vec<u32> = [6_u64, 10, 16, 24]
        .into_iter()
        .map(|part| u32::try_from((part * u64::from(most)).div_ceil(24)).unwrap_or(u32::MAX))
        .map(|blocks| blocks.max(6).div_ceil(set).saturating_mul(set))
        .collect();
    looks.dedup();
    looks
}

fn permutations_of_three() -> Vec<Vec<usize>> {
    vec![vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0]]
}

/// Returns the rows of a Williams square: for an even number each arm follows each other once, for an odd number (rows and
/// their mirror images) twice.
fn williams(arms: usize) -> Vec<Vec<usize>> {
    if arms < 2 {
        return vec![(0..arms).collect()];
    }
    // 0, n-1, 1, n-2, 2, ..: neighbours' differences are all different.
    let first: Vec<usize> =
        (0..arms).map(|place| if place % 2 == 0 { place / 2 } else { arms - 1 - place / 2 }).collect();
    let mut rows: Vec<Vec<usize>> =
        (0..arms).map(|shift| first.iter().map(|arm| (arm + shift) % arms).collect()).collect();
    if arms % 2 == 1 {
        let mirrored: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(mirrored);
    }
    rows
}

/// Shuffles in place by Fisher and Yates' method.
fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last + 1, rng));
    }
}

/// Returns a uniform index below `bound` (by rejection, so that no index is favoured).
fn below(bound: usize, rng: &mut ChaCha8Rng) -> usize {
    let bound = bound as u64;
    let limit = u64::MAX - u64::MAX % bound;
    loop {
        let draw = rng.next_u64();
        if draw < limit {
            return usize::try_from(draw % bound).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_set_balances_positions_and_followers() {
        for arms in 2..=9 {
            let set = balanced_set(arms);
            let rows = orders(arms, set, 7);
            let mut positions: BTreeMap<(usize, usize), u32> = BTreeMap::new();
            let mut followers: BTreeMap<(usize, usize), u32> = BTreeMap::new();
            for row in &rows {
                for (place, &arm) in row.iter().enumerate() {
                    *positions.entry((place, arm)).or_default() += 1;
                }
                for pair in row.windows(2) {
                    *followers.entry((pair[0], pair[1])).or_default() += 1;
                }
            }
            assert_eq!(positions.len(), arms * arms);
            assert!(positions.values().all(|&n| n == positions[&(0, 0)]), "{arms}: {positions:?}");
            assert_eq!(followers.len(), arms * (arms - 1), "{arms}");
            assert!(followers.values().all(|&n| n == followers[&(0, 1)]), "{arms}: {followers:?}");
        }
    }

    #[test]
    fn two_arms_run_in_abba_quadruples_with_random_orientation() {
        let mut orientations = BTreeMap::new();
        for seed in 0..100 {
            let rows = orders(2, 4, seed);
            for pair in rows.chunks(2) {
                let mirrored: Vec<usize> = pair[0].iter().rev().copied().collect();
                assert_eq!(mirrored, pair[1]);
                *orientations.entry(pair[0].clone()).or_insert(0) += 1;
            }
        }
        assert_eq!(orientations.len(), 2);
        assert!(orientations.values().all(|&n| n > 60), "{orientations:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_orders_for_ever() {
        assert_eq!(orders(3, 3, 1), orders(3, 3, 1));
        assert_ne!(orders(3, 6, 1), orders(3, 6, 2));
        insta::assert_json_snapshot!((orders(3, 6, 1), orders(2, 4, 1), derive_seed(1, "prompts/0")));
    }

    #[test]
    fn schedules_are_whole_sets_of_orders() {
        for (most, set, expected) in [
            (24, 2, &[6, 10, 16, 24][..]),
            (24, 6, &[6, 12, 18, 24]),
            (24, 4, &[8, 12, 16, 24]),
            (24, 10, &[10, 20, 30]),
            (6, 6, &[6]),
            (48, 2, &[12, 20, 32, 48]),
            (8, 2, &[6, 8]),
            (2, 0, &[6]),
        ] {
            assert_eq!(default_schedule(most, set), expected, "{most} {set}");
        }
        let sets: Vec<u32> = (1..=9).map(look_set).collect();
        assert_eq!(sets, [1, 2, 6, 4, 10, 6, 2, 8, 2]);
    }

    #[test]
    fn a_single_arm_has_one_order() {
        assert_eq!(orders(1, 2, 3), vec![vec![0], vec![0]]);
        assert!(orders(0, 2, 3).iter().all(Vec::is_empty));
    }
}
