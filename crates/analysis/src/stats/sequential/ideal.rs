//! Whole runs of a design on independent normal differences, as the boundaries assume them: how often it decides what, how
//! soon, and how well its intervals cover. Runs on a machine that has faults are in [`crate::simulation`].

use isobench_schema::plan::Look;

use super::super::OneSample;
use super::super::draws::Draws;
use super::super::real;
use super::rule::{Decision, LookRule};

/// What block differences are drawn from: independent normal numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// The true log ratio.
    pub effect: f64,
    /// The standard deviation of block differences.
    pub deviation: f64,
}

/// How often a design did what: shares of all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Runs that ended `better`.
    pub better: f64,
    /// Runs that ended `worse`.
    pub worse: f64,
    /// Runs that ended `trivial`.
    pub trivial: f64,
    /// Runs that ended `equivalent`.
    pub equivalent: f64,
    /// Runs that came to the last look undecided.
    pub undecided: f64,
    /// Runs with a p below its look's level at some look up to the end, whatever the margin said.
    pub significant: f64,
    /// Runs whose interval at the end, by that look's level, covers the truth.
    pub covered: f64,
    /// The mean number of blocks.
    pub mean_blocks: f64,
}

/// Returns what becomes of `runs` runs that are looked at in turn and end when a look decides. The margin is on the scale
/// of log ratios; a margin of 0 ends runs as soon as they are significant. `None` if a look has no rule, if there are no
/// looks or no runs.
pub fn simulate(looks: &[Look], margin: f64, truth: Truth, runs: u32, seed: u64) -> Option<Rates> {
    let rules: Vec<LookRule> = looks.iter().map(|&look| LookRule::new(look)).collect::<Option<_>>()?;
    if rules.is_empty() || runs == 0 {
        return None;
    }
    let mut draws = Draws::new(seed);
    let mut counts = Counts::default();
    for _ in 0..runs {
        let mut sample = Growing::default();
        let mut significant = false;
        for rule in &rules {
            sample.grow(rule.degrees_of_freedom + 1, truth, &mut draws);
            let (mean, error) = (sample.mean, sample.standard_error());
            significant |= mean.abs() > rule.critical * error;
            counts.covered_now = (mean - truth.effect).abs() <= rule.critical * error;
            counts.decision = rule.decide(mean, error, margin);
            if counts.decision.is_some() {
                break;
            }
        }
        counts.end(sample.blocks, significant);
    }
    Some(counts.rates(runs))
}

#[derive(Default)]
struct Counts {
    decision: Option<Decision>,
    covered_now: bool,
    better: u32,
    worse: u32,
    trivial: u32,
    equivalent: u32,
    undecided: u32,
    significant: u32,
    covered: u32,
    blocks: u64,
}

impl Counts {
    fn end(&mut self, blocks: u32, significant: bool) {
        match self.decision {
            Some(Decision::Better) => self.better += 1,
            Some(Decision::Worse) => self.worse += 1,
            Some(Decision::Trivial) => self.trivial += 1,
            Some(Decision::Equivalent) => self.equivalent += 1,
            None => self.undecided += 1,
        }
        self.significant += u32::from(significant);
        self.covered += u32::from(self.covered_now);
        self.blocks += u64::from(blocks);
    }

    fn rates(&self, runs: u32) -> Rates {
        let share = |count: u32| f64::from(count) / f64::from(runs);
        Rates {
            better: share(self.better),
            worse: share(self.worse),
            trivial: share(self.trivial),
            equivalent: share(self.equivalent),
            undecided: share(self.undecided),
            significant: share(self.significant),
            covered: share(self.covered),
            mean_blocks: real(self.blocks) / f64::from(runs),
        }
    }
}

/// A sample that grows, known by its size, mean and sum of squares about the mean.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Growing {
    pub(super) blocks: u32,
    pub(super) mean: f64,
    squares: f64,
}

impl Growing {
    /// Takes a sample as it is, or `None` beyond 2^32 − 1 differences.
    pub(super) fn of(sample: &OneSample) -> Option<Self> {
        let blocks = u32::try_from(sample.count).ok()?;
        Some(Self { blocks, mean: sample.mean, squares: sample.deviation.powi(2) * sample.degrees_of_freedom() })
    }

    /// Grows to so many differences. The mean and the sum of squares of the new ones are drawn at once, which is the same
    /// as drawing each, and joined with the old ones (Chan, Golub and `LeVeque` 1979).
    pub(super) fn grow(&mut self, blocks: u32, truth: Truth, draws: &mut Draws) {
        let Some(added) = blocks.checked_sub(self.blocks).filter(|added| *added > 0) else { return };
        let (old, new, all) = (f64::from(self.blocks), f64::from(added), f64::from(blocks));
        let mean = truth.effect + truth.deviation * draws.normal() / new.sqrt();
        let squares = truth.deviation.powi(2) * draws.chi_squared(added - 1);
        let apart = mean - self.mean;
        self.squares += squares + apart * apart * old * new / all;
        self.mean += apart * new / all;
        self.blocks = blocks;
    }

    /// Returns the standard error of the mean.
    pub(super) fn standard_error(&self) -> f64 {
        let blocks = f64::from(self.blocks);
        (self.squares / ((blocks - 1.0).max(1.0) * blocks)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{mean, standard_deviation};

    #[test]
    fn a_grown_sample_has_the_moments_of_one_drawn_at_once() {
        let truth = Truth { effect: 0.3, deviation: 2.0 };
        let mut draws = Draws::new(5);
        let mut means = Vec::new();
        let mut variances = Vec::new();
        for _ in 0..20_000 {
            let mut sample = Growing::default();
            for blocks in [3, 4, 9] {
                sample.grow(blocks, truth, &mut draws);
            }
            means.push(sample.mean);
            variances.push(sample.squares / 8.0);
        }
        // Mean 0.3, standard error 2/3; the variance 4 with a deviation of 4 √(2/8) = 2.
        assert!((mean(&means).unwrap() - 0.3).abs() < 0.02);
        assert!((standard_deviation(&means).unwrap() - 2.0 / 3.0).abs() < 0.02);
        assert!((mean(&variances).unwrap() - 4.0).abs() < 0.06);
        assert!((standard_deviation(&variances).unwrap() - 2.0).abs() < 0.08);
    }

    #[test]
    fn one_look_decides_as_often_as_its_level_says() {
        let look = Look { blocks: 6, level: 0.05, equivalence_level: 0.05 };
        let nothing = Truth { effect: 0.0, deviation: 0.01 };
        let rates = simulate(&[look], 0.0, nothing, 40_000, 1).unwrap();
        assert!((rates.better - 0.025).abs() < 0.003 && (rates.worse - 0.025).abs() < 0.003, "{rates:?}");
        assert!((rates.covered - 0.95).abs() < 0.004 && (rates.mean_blocks - 6.0).abs() < 1e-12, "{rates:?}");
        assert_eq!(simulate(&[look], 0.0, nothing, 40_000, 1), Some(rates));
        let at_margin = Truth { effect: 0.02, deviation: 0.005 };
        let rates = simulate(&[look], 0.02, at_margin, 40_000, 2).unwrap();
        assert!((rates.equivalent + rates.trivial - 0.05).abs() < 0.004, "{rates:?}");
        assert_eq!(simulate(&[], 0.0, nothing, 1, 1), None);
        assert_eq!(simulate(&[Look { level: 0.0, ..look }], 0.0, nothing, 1, 1), None);
    }
}
