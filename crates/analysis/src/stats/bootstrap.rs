//! The cluster bootstrap: an interval for a mean over tasks, each of which is drawn whole or not at all.

use std::cmp::Ordering;

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::draws::Draws;
use super::{Cluster, Interval, Weighted, length, real};

/// How often clusters are drawn anew, and from which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// How many times as many clusters as there are, are drawn.
    pub times: u32,
    /// The seed of the draws.
    pub seed: u64,
}

/// A mean over clusters with what drawing them anew gives: the sum over all clusters' sums by their counts, such as a rate
/// (of each task how many of how many succeeded) or a mean of log ratios.
///
/// Intervals are bias-corrected and accelerated (Efron 1987, JASA 82:171; Efron and Tibshirani 1993, chapter 14) over
/// clusters, which are taken as independent of each other while the values in one need not be. The bias is from the share
/// of draws below the mean (half of those equal to it count), the acceleration from leaving out one cluster at a time.
/// Where all draws lie on one side, or leaving out none changes anything, they are plain percentile intervals. Below about
/// ten clusters such an interval is too short.
#[derive(Debug, Clone)]
pub struct ClusterBootstrap {
    mean: f64,
    drawn: Weighted,
    correction: Option<Correction>,
}

impl ClusterBootstrap {
    /// Draws clusters anew. `None` below two clusters that hold anything, without draws, or if a sum isn't finite.
    pub fn new(clusters: &[Cluster], resampling: Resampling) -> Option<Self> {
        let filled: Vec<Cluster> = clusters.iter().copied().filter(|cluster| cluster.count > 0).collect();
        let whole = filled.iter().fold(Cluster::default(), joined);
        if filled.len() < 2 || resampling.times == 0 || !whole.sum.is_finite() {
            return None;
        }
        let mean = ratio(whole)?;
        let mut draws = Draws::new(resampling.seed);
        let mut drawn = Vec::new();
        for _ in 0..resampling.times {
            let picked = (0..filled.len()).filter_map(|_| filled.get(draws.below(filled.len())));
            drawn.push(ratio(picked.fold(Cluster::default(), joined))?);
        }
        let correction = correction(&filled, whole, mean, &drawn);
        Some(Self { mean, drawn: Weighted::plain(drawn), correction })
    }

    /// Returns the mean of all values.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the interval that covers the mean with the probability `coverage`, or `None` unless that is between 0 and 1.
    pub fn interval(&self, coverage: f64) -> Option<Interval> {
        if !(coverage > 0.0 && coverage < 1.0) {
            return None;
        }
        let tails = [(1.0 - coverage) / 2.0, f64::midpoint(1.0, coverage)];
        let [low, high] = match &self.correction {
            Some(correction) => tails.map(|tail| correction.share(tail)),
            None => tails,
        };
        Some(Interval { low: self.drawn.quantile(low)?, high: self.drawn.quantile(high)? })
    }

    /// Returns the two-sided p of the mean being `value`: one less the coverage of the interval that ends there. It is never
    /// below 1/(draws + 1), because half a draw is taken to lie beyond.
    pub fn p_of(&self, value: f64) -> f64 {
        let (mut below, mut all) = (0.5, 1.0);
        for (drawn, times) in self.drawn.values() {
            all += real(*times);
            below += match drawn.total_cmp(&value) {
                Ordering::Less => real(*times),
                Ordering::Equal => real(*times) / 2.0,
                Ordering::Greater => 0.0,
            };
        }
        let share = below / all;
        let tail = self.correction.as_ref().map_or(share, |correction| correction.tail(share));
        (2.0 * tail.min(1.0 - tail)).clamp(1.0 / all, 1.0)
    }
}

/// Returns the interval of [`ClusterBootstrap`] that covers the mean of all values with the probability `coverage`.
///
/// `None` below two clusters that hold anything, without draws, if a sum isn't finite, or if `coverage` isn't between 0
/// and 1.
pub fn cluster_bootstrap(clusters: &[Cluster], coverage: f64, resampling: Resampling) -> Option<Interval> {
    ClusterBootstrap::new(clusters, resampling)?.interval(coverage)
}

fn joined(all: Cluster, one: &Cluster) -> Cluster {
    Cluster { sum: all.sum + one.sum, count: all.count + one.count }
}

fn ratio(all: Cluster) -> Option<f64> {
    (all.count > 0).then(|| all.sum / real(all.count))
}

/// What turns a tail's share of a normal distribution into the share of draws.
#[derive(Debug, Clone)]
struct Correction {
    bias: f64,
    acceleration: f64,
}

impl Correction {
    /// Returns Φ(z₀ + (z₀ + z)/(1 − a (z₀ + z))) with z = Φ⁻¹(tail).
    fn share(&self, tail: f64) -> f64 {
        let normal = Normal::standard();
        let moved = self.bias + normal.inverse_cdf(tail);
        normal.cdf(self.bias + moved / (1.0 - self.acceleration * moved))
    }

    /// Returns the tail with that share of draws: the inverse of [`Self::share`].
    fn tail(&self, share: f64) -> f64 {
        let normal = Normal::standard();
        let moved = normal.inverse_cdf(share) - self.bias;
        let room = 1.0 + self.acceleration * moved;
        // Beyond the range of the correction nothing is left of the tail.
        if room <= 0.0 {
            return if moved < 0.0 { 0.0 } else { 1.0 };
        }
        normal.cdf(moved / room - self.bias)
    }
}

fn correction(filled: &[Cluster], whole: Cluster, seen: f64, drawn: &[f64]) -> Option<Correction> {
    let halves: u32 = drawn.iter().map(|value| u32::from(*value < seen) + u32::from(*value <= seen)).sum();
    let below = f64::from(halves) / (2.0 * length(drawn.len()));
    if below <= 0.0 || below >= 1.0 {
        return None;
    }
    let without = |one: &Cluster| {
        ratio(Cluster { sum: whole.sum - one.sum, count: whole.count - one.count }).map(|ratio| (ratio, 1_u64))
    };
    let left = Weighted::new(filled.iter().map(without).collect::<Option<_>>()?);
    let mean = left.mean()?;
    let power = |power: i32| left.values().iter().map(|(value, times)| real(*times) * (mean - value).powi(power)).sum();
    let (squares, cubes): (f64, f64) = (power(2), power(3));
    if squares <= 0.0 {
        return None;
    }
    Some(Correction { bias: Normal::standard().inverse_cdf(below), acceleration: cubes / (6.0 * squares.powf(1.5)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::mean;

    const TWENTY_THOUSAND: Resampling = Resampling { times: 20_000, seed: 1 };

    fn ones(values: &[f64]) -> Vec<Cluster> {
        values.iter().map(|&sum| Cluster { sum, count: 1 }).collect()
    }

    #[test]
    fn the_interval_is_that_of_scipy() {
        // scipy.stats.bootstrap((sums, counts), lambda s, n, axis=-1: s.sum(axis=axis)/n.sum(axis=axis), paired=True,
        // n_resamples=1_000_000, method='BCa', confidence_level=0.95)
        for (clusters, (low, high)) in SCIPY {
            let clusters: Vec<Cluster> = clusters.iter().map(|&(sum, count)| Cluster { sum, count }).collect();
            let found = cluster_bootstrap(&clusters, 0.95, TWENTY_THOUSAND).unwrap();
            let near = 0.02 * (high - low);
            assert!((found.low - low).abs() < near && (found.high - high).abs() < near, "{found:?} {low} {high}");
        }
    }

    /// The sums and counts of clusters, and the ends of the interval.
    type Known = (&'static [(f64, u64)], (f64, f64));

    const SCIPY: [Known; 2] = [
        (&RATES, (0.365_079_365_079_365_06, 0.767_857_142_857_142_9)),
        (&SKEWED, (0.213_571_428_571_428_55, 0.698_571_428_571_428_6)),
    ];
    const RATES: [(f64, u64); 12] = [
        (3.0, 5),
        (0.0, 4),
        (5.0, 5),
        (2.0, 6),
        (4.0, 4),
        (1.0, 3),
        (6.0, 8),
        (2.0, 2),
        (0.0, 5),
        (3.0, 3),
        (4.0, 7),
        (1.0, 1),
    ];
    const SKEWED: [(f64, u64); 14] = [
        (0.31, 1),
        (0.12, 1),
        (0.05, 1),
        (0.9, 1),
        (0.22, 1),
        (0.41, 1),
        (0.02, 1),
        (0.17, 1),
        (1.6, 1),
        (0.08, 1),
        (0.33, 1),
        (0.27, 1),
        (0.11, 1),
        (0.51, 1),
    ];

    #[test]
    fn the_correction_is_that_of_its_formula() {
        // scipy.stats.norm: z0 = ppf(below); cdf(z0 + (z0 + z)/(1 - a (z0 + z))) for z = ppf(0.025), ppf(0.975)
        let correction = Correction { bias: 0.1, acceleration: 0.05 };
        for (tail, expected) in [(0.025, 0.054_610_076_898_359_53), (0.975, 0.991_723_736_868_883_9)] {
            assert!((correction.share(tail) - expected).abs() < 1e-9, "{}", correction.share(tail));
        }
    }

    #[test]
    fn the_p_of_a_value_is_one_less_the_coverage_of_the_interval_that_ends_there() {
        for (clusters, _) in SCIPY {
            let clusters: Vec<Cluster> = clusters.iter().map(|&(sum, count)| Cluster { sum, count }).collect();
            let found = ClusterBootstrap::new(&clusters, TWENTY_THOUSAND).unwrap();
            for coverage in [0.5, 0.8, 0.95, 0.99] {
                let Interval { low, high } = found.interval(coverage).unwrap();
                for end in [low, high] {
                    let p = found.p_of(end);
                    assert!((p - (1.0 - coverage)).abs() < 0.012, "{coverage}: {p}");
                }
            }
            assert!(found.mean() > 0.1 && found.p_of(0.0) <= 0.001, "{}", found.p_of(0.0));
        }
        let correction = Correction { bias: 0.1, acceleration: 0.05 };
        for tail in [0.001, 0.025, 0.4, 0.9, 0.999] {
            assert!((correction.tail(correction.share(tail)) - tail).abs() < 1e-6, "{tail}");
        }
    }

    #[test]
    fn the_interval_covers_as_often_as_promised() {
        let mut draws = Draws::new(4);
        let (runs, mut hits) = (400, 0);
        for run in 0..runs {
            // Forty tasks whose values share much of their noise.
            let clusters: Vec<Cluster> = (0..40)
                .map(|_| {
                    let common = draws.normal();
                    let values: Vec<f64> = (0..5).map(|_| common + 0.3 * draws.normal()).collect();
                    Cluster { sum: mean(&values).unwrap() * 5.0, count: 5 }
                })
                .collect();
            let found = cluster_bootstrap(&clusters, 0.95, Resampling { times: 400, seed: run }).unwrap();
            hits += u32::from(found.low <= 0.0 && found.high >= 0.0);
        }
        let covered = f64::from(hits) / 400.0;
        assert!((0.905..=0.985).contains(&covered), "{covered}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values = ones(&[0.1, 0.4, -0.2, 0.3, 0.25, 0.05]);
        let of = |seed| cluster_bootstrap(&values, 0.9, Resampling { times: 500, seed });
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn values_that_are_all_the_same_have_an_interval_of_no_length() {
        let found = cluster_bootstrap(&ones(&[0.5; 8]), 0.95, TWENTY_THOUSAND).unwrap();
        assert_eq!(found, Interval { low: 0.5, high: 0.5 });
        for (clusters, coverage) in [
            (ones(&[1.0]), 0.95),
            (vec![Cluster::default(); 5], 0.95),
            (ones(&[1.0, 2.0]), 1.0),
            (ones(&[1.0, f64::NAN]), 0.95),
        ] {
            assert_eq!(cluster_bootstrap(&clusters, coverage, TWENTY_THOUSAND), None);
        }
    }
}
