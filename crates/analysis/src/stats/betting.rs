//! Evidence that may be looked at any time: bets on the signs of block differences.

use std::f64::consts::LN_2;

/// How hard each bettor bets, in units of the size of differences; each bets on either sign.
const STRENGTHS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// Bets on the signs of differences that come one after the other.
///
/// If there is no difference, each sign is fair, given all sizes and the signs before (which dealing the arms' order at
/// random in each block sees to). A bettor of strength λ who has seen a difference's size |d|, but not its sign s, stakes
/// the part tanh(λ |d|/q) of its wealth on +, q being the root of the mean of all squares so far: its wealth is multiplied
/// by 1 + s tanh(λ |d|/q), which is 1 in the mean. (It is the likelihood ratio of tilting a symmetric distribution; de la
/// Peña 1999, Annals of Probability 27:537, for symmetric differences, and Waudby-Smith and Ramdas 2024, JRSS B 86:1,
/// for testing by betting.) The **evidence** is the mean wealth of bettors of all strengths on + and on −: a test
/// martingale that begins at 1, so that it ever reaches 1/α with a probability of at most α (Ville 1939). It needs no
/// plan of looks and no distribution, and takes more blocks than a [`super::sequential::Boundary`] for that.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SignBets {
    /// The logarithms of the wealths on + and on −, one pair for each strength.
    wealths: [(f64, f64); STRENGTHS.len()],
    squares: f64,
    count: f64,
    most: f64,
}

impl SignBets {
    /// Returns the bets on all of these differences in their order.
    pub fn on(differences: impl IntoIterator<Item = f64>) -> Self {
        let mut bets = Self::default();
        differences.into_iter().for_each(|difference| bets.add(difference));
        bets
    }

    /// Takes the next difference. One that is zero or isn't finite has no sign, and nothing was bet on it.
    pub fn add(&mut self, difference: f64) {
        if !difference.is_finite() || difference.abs() <= 0.0 {
            return;
        }
        self.squares += difference * difference;
        self.count += 1.0;
        let scaled = difference / (self.squares / self.count).sqrt();
        for ((up, down), strength) in self.wealths.iter_mut().zip(STRENGTHS) {
            *up += ln_return(strength * scaled);
            *down += ln_return(-strength * scaled);
        }
        self.most = self.most.max(self.ln_evidence());
    }

    /// Returns the natural logarithm of the evidence now.
    pub fn ln_evidence(&self) -> f64 {
        let all = || self.wealths.iter().flat_map(|(up, down)| [*up, *down]);
        let largest = all().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = all().map(|wealth| (wealth - largest).exp()).sum();
        largest + (sum / (2.0 * super::length(STRENGTHS.len()))).ln()
    }

    /// Returns the anytime p: 1 over the most evidence that there ever was, and 1 at most. However often it is looked at,
    /// it is ever below α with a probability of at most α if there is no difference.
    pub fn p(&self) -> f64 {
        (-self.most).exp()
    }
}

/// Returns ln(1 + tanh x), which is ln 2 − ln(1 + e^(−2x)).
fn ln_return(x: f64) -> f64 {
    // Below, e^(−2x) overflows long before the bet is worth anything.
    if x < -300.0 { LN_2 + 2.0 * x } else { LN_2 - (-2.0 * x).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::draws::Draws;
    use proptest::prelude::*;

    /// Returns the bets on every pattern of signs of these sizes.
    fn patterns(sizes: &[f64]) -> Vec<SignBets> {
        let signed =
            |pattern: u32| sizes.iter().enumerate().map(move |(i, d)| if pattern >> i & 1 == 0 { *d } else { -*d });
        (0..1_u32 << sizes.len()).map(|pattern| SignBets::on(signed(pattern))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn evidence_is_one_in_the_mean_over_all_patterns_of_signs(sizes in prop::collection::vec(1e-6_f64..10.0, 1..9)) {
            let all = patterns(&sizes);
            let mean = all.iter().map(|bets| bets.ln_evidence().exp()).sum::<f64>() / crate::stats::length(all.len());
            prop_assert!((mean - 1.0).abs() < 1e-9, "{mean}");
        }

        #[test]
        fn much_evidence_is_as_rare_as_promised(sizes in prop::collection::vec(1e-3_f64..3.0, 8..12)) {
            let all = patterns(&sizes);
            for level in [0.2, 0.05, 0.01] {
                let below = all.iter().filter(|bets| bets.p() <= level).count();
                prop_assert!(crate::stats::length(below) <= level * crate::stats::length(all.len()));
            }
        }

        #[test]
        fn neither_unit_nor_direction_matters(values in prop::collection::vec(-3.0_f64..3.0, 1..20), scale in 1e-6_f64..1e6) {
            let bets = SignBets::on(values.clone());
            for factor in [scale, -scale] {
                let other = SignBets::on(values.iter().map(|value| value * factor));
                prop_assert!((bets.ln_evidence() - other.ln_evidence()).abs() < 1e-9);
                prop_assert!((bets.p() - other.p()).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn evidence_is_that_of_numpy() {
        // q = sqrt(cumsum(d**2) / arange(1, n+1)); w = prod(1 + tanh(l * d / q)) for l in +-(0.25, 0.5, 1, 2, 4); mean(w)
        let differences = [0.03, 0.01, -0.004, 0.025, 0.018, 0.031, 0.007, 0.022];
        let bets = SignBets::on(differences);
        let (evidence, p) = NUMPY;
        assert!((bets.ln_evidence().exp() / evidence - 1.0).abs() < 1e-12, "{}", bets.ln_evidence().exp());
        assert!((bets.p() - p).abs() < 1e-12, "{}", bets.p());
    }

    const NUMPY: (f64, f64) = (12.456_481_099_724_849, 0.080_279_494_023_564_09);

    #[test]
    fn differences_without_a_sign_change_nothing() {
        let bets = SignBets::on([0.1, 0.0, f64::NAN, f64::INFINITY, 0.2]);
        assert_eq!(bets, SignBets::on([0.1, 0.2]));
        assert!((SignBets::default().p() - 1.0).abs() < f64::EPSILON);
        assert!(SignBets::default().ln_evidence().abs() < 1e-12);
    }

    #[test]
    fn clear_differences_are_found_and_evidence_never_becomes_a_number_that_is_none() {
        let all_up = SignBets::on((1..=8).map(|n| 0.02 + 0.001 * f64::from(n)));
        assert!(all_up.p() < 0.05, "{}", all_up.p());
        let long = SignBets::on(std::iter::repeat_n(1.0, 5_000));
        assert!(long.ln_evidence().is_finite() && long.p() < 1e-300, "{long:?}");
        assert!(SignBets::on([1e-200, 1e200, -1e200]).ln_evidence().is_finite());
    }

    #[test]
    fn an_effect_of_one_deviation_is_mostly_found_within_24_blocks() {
        let mut draws = Draws::new(3);
        let mut found = |effect: f64| {
            let runs = 2_000;
            let hits = (0..runs).filter(|_| SignBets::on((0..24).map(|_| effect + draws.normal())).p() <= 0.05).count();
            crate::stats::length(hits) / f64::from(runs)
        };
        let (none, one, two) = (found(0.0), found(1.0), found(2.0));
        assert!(none < 0.05 && one > 0.85 && two > 0.999, "{none} {one} {two}");
    }
}
