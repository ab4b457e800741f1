//! Whether differences depend on those of the block before.

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
    let mean = mean(values)?;
    let mut centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let squares: f64 = centred.iter().map(|value| value * value).sum();
    if values.len() < 3 || !squares.is_finite() || squares <= 0.0 {
        return None;
    }
    let seen = products(&centred);
    let threshold = seen - TIE * squares;
    let p = if values.len() <= EXACT_UP_TO {
        let (mut hits, mut orders) = (0, 0);
        each_order(&mut centred, 0, &mut |order| {
            orders += 1;
            hits += usize::from(products(order) >= threshold);
        });
        length(hits) / length(orders)
    } else {
        drawn(&mut centred, threshold, seed)
    };
    Some(SerialCorrelation { correlation: seen / squares, p })
}

fn products(values: &[f64]) -> f64 {
    values.iter().zip(values.iter().skip(1)).map(|(one, next)| one * next).sum()
}

/// Calls `visit` with every order of the values from place `from` on.
fn each_order(values: &mut [f64], from: usize, visit: &mut impl FnMut(&[f64])) {
    if from + 1 >= values.len() {
        visit(values);
        return;
    }
    for place in from..values.len() {
        values.swap(from, place);
        each_order(values, from + 1, visit);
        values.swap(from, place);
    }
}

fn drawn(values: &mut [f64], threshold: f64, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut hits = 0_u32;
    for _ in 0..DRAWS {
        for last in (1..values.len()).rev() {
            // A multiplied draw of 32 bits: its bias of n/2^32 is far below the error of the draws.
            let choices = u64::try_from(last + 1).unwrap_or(u64::MAX);
            let place = (u64::from(rng.next_u32()) * choices) >> 32;
            values.swap(last, usize::try_from(place).unwrap_or(0));
        }
        hits += u32::from(products(values) >= threshold);
    }
    f64::from(hits + 1) / f64::from(DRAWS + 1)
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
    fn without_spread_there_is_no_correlation() {
        assert_eq!(serial_correlation(&[0.5; 6], 0), None);
        assert_eq!(serial_correlation(&[0.1, 0.2], 0), None);
        assert_eq!(serial_correlation(&[0.1, f64::NAN, 0.2], 0), None);
    }
}
