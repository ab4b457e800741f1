//! What other rules say of the same launches.

use std::collections::BTreeMap;

use isobench_schema::plan::Look;
use serde::{Deserialize, Serialize};

use super::Pair;
use crate::stats::sequential::LookRule;
use crate::stats::{Alternative, MannWhitney, OneSample};

/// A rule that decides without blocks, margins or levels of its looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rival {
    /// One launch of each: faster if it is by more than 2 %.
    Bare2,
    /// One launch of each: faster if it is by more than 5 %.
    Bare5,
    /// Mann's and Whitney's test of the first 20 launches of each, p below 0.1, one-sided: the test of SWE-Perf, without its
    /// removal of outliers (He and others 2025, arXiv 2507.12415).
    MannWhitney,
    /// The same test of all launches of each, p below 0.05, two-sided.
    MannWhitneyAll,
    /// Student's t on block differences, p below 0.05, once at the end.
    Once,
    /// The same at 6, 10, 16 and 24 blocks, as if each were the only look.
    PeekFourTimes,
    /// The same after every block from the sixth on.
    PeekAlways,
}

impl Rival {
    /// Every rule.
    pub const ALL: &[Self] = &[
        Self::Bare2,
        Self::Bare5,
        Self::MannWhitney,
        Self::MannWhitneyAll,
        Self::Once,
        Self::PeekFourTimes,
        Self::PeekAlways,
    ];
}

/// How often a rule called an arm what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Faster than the other one.
    pub faster: u32,
    /// Slower.
    pub slower: u32,
}

/// Launches of each arm that SWE-Perf takes, and its level.
const OF_SWE_PERF: usize = 20;
const LEVEL_OF_SWE_PERF: f64 = 0.1;

/// What one test at 5 % is held to.
const LEVEL: f64 = 0.05;

/// When [`Rival::PeekFourTimes`] looks, and from when on [`Rival::PeekAlways`] does.
const PEEKS: [u32; 4] = [6, 10, 16, 24];
const FIRST_PEEK: u32 = 6;

/// The rules, ready for samples of up to so many blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct RivalRules {
    /// For each number of blocks, the smallest |t| with a p below 5 %.
    critical: BTreeMap<u32, f64>,
}

impl RivalRules {
    /// Prepares the rules for up to `blocks` blocks. `None` below two.
    pub fn new(blocks: u32) -> Option<Self> {
        let rule = |blocks| LookRule::new(Look { blocks, level: LEVEL, equivalence_level: LEVEL });
        let critical: Option<BTreeMap<u32, f64>> =
            (2..=blocks).map(|blocks| Some((blocks, rule(blocks)?.critical))).collect();
        critical.filter(|table| !table.is_empty()).map(|critical| Self { critical })
    }

    /// Counts what each rule says of a session.
    pub(super) fn count(&self, pairs: &[Pair], calls: &mut BTreeMap<Rival, Calls>) {
        for rival in Rival::ALL {
            let own = calls.entry(*rival).or_default();
            match self.call(*rival, pairs) {
                Some(true) => own.faster += 1,
                Some(false) => own.slower += 1,
                None => {}
            }
        }
    }

    /// Returns whether a rule calls the arm that is asked about faster, or slower, or neither.
    fn call(&self, rival: Rival, pairs: &[Pair]) -> Option<bool> {
        match rival {
            Rival::Bare2 => bare(0.02, pairs),
            Rival::Bare5 => bare(0.05, pairs),
            Rival::MannWhitney => mann_whitney(pairs.get(..OF_SWE_PERF).unwrap_or(pairs), LEVEL_OF_SWE_PERF),
            // Each side at half of the level.
            Rival::MannWhitneyAll => mann_whitney(pairs, LEVEL / 2.0),
            Rival::Once => self.test(pairs),
            Rival::PeekFourTimes => self.peek(pairs, |blocks| PEEKS.contains(&blocks)),
            Rival::PeekAlways => self.peek(pairs, |blocks| blocks >= FIRST_PEEK),
        }
    }

    fn peek(&self, pairs: &[Pair], is_peek: impl Fn(u32) -> bool) -> Option<bool> {
        (1..=pairs.len())
            .filter(|blocks| u32::try_from(*blocks).is_ok_and(&is_peek))
            .find_map(|blocks| self.test(pairs.get(..blocks)?))
    }

    fn test(&self, pairs: &[Pair]) -> Option<bool> {
        let differences: Vec<f64> = pairs.iter().map(Pair::difference).collect();
        let sample = OneSample::of(&differences)?;
        let critical = self.critical.get(&u32::try_from(sample.count).ok()?)?;
        (sample.mean.abs() > critical * sample.standard_error()).then_some(sample.mean > 0.0)
    }
}

fn bare(threshold: f64, pairs: &[Pair]) -> Option<bool> {
    let change = pairs.first()?.difference().exp_m1();
    (change.abs() > threshold).then_some(change > 0.0)
}

fn mann_whitney(pairs: &[Pair], one_sided: f64) -> Option<bool> {
    let of: Vec<f64> = pairs.iter().map(|pair| pair.of.value).collect();
    let against: Vec<f64> = pairs.iter().map(|pair| pair.against.value).collect();
    let test = MannWhitney::of(&of, &against)?;
    if test.p(Alternative::Greater) < one_sided {
        return Some(true);
    }
    (test.p(Alternative::Less) < one_sided).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Launched;

    fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
        let launched = |value, position| Launched { value, position };
        let pair = |(block, (against, of)): (u32, &(f64, f64))| Pair {
            block,
            against: launched(*against, 0),
            of: launched(*of, 1),
        };
        (0..).zip(values).map(pair).collect()
    }

    fn check(values: &[(f64, f64)], expected: &[(Rival, Option<bool>)]) {
        let rules = RivalRules::new(24).unwrap();
        for (rival, expected) in expected {
            assert_eq!(rules.call(*rival, &pairs(values)), *expected, "{rival:?} of {values:?}");
        }
    }

    #[test]
    fn a_single_run_decides_by_its_first_launches() {
        let first = |difference: f64| [(0.0, difference), (0.0, -0.4), (0.0, -0.4)];
        check(&first(0.03), &[(Rival::Bare2, Some(true)), (Rival::Bare5, None)]);
        check(&first(-0.06), &[(Rival::Bare2, Some(false)), (Rival::Bare5, Some(false))]);
        check(&first(0.019), &[(Rival::Bare2, None), (Rival::Bare5, None)]);
    }

    #[test]
    fn whoever_peeks_takes_what_the_end_would_not() {
        // Six clear gains, then losses.
        let values: Vec<(f64, f64)> =
            (0..24).map(|block| (0.0, if block < 6 { 0.5 } else { -0.2 } + 0.01 * f64::from(block % 3))).collect();
        check(&values, &[(Rival::PeekFourTimes, Some(true)), (Rival::PeekAlways, Some(true)), (Rival::Once, None)]);
        check(&values[..5], &[(Rival::PeekFourTimes, None), (Rival::PeekAlways, None), (Rival::Once, Some(true))]);
    }

    #[test]
    fn ranks_do_not_see_pairs() {
        // Every pair differs by the same, but blocks differ by far more.
        let blocks: Vec<(f64, f64)> =
            (0..24).map(|block| (f64::from(block), f64::from(block) + 0.3 + 0.01 * f64::from(block % 2))).collect();
        check(&blocks, &[(Rival::Once, Some(true)), (Rival::MannWhitney, None), (Rival::MannWhitneyAll, None)]);
        let apart: Vec<(f64, f64)> = (0..24).map(|block| (f64::from(block), f64::from(block) + 8.5)).collect();
        check(&apart, &[(Rival::MannWhitney, Some(true)), (Rival::MannWhitneyAll, Some(true))]);
        let reversed: Vec<(f64, f64)> = apart.iter().map(|(one, other)| (*other, *one)).collect();
        check(&reversed, &[(Rival::MannWhitney, Some(false)), (Rival::MannWhitneyAll, Some(false))]);
    }
}
