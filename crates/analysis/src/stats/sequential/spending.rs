//! How much of the error probability may be used up by when.

use isobench_schema::plan::Spending;
use statrs::distribution::{ContinuousCDF as _, Normal};

/// Returns the part of `error` that is spent when `fraction`, from 0 to 1, of the most blocks is there.
pub(super) fn spent(spending: Spending, error: f64, fraction: f64) -> f64 {
    if fraction <= 0.0 {
        return 0.0;
    }
    if fraction >= 1.0 {
        return error;
    }
    match spending {
        Spending::Pocock => error * ((std::f64::consts::E - 1.0) * fraction).ln_1p(),
        Spending::Even => error * fraction,
        Spending::OBrienFleming => {
            let normal = Normal::standard();
            2.0 * normal.sf(normal.inverse_cdf(1.0 - error / 2.0) / fraction.sqrt())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_that_of_scipy() {
        // 0.05 * numpy.log1p((numpy.e - 1) * f); 2 * norm.sf(norm.ppf(0.975) / numpy.sqrt(f))
        for (fraction, pocock, obrien_fleming) in [
            (0.25, 0.017_868_700_975_439_425, 8.857_543_832_140_38e-5),
            (10.0 / 24.0, 0.026_998_365_354_906_045, 0.002_394_507_788_339_415_6),
            (2.0 / 3.0, 0.038_169_125_769_507_07, 0.016_374_666_450_048_207),
        ] {
            assert!((spent(Spending::Pocock, 0.05, fraction) / pocock - 1.0).abs() < 1e-9, "{fraction}");
            assert!((spent(Spending::OBrienFleming, 0.05, fraction) / obrien_fleming - 1.0).abs() < 1e-7, "{fraction}");
        }
    }

    #[test]
    fn everything_is_spent_at_the_end_and_never_given_back() {
        for &spending in Spending::ALL {
            let spent: Vec<f64> = (0..=24).map(|blocks| spent(spending, 0.05, f64::from(blocks) / 24.0)).collect();
            assert!(spent.is_sorted(), "{spent:?}");
            assert!(spent[0].abs() < f64::EPSILON && (spent[24] - 0.05).abs() < f64::EPSILON, "{spent:?}");
        }
    }
}
