//! What a look says of a contrast by its numbers alone.

use isobench_schema::plan::Look;

use super::chain::{angle_of, two_tails};

/// What the numbers of a look decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Significant, and the estimate is at least the margin above zero.
    Better,
    /// Significant, and the estimate is at least the margin below zero.
    Worse,
    /// Significant, and equivalent.
    Trivial,
    /// Equivalent.
    Equivalent,
}

/// The rule of a look, ready to be applied to many samples: its levels as bounds on t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LookRule {
    /// The degrees of freedom of the spread: differences less one.
    pub degrees_of_freedom: u32,
    /// A difference is significant if |mean| is above so many standard errors.
    pub critical: f64,
    /// It is equivalent if |mean| and so many standard errors together are below the margin.
    pub equivalence: f64,
}

impl LookRule {
    /// Returns the rule of a look, or `None` below two differences or if a level isn't one: the level of the difference
    /// must lie between 0 and 1, that of equivalence between 0 and 0.5.
    pub fn new(look: Look) -> Option<Self> {
        Self::with_degrees(look, look.blocks.checked_sub(1)?)
    }

    /// Returns the rule of a look for an estimate with fewer degrees of freedom than a plain mean has, because more was
    /// fitted. `None` as for [`Self::new`].
    pub fn with_degrees(look: Look, degrees_of_freedom: u32) -> Option<Self> {
        let is_within = |level: f64, most: f64| level > 0.0 && level < most;
        if degrees_of_freedom < 1 || !is_within(look.level, 1.0) || !is_within(look.equivalence_level, 0.5) {
            return None;
        }
        let bound = |two_sided: f64| {
            f64::from(degrees_of_freedom).sqrt() * angle_of(two_sided, degrees_of_freedom.saturating_add(1)).tan()
        };
        Some(Self { degrees_of_freedom, critical: bound(look.level), equivalence: bound(2.0 * look.equivalence_level) })
    }

    /// Returns what is decided by a mean and its standard error, with the margin on the same scale; `None` is
    /// inconclusive.
    pub fn decide(&self, mean: f64, standard_error: f64, margin: f64) -> Option<Decision> {
        let is_significant = mean.abs() > self.critical * standard_error;
        let is_equivalent = mean.abs() + self.equivalence * standard_error < margin;
        match (is_significant, is_equivalent) {
            (true, _) if mean >= margin => Some(Decision::Better),
            (true, _) if mean <= -margin => Some(Decision::Worse),
            (true, true) => Some(Decision::Trivial),
            (false, true) => Some(Decision::Equivalent),
            (true | false, false) => None,
        }
    }

    /// Returns the two-sided p of a mean and its standard error. Without any spread it is 0, or 1 if the mean is zero.
    pub fn p(&self, mean: f64, standard_error: f64) -> f64 {
        if standard_error <= 0.0 && mean.abs() <= 0.0 {
            return 1.0;
        }
        let angle = mean.abs().atan2(standard_error * f64::from(self.degrees_of_freedom).sqrt());
        two_tails(angle, self.degrees_of_freedom.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{OneSample, t_quantile, two_sided_p};

    const LOOK: Look = Look { blocks: 10, level: 0.013, equivalence_level: 0.02 };

    #[test]
    fn its_bounds_are_quantiles_of_t() {
        let rule = LookRule::new(LOOK).unwrap();
        assert!((rule.critical - t_quantile(1.0 - 0.0065, 9.0).unwrap()).abs() < 1e-9, "{rule:?}");
        assert!((rule.equivalence - t_quantile(0.98, 9.0).unwrap()).abs() < 1e-9, "{rule:?}");
        // scipy.stats.t.isf(5e-13, 9)
        let far = LookRule::new(Look { level: 1e-12, ..LOOK }).unwrap();
        assert!((two_sided_p(far.critical, 9.0).unwrap() / 1e-12 - 1.0).abs() < 1e-9, "{far:?}");
        for (level, equivalence_level) in [(0.0, 0.05), (1.0, 0.05), (0.05, 0.0), (0.05, 0.5), (f64::NAN, 0.05)] {
            assert_eq!(LookRule::new(Look { blocks: 6, level, equivalence_level }), None);
        }
    }

    #[test]
    fn it_decides_as_the_tests_on_the_sample_do() {
        let rule = LookRule::new(LOOK).unwrap();
        let margin = 0.02_f64.ln_1p();
        let shapes = [0.9, -1.2, 0.3, 1.4, -0.4, -1.6, 0.6, 0.8, -0.2, -0.6];
        let mut seen = Vec::new();
        for (mean, spread) in
            [(0.05, 0.02), (-0.05, 0.02), (0.01, 0.005), (0.001, 0.01), (0.01, 0.05), (0.03, 0.08), (0.021, 0.05)]
        {
            let values: Vec<f64> = shapes.iter().map(|shape| mean + spread * shape).collect();
            let sample = OneSample::of(&values).unwrap();
            let p = sample.p().unwrap();
            assert!((rule.p(sample.mean, sample.standard_error()) - p).abs() < 1e-12);
            let decision = rule.decide(sample.mean, sample.standard_error(), margin);
            let significant = p < LOOK.level;
            let equivalent = sample.interval(2.0 * LOOK.equivalence_level).unwrap().is_within(margin);
            let expected = if significant && sample.mean.abs() >= margin {
                Some(if sample.mean > 0.0 { Decision::Better } else { Decision::Worse })
            } else if equivalent {
                Some(if significant { Decision::Trivial } else { Decision::Equivalent })
            } else {
                None
            };
            assert_eq!(decision, expected, "{mean} {spread}");
            seen.push(decision);
        }
        for wanted in [Decision::Better, Decision::Worse, Decision::Trivial, Decision::Equivalent] {
            assert!(seen.contains(&Some(wanted)), "{seen:?}");
        }
        assert!(seen.contains(&None));
    }

    #[test]
    fn without_spread_the_mean_alone_decides() {
        let rule = LookRule::new(LOOK).unwrap();
        assert_eq!(rule.decide(0.1, 0.0, 0.02), Some(Decision::Better));
        assert_eq!(rule.decide(0.01, 0.0, 0.02), Some(Decision::Trivial));
        assert_eq!(rule.decide(0.0, 0.0, 0.02), Some(Decision::Equivalent));
        assert!(rule.p(0.1, 0.0) < 1e-60 && (rule.p(0.0, 0.0) - 1.0).abs() < f64::EPSILON);
    }
}
