//! Several tests at once.

use super::length;

/// Returns the p values adjusted by Holm's method (1979, Scandinavian Journal of Statistics 6:65), in the order given: to
/// call those at most α different keeps the probability of any false call at α, whatever the tests have to do with each
/// other. The j-th smallest of m is multiplied by m − j + 1, made no smaller than the one before it, and 1 at most.
///
/// `None` if one isn't between 0 and 1.
pub fn holm(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let (count, mut least) = (length(p.len()), 0.0_f64);
    let adjusted = order.iter().enumerate().map(|(rank, &(place, p))| {
        least = least.max(p * (count - length(rank))).min(1.0);
        (place, least)
    });
    Some(in_place(adjusted.collect()))
}

/// Returns the p values adjusted by Benjamini's and Hochberg's method (1995, JRSS B 57:289), in the order given: to call
/// those at most α different keeps the expected share of false calls among the calls at α, for tests that are independent
/// or positively dependent. The j-th smallest of m is multiplied by m/j, and made no larger than the one after it.
///
/// `None` if one isn't between 0 and 1.
pub fn benjamini_hochberg(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let (count, mut most) = (length(p.len()), 1.0_f64);
    let adjusted = order.iter().enumerate().rev().map(|(rank, &(place, p))| {
        most = most.min(p * count / (length(rank) + 1.0));
        (place, most)
    });
    Some(in_place(adjusted.collect()))
}

/// Returns the values with their places, smallest first.
fn ascending(p: &[f64]) -> Option<Vec<(usize, f64)>> {
    if !p.iter().all(|p| (0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<(usize, f64)> = p.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    Some(order)
}

fn in_place(mut adjusted: Vec<(usize, f64)>) -> Vec<f64> {
    adjusted.sort_by_key(|(place, _)| *place);
    adjusted.into_iter().map(|(_, p)| p).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: [f64; 8] = [0.01, 0.04, 0.03, 0.005, 0.04, 0.6, 0.0002, 0.045];

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
        }
    }

    #[test]
    fn adjusted_values_are_those_of_numpy_and_scipy() {
        // o = argsort(p); minimum(1, maximum.accumulate(p[o] * (8 - arange(8)))) in NumPy;
        // scipy.stats.false_discovery_control(p)
        near(&holm(&P).unwrap(), &[0.06, 0.16, 0.15, 0.035, 0.16, 0.6, 0.0016, 0.16]);
        near(
            &benjamini_hochberg(&P).unwrap(),
            &[8.0 / 300.0, 0.36 / 7.0, 0.36 / 7.0, 0.02, 0.36 / 7.0, 0.6, 0.0016, 0.36 / 7.0],
        );
    }

    #[test]
    fn few_and_odd_values() {
        near(&holm(&[]).unwrap(), &[]);
        near(&holm(&[0.03]).unwrap(), &[0.03]);
        near(&benjamini_hochberg(&[1.0, 0.0]).unwrap(), &[1.0, 0.0]);
        for odd in [-0.1, 1.1, f64::NAN] {
            assert_eq!((holm(&[0.5, odd]), benjamini_hochberg(&[0.5, odd])), (None, None));
        }
    }

    proptest! {
        #[test]
        fn adjusting_keeps_the_order_and_only_raises(p in prop::collection::vec(0.0_f64..=1.0, 1..30)) {
            let (holm, rate) = (holm(&p).unwrap(), benjamini_hochberg(&p).unwrap());
            for (one, p_one) in p.iter().enumerate() {
                prop_assert!(*p_one <= rate[one] + 1e-15 && rate[one] <= holm[one] + 1e-15 && holm[one] <= 1.0);
                for (other, p_other) in p.iter().enumerate() {
                    prop_assert!(p_one > p_other || (holm[one] <= holm[other] && rate[one] <= rate[other]));
                }
            }
        }
    }
}
