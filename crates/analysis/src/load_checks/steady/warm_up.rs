//! When a warm-up is over.
//!
//! The start is cut off where the marginal standard error of what is left is smallest (MSER; White 1997, "An effective
//! truncation heuristic for bias reduction in simulation output"; its fives are here the slices of time, which are means
//! or sums already). What is left is steady if it is long enough and its halves agree within a tolerance with twice their own
//! error added, as Geweke (1992) compares the ends of a chain: noise must be averaged away before anything is called steady,
//! so that a look at each slice doesn't find by luck what isn't there. A level that holds for long and then changes can't
//! be foreseen.

use isobench_schema::load_checks::{SteadyState, WarmUp};

use super::halves::two_halves;
use crate::stats::{length, mean};

/// What is left after the start has at least so many slices.
const FEWEST: usize = 10;
/// So many standard errors are added to what the halves differ by.
const ERRORS: f64 = 2.0;

/// What is asked of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRules {
    /// After so many slices it is given up.
    pub most_slices: u32,
    /// The halves may differ by this part, twice their standard error included.
    pub tolerance: f64,
}

impl Default for SteadyRules {
    /// 5 % within 300 slices.
    fn default() -> Self {
        Self { most_slices: 300, tolerance: 0.05 }
    }
}

/// A warm-up that is followed slice by slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    rules: SteadyRules,
    slices: u32,
    values: Vec<f64>,
}

impl Steadiness {
    /// Returns a warm-up that hasn't begun.
    pub fn new(rules: SteadyRules) -> Self {
        Self { rules, slices: 0, values: Vec::new() }
    }

    /// Takes the next slice of equal time: its throughput or its mean latency, which may be absent where nothing was
    /// answered.
    pub fn push(&mut self, slice: Option<f64>) -> SteadyState {
        self.slices = self.slices.saturating_add(1);
        self.values.extend(slice.filter(|value| value.is_finite()));
        self.report().state
    }

    /// Returns how far the warm-up is.
    pub fn report(&self) -> WarmUp {
        let start = start(&self.values);
        let left = start.and_then(|start| self.values.get(start..));
        let halves = left.filter(|left| left.len() >= FEWEST).and_then(two_halves);
        let is_short = start.is_some_and(|start| start <= self.values.len() / 2);
        let agrees =
            halves.is_some_and(|halves| halves.change.abs() + ERRORS * halves.standard_error <= self.rules.tolerance);
        let state = match (is_short && agrees, self.slices >= self.rules.most_slices) {
            (true, _) => SteadyState::Steady,
            (false, true) => SteadyState::GaveUp,
            (false, false) => SteadyState::NotYet,
        };
        // Slices without a value are only at a start that has no answers yet.
        let absent = self.slices.saturating_sub(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        WarmUp {
            state,
            slices: self.slices,
            start_slices: start.map(|start| absent.saturating_add(u32::try_from(start).unwrap_or(u32::MAX))),
            level: left.and_then(mean),
            change: halves.map(|halves| halves.change),
        }
    }
}

/// Follows a whole series and stops where it is steady first.
pub fn warm_up(slices: &[Option<f64>], rules: SteadyRules) -> WarmUp {
    let mut steadiness = Steadiness::new(rules);
    for slice in slices {
        if steadiness.push(*slice) != SteadyState::NotYet {
            break;
        }
    }
    steadiness.report()
}

/// Returns how many values belong to the start: those whose removal leaves the smallest Σ(x − mean)²/n², with at least half of
/// [`FEWEST`] left. `None` below [`FEWEST`] values.
fn start(values: &[f64]) -> Option<usize> {
    if values.len() < FEWEST {
        return None;
    }
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    // About the last value, so that squares of large numbers don't swallow their differences.
    let origin = *values.last()?;
    let mut best: Option<(f64, usize)> = None;
    for (place, value) in values.iter().enumerate().rev() {
        let value = value - origin;
        (sum, squares, count) = (sum + value, squares + value * value, count + 1.0);
        let error = ((squares - sum * sum / count).max(0.0)) / (count * count);
        // At a tie the longer rest counts.
        if count * 2.0 >= length(FEWEST) && best.is_none_or(|(smallest, _)| error <= smallest) {
            best = Some((error, place));
        }
    }
    best.map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_checks::draws::Draws;

    #[test]
    fn a_start_is_cut_off_as_numpy_would() {
        // numpy.argmin([x[d:].var() / len(x[d:]) for d in range(len(x) - 4)])
        let values = [0.0, 2.0, 5.0, 8.0, 9.5, 10.2, 9.9, 10.1, 9.8, 10.0, 10.3, 9.9, 10.1, 10.0];
        assert_eq!(start(&values), Some(5));
        assert_eq!(start(&values[..9]), None);
        assert_eq!(start(&[4.0; 12]), Some(0));
    }

    #[test]
    fn a_level_series_is_steady_at_once() {
        let found = warm_up(&[Some(100.0); 40], SteadyRules::default());
        assert_eq!((found.state, found.slices, found.start_slices), (SteadyState::Steady, 10, Some(0)));
    }

    #[test]
    fn a_server_that_warms_up_is_called_steady_once_it_is() {
        // Throughput nears 100 with a time constant of 12 slices, with noise of 4 % that remembers.
        let mut draws = Draws::new(5);
        let mut early = 0;
        for _ in 0..200 {
            let noise = draws.autoregressive(300, 0.3);
            let slices: Vec<Option<f64>> = (0..300_u32)
                .zip(noise)
                .map(|(at, noise)| Some(100.0 * (1.0 - (-f64::from(at) / 12.0).exp()) * (1.0 + 0.04 * noise)))
                .collect();
            let found = warm_up(&slices, SteadyRules::default());
            assert_eq!(found.state, SteadyState::Steady);
            // 5 % are missing after 36 slices.
            early += u32::from(found.slices < 36);
            assert!(found.level.unwrap() > 92.0, "{found:?}");
        }
        assert!(early <= 10, "{early} of 200 were early");
    }

    #[test]
    fn what_keeps_rising_is_given_up() {
        let rising: Vec<Option<f64>> = (1..=80_u32).map(|at| Some(f64::from(at))).collect();
        let rules = SteadyRules { most_slices: 80, ..SteadyRules::default() };
        let found = warm_up(&rising, rules);
        assert_eq!((found.state, found.slices), (SteadyState::GaveUp, 80));
    }

    #[test]
    fn noise_is_averaged_before_anything_is_steady() {
        let mut draws = Draws::new(8);
        let slices: Vec<Option<f64>> = (0..300).map(|_| Some(100.0 * (1.0 + 0.3 * draws.normal()))).collect();
        assert!(warm_up(&slices, SteadyRules::default()).slices > 30);
    }

    #[test]
    fn nothing_answered_is_not_steady() {
        let rules = SteadyRules { most_slices: 30, ..SteadyRules::default() };
        assert_eq!(warm_up(&[None; 40], rules).state, SteadyState::GaveUp);
        assert_eq!(warm_up(&[Some(0.0); 40], rules).state, SteadyState::GaveUp);
        let mut slices = vec![None; 3];
        slices.extend([Some(5.0); 20]);
        assert_eq!(warm_up(&slices, rules).start_slices, Some(3));
        assert_eq!(warm_up(&[Some(1.0); 5], rules).state, SteadyState::NotYet);
    }
}
