//! What a task's design can be expected to find, and how long it takes, by what is known of the spread.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use isobench_schema::noise::KnownSpread;
use isobench_schema::order::look_set;
use isobench_schema::plan::{ExpectedBlocks, Forecast, ForecastOutcome, Look, PlannedTask};

use super::needs::{blocks_needed, smallest_effect};
use crate::judge::looks::FEWEST_BLOCKS;
use crate::stats::sequential::{Truth, simulate};

/// Where nothing is known, what a design finds is said for these spreads.
const UNKNOWN: [f64; 4] = [0.005, 0.01, 0.02, 0.05];

/// A difference that is asked about beside none and the margin.
const NOTABLE: f64 = 0.05;

/// Runs of the design that are simulated for each difference: the standard error of a share is 0.012 at most.
const RUNS: u32 = 2_000;

/// The seed of these runs.
const SEED: u64 = 6;

/// What a task takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// The estimated time of one block in seconds.
    pub block_s: f64,
    /// The estimated time of finding the noise out in seconds.
    pub noise_s: f64,
}

/// Returns what a task's design finds in the spread that is known, or in several where none is. Expected blocks are those of
/// one contrast, from seeded simulation of normal differences with that spread; futility, which ends some sooner, isn't
/// counted on.
pub fn forecast(task: &PlannedTask, known: Option<KnownSpread>, costs: Costs) -> Forecast {
    // A look with fewer blocks than an interval needs finds nothing.
    let can_decide = |look: &&Look| usize::try_from(look.blocks).is_ok_and(|blocks| blocks >= FEWEST_BLOCKS);
    let looks: Vec<Look> = task.design.looks.iter().filter(can_decide).copied().collect();
    let (looks, margin) = (looks.as_slice(), task.metric.margin.max(0.0));
    let effect = smallest_effect(looks);
    let set = look_set(task.arms.len());
    let outcome = |deviation: f64, differences: &[f64]| ForecastOutcome {
        deviation,
        mde: effect.map(|effect| effect * deviation),
        blocks_for_margin: blocks_needed(looks, set, deviation, margin.ln_1p()),
        expected: differences
            .iter()
            .filter_map(|&difference| {
                let (blocks, decided) = expected(looks, margin, deviation, difference)?;
                Some(ExpectedBlocks { difference, blocks, decided, seconds: blocks * costs.block_s })
            })
            .collect(),
    };
    let mut differences = vec![0.0, margin, NOTABLE];
    differences.sort_by(f64::total_cmp);
    differences.dedup_by(|one, other| (*one - *other).abs() < 1e-9);
    let outcomes = match &known {
        Some(known) => vec![outcome(known.deviation, &differences)],
        None => UNKNOWN.iter().map(|&deviation| outcome(deviation, &[])).collect(),
    };
    let noise_s = known.is_none().then_some(costs.noise_s);
    Forecast { known, effect, outcomes, noise_s }
}

/// Mean blocks and the share decided, by the looks with their levels as bits, the margin, the spread and the difference.
type Simulated = BTreeMap<(Vec<(u32, u64, u64)>, [u64; 3]), Option<(f64, f64)>>;

static SIMULATED: LazyLock<Mutex<Simulated>> = LazyLock::new(Mutex::default);

/// Returns the mean number of blocks and how likely a decision is, simulated once for the same question: what is kept depends
/// on nothing else.
fn expected(looks: &[Look], margin: f64, deviation: f64, difference: f64) -> Option<(f64, f64)> {
    let bits = |look: &Look| (look.blocks, look.level.to_bits(), look.equivalence_level.to_bits());
    let key = (looks.iter().map(bits).collect(), [margin, deviation, difference].map(f64::to_bits));
    let known = || SIMULATED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(&key) {
        return *found;
    }
    let truth = Truth { effect: difference.ln_1p(), deviation };
    let rates = simulate(looks, margin.ln_1p(), truth, RUNS, SEED);
    let found = rates.map(|rates| (rates.mean_blocks, 1.0 - rates.undecided));
    known().insert(key, found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sequential;
    use isobench_schema::plan::Spending;

    #[test]
    fn a_clear_difference_and_none_are_decided_sooner_than_one_of_the_margin() {
        let looks = sequential::looks(Spending::Even, &[6, 10, 16, 24]).unwrap();
        let of = |difference: f64| expected(&looks, 0.02, 0.015, difference).unwrap();
        let (none, margin, large) = (of(0.0), of(0.02), of(0.05));
        assert!(large.0 < 7.0 && large.1 > 0.999, "{large:?}");
        assert!(none.0 < margin.0 && none.1 > 0.8, "{none:?} {margin:?}");
        assert!(margin.0 > 10.0 && margin.1 < none.1, "{margin:?}");
        assert_eq!(of(0.0), none);
        let still = expected(&looks, 0.02, 0.0, 0.0).unwrap();
        assert!((still.0 - 6.0).abs() < 1e-12 && (still.1 - 1.0).abs() < 1e-12, "{still:?}");
    }
}
