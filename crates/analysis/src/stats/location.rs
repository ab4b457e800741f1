//! Mean, spread and the Hodges–Lehmann estimate.

use super::length;

/// Returns the arithmetic mean, or `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / length(values.len()))
}

/// Returns the sample standard deviation (divisor n − 1), or `None` below two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 2).then(|| (squares / length(values.len() - 1)).sqrt())
}

/// Returns the Hodges–Lehmann estimate: the median of the means of all pairs, each value paired with itself too (Hodges
/// and Lehmann 1963, "Estimates of location based on rank tests"). `None` of nothing.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    let pairs = walsh_averages(values);
    let half = pairs.len() / 2;
    let upper = *pairs.get(half)?;
    if pairs.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(*pairs.get(half - 1)?, upper)) }
}

/// Returns the means of all pairs of values, each value paired with itself too, ascending (Walsh 1949).
pub(super) fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut pairs: Vec<f64> = values
        .iter()
        .enumerate()
        .flat_map(|(first, a)| values.iter().skip(first).map(move |b| f64::midpoint(*a, *b)))
        .collect();
    pairs.sort_by(f64::total_cmp);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::student::tests::{NEAR, NULL, STRONG};

    #[test]
    fn values_are_those_of_numpy() {
        // numpy.mean, numpy.std(ddof=1), numpy.median of the Walsh averages.
        for (data, expected) in [
            (STRONG, [0.203_333_333_333_333_34, 0.029_439_202_887_759_49, 0.2]),
            (NULL, [0.001, 0.007_596_991_885_890_475, 0.00125]),
        ] {
            let found = [mean(data), standard_deviation(data), hodges_lehmann(data)].map(Option::unwrap);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < NEAR, "{found} {expected}");
            }
        }
    }

    #[test]
    fn nothing_has_no_mean_and_one_value_no_spread() {
        assert_eq!((mean(&[]), hodges_lehmann(&[]), standard_deviation(&[1.0])), (None, None, None));
        assert_eq!(hodges_lehmann(&[3.0]), Some(3.0));
    }
}
