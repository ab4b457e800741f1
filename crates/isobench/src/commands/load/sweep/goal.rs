//! What a level must keep to count as sustained, such as `p99_ttft_ms<=500`.

use std::collections::BTreeMap;

use crate::exit::{CommandError, Exit};

/// Latencies, and what else is reported, by their names in a result.
const LATENCIES: [&str; 6] = ["ttft", "ttfc", "tpot", "itl", "icl", "e2el"];
const OTHERS: [&str; 10] = [
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "max_concurrent_requests",
    "duration",
    "request_throughput",
    "output_throughput",
    "total_token_throughput",
    "max_output_tokens_per_s",
];

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
    /// `percentiles` are those that are reported.
    pub(super) fn parse(text: &str, percentiles: &[f64]) -> Result<Self, CommandError> {
        let bounds = text.split("&&").flat_map(|part| part.split(',')).map(bound).collect::<Option<Vec<Bound>>>();
        let hint = "bound metrics by their names in the result, such as `p99_ttft_ms<=500 && mean_tpot_ms<50`";
        let refused = |message: String| CommandError::new(Exit::Usage, message).hint(hint);
        let bounds = bounds.ok_or_else(|| refused(format!("`{text}` is no goal of a sweep")))?;
        if let Some(bound) = bounds.iter().find(|bound| !is_known(&bound.metric, percentiles)) {
            let names: Vec<String> = percentiles.iter().map(|p| format!("p{p}")).collect();
            return Err(refused(format!(
                "`{}` in the goal of the sweep is no metric that is reported: those of latencies begin with mean, median, std or \
                 {} (`--percentiles`), end with _ms, and are of {}; others are {}",
                bound.metric,
                names.join(", "),
                LATENCIES.join(", "),
                OTHERS.join(", ")
            )));
        }
        Ok(Self(bounds))
    }

    /// Returns the first metric that wasn't measured, if one wasn't.
    pub(super) fn unmeasured(&self, metrics: &BTreeMap<String, f64>) -> Option<&str> {
        self.0.iter().map(|bound| bound.metric.as_str()).find(|metric| !metrics.contains_key(*metric))
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

/// Returns whether a result may have a metric of this name.
fn is_known(metric: &str, percentiles: &[f64]) -> bool {
    let of_latency = || {
        let (statistic, latency) = metric.strip_suffix("_ms")?.split_once('_')?;
        let is_percentile =
            |text: &str| text.parse::<f64>().is_ok_and(|p| percentiles.contains(&p) || p.total_cmp(&50.0).is_eq());
        let is_statistic =
            matches!(statistic, "mean" | "median" | "std") || statistic.strip_prefix('p').is_some_and(is_percentile);
        Some(is_statistic && LATENCIES.contains(&latency))
    };
    OTHERS.contains(&metric) || of_latency().unwrap_or(false)
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
        assert_eq!(Goal::parse(goal, &[90.0, 99.0]).unwrap().is_met(&metrics), expected, "{goal}");
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
        for text in [
            "",
            "fast",
            "p99_ttft_ms=5",
            "<5",
            "p99_ttft_ms<x",
            "p99_ttft_ms<inf",
            "nonsense<5",
            "p95_ttft_ms<5",
            "mean_foo_ms<5",
        ] {
            assert!(Goal::parse(text, &[50.0, 99.0]).is_err(), "{text}");
        }
    }
}
