//! Draws from a seeded stream: uniform numbers, and gamma-distributed gaps.

use isobench_schema::order::derive_seed;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// A stream of draws for one purpose. The same seed and purpose give the same draws in every version and on every
/// platform (gamma draws as far as its `ln` and `powf` agree to the last bit).
#[derive(Debug, Clone)]
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    /// Returns the stream for `purpose`.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        Self(ChaCha8Rng::seed_from_u64(derive_seed(seed, purpose)))
    }

    /// Returns a uniform number below `bound`, by rejection, so that none is favoured. 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        let limit = u32::MAX - u32::MAX % bound;
        loop {
            let draw = self.0.next_u32();
            if draw < limit {
                return draw % bound;
            }
        }
    }

    /// Returns a uniform number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u32, most: u32) -> u32 {
        match most.saturating_sub(least).checked_add(1) {
            Some(bound) => least + self.below(bound),
            // Every number there is.
            None => self.0.next_u32(),
        }
    }

    /// Brings a list into a random order, each of them equally likely (Fisher and Yates, as Knuth has it: The art of
    /// computer programming 2, 3.4.2, algorithm P).
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let bound = u32::try_from(last + 1).unwrap_or(u32::MAX);
            list.swap(last, self.below(bound) as usize);
        }
    }

    /// Returns a uniform number above 0 and below 1, of 53 random bits.
    fn open_unit(&mut self) -> f64 {
        let high = f64::from(self.0.next_u32() >> 5);
        let low = f64::from(self.0.next_u32() >> 6);
        // 27 bits and 26 bits, and a half so that it is never 0.
        (high * 67_108_864.0 + low + 0.5) / 9_007_199_254_740_992.0
    }

    /// Returns a standard normal number, by Marsaglia's polar method (Marsaglia and Bray 1964).
    fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.open_unit() - 1.0;
            let y = 2.0 * self.open_unit() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Returns a gamma-distributed number with this shape and mean.
    ///
    /// The method is that of Marsaglia and Tsang, "A simple method for generating gamma variables", ACM Transactions on
    /// Mathematical Software 26 (2000), 363-372; a shape below 1 by their note at the end: a draw of shape + 1 times the
    /// power 1 / shape of a uniform number.
    pub(crate) fn gamma(&mut self, shape: f64, mean: f64) -> f64 {
        let scale = mean / shape;
        if shape < 1.0 {
            let boost = self.open_unit().powf(1.0 / shape);
            return self.gamma_from_one(shape + 1.0) * boost * scale;
        }
        self.gamma_from_one(shape) * scale
    }

    /// Returns a gamma-distributed number of scale 1; `shape` must be at least 1.
    fn gamma_from_one(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.open_unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_gamma(shape: f64) {
        let (n, mean) = (200_000_u32, 0.02);
        let mut draws = Draws::new(11, "test");
        let values: Vec<f64> = (0..n).map(|_| draws.gamma(shape, mean)).collect();
        let count = f64::from(n);
        let found = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - found).powi(2)).sum::<f64>() / count;
        let third = values.iter().map(|v| (v - found).powi(3)).sum::<f64>() / count;
        let variation = variance.sqrt() / found;
        let skewness = third / variance.powf(1.5);
        assert!((found / mean - 1.0).abs() < 0.02, "mean at {shape}: {found}");
        assert!((variation * shape.sqrt() - 1.0).abs() < 0.02, "variation at {shape}: {variation}");
        assert!((skewness * shape.sqrt() / 2.0 - 1.0).abs() < 0.1, "skewness at {shape}: {skewness}");
        assert!(values.iter().all(|v| *v >= 0.0 && v.is_finite()));
    }

    #[test]
    fn gamma_draws_have_the_mean_the_variation_and_the_skewness_asked_for() {
        for shape in [0.3, 0.5, 1.0, 2.0, 16.0] {
            check_gamma(shape);
        }
    }

    #[test]
    fn a_shape_of_one_is_the_exponential_distribution() {
        let n = 20_000_u32;
        let mut draws = Draws::new(5, "test");
        let mut values: Vec<f64> = (0..n).map(|_| draws.gamma(1.0, 1.0)).collect();
        values.sort_by(f64::total_cmp);
        // Kolmogorov and Smirnov's distance; 1.63 / sqrt(n) is exceeded by chance once in a hundred seeds.
        let distance = (0..n)
            .zip(&values)
            .map(|(rank, v)| (f64::from(rank) / f64::from(n) - (1.0 - (-v).exp())).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.63 / f64::from(n).sqrt(), "{distance}");
    }

    #[test]
    fn uniform_draws_reach_both_ends_and_favour_none() {
        let mut counts = [0_u32; 7];
        let mut draws = Draws::new(1, "test");
        for _ in 0..70_000 {
            counts[draws.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (9_600..10_400).contains(n)), "{counts:?}");
        assert_eq!((draws.below(1), draws.below(0)), (0, 0));
    }

    #[test]
    fn purposes_have_streams_of_their_own() {
        let first = |purpose: &str| Draws::new(3, purpose).below(u32::MAX);
        assert_eq!(first("a"), first("a"));
        assert_ne!(first("a"), first("b"));
    }
}
