//! One p for several looks: the smallest error of a whole design with which one of the looks taken would have crossed.
//!
//! Spending the error α over the same looks gives a boundary for each α, and a larger α one that is nearer at every look.
//! The p at a look is the smallest α whose boundary was crossed at it or before (a sequential p value: Liu and Anderson
//! 2008, JASA 103:1627; repeated p values of group-sequential designs: Posch, Wassmer and Brannath 2008, Biometrika
//! 95:253). Without a difference, to be at most α is to have crossed the boundary of α at some look taken, so that its
//! probability is α if all looks are taken and at most α whichever are, and why ever the run stopped: by equivalence, for
//! futility, for its budget. Stage-wise ordering, the other way, holds only if nothing but its own crossing stops a
//! contrast. At 5 % the p says what the verdict says.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use isobench_schema::plan::Spending;

use super::chain::{Chain, LEAST_LEVEL, Sides};
use super::spending::spent;
use super::{BoundaryError, Interim, check_blocks};

/// The errors whose boundaries are calculated; between them levels are interpolated.
const ERRORS: [f64; 17] =
    [1e-7, 1e-6, 5e-6, 2e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9];

/// The levels of a sequence of looks for every error.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorFamily {
    spending: Spending,
    /// Each look's information, and ln error as a function of ln level.
    looks: Vec<(f64, Monotone)>,
}

impl ErrorFamily {
    /// Calculates the family of a schedule of looks, which takes about as long as a dozen boundaries.
    ///
    /// # Errors
    /// Returns what is wrong with the schedule.
    pub fn of(spending: Spending, blocks: &[u32]) -> Result<Self, BoundaryError> {
        check_blocks(blocks.iter().copied())?;
        let schedule = Interim::schedule(blocks);
        let mut points: Vec<Vec<(f64, f64)>> = vec![Vec::new(); blocks.len()];
        for error in ERRORS {
            let mut chain = Chain::new(Sides::Two);
            for look in &schedule {
                chain.spend(look.blocks, spent(spending, error, look.fraction));
            }
            for (points, passed) in points.iter_mut().zip(chain.into_passed()) {
                points.push((passed.level.ln(), error.ln()));
            }
        }
        let looks = schedule.iter().zip(points).map(|(look, points)| (look.fraction, Monotone::through(points)));
        Ok(Self { spending, looks: looks.collect() })
    }

    /// Returns the overall p of the looks taken so far, from each look's own p in order. It is 1 where it is above 0.9.
    pub fn overall_p(&self, p: &[f64]) -> f64 {
        let at_looks = self.looks.iter().zip(p).filter_map(|((_, family), p)| family.at(p.ln()));
        let fractions = self.looks.iter().map(|(fraction, _)| *fraction);
        let bounded = bounded_p(self.spending, &fractions.zip(p.iter().copied()).collect::<Vec<_>>());
        at_looks.map(f64::exp).fold(1.0, f64::min).min(bounded)
    }
}

/// Families by how they spend and their looks, each calculated once.
type Families = BTreeMap<(Spending, Vec<u32>), Option<Arc<ErrorFamily>>>;

/// Returns the family of a schedule, calculated once; `None` if the schedule is none.
pub fn error_family(spending: Spending, blocks: &[u32]) -> Option<Arc<ErrorFamily>> {
    static KNOWN: LazyLock<Mutex<Families>> = LazyLock::new(Mutex::default);
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (spending, blocks.to_vec());
    if let Some(known) = lock().get(&key) {
        return known.clone();
    }
    // Without the lock, so that others needn't wait; two that calculate the same get the same.
    let found = ErrorFamily::of(spending, blocks).ok().map(Arc::new);
    lock().insert(key, found.clone());
    found
}

/// Returns an overall p that needs no boundary: the smallest error of which some look newly spends at least its own p. Each
/// look is the part of the blocks that it comes after, with its p. By Bonferroni's inequality it is valid for any looks that
/// don't depend on what was seen, whatever the p have to do with each other; it is up to about twice as large as
/// [`ErrorFamily::overall_p`].
pub fn bounded_p(spending: Spending, looks: &[(f64, f64)]) -> f64 {
    let is_crossed = |error: f64| {
        let mut before = 0.0;
        looks.iter().any(|(fraction, p)| {
            let now = spent(spending, error, *fraction);
            let newly = now - before;
            before = now;
            *p <= newly
        })
    };
    if !is_crossed(MOST_BOUNDED) {
        return 1.0;
    }
    let (mut low, mut high) = (LEAST_BOUNDED.ln(), MOST_BOUNDED.ln());
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if is_crossed(middle.exp()) { high = middle } else { low = middle }
    }
    high.exp()
}

/// The range in which the bound is looked for. Up to there what each look newly spends grows with the error.
const LEAST_BOUNDED: f64 = 1e-300;
const MOST_BOUNDED: f64 = 0.3;

/// A growing function through some points: cubic pieces whose slopes are harmonic means (Fritsch and Butland 1984, SIAM
/// Journal on Scientific and Statistical Computing 5:300), so that it grows between them too.
#[derive(Debug, Clone, PartialEq)]
struct Monotone {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    from: (f64, f64),
    to: (f64, f64),
    slopes: (f64, f64),
}

impl Monotone {
    /// Draws it through points in growing order. Errors whose level is near the least that a boundary stands at are left out:
    /// they say little of where theirs would be.
    fn through(mut points: Vec<(f64, f64)>) -> Self {
        points.retain(|(ln_level, _)| *ln_level > (100.0 * LEAST_LEVEL).ln());
        let pairs: Vec<((f64, f64), (f64, f64))> = points.iter().copied().zip(points.iter().copied().skip(1)).collect();
        let steepness: Vec<(f64, f64)> =
            pairs.iter().map(|(from, to)| (to.0 - from.0, (to.1 - from.1) / (to.0 - from.0))).collect();
        let inner = steepness.iter().zip(steepness.iter().skip(1)).map(|((h, d), (next_h, next_d))| {
            3.0 * (h + next_h) / ((2.0 * next_h + h) / d + (next_h + 2.0 * h) / next_d)
        });
        let ends = |end: Option<&(f64, f64)>| end.map(|(_, slope)| *slope);
        let slopes: Vec<f64> = ends(steepness.first()).into_iter().chain(inner).chain(ends(steepness.last())).collect();
        let pieces = pairs
            .into_iter()
            .zip(slopes.iter().copied().zip(slopes.iter().copied().skip(1)))
            .map(|((from, to), slopes)| Piece { from, to, slopes });
        Self { pieces: pieces.collect() }
    }

    /// Returns the value at a place: below all points that of the first, which is too large rather than too small, and
    /// `None` above all.
    fn at(&self, place: f64) -> Option<f64> {
        let first = self.pieces.first()?;
        if place <= first.from.0 {
            return Some(first.from.1);
        }
        self.pieces.iter().find(|piece| place <= piece.to.0).map(|piece| piece.at(place))
    }
}

impl Piece {
    /// Returns the value by the cubic Hermite form.
    fn at(&self, place: f64) -> f64 {
        let width = self.to.0 - self.from.0;
        let t = (place - self.from.0) / width;
        let (t2, t3) = (t * t, t * t * t);
        (2.0 * t3 - 3.0 * t2 + 1.0) * self.from.1
            + (t3 - 2.0 * t2 + t) * width * self.slopes.0
            + (3.0 * t2 - 2.0 * t3) * self.to.1
            + (t3 - t2) * width * self.slopes.1
    }
}

#[cfg(test)]
mod tests {
    use isobench_schema::plan::Look;

    use super::super::super::draws::Draws;
    use super::super::ideal::{Growing, Truth};
    use super::super::{Boundary, LookRule, looks};
    use super::*;

    const DEFAULT: [u32; 4] = [6, 10, 16, 24];

    /// Returns the levels of the boundary that spends an error.
    fn levels(spending: Spending, blocks: &[u32], error: f64) -> Vec<f64> {
        Boundary::spending(Sides::Two, spending, error, &Interim::schedule(blocks)).unwrap().levels()
    }

    #[test]
    fn a_p_at_a_level_of_a_boundary_is_its_error() {
        for &spending in Spending::ALL {
            let family = ErrorFamily::of(spending, &DEFAULT).unwrap();
            for error in [3e-6, 5e-4, 0.005, 0.018, 0.05, 0.07, 0.15, 0.3] {
                for (place, level) in levels(spending, &DEFAULT, error).into_iter().enumerate() {
                    let mut p = vec![1.0; place];
                    p.push(level);
                    let found = family.overall_p(&p);
                    // Near the least level of all a boundary spends other than asked, and the bound takes over.
                    if level < 300.0 * LEAST_LEVEL {
                        continue;
                    }
                    let near = if error < 0.001 { 0.03 } else { 0.01 };
                    assert!((found / error - 1.0).abs() < near, "{spending:?} {error} look {place}: {found}");
                }
            }
        }
    }

    #[test]
    fn a_larger_error_has_a_nearer_boundary_at_every_look() {
        let errors = [1e-7, 1e-5, 1e-3, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.45];
        for &spending in Spending::ALL {
            for blocks in [&DEFAULT[..], &[6, 12], &[6, 12, 18, 24], &[10, 20, 30]] {
                let all: Vec<Vec<f64>> = errors.iter().map(|&error| levels(spending, blocks, error)).collect();
                for (smaller, larger) in all.iter().zip(all.iter().skip(1)) {
                    assert!(smaller.iter().zip(larger).all(|(one, other)| one <= other), "{spending:?} {blocks:?}");
                }
            }
        }
    }

    /// Draws whole runs without a difference and returns their overall p; a run goes on after a crossing.
    fn drawn(spending: Spending, runs: u32, stop: impl Fn(usize, f64) -> bool) -> Vec<f64> {
        let family = ErrorFamily::of(spending, &DEFAULT).unwrap();
        let planned = looks(spending, &DEFAULT).unwrap();
        let rules: Vec<LookRule> = planned.iter().map(|look: &Look| LookRule::new(*look).unwrap()).collect();
        let mut draws = Draws::new(12);
        let one = |draws: &mut Draws| {
            let (mut sample, mut p) = (Growing::default(), Vec::new());
            for (place, rule) in rules.iter().enumerate() {
                sample.grow(rule.degrees_of_freedom + 1, Truth { effect: 0.0, deviation: 1.0 }, draws);
                p.push(rule.p(sample.mean, sample.standard_error()));
                if stop(place, family.overall_p(&p)) {
                    break;
                }
            }
            family.overall_p(&p)
        };
        (0..runs).map(|_| one(&mut draws)).collect()
    }

    fn share(p: &[f64], most: f64) -> f64 {
        super::super::super::length(p.iter().filter(|p| **p <= most).count()) / super::super::super::length(p.len())
    }

    #[test]
    fn without_a_difference_the_overall_p_is_uniform() {
        for &spending in Spending::ALL {
            let p = drawn(spending, 20_000, |_, _| false);
            for most in [0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85] {
                let error = (most * (1.0 - most) / 20_000.0_f64).sqrt();
                assert!((share(&p, most) - most).abs() < 4.0 * error, "{spending:?} {most}: {}", share(&p, most));
            }
        }
    }

    #[test]
    fn it_is_valid_whenever_a_run_stops() {
        // At the first look that decides, as soon as the p is small, and as soon as it looks bad.
        let rules: [fn(usize, f64) -> bool; 4] =
            [|_, p| p <= 0.05, |_, p| p <= 0.2, |_, p| p > 0.6, |look, _| look == 1];
        for stop in rules {
            let p = drawn(Spending::Even, 10_000, stop);
            for most in [0.01, 0.05, 0.1, 0.2, 0.5] {
                let error = (most * (1.0 - most) / 10_000.0_f64).sqrt();
                assert!(share(&p, most) < most + 4.0 * error, "{most}: {}", share(&p, most));
            }
        }
    }

    #[test]
    fn the_bound_is_never_below_and_needs_no_boundary() {
        for &spending in Spending::ALL {
            let family = ErrorFamily::of(spending, &DEFAULT).unwrap();
            let fractions = [0.25, 10.0 / 24.0, 2.0 / 3.0, 1.0];
            for p in [[0.5, 0.04, 0.03, 0.2], [0.001, 0.5, 0.5, 0.5], [0.9, 0.8, 0.01, 0.002], [0.2, 1e-5, 0.1, 0.1]] {
                let pairs: Vec<(f64, f64)> = fractions.into_iter().zip(p).collect();
                let (bound, exact) = (bounded_p(spending, &pairs), family.overall_p(&p));
                assert!(exact <= bound && (bound < 2.5 * exact || bound >= 1.0), "{spending:?} {p:?}: {exact} {bound}");
            }
        }
        // Evenly spent: a quarter of the error at the first look, a sixth at the second.
        let found = bounded_p(Spending::Even, &[(0.25, 0.005), (10.0 / 24.0, 0.001)]);
        assert!((found - 0.006).abs() < 1e-9, "{found}");
        assert!((bounded_p(Spending::Even, &[(1.0, 0.4)]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_smallest_p_are_bounded() {
        let family = ErrorFamily::of(Spending::Even, &DEFAULT).unwrap();
        let (small, smaller) = (family.overall_p(&[1e-9]), family.overall_p(&[1e-12]));
        assert!(small <= 1e-7 && smaller < small && (small / 4e-9 - 1.0).abs() < 1e-6, "{small} {smaller}");
        assert!(family.overall_p(&[0.0]) < 1e-200 && family.overall_p(&[1.0, 1.0]) >= 1.0);
        assert!(error_family(Spending::Even, &[2]).is_none());
    }
}
