//! Seeded draws of normal and chi-squared numbers.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::real;

/// A stream of draws that is the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    stream: ChaCha8Rng,
    /// The second of a pair of normal numbers.
    spare: Option<f64>,
}

impl Draws {
    /// Begins the stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { stream: ChaCha8Rng::seed_from_u64(seed), spare: None }
    }

    /// Returns a uniform number above 0 and below 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (real(self.stream.next_u64() >> 11) + 0.5) / 9_007_199_254_740_992.0
    }

    /// Returns a place from 0 to below `bound`: a multiplied draw of 64 bits, whose bias of bound/2^64 is far below the
    /// error of any number of draws.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u128::try_from(bound).unwrap_or(u128::MAX >> 64);
        usize::try_from((u128::from(self.stream.next_u64()) * bound) >> 64).unwrap_or(0)
    }

    /// Returns a seed for a stream of its own, of 53 bits as every stored seed.
    pub(crate) fn seed(&mut self) -> u64 {
        self.stream.next_u64() >> 11
    }

    /// Returns a standard normal number (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }

    /// Returns a chi-squared number: each two degrees of freedom are an exponential number of mean 2, and an odd one is
    /// the square of a normal number.
    pub(crate) fn chi_squared(&mut self, degrees_of_freedom: u32) -> f64 {
        let mut sum = if degrees_of_freedom % 2 == 1 { self.normal().powi(2) } else { 0.0 };
        let mut pairs = degrees_of_freedom / 2;
        while pairs > 0 {
            // The product of 16 uniform numbers is at least 2^-864 and doesn't underflow.
            let now = pairs.min(16);
            sum -= 2.0 * (0..now).map(|_| self.uniform()).product::<f64>().ln();
            pairs -= now;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{length, mean, standard_deviation};

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let mut draws = Draws::new(1);
        let normal: Vec<f64> = (0..40_000).map(|_| draws.normal()).collect();
        assert!(mean(&normal).unwrap().abs() < 0.02);
        assert!((standard_deviation(&normal).unwrap() - 1.0).abs() < 0.02);
        for degrees in [0, 1, 2, 5, 40, 71] {
            let values: Vec<f64> = (0..20_000).map(|_| draws.chi_squared(degrees)).collect();
            let (k, error) = (f64::from(degrees), (2.0 * f64::from(degrees) / 20_000.0).sqrt());
            assert!((mean(&values).unwrap() - k).abs() <= 4.0 * error, "{degrees}");
            assert!((standard_deviation(&values).unwrap() - (2.0 * k).sqrt()).abs() <= 0.05 * k, "{degrees}");
        }
    }

    #[test]
    fn places_are_equally_likely_and_streams_repeat() {
        let mut draws = Draws::new(2);
        let mut seen = [0_usize; 7];
        for _ in 0..7_000 {
            seen[draws.below(7)] += 1;
        }
        assert!(seen.iter().all(|&count| (length(count) - 1000.0).abs() < 150.0), "{seen:?}");
        let (mut one, mut other) = (Draws::new(3), Draws::new(3));
        assert!((0..9).all(|_| one.normal().to_bits() == other.normal().to_bits()));
        assert_ne!(Draws::new(3).below(1 << 40), Draws::new(4).below(1 << 40));
    }
}
