//! What became of many sessions, as counts: those of several threads add up to the same whatever the threads did.

use std::collections::BTreeMap;

use isobench_schema::verdict::LookDecision;
use serde::{Deserialize, Serialize};

use super::{Calls, Rival, RivalRules, Scenario, Session, is_hopeless};
use crate::stats::real;

/// Estimates are summed in billionths, which add up to the same in any order.
const PARTS: f64 = 1e9;

/// Counts of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// All.
    pub runs: u32,
    /// Those that ended `better`.
    pub better: u32,
    /// `worse`.
    pub worse: u32,
    /// `trivial`.
    pub trivial: u32,
    /// `equivalent`.
    pub equivalent: u32,
    /// `inconclusive` because the differences follow each other: drift.
    pub drift: u32,
    /// `inconclusive` at the last look, or because nothing was left to hope for.
    pub undecided: u32,
    /// Those of them that were given up before the last look.
    pub hopeless: u32,
    /// Those with a p below its look's level at some look, whatever margin and serial correlation say: the boundary test by
    /// itself.
    pub rejected: u32,
    /// Those whose equivalence interval lay inside the margins at some look: the equivalence tests by themselves.
    pub within: u32,
    /// Those whose interval at the end covers the truth.
    pub covered: u32,
    /// Those whose interval at the end would, if it were one of 95 % that knows nothing of looks.
    pub naively_covered: u32,
    /// The sum of the blocks that the runs took, lost ones included.
    pub blocks: u64,
    /// The sum of the estimates at the end, in billionths.
    pub estimates: i64,
    /// What other rules said of the same launches, if they were asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rivals: BTreeMap<Rival, Calls>,
}

impl Tally {
    /// Runs a scenario once for each seed, and asks the other rules too if there are any.
    pub fn of(scenario: &Scenario, seeds: impl Iterator<Item = u64>, rivals: Option<&RivalRules>) -> Self {
        let mut tally = Self::default();
        for seed in seeds {
            let session = Session::run(scenario, seed);
            tally.count(scenario, &session);
            if let Some(rules) = rivals {
                rules.count(&session.pairs, &mut tally.rivals);
            }
        }
        tally
    }

    /// Adds what others counted.
    pub fn add(&mut self, other: &Self) {
        let Self { runs, better, worse, trivial, equivalent, drift, undecided, hopeless, .. } = other;
        self.runs += runs;
        self.better += better;
        self.worse += worse;
        self.trivial += trivial;
        self.equivalent += equivalent;
        self.drift += drift;
        self.undecided += undecided;
        self.hopeless += hopeless;
        let Self { rejected, within, covered, naively_covered, blocks, estimates, rivals, .. } = other;
        self.rejected += rejected;
        self.within += within;
        self.covered += covered;
        self.naively_covered += naively_covered;
        self.blocks += blocks;
        self.estimates += estimates;
        for (rival, calls) in rivals {
            let own = self.rivals.entry(*rival).or_default();
            own.faster += calls.faster;
            own.slower += calls.slower;
        }
    }

    /// Returns a count as a share of all runs; without runs it is 0.
    pub fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.runs.max(1))
    }

    /// Returns how many blocks a run took in the mean.
    pub fn mean_blocks(&self) -> f64 {
        real(self.blocks) / f64::from(self.runs.max(1))
    }

    /// Returns the mean of the estimates at the end.
    #[expect(clippy::cast_precision_loss, reason = "a mean of sums below 2^53")]
    pub fn mean_estimate(&self) -> f64 {
        self.estimates as f64 / PARTS / f64::from(self.runs.max(1))
    }

    #[expect(clippy::cast_possible_truncation, reason = "an estimate is a small number")]
    fn count(&mut self, scenario: &Scenario, session: &Session) {
        self.runs += 1;
        let Some(ended) = session.ended() else { return };
        match ended.decision {
            LookDecision::Better => self.better += 1,
            LookDecision::Worse => self.worse += 1,
            LookDecision::Trivial => self.trivial += 1,
            LookDecision::Equivalent => self.equivalent += 1,
            LookDecision::Drift => self.drift += 1,
            LookDecision::Undecided | LookDecision::Hopeless | LookDecision::TooFew | LookDecision::Settled => {
                self.undecided += 1;
            }
        }
        self.hopeless += u32::from(is_hopeless(ended));
        let margin = scenario.margin.ln_1p();
        let is_below = session.looks.iter().any(|look| look.p.is_some_and(|p| p < look.level));
        self.rejected += u32::from(is_below);
        let mut ends = session.looks.iter().filter_map(|look| look.equivalence_low.zip(look.equivalence_high));
        self.within += u32::from(ends.any(|(low, high)| low > -margin && high < margin));
        let truth = scenario.effect;
        let ends = ended.low.zip(ended.high);
        self.covered += u32::from(ends.is_some_and(|(low, high)| low <= truth && truth <= high));
        let naive = session.naive_interval();
        self.naively_covered += u32::from(naive.is_some_and(|ends| ends.low <= truth && truth <= ends.high));
        self.blocks += u64::from(ended.planned);
        self.estimates += (ended.estimate.unwrap_or_default() * PARTS).round() as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::seeds;
    use crate::simulation::tests::scenario;

    #[test]
    fn parts_add_up_to_the_whole() {
        let asked = scenario(2, &[6, 10, 16, 24]);
        let rules = RivalRules::new(24).unwrap();
        let all = Tally::of(&asked, seeds(60, 5), Some(&rules));
        let mut parts = Tally::default();
        for (from, count) in [(40, 20), (0, 40)] {
            parts.add(&Tally::of(&asked, seeds(60, 5).skip(from).take(count), Some(&rules)));
        }
        assert_eq!(parts, all);
        let ends = [all.better, all.worse, all.trivial, all.equivalent, all.drift, all.undecided];
        assert_eq!((all.runs, ends.iter().sum::<u32>()), (60, 60), "{all:?}");
        assert!(all.mean_blocks() > 20.0 && all.mean_estimate().abs() < 0.1, "{all:?}");
        assert!(all.share(all.covered) > 0.85 && !all.rivals.is_empty(), "{all:?}");
        assert!(Tally::default().mean_blocks().abs() < 1e-12);
    }
}
