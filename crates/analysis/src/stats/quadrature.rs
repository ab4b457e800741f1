//! Gauss–Legendre quadrature, and smooth functions kept as Chebyshev polynomials.

use std::f64::consts::PI;

use super::length;

/// Points in (−1, 1) with their weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule(Vec<(f64, f64)>);

impl Rule {
    /// Returns the Gauss–Legendre rule of `points` points: the roots x of the Legendre polynomial P of that degree with
    /// the weights 2/((1 − x²) P′(x)²) (Abramowitz and Stegun 25.4.29), found by Newton's method.
    pub(super) fn new(points: u32) -> Self {
        let node = |index: u32| {
            let mut root = (PI * (f64::from(index) - 0.25) / (f64::from(points) + 0.5)).cos();
            for _ in 0..6 {
                let (value, slope) = legendre(points, root);
                root -= value / slope;
            }
            let (_, slope) = legendre(points, root);
            (root, 2.0 / ((1.0 - root * root) * slope * slope))
        };
        Self((1..=points).map(node).collect())
    }

    /// Returns the rule after the substitution x = (3w − w³)/2, whose slope is zero at both ends: an integrand with a
    /// square root at an end of the range becomes a smooth one.
    pub(super) fn gentle(points: u32) -> Self {
        let Self(plain) = Self::new(points);
        Self(plain.into_iter().map(|(w, weight)| (bend(w), weight * bend_slope(w))).collect())
    }

    /// Returns the integral of `integrand` from `low` to `high`.
    pub(super) fn integrate(&self, low: f64, high: f64, mut integrand: impl FnMut(f64) -> f64) -> f64 {
        let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
        half * self.0.iter().map(|(node, weight)| weight * integrand(middle + half * node)).sum::<f64>()
    }
}

/// Returns (3w − w³)/2, which maps −1 to 1 onto itself with a slope of zero at both ends.
pub(super) fn bend(w: f64) -> f64 {
    w * (3.0 - w * w) / 2.0
}

/// Returns the slope of [`bend`].
pub(super) fn bend_slope(w: f64) -> f64 {
    1.5 * (1.0 - w * w)
}

/// Returns the inverse of [`bend`] on −1 to 1: with w = 2 sin α, (3w − w³)/2 is sin 3α.
pub(super) fn unbend(x: f64) -> f64 {
    2.0 * (x.clamp(-1.0, 1.0).asin() / 3.0).sin()
}

/// Returns the value and the slope of the Legendre polynomial of a degree inside (−1, 1), by its recurrence (Abramowitz
/// and Stegun 22.7.10 and 22.8.5).
fn legendre(degree: u32, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (0.0, 1.0);
    for step in 0..degree {
        let step = f64::from(step);
        (before, value) = (value, ((2.0 * step + 1.0) * x * value - step * before) / (step + 1.0));
    }
    (value, f64::from(degree) * (x * value - before) / (x * x - 1.0))
}

/// A smooth function over a range, as the Chebyshev polynomial through its values at the Chebyshev points of the range.
/// Beyond its ends it keeps the value that it has there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    middle: f64,
    half: f64,
    coefficients: Vec<f64>,
}

impl Curve {
    /// Returns the function that has one value everywhere.
    pub(super) fn constant(value: f64) -> Self {
        Self { middle: 0.0, half: 1.0, coefficients: vec![value] }
    }

    /// Returns the polynomial through `points` values of `function` between `low` and `high`.
    pub(super) fn through(low: f64, high: f64, points: usize, function: impl Fn(f64) -> f64) -> Self {
        let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
        let values: Vec<f64> = angles(points).map(|angle| function(middle + half * angle.cos())).collect();
        Self { middle, half, coefficients: transformed(&values) }
    }

    /// Returns the same for a function that is symmetric about zero, from −`high` to `high`, asking for half as many
    /// values.
    pub(super) fn symmetric(high: f64, points: usize, function: impl Fn(f64) -> f64) -> Self {
        let mut values: Vec<f64> =
            angles(points).take(points.div_ceil(2)).map(|angle| function(high * angle.cos())).collect();
        let mirrored: Vec<f64> = values.iter().take(points / 2).rev().copied().collect();
        values.extend(mirrored);
        Self { middle: 0.0, half: high, coefficients: transformed(&values) }
    }

    /// Returns the value at `place`, by Clenshaw's recurrence.
    pub(super) fn at(&self, place: f64) -> f64 {
        let x = ((place - self.middle) / self.half).clamp(-1.0, 1.0);
        let Some((first, rest)) = self.coefficients.split_first() else { return 0.0 };
        let (mut one, mut two) = (0.0, 0.0);
        for coefficient in rest.iter().rev() {
            (one, two) = (2.0 * x * one - two + coefficient, one);
        }
        x * one - two + first
    }
}

/// Returns the angles whose cosines are the Chebyshev points, from the last point of the range to the first.
fn angles(points: usize) -> impl Iterator<Item = f64> {
    let count = length(points);
    (0..points).map(move |index| PI * (length(index) + 0.5) / count)
}

/// Returns the coefficients of the Chebyshev polynomials from the values at the points (a discrete cosine transform).
fn transformed(values: &[f64]) -> Vec<f64> {
    let points = values.len();
    let coefficient = |degree: usize| {
        let terms = values.iter().zip(angles(points)).map(|(value, angle)| value * (length(degree) * angle).cos());
        let scale = if degree == 0 { 1.0 } else { 2.0 };
        scale * terms.sum::<f64>() / length(points)
    };
    (0..points).map(coefficient).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_exact_for_polynomials_up_to_twice_its_points() {
        let rule = Rule::new(5);
        for power in 0..10 {
            let expected = if power % 2 == 0 { 2.0 / (f64::from(power) + 1.0) } else { 0.0 };
            let found = rule.integrate(-1.0, 1.0, |x| x.powi(power));
            assert!((found - expected).abs() < 1e-14, "{power}: {found}");
        }
        // numpy.polynomial.legendre.leggauss(3)
        let Rule(nodes) = Rule::new(3);
        for ((node, weight), expected) in nodes.iter().zip([
            (0.774_596_669_241_483_4, 5.0 / 9.0),
            (0.0, 8.0 / 9.0),
            (-0.774_596_669_241_483_4, 5.0 / 9.0),
        ]) {
            assert!((node - expected.0).abs() < 1e-15 && (weight - expected.1).abs() < 1e-14, "{node} {weight}");
        }
    }

    #[test]
    fn a_square_root_at_an_end_is_no_trouble_for_the_gentle_rule() {
        let found = Rule::gentle(24).integrate(0.0, 4.0, f64::sqrt);
        assert!((found - 16.0 / 3.0).abs() < 1e-12, "{found}");
        for x in [-1.0, -0.3, 0.0, 0.5, 1.0] {
            assert!((unbend(bend(x)) - x).abs() < 1e-7, "{x}");
        }
    }

    #[test]
    fn a_curve_follows_the_function_that_it_was_drawn_through() {
        let bump = |x: f64| 1.0 / (1.0 + x * x);
        let (any, even) = (Curve::through(-1.5, 1.0, 40, bump), Curve::symmetric(1.5, 40, bump));
        for step in 0..=50 {
            let x = -1.5 + f64::from(step) * 0.05;
            assert!((any.at(x) - bump(x)).abs() < 1e-10, "{x}");
            assert!((even.at(x) - bump(x)).abs() < 1e-10, "{x}");
        }
        assert!((any.at(7.0) - bump(1.0)).abs() < 1e-10);
        assert!((Curve::constant(0.25).at(3.0) - 0.25).abs() < f64::EPSILON);
        let odd = Curve::symmetric(2.0, 9, |x| x * x);
        assert!((odd.at(-1.3) - 1.69).abs() < 1e-13);
    }
}
