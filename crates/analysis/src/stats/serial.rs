//! Whether differences depend on those of the block before.

use std::ops::ControlFlow;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::{length, mean};

/// Up to so many values every order is counted; above it, orders are drawn.
const EXACT_UP_TO: usize = 8;
/// Orders drawn above [`EXACT_UP_TO`] values.
const DRAWS: u32 = 4_000;
/// Sums this close together, relative to the sum of squares, are ties.
const TIE: f64 = 1e-9;

/// The serial correlation of values in their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SerialCorrelation {
    /// The correlation of neighbours, from −1 to 1.
    pub correlation: f64,
    /// The one-sided p of there being no positive one.
    pub p: f64,
}

/// Returns the correlation of each value with the next, and the share of all orders of the values whose correlation is
/// at least as large (Wald and Wolfowitz 1943, "An exact test for randomness in the non-parametric case based on serial
/// correlation"). `None` below three values, without spread, or if one isn't finite.
///
/// Only positive correlation is looked for: it is what makes intervals too short. Up to 8 values the count is exact;
/// above, 4,000 orders are drawn from `seed`.
pub fn serial_correlation(values: &[f64], seed: u64) -> Option<SerialCorrelation> {
    counted(values, f64::INFINITY, seed)
}

/// Returns what [`serial_correlation`] does if its p is below `level`, else `None`. It is much faster where it isn't: counting
/// ends as soon as p can't be below any more.
pub fn serial_correlation_below(values: &[f64], level: f64, seed: u64) -> Option<SerialCorrelation> {
    counted(values, level, seed).filter(|found| found.p < level)
}

/// Counts until every order is counted or p is at least `enough`.
fn counted(values: &[f64], enough: f64, seed: u64) -> Option<SerialCorrelation> {
    let mean = mean(values)?;
    let mut centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let squares: f64 = centred.iter().map(|value| value * value).sum();
    if values.len() < 3 || !squares.is_finite() || squares <= 0.0 {
        return None;
    }
    let seen = products(&centred);
    let counting = Counting { threshold: seen - TIE * squares, enough };
    let p = if values.len() <= EXACT_UP_TO { counting.all(&mut centred) } else { counting.drawn(&mut centred, seed) };
    Some(SerialCorrelation { correlation: seen / squares, p })
}

fn products(values: &[f64]) -> f64 {
    values.iter().zip(values.iter().skip(1)).map(|(one, next)| one * next).sum()
}

/// Calls `visit` with every order of the values from place `from` on, until it breaks.
fn each_order(values: &mut [f64], from: usize, visit: &mut impl FnMut(&[f64]) -> ControlFlow<()>) -> ControlFlow<()> {
    if from + 1 >= values.len() {
        return visit(values);
    }
    for place in from..values.len() {
        values.swap(from, place);
        each_order(values, from + 1, visit)?;
        values.swap(from, place);
    }
    ControlFlow::Continue(())
}

/// Counts the orders whose sum of products is at least the threshold, as a share, until that is enough.
#[derive(Debug, Clone, Copy)]
struct Counting {
    threshold: f64,
    enough: f64,
}

impl Counting {
    fn all(self, values: &mut [f64]) -> f64 {
        let orders: f64 = (1..=values.len()).map(length).product();
        let mut hits = 0;
        // It breaks where enough is counted, and that is the result then.
        let _ = each_order(values, 0, &mut |order| {
            hits += usize::from(products(order) >= self.threshold);
            if length(hits) / orders >= self.enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        length(hits) / orders
    }

    fn drawn(self, values: &mut [f64], seed: u64) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let share = |hits: u32| f64::from(hits + 1) / f64::from(DRAWS + 1);
        let mut hits = 0_u32;
        for _ in 0..DRAWS {
            for last in (1..values.len()).rev() {
                // A multiplied draw of 32 bits: its bias of n/2^32 is far below the error of the draws.
                let choices = u64::try_from(last + 1).unwrap_or(u64::MAX);
                let place = (u64::from(rng.next_u32()) * choices) >> 32;
                values.swap(last, usize::try_from(place).unwrap_or(0));
            }
            hits += u32::from(products(values) >= self.threshold);
            if share(hits) >= self.enough {
                break;
            }
        }
        share(hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p_is_that_of_numpy() {
        // x = x - x.mean(); t = [(o[:-1] * o[1:]).sum() for o in map(numpy.array, itertools.permutations(x))]; the
        // share of t that is at least (x[:-1] * x[1:]).sum()
        for (values, p) in [
            (&[0.1, 0.2, 0.25, 0.4, 0.5, 0.7][..], 18.0 / 720.0),
            (&[0.3, -0.2, 0.25, 0.1, 0.05, 0.12, -0.3][..], 4058.0 / 5040.0),
        ] {
            let found = serial_correlation(values, 0).unwrap();
            assert!((found.p - p).abs() < 1e-12, "{found:?} instead of {p}");
        }
    }

    #[test]
    fn a_long_rise_is_found_and_alternation_is_not() {
        let rising: Vec<f64> = (0..24).map(f64::from).collect();
        let found = serial_correlation(&rising, 1).unwrap();
        assert!(found.p < 0.001 && found.correlation > 0.8, "{found:?}");
        let alternating: Vec<f64> = (0..24).map(|place| f64::from(place % 2)).collect();
        assert!(serial_correlation(&alternating, 1).unwrap().p > 0.99);
    }

    #[test]
    fn what_is_not_below_a_level_is_left_out_and_the_rest_is_the_same() {
        let values = |count: u32| -> Vec<f64> {
            (0..count).map(|place| f64::from(place * place % 11) + 0.4 * f64::from(place)).collect()
        };
        let mut below = 0;
        for count in 3..20 {
            let values = values(count);
            for seed in 0..3 {
                let whole = serial_correlation(&values, seed).unwrap();
                for level in [0.001, 0.01, 0.05, 0.3, 0.9] {
                    let found = serial_correlation_below(&values, level, seed);
                    assert_eq!(found, (whole.p < level).then_some(whole), "{count} values, {level}");
                    below += usize::from(found.is_some());
                }
            }
        }
        assert!(below > 30 && below < 3 * 17 * 5, "{below}");
    }

    #[test]
    fn without_spread_there_is_no_correlation() {
        assert_eq!(serial_correlation(&[0.5; 6], 0), None);
        assert_eq!(serial_correlation(&[0.1, 0.2], 0), None);
        assert_eq!(serial_correlation(&[0.1, f64::NAN, 0.2], 0), None);
    }
}
