//! What the looks to come would decide: non-binding futility.

use isobench_schema::plan::Look;

use super::super::OneSample;
use super::super::draws::Draws;
use super::ideal::{Growing, Truth};
use super::rule::{Decision, LookRule};

/// What the differences to come are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumed {
    /// The truth is what is estimated now: conditional power at the current estimate.
    Estimate,
    /// The truth is drawn for each future from what the sample says of it: the posterior of mean and spread under the
    /// prior 1/σ, whose predictions are Student's t (predictive power: Spiegelhalter, Freedman and Blackburn 1986).
    Posterior,
}

/// How likely what is, if the looks to come are taken: the parts of all futures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// `better` or `worse` at some look.
    pub different: f64,
    /// `equivalent` or `trivial` at some look.
    pub equivalent: f64,
    /// Nothing at any look.
    pub undecided: f64,
}

/// Futures that are drawn: the standard error of a share is 0.008 at most.
const FUTURES: u32 = 4_000;

/// Returns what the looks to come would decide of a contrast that is undecided with the sample so far, from 4,000
/// futures drawn from `seed`. The margin is on the scale of the sample. `None` if a look has no rule.
///
/// Looks that the sample has passed already are left out, and without one to come everything stays undecided. Stopping
/// where little is left to hope for never makes a false decision more likely, because the levels of the looks don't count
/// on it: futility is not binding.
pub fn outlook(sample: &OneSample, looks: &[Look], margin: f64, assumed: Assumed, seed: u64) -> Option<Outlook> {
    let now = Growing::of(sample)?;
    let to_come = looks.iter().filter(|look| look.blocks > now.blocks);
    let rules: Vec<LookRule> = to_come.map(|&look| LookRule::new(look)).collect::<Option<_>>()?;
    let mut draws = Draws::new(seed);
    let (mut different, mut equivalent) = (0_u32, 0_u32);
    for _ in 0..FUTURES {
        let truth = truth(sample, now.blocks, assumed, &mut draws);
        let mut future = now;
        let decision = rules.iter().find_map(|rule| {
            future.grow(rule.degrees_of_freedom + 1, truth, &mut draws);
            rule.decide(future.mean, future.standard_error(), margin)
        });
        match decision {
            Some(Decision::Better | Decision::Worse) => different += 1,
            Some(Decision::Trivial | Decision::Equivalent) => equivalent += 1,
            None => {}
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(FUTURES);
    Some(Outlook {
        different: share(different),
        equivalent: share(equivalent),
        undecided: share(FUTURES - different - equivalent),
    })
}

fn truth(sample: &OneSample, blocks: u32, assumed: Assumed, draws: &mut Draws) -> Truth {
    match assumed {
        Assumed::Estimate => Truth { effect: sample.mean, deviation: sample.deviation },
        Assumed::Posterior => {
            let degrees = blocks.saturating_sub(1).max(1);
            let deviation = sample.deviation * (f64::from(degrees) / draws.chi_squared(degrees)).sqrt();
            Truth { effect: sample.mean + deviation * draws.normal() / f64::from(blocks).sqrt(), deviation }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: Look = Look { blocks: 24, level: 0.019, equivalence_level: 0.02 };

    fn sample(mean: f64, deviation: f64, count: usize) -> OneSample {
        OneSample { mean, deviation, count }
    }

    #[test]
    fn conditional_and_predictive_power_are_those_of_scipy() {
        for (mean, deviation, count, assumed, expected) in CASES {
            let found = outlook(&sample(mean, deviation, count), &[LAST], 0.0, assumed, 11).unwrap();
            assert!((found.different - expected).abs() < 0.025, "{mean} {count} {assumed:?}: {found:?}");
        }
    }

    // From 4,000,000 futures in NumPy: numpy.random.default_rng(1), scipy.stats.t.isf(0.0095, 23).
    const CASES: [(f64, f64, usize, Assumed, f64); 7] = [
        (0.02, 0.05, 6, Assumed::Estimate, 0.2981),
        (0.05, 0.05, 6, Assumed::Estimate, 0.9948),
        (0.03, 0.05, 16, Assumed::Estimate, 0.7729),
        (0.0, 0.05, 10, Assumed::Estimate, 0.0008),
        (0.02, 0.05, 6, Assumed::Posterior, 0.3813),
        (0.05, 0.05, 6, Assumed::Posterior, 0.8370),
        (0.03, 0.05, 16, Assumed::Posterior, 0.7115),
    ];

    #[test]
    fn what_is_hopeless_is_called_so() {
        // No difference, and a spread in which 24 blocks can't find one of the margin either.
        let looks = [Look { blocks: 10, ..LAST }, Look { blocks: 16, ..LAST }, LAST];
        let found = outlook(&sample(0.0, 0.2, 6), &looks, 0.02, Assumed::Estimate, 1).unwrap();
        assert!(found.different < 0.1 && found.equivalent < 0.01 && found.undecided > 0.9, "{found:?}");
        // No difference in a small spread will be found equivalent.
        let found = outlook(&sample(0.001, 0.012, 6), &looks, 0.02, Assumed::Estimate, 1).unwrap();
        assert!(found.equivalent > 0.97 && found.different < 0.01, "{found:?}");
        // A large difference will be found.
        let found = outlook(&sample(0.08, 0.08, 6), &looks, 0.02, Assumed::Posterior, 1).unwrap();
        assert!(found.different > 0.8, "{found:?}");
    }

    #[test]
    fn without_a_look_to_come_everything_stays_undecided() {
        let found = outlook(&sample(1.0, 0.1, 24), &[LAST], 0.02, Assumed::Estimate, 1).unwrap();
        assert_eq!(found, Outlook { different: 0.0, equivalent: 0.0, undecided: 1.0 });
        assert_eq!(outlook(&sample(0.1, 0.1, 6), &[Look { level: 0.0, ..LAST }], 0.02, Assumed::Estimate, 1), None);
    }
}
