//! What two servers differ by, in sentences and rows for any page.

use isobench_schema::load_checks::{Difference, PairedMetric};
use isobench_schema::load_result::Paired;

use super::checks::change;
use super::rows::LATENCIES;
use crate::number::counted;
use crate::text::clean;

/// Returns a difference with its interval in percent.
pub(crate) fn difference(found: &Difference) -> String {
    let part = |value: f64| change(value).trim_end_matches(" %").to_owned();
    let around = found
        .interval
        .map_or_else(|| "[unknown]".to_owned(), |bounds| format!("[{}, {}]", part(bounds.low), part(bounds.high)));
    format!("{} {around}", change(found.change))
}

/// One metric of paired mode.
pub(crate) struct PairedRow<'r> {
    pub(crate) metric: &'r str,
    /// Its values at both servers, of the mean for a latency.
    pub(crate) values: [Option<f64>; 2],
    pub(crate) found: &'r PairedMetric,
}

impl PairedRow<'_> {
    /// Returns the change where nothing says how far it is known: of what was compared, else of the values.
    pub(crate) fn bare_change(&self) -> Option<f64> {
        let of_pairs = match self.found {
            PairedMetric::TooFew { change, .. } | PairedMetric::TooFewSlices { change, .. } => *change,
            PairedMetric::Compared { .. } | PairedMetric::Fixed { .. } => None,
        };
        of_pairs.or_else(|| self.ratio())
    }

    /// Returns by how much the second value is more than the first.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let [first, second] = self.values;
        ratio(first?, second?)
    }
}

/// Returns how much more the second value is than the first.
fn ratio(first: f64, second: f64) -> Option<f64> {
    Some(second / first - 1.0).filter(|change| first > 0.0 && change.is_finite())
}

/// A number of both servers.
pub(crate) struct BothRow {
    pub(crate) name: String,
    pub(crate) values: [Option<f64>; 2],
    pub(crate) change: Option<f64>,
}

/// Returns the numbers of both servers beside those that are compared: counts, then median and 99th percentile of latencies.
pub(crate) fn both_rows(paired: &Paired) -> Vec<BothRow> {
    let counts = ["completed", "failed"].map(str::to_owned).into_iter();
    let latencies = LATENCIES.iter().flat_map(|(short, _)| {
        let is_told = is_told(paired, short);
        ["median", "p99"].into_iter().filter(move |_| is_told).map(move |statistic| format!("{statistic}_{short}_ms"))
    });
    let row = |name: String| {
        let values = paired.metrics.each_ref().map(|of| of.get(&name).copied());
        let change = match values {
            [Some(first), Some(second)] if name.ends_with("_ms") => ratio(first, second),
            _ => None,
        };
        values.iter().any(Option::is_some).then_some(BothRow { name, values, change })
    };
    counts.chain(latencies).filter_map(row).collect()
}

/// Returns whether a metric is shown: content and chunks aren't where they say the same as tokens.
fn is_told(paired: &Paired, name: &str) -> bool {
    let found = |name: &str| paired.checks.metrics.get(name);
    let is_same = |other: &str| found(name).is_some() && found(name) == found(other);
    !(name == "ttfc" && is_same("ttft") || name == "icl" && is_same("itl"))
}

/// Returns whether a difference has no interval because neighbouring slices of time depend on each other.
pub(crate) fn is_dependent(found: &PairedMetric) -> bool {
    match found {
        PairedMetric::Compared { by_time, by_pair, .. } => {
            std::iter::once(by_time).chain(by_pair).any(|found| found.interval.is_none())
        }
        PairedMetric::TooFew { .. } | PairedMetric::TooFewSlices { .. } | PairedMetric::Fixed { .. } => false,
    }
}

/// Returns why metrics weren't compared, each reason with the metrics that it is of.
pub(crate) fn reasons(rows: &[PairedRow<'_>]) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (name, why) in rows.iter().filter_map(|row| Some((clean(row.metric), not_compared(row.found)?))) {
        match found.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => found.push((why, vec![name])),
        }
    }
    found.into_iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect()
}

/// Returns why a metric wasn't compared; `None` if it was.
pub(crate) fn not_compared(found: &PairedMetric) -> Option<String> {
    match found {
        PairedMetric::TooFew { pairs, needed, .. } => {
            Some(format!("no interval: {pairs} requests were answered by both, and {needed} are needed"))
        }
        PairedMetric::TooFewSlices { slices, needed, .. } => Some(format!(
            "no interval: the load has {} of time, and {needed} are needed: send more requests, and not at once",
            counted(*slices, "slice"),
        )),
        PairedMetric::Fixed { reason } => Some(format!("not compared: {}", clean(reason))),
        PairedMetric::Compared { .. } => None,
    }
}

/// Returns what was compared: throughputs, then latencies in the order of a page. Content and chunks are left out where they
/// say the same as tokens.
pub(crate) fn paired_rows(paired: &Paired) -> Vec<PairedRow<'_>> {
    let values = |name: &str| {
        let mean = format!("mean_{name}_ms");
        paired.metrics.each_ref().map(|of| of.get(name).or_else(|| of.get(&mean)).copied())
    };
    let mut rows: Vec<PairedRow<'_>> = paired
        .checks
        .metrics
        .iter()
        .map(|(name, found)| PairedRow { metric: name, values: values(name), found })
        .filter(|row| is_told(paired, row.metric))
        .collect();
    rows.sort_by_key(|row| LATENCIES.iter().position(|(name, _)| *name == row.metric));
    rows
}
