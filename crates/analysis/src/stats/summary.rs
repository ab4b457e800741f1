//! Mean, deviation and exact quantiles of values that are passed once, in ascending order.

use super::{Weighted, real};

/// Values that can be passed in ascending order, each with the number of times that it counts.
pub trait Sorted {
    /// Returns how many values there are, each counted as often as it counts.
    fn total(&self) -> u64;

    /// Passes all values in ascending order.
    fn each(&self, pass: &mut dyn FnMut(f64, u64));
}

/// What one pass over sorted values tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How many values.
    pub total: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the values as they are, divided by their number and not by one less (`numpy.std`).
    pub deviation: f64,
    /// The quantiles asked for, in the order asked.
    pub quantiles: Vec<f64>,
}

/// Returns the summary with the quantiles of `shares`, each from 0 to 1, by the definition of [`Weighted::quantile`]; every
/// value is also given to `also`. `None` of nothing.
pub fn summarise(values: &dyn Sorted, shares: &[f64], mut also: impl FnMut(f64, u64)) -> Option<Summary> {
    let total = values.total();
    if total == 0 {
        return None;
    }
    let wanted: Vec<Rank> = shares.iter().map(|share| Rank::of(*share, total)).collect::<Option<_>>()?;
    let mut ranks: Vec<u64> = wanted.iter().flat_map(|rank| [rank.below, rank.above]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut found: Vec<f64> = Vec::with_capacity(ranks.len());
    let (mut before, mut sum) = (0, 0.0);
    // The deviation is taken about the first value, so that large values with a small spread keep their digits.
    let (mut origin, mut shifted, mut squares) = (None, 0.0, 0.0);
    values.each(&mut |value, times| {
        let weight = real(times);
        sum += value * weight;
        let distance = value - *origin.get_or_insert(value);
        shifted += distance * weight;
        squares += distance * distance * weight;
        before += times;
        while ranks.get(found.len()).is_some_and(|rank| *rank < before) {
            found.push(value);
        }
        also(value, times);
    });
    let at = |rank: u64| ranks.binary_search(&rank).ok().and_then(|place| found.get(place)).copied();
    let quantiles = wanted.iter().map(|rank| Some(rank.between(at(rank.below)?, at(rank.above)?)));
    let count = real(total);
    let variance = (squares - shifted * shifted / count) / count;
    Some(Summary {
        total,
        mean: sum / count,
        deviation: variance.max(0.0).sqrt(),
        quantiles: quantiles.collect::<Option<_>>()?,
    })
}

/// Where a quantile lies among sorted values, by type 7 of Hyndman and Fan (1996).
#[derive(Debug, Clone, Copy)]
pub(super) struct Rank {
    pub(super) below: u64,
    pub(super) above: u64,
    part: f64,
}

impl Rank {
    /// Returns the place of a quantile among `total` values, or `None` of nothing.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the rank is a whole number between 0 and the count"
    )]
    pub(super) fn of(share: f64, total: u64) -> Option<Self> {
        let rank = real(total.checked_sub(1)?) * share.clamp(0.0, 1.0);
        let below = rank.floor();
        Some(Self { below: below as u64, above: rank.ceil() as u64, part: rank - below })
    }

    /// Returns the quantile between the values of both ranks.
    pub(super) fn between(self, lower: f64, upper: f64) -> f64 {
        lower + (upper - lower) * self.part
    }
}

/// Values that count once each, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Ordered(Vec<f64>);

impl Ordered {
    /// Sorts finite values.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// Returns the value with `rank` values before it.
    pub fn at(&self, rank: u64) -> Option<f64> {
        usize::try_from(rank).ok().and_then(|rank| self.0.get(rank)).copied()
    }
}

impl Sorted for Ordered {
    fn total(&self) -> u64 {
        u64::try_from(self.0.len()).unwrap_or(u64::MAX)
    }

    fn each(&self, pass: &mut dyn FnMut(f64, u64)) {
        self.0.iter().for_each(|value| pass(*value, 1));
    }
}

impl Sorted for Weighted {
    fn total(&self) -> u64 {
        Self::total(self)
    }

    fn each(&self, pass: &mut dyn FnMut(f64, u64)) {
        self.values().iter().for_each(|(value, times)| pass(*value, *times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_that_of_numpy() {
        // v = numpy.repeat([1.0, 2.5, 4.0], [3, 1, 4]); v.mean(), v.std(), numpy.percentile(v, [90, 10, 50, 100])
        let weighted = Weighted::new(vec![(4.0, 4), (1.0, 3), (2.5, 1)]);
        let mut passed = 0;
        let summary = summarise(&weighted, &[0.9, 0.1, 0.5, 1.0], |_, times| passed += times).unwrap();
        assert_eq!((summary.total, passed, summary.mean), (8, 8, 2.6875));
        assert!((summary.deviation - 1.390_537_216_330_436_8).abs() < 1e-12, "{}", summary.deviation);
        assert_eq!(summary.quantiles, [4.0, 1.0, 3.25, 4.0]);
        assert_eq!(Ordered::new([2.0, f64::NAN, 1.0, 3.0]), Ordered(vec![1.0, 2.0, 3.0]));
        // v = 1e6 + numpy.array([0.1, 0.2, 0.3, 0.4]); v.std()
        let far = Weighted::plain([1_000_000.1, 1_000_000.2, 1_000_000.3, 1_000_000.4]);
        let far = summarise(&far, &[], |_, _| {}).unwrap();
        assert!((far.deviation - 0.111_803_398_901_020_74).abs() < 1e-11, "{}", far.deviation);
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(summarise(&Weighted::plain([]), &[], |_, _| {}), None);
        assert_eq!(summarise(&Weighted::plain([]), &[0.5], |_, _| {}), None);
    }
}
