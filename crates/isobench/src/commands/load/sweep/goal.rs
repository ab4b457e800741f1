//! What a level must keep to count as sustained, such as `p99_ttft_ms<=500`.

use std::collections::BTreeMap;

use crate::exit::{CommandError, Exit};

/// Bounds on metrics, all of which must hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Goal(Vec<Bound>);

#[derive(Debug, Clone, PartialEq)]
struct Bound {
    metric: String,
    is_upper: bool,
    is_strict: bool,
    value: f64,
}

impl Goal {
    /// Reads bounds that `&&` or commas join.
    ///
    /// # Errors
    /// Returns an error that shows the bound which isn't one.
    pub(super) fn parse(text: &str) -> Result<Self, CommandError> {
        let bounds = text.split("&&").flat_map(|part| part.split(',')).map(bound).collect::<Option<Vec<Bound>>>();
        bounds.map(Self).ok_or_else(|| {
            let message = format!("`{text}` is no goal of a sweep");
            CommandError::new(Exit::Usage, message)
                .hint("bound metrics by their names in the result, such as `p99_ttft_ms<=500 && mean_tpot_ms<50`")
        })
    }

    /// Returns whether every bound holds; `None` if one is of a metric that wasn't measured, such as a percentile that there
    /// were too few requests for.
    pub(super) fn is_met(&self, metrics: &BTreeMap<String, f64>) -> Option<bool> {
        self.0.iter().try_fold(true, |all, bound| {
            let found = metrics.get(&bound.metric)?;
            let holds = match (bound.is_upper, bound.is_strict) {
                (true, true) => *found < bound.value,
                (true, false) => *found <= bound.value,
                (false, true) => *found > bound.value,
                (false, false) => *found >= bound.value,
            };
            Some(all && holds)
        })
    }
}

fn bound(text: &str) -> Option<Bound> {
    let at = text.find(['<', '>'])?;
    let (metric, rest) = text.split_at(at);
    let is_upper = rest.starts_with('<');
    let rest = rest.get(1..)?;
    let (is_strict, value) = rest.strip_prefix('=').map_or((true, rest), |value| (false, value));
    let metric = metric.trim();
    let is_name = !metric.is_empty() && metric.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    let value = value.trim().parse::<f64>().ok().filter(|value| value.is_finite() && is_name)?;
    Some(Bound { metric: metric.to_owned(), is_upper, is_strict, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(goal: &str, expected: Option<bool>) {
        let metrics = [("p99_ttft_ms".to_owned(), 500.0), ("output_throughput".to_owned(), 90.0)].into();
        assert_eq!(Goal::parse(goal).unwrap().is_met(&metrics), expected, "{goal}");
    }

    #[test]
    fn every_bound_must_hold() {
        check("p99_ttft_ms<=500", Some(true));
        check("p99_ttft_ms<500", Some(false));
        check("p99_ttft_ms <= 500 && output_throughput > 80", Some(true));
        check("p99_ttft_ms<=500,output_throughput>=91", Some(false));
        check("p99_tpot_ms<1", None);
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        for text in ["", "fast", "p99_ttft_ms=5", "<5", "p99_ttft_ms<x", "p99_ttft_ms<inf"] {
            assert!(Goal::parse(text).is_err(), "{text}");
        }
    }
}
