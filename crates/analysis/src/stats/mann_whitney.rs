//! Two samples that aren't paired, compared by ranks.

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::length;

/// Without ties, p is exact if the smaller sample has at most so many values,
const EXACT_UP_TO: usize = 8;
/// and there are at most so many pairs.
const EXACT_PAIRS: usize = 4_000;

/// What is asked of the first sample against the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alternative {
    /// Whether it differs.
    TwoSided,
    /// Whether its values are greater.
    Greater,
    /// Whether they are less.
    Less,
}

/// The test of Mann and Whitney (1947, "On a test of whether one of two random variables is stochastically larger than the
/// other"), which is Wilcoxon's of the sum of ranks.
///
/// It takes every value for independent of every other: launches of one block, or of one hour, aren't. Block differences
/// are judged by the paired tests of this module; this one is for data without pairs, and to show what others' rules do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// The pairs in which the first sample's value is the greater one; ties count one half.
    u: f64,
    first: usize,
    second: usize,
    /// The sum of t³ − t over groups of t equal values.
    ties: f64,
}

impl MannWhitney {
    /// Compares two samples. `None` if one is empty or a value isn't finite.
    pub fn of(first: &[f64], second: &[f64]) -> Option<Self> {
        if first.is_empty() || second.is_empty() || !first.iter().chain(second).all(|value| value.is_finite()) {
            return None;
        }
        let mut all: Vec<(f64, bool)> = first.iter().map(|value| (*value, true)).collect();
        all.extend(second.iter().map(|value| (*value, false)));
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut u, mut ties, mut below) = (0.0, 0.0, 0);
        // Zeros of both signs are equal, though one is sorted before the other.
        for group in all.chunk_by(|one, next| one.0 >= next.0) {
            let of_first = group.iter().filter(|(_, is_first)| *is_first).count();
            let of_second = group.len() - of_first;
            u += length(of_first) * (length(below) + length(of_second) / 2.0);
            below += of_second;
            let size = length(group.len());
            ties += size.powi(3) - size;
        }
        Some(Self { u, first: first.len(), second: second.len(), ties })
    }

    /// Returns the statistic U of the first sample: the pairs in which its value is the greater one.
    pub fn u(&self) -> f64 {
        self.u
    }

    /// Returns p: exact for small samples without ties, else by the normal approximation.
    pub fn p(&self, alternative: Alternative) -> f64 {
        let is_small = self.first.min(self.second) <= EXACT_UP_TO && self.pairs() <= length(EXACT_PAIRS);
        let exact = if is_small { self.exact_p(alternative) } else { None };
        exact.unwrap_or_else(|| self.asymptotic_p(alternative))
    }

    /// Returns p by the normal approximation, with the corrections for ties and for continuity (Hollander, Wolfe and Chicken
    /// 2014, section 4.1).
    pub fn asymptotic_p(&self, alternative: Alternative) -> f64 {
        let all = length(self.first + self.second);
        let spread = (self.pairs() / 12.0 * (all + 1.0 - self.ties / (all * (all - 1.0)).max(1.0))).max(0.0).sqrt();
        let z = (self.reached(alternative) - self.pairs() / 2.0 - 0.5) / spread;
        // All values equal: there is nothing to tell.
        if spread <= 0.0 {
            return 1.0;
        }
        doubled(Normal::standard().sf(z), alternative)
    }

    /// Returns p by counting every arrangement of the ranks, or `None` with ties.
    pub fn exact_p(&self, alternative: Alternative) -> Option<f64> {
        if self.ties > 0.0 {
            return None;
        }
        let ways = arrangements(self.first, self.second);
        let all: f64 = ways.iter().sum();
        let reached = self.reached(alternative);
        let beyond: f64 =
            ways.iter().enumerate().filter(|(u, _)| length(*u) >= reached - 0.25).map(|(_, ways)| ways).sum();
        Some(doubled(beyond / all, alternative))
    }

    fn pairs(&self) -> f64 {
        length(self.first) * length(self.second)
    }

    /// Returns the statistic that is asked to be large.
    fn reached(&self, alternative: Alternative) -> f64 {
        let reversed = self.pairs() - self.u;
        match alternative {
            Alternative::TwoSided => self.u.max(reversed),
            Alternative::Greater => self.u,
            Alternative::Less => reversed,
        }
    }
}

fn doubled(tail: f64, alternative: Alternative) -> f64 {
    match alternative {
        Alternative::TwoSided => (2.0 * tail).min(1.0),
        Alternative::Greater | Alternative::Less => tail,
    }
}

/// Returns for each U, from 0, how many arrangements of two samples of these sizes have it. By the greatest value: if it is
/// of the first sample, it is above all of the second, and the rest has so much less (Mann and Whitney 1947).
fn arrangements(first: usize, second: usize) -> Vec<f64> {
    let mut rows = vec![vec![1.0]; first + 1];
    for of_second in 1..=second {
        let mut fewer = vec![1.0];
        for row in rows.iter_mut().skip(1) {
            row.resize(fewer.len() + of_second, 0.0);
            for (ways, more) in row.iter_mut().skip(of_second).zip(&fewer) {
                *ways += more;
            }
            fewer.clone_from(row);
        }
    }
    rows.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: (&[f64], &[f64]) = (&[19.1, 22.4, 16.2, 29.7, 24.8], &[20.0, 11.3, 17.6, 12.9]);
    const TIED: (&[f64], &[f64]) =
        (&[1.1, 2.3, 2.3, 4.0, 5.2, 5.2, 5.2, 7.1, 8.8, 9.0], &[2.3, 3.1, 5.2, 6.6, 6.6, 9.0, 10.2, 11.5, 12.0]);
    const EVEN: (&[f64], &[f64]) = (
        &[0.31, 0.12, 0.44, 0.27, 0.19, 0.35, 0.29, 0.41, 0.22, 0.38, 0.33, 0.25],
        &[0.21, 0.10, 0.34, 0.18, 0.17, 0.24, 0.28, 0.39, 0.11, 0.37, 0.32, 0.15],
    );
    const APART: (&[f64], &[f64]) = (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);

    // SciPy 1.17.1: r = scipy.stats.mannwhitneyu(x, y, alternative=a, method=m); r.statistic, r.pvalue for a in two-sided,
    // greater, less.
    type Case = ((&'static [f64], &'static [f64]), f64, [f64; 3]);
    const ASYMPTOTIC: [Case; 4] = [
        (SMALL, 17.0, [0.111_346_886_533_140_41, 0.055_673_443_266_570_206, 0.966_903_710_138_903_3]),
        (TIED, 26.0, [0.128_201_701_201_790_25, 0.945_583_482_714_222_7, 0.064_100_850_600_895_13]),
        (EVEN, 97.0, [0.157_212_753_340_003_87, 0.078_606_376_670_001_93, 0.929_522_390_427_814_3]),
        (APART, 0.0, [0.022_654_494_080_089_346, 0.993_914_249_326_055_2, 0.011_327_247_040_044_673]),
    ];
    const EXACT: [Case; 3] = [
        (SMALL, 17.0, [0.111_111_111_111_111_1, 0.055_555_555_555_555_55, 0.968_253_968_253_968_3]),
        (EVEN, 97.0, [0.159_973_019_308_057_68, 0.079_986_509_654_028_84, 0.928_416_112_088_207_8]),
        (APART, 0.0, [0.016_666_666_666_666_666, 1.0, 0.008_333_333_333_333_333]),
    ];
    const ASKED: [Alternative; 3] = [Alternative::TwoSided, Alternative::Greater, Alternative::Less];

    #[test]
    fn p_values_are_those_of_scipy() {
        for ((x, y), u, expected) in ASYMPTOTIC {
            let test = MannWhitney::of(x, y).unwrap();
            assert!((test.u() - u).abs() < 1e-12, "{test:?}");
            for (alternative, expected) in ASKED.into_iter().zip(expected) {
                let found = test.asymptotic_p(alternative);
                assert!((found - expected).abs() < 1e-10, "{test:?} {alternative:?}: {found} instead of {expected}");
            }
        }
        for ((x, y), _, expected) in EXACT {
            let test = MannWhitney::of(x, y).unwrap();
            for (alternative, expected) in ASKED.into_iter().zip(expected) {
                let found = test.exact_p(alternative).unwrap();
                assert!((found - expected).abs() < 1e-12, "{test:?} {alternative:?}: {found} instead of {expected}");
            }
        }
    }

    #[test]
    fn p_is_exact_where_samples_are_small_and_differ() {
        let p = |(x, y): (&[f64], &[f64])| MannWhitney::of(x, y).unwrap().p(Alternative::TwoSided);
        let [small, tied, even, _] = ASYMPTOTIC;
        assert!((p(SMALL) - EXACT[0].2[0]).abs() < 1e-12 && (p(SMALL) - small.2[0]).abs() > 1e-5);
        assert!((p(TIED) - tied.2[0]).abs() < 1e-10 && (p(EVEN) - even.2[0]).abs() < 1e-10);
        assert_eq!(MannWhitney::of(TIED.0, TIED.1).unwrap().exact_p(Alternative::Less), None);
    }

    #[test]
    fn every_arrangement_is_counted_once() {
        for (first, second, all) in [(1, 1, 2.0), (3, 4, 35.0), (8, 24, 10_518_300.0), (20, 2, 231.0)] {
            let ways = arrangements(first, second);
            assert_eq!(ways.len(), first * second + 1);
            assert!((ways.iter().sum::<f64>() - all).abs() < 1e-6, "{first} {second}");
            let mirrored: Vec<f64> = ways.iter().rev().copied().collect();
            assert!(ways.iter().zip(&mirrored).all(|(one, other)| (one - other).abs() < 1e-9), "{ways:?}");
        }
    }

    #[test]
    fn equal_values_say_nothing_and_nothing_cannot_be_compared() {
        let equal = MannWhitney::of(&[1.0; 3], &[1.0; 3]).unwrap();
        assert!((equal.u() - 4.5).abs() < 1e-12 && (equal.p(Alternative::TwoSided) - 1.0).abs() < 1e-12);
        let zeros = MannWhitney::of(&[0.0, -0.0], &[-0.0, 0.0]).unwrap();
        assert!((zeros.u() - 2.0).abs() < 1e-12 && (zeros.p(Alternative::Greater) - 1.0).abs() < 1e-12);
        assert_eq!(MannWhitney::of(&[], &[1.0]), None);
        assert_eq!(MannWhitney::of(&[f64::NAN], &[1.0]), None);
    }
}
