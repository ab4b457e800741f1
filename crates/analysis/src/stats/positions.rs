//! The difference between two arms freed from where in a block they were launched.

use super::{Interval, length, t_quantile, two_sided_p};

/// The difference of one block, with the positions of both arms from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placed {
    /// The difference.
    pub difference: f64,
    /// The position of the arm that is asked about.
    pub of: usize,
    /// The position of the arm that it is compared with.
    pub against: usize,
}

/// A mean difference with what is needed to test it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjusted {
    /// The mean, as it would be if both arms had stood equally often at each position.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The degrees of freedom: differences less what was fitted.
    pub degrees_of_freedom: f64,
}

impl Adjusted {
    /// Returns Student's two-sided p of the mean being zero. Without any spread it is 0, or 1 if the mean is zero.
    pub fn p(&self) -> Option<f64> {
        if self.standard_error <= 0.0 {
            return Some(if self.mean.abs() <= 0.0 { 1.0 } else { 0.0 });
        }
        two_sided_p(self.mean / self.standard_error, self.degrees_of_freedom)
    }

    /// Returns the interval that covers the mean with probability 1 − `level`; `level` lies between 0 and 1.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let half = t_quantile(1.0 - level / 2.0, self.degrees_of_freedom)? * self.standard_error;
        Some(Interval { low: self.mean - half, high: self.mean + half })
    }
}

/// Returns the mean difference by the **position model**: each difference is the mean, plus the effect of the position of
/// the one arm, less that of the other, plus noise, fitted by least squares (Jones and Kenward 2014, Design and Analysis
/// of Cross-Over Trials, section 5.3: period effects of a cross-over). Where every position was taken equally often by
/// both arms the mean is the plain one, and only the standard error changes.
///
/// `None` if a position is out of range, a value isn't finite, there are no more differences than things to fit, or the
/// orders can't tell mean and positions apart, as where one arm always went first.
pub fn position_model(differences: &[Placed], positions: usize) -> Option<Adjusted> {
    let rows: Vec<(Vec<f64>, f64)> = differences
        .iter()
        .map(|placed| row(*placed, positions).map(|row| (row, placed.difference)))
        .collect::<Option<_>>()?;
    let fitted = positions.max(1);
    let degrees_of_freedom = length(rows.len().checked_sub(fitted).filter(|left| *left > 0)?);
    // The normal equations with the unit vector of the mean beside them: solving gives the estimates, and the mean's own
    // entry of the inverse.
    let mut equations: Vec<Vec<f64>> = (0..fitted)
        .map(|one| {
            let products =
                (0..fitted).map(|other| rows.iter().map(|(row, _)| at(row, one) * at(row, other)).sum::<f64>());
            let target: f64 = rows.iter().map(|(row, difference)| at(row, one) * difference).sum();
            products.chain([target, if one == 0 { 1.0 } else { 0.0 }]).collect()
        })
        .collect();
    solve(&mut equations)?;
    let estimates: Vec<f64> = equations.iter().map(|equation| at(equation, fitted)).collect();
    let share = equations.first().map(|equation| at(equation, fitted + 1))?;
    let residual = |(row, difference): &(Vec<f64>, f64)| {
        difference - row.iter().zip(&estimates).map(|(value, estimate)| value * estimate).sum::<f64>()
    };
    let variance = rows.iter().map(|row| residual(row).powi(2)).sum::<f64>() / degrees_of_freedom;
    let adjusted =
        Adjusted { mean: at(&estimates, 0), standard_error: (variance * share).max(0.0).sqrt(), degrees_of_freedom };
    (adjusted.mean.is_finite() && adjusted.standard_error.is_finite()).then_some(adjusted)
}

/// Returns the row of the model's matrix: the mean, and the effect of each position but the last, which is minus the sum of
/// the others.
fn row(placed: Placed, positions: usize) -> Option<Vec<f64>> {
    if placed.of >= positions || placed.against >= positions || !placed.difference.is_finite() {
        return None;
    }
    let is_at = |position: usize, place: usize| if position == place { 1.0 } else { 0.0 };
    let effect = |position: usize| is_at(position, placed.of) - is_at(position, placed.against);
    let last = effect(positions - 1);
    Some(std::iter::once(1.0).chain((0..positions - 1).map(|position| effect(position) - last)).collect())
}

fn at(row: &[f64], place: usize) -> f64 {
    row.get(place).copied().unwrap_or(0.0)
}

/// Turns the left square of the equations into the unit matrix, by Gauss' and Jordan's elimination with pivots. `None` if
/// it is singular.
fn solve(equations: &mut [Vec<f64>]) -> Option<()> {
    for column in 0..equations.len() {
        let pivot = (column..equations.len()).max_by(|one, other| {
            let size = |row: &usize| equations.get(*row).map_or(0.0, |row| at(row, column).abs());
            size(one).total_cmp(&size(other))
        })?;
        equations.swap(column, pivot);
        let leader = equations.get(column)?.clone();
        let scale = at(&leader, column);
        // Entries are sums of small whole numbers: what is singular comes out as zero up to rounding.
        if scale.abs() < 1e-9 {
            return None;
        }
        let leader: Vec<f64> = leader.iter().map(|value| value / scale).collect();
        for (number, equation) in equations.iter_mut().enumerate() {
            let factor = if number == column { 0.0 } else { at(equation, column) };
            if number == column {
                equation.clone_from(&leader);
            }
            for (value, led) in equation.iter_mut().zip(&leader) {
                *value -= factor * led;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::OneSample;
    use proptest::prelude::*;

    fn placed(rows: &[(f64, usize, usize)]) -> Vec<Placed> {
        rows.iter().map(|&(difference, of, against)| Placed { difference, of, against }).collect()
    }

    #[test]
    fn the_fit_is_that_of_numpy() {
        // A = rows of [1, (0 == of) - (0 == against) - last, (1 == of) - (1 == against) - last], last = (2 == of) - (2 ==
        // against); b, r = numpy.linalg.lstsq(A, d)[:2]; b[0]; sqrt(r/(n-3) * inv(A.T @ A)[0, 0]); 2*t.sf(b[0]/se, n-3)
        let found = position_model(&placed(&THREE), 3).unwrap();
        let (mean, error, p) = NUMPY;
        assert!((found.mean - mean).abs() < 1e-12 && (found.standard_error - error).abs() < 1e-12, "{found:?}");
        assert!((found.p().unwrap() - p).abs() < 1e-10 && (found.degrees_of_freedom - 6.0).abs() < 1e-12, "{found:?}");
    }

    const THREE: [(f64, usize, usize); 9] = [
        (0.031, 0, 1),
        (0.012, 1, 2),
        (0.044, 2, 0),
        (0.027, 1, 0),
        (0.019, 0, 2),
        (0.035, 2, 1),
        (0.022, 0, 1),
        (0.008, 1, 2),
        (0.039, 2, 0),
    ];
    const NUMPY: (f64, f64, f64) = (0.026_333_333_333_333_327, 0.001_629_208_699_846_130_5, 3.566_445_694_496_997e-6);

    #[test]
    fn a_penalty_of_a_position_is_taken_out() {
        // A true difference of 0.03 and a penalty of 0.1 for the second place, in three blocks AB and one BA.
        let noise = [0.001, -0.002, 0.002, -0.001];
        let rows: Vec<(f64, usize, usize)> = [(0, 1), (0, 1), (1, 0), (0, 1)]
            .into_iter()
            .zip(noise)
            .map(|((of, against), noise)| (0.03 + if of == 0 { 0.1 } else { -0.1 } + noise, of, against))
            .collect();
        let found = position_model(&placed(&rows), 2).unwrap();
        assert!((found.mean - 0.03).abs() < 0.003 && found.standard_error < 0.003, "{found:?}");
        let plain: Vec<f64> = rows.iter().map(|row| row.0).collect();
        assert!(OneSample::of(&plain).unwrap().mean > 0.07);
        let interval = found.interval(0.05).unwrap();
        assert!(interval.low < 0.03 && interval.high > 0.03);
    }

    proptest! {
        #[test]
        fn balanced_orders_leave_the_mean_as_it_is(values in prop::collection::vec(-1.0_f64..1.0, 12)) {
            let orders = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
            let rows: Vec<(f64, usize, usize)> =
                values.iter().zip(orders.iter().cycle()).map(|(value, (of, against))| (*value, *of, *against)).collect();
            let found = position_model(&placed(&rows), 3).unwrap();
            prop_assert!((found.mean - OneSample::of(&values).unwrap().mean).abs() < 1e-12);
        }
    }

    #[test]
    fn what_orders_cannot_tell_apart_is_not_told() {
        assert_eq!(position_model(&placed(&[(0.1, 0, 1), (0.2, 0, 1), (0.3, 0, 1)]), 2), None);
        assert_eq!(position_model(&placed(&[(0.1, 0, 1), (0.2, 1, 0)]), 2), None);
        assert_eq!(position_model(&placed(&[(0.1, 0, 2), (0.2, 1, 0), (0.1, 0, 1)]), 2), None);
        assert_eq!(position_model(&placed(&[(f64::NAN, 0, 1), (0.2, 1, 0), (0.1, 0, 1)]), 2), None);
        assert_eq!(position_model(&[], 2), None);
    }
}
