//! The second half of a series against its first.

use isobench_schema::load_checks::{Bounds, Halves};

use crate::load_checks::series::correlation;
use crate::stats::{length, mean, standard_deviation, t_quantile};

/// Each half has at least so many slices.
const FEWEST_IN_HALF: usize = 10;
/// A larger correlation isn't corrected for.
const MOST_CORRELATION: f64 = 0.9;

/// Two halves of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TwoHalves {
    pub(super) first: f64,
    pub(super) second: f64,
    /// The second mean over the first, less 1.
    pub(super) change: f64,
    pub(super) standard_error: f64,
    degrees_of_freedom: f64,
    slices: usize,
}

/// Compares the halves of a series of slices of equal time; of an odd number the one in the middle is left out. `None` if the
/// first half has no positive level.
///
/// The error of the ratio is by the delta method from the errors of both means, each widened by √((1 + r)/(1 − r)) for the
/// correlation r of neighbours within the halves, where it is positive; the degrees of freedom shrink by as much as that
/// takes from the number of independent slices.
pub fn halves(slices: &[f64]) -> Option<Halves> {
    if slices.len() < 2 * FEWEST_IN_HALF {
        return Some(Halves::TooFew { slices: number(slices.len()), needed: number(2 * FEWEST_IN_HALF) });
    }
    let found = two_halves(slices)?;
    let half = t_quantile(0.975, found.degrees_of_freedom)? * found.standard_error;
    Some(Halves::Compared {
        first: found.first,
        second: found.second,
        change: found.change,
        interval: Bounds { low: found.change - half, high: found.change + half },
        slices: number(found.slices),
    })
}

fn number(slices: usize) -> u32 {
    u32::try_from(slices).unwrap_or(u32::MAX)
}

pub(super) fn two_halves(slices: &[f64]) -> Option<TwoHalves> {
    let half = slices.len() / 2;
    let (early, late) = (slices.get(..half)?, slices.get(slices.len() - half..)?);
    let (first, second) = (mean(early)?, mean(late)?);
    if first <= 0.0 || !second.is_finite() {
        return None;
    }
    let correlation = f64::midpoint(correlation(early), correlation(late)).clamp(0.0, MOST_CORRELATION);
    let widening = (1.0 + correlation) / (1.0 - correlation);
    let variance = |values: &[f64], level: f64| {
        Some(standard_deviation(values)?.powi(2) / length(half) / level.powi(2) * widening)
    };
    let ratio = second / first;
    // The second half's error is taken relative to the first's level, so that a level of 0 needs no case of its own.
    let standard_error = (variance(early, first)? * ratio.powi(2) + variance(late, first)?).sqrt();
    let independent = 2.0 * length(half) / widening;
    Some(TwoHalves {
        first,
        second,
        change: ratio - 1.0,
        standard_error,
        degrees_of_freedom: (independent - 2.0).max(1.0),
        slices: half,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_checks::draws::Draws;

    fn coverage(count: usize, memory: f64) -> f64 {
        let mut draws = Draws::new(2);
        let runs = 1_000;
        let mut covers = 0;
        for _ in 0..runs {
            let slices: Vec<f64> =
                draws.autoregressive(count, memory).iter().map(|noise| 100.0 * (1.0 + 0.05 * noise)).collect();
            let Some(Halves::Compared { interval, .. }) = halves(&slices) else { panic!("too few") };
            covers += usize::from(interval.low <= 0.0 && 0.0 <= interval.high);
        }
        length(covers) / length(runs)
    }

    #[test]
    fn a_level_series_is_said_to_be_level() {
        let independent = coverage(40, 0.0);
        assert!((0.93..=0.985).contains(&independent), "{independent}");
        let correlated = coverage(60, 0.5);
        assert!(correlated >= 0.9, "{correlated}");
    }

    #[test]
    fn a_change_is_found() {
        let mut draws = Draws::new(4);
        let slices: Vec<f64> =
            (0..40_u32).map(|at| if at < 20 { 100.0 } else { 90.0 } + 2.0 * draws.normal()).collect();
        let Some(Halves::Compared { change, interval, slices, .. }) = halves(&slices) else { panic!("too few") };
        assert!((change + 0.1).abs() < 0.02 && interval.high < -0.05 && slices == 20, "{change} {interval:?}");
    }

    #[test]
    fn too_little_is_not_compared() {
        assert_eq!(halves(&[1.0; 19]), Some(Halves::TooFew { slices: 19, needed: 20 }));
        assert_eq!(halves(&[0.0; 20]), None);
    }
}
