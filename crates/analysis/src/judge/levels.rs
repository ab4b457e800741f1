//! The levels of looks with missing blocks, the rules of looks and their smallest effects, each calculated once: what is
//! kept depends on nothing but the looks.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use isobench_schema::plan::{Design, Look, Spending};

use crate::stats::sequential::{Boundary, LookRule, Sides, looks_with_missing};

/// The power for which effects and numbers of blocks are stated.
const POWER: f64 = 0.8;

/// The error of a design with one look, which several looks together have.
pub(crate) const ERROR: f64 = 0.05;

/// Looks by how the error is spent, the most blocks, and for each look the planned blocks and the differences that count.
type Recalculated = BTreeMap<(Spending, u32, Vec<(u32, u32)>), Option<Vec<Look>>>;

/// A smallest effect by looks: their blocks, and their levels as bits.
type Effects = BTreeMap<Vec<(u32, u64)>, Option<f64>>;

/// Rules by the levels of difference and equivalence as bits, and the degrees of freedom.
type Rules = BTreeMap<(u64, u64, u32), Option<LookRule>>;

/// Everything that was calculated so far.
#[derive(Debug, Default)]
struct Known {
    rules: Rules,
    looks: Recalculated,
    effects: Effects,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Calculates, or remembers.
fn known<K: Ord + Clone, V: Clone>(
    table: impl Fn(&mut Known) -> &mut BTreeMap<K, V>,
    key: &K,
    calculate: impl FnOnce() -> V,
) -> V {
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = table(&mut lock()).get(key) {
        return found.clone();
    }
    // Without the lock, so that others needn't wait; two that calculate the same get the same.
    let found = calculate();
    table(&mut lock()).insert(key.clone(), found.clone());
    found
}

/// Returns the looks with their levels where `counted` has the differences that count at each of the first looks, in order
/// and growing: the plan's where none is missing, else those that spend the same error by the same look.
///
/// One look alone keeps its level, which holds for any number of differences. `None` if there are no such levels.
pub(super) fn looks(design: &Design, counted: &[(Look, u32)]) -> Option<Vec<Look>> {
    if design.looks.len() == 1 || counted.iter().all(|(look, found)| look.blocks == *found) {
        return Some(counted.iter().map(|(look, found)| Look { blocks: *found, ..*look }).collect());
    }
    let counted: Vec<(u32, u32)> = counted.iter().map(|(look, found)| (look.blocks, *found)).collect();
    let key = (design.spending, design.blocks(), counted);
    known(|known| &mut known.looks, &key, || looks_with_missing(key.0, key.1, &key.2).ok())
}

/// Returns the rule of a look for an estimate with these degrees of freedom.
pub(super) fn rule(look: Look, degrees_of_freedom: u32) -> Option<LookRule> {
    let key = (look.level.to_bits(), look.equivalence_level.to_bits(), degrees_of_freedom);
    known(|known| &mut known.rules, &key, || LookRule::with_degrees(look, degrees_of_freedom))
}

/// Returns the smallest difference, in standard deviations of block differences, that these looks find with a power of
/// 80 %.
pub(crate) fn smallest_effect(looks: &[Look]) -> Option<f64> {
    let levels: Vec<(u32, f64)> = looks.iter().map(|look| (look.blocks, look.level)).collect();
    let key: Vec<(u32, u64)> = levels.iter().map(|(blocks, level)| (*blocks, level.to_bits())).collect();
    known(
        |known| &mut known.effects,
        &key,
        || Boundary::of_levels(Sides::Two, &levels).ok()?.minimum_detectable_effect(POWER),
    )
}
