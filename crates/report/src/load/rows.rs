//! The numbers of a load in one order: counts, throughputs, then each latency by mean, median, spread and percentiles.

use isobench_schema::load_result::{LoadInterval, LoadResult};

/// Latencies by their names in metrics, in the order of a page, with their names for people.
pub(crate) const LATENCIES: [(&str, &str); 6] = [
    ("ttft", "time to first token"),
    ("ttfc", "time to first content"),
    ("tpot", "time per output token"),
    ("itl", "inter-token latency"),
    ("icl", "inter-chunk latency"),
    ("e2el", "end-to-end latency"),
];

/// Numbers that are no latency, in the order of a page, with their units.
const OTHERS: [(&str, &str); 10] = [
    ("completed", "requests"),
    ("failed", "requests"),
    ("duration", "s"),
    ("total_input_tokens", "tokens"),
    ("total_output_tokens", "tokens"),
    ("max_concurrent_requests", "requests"),
    ("request_throughput", "req/s"),
    ("output_throughput", "tok/s"),
    ("total_token_throughput", "tok/s"),
    ("max_output_tokens_per_s", "tok/s"),
];

/// One number of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRow {
    /// Its name, which is vLLM's where it has one.
    pub name: String,
    /// Its unit; empty if it isn't known.
    pub unit: &'static str,
    /// It; absent if there were too few requests for it.
    pub value: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<LoadInterval>,
    /// The same from the moment when the request was sent, where that differs in meaning.
    pub from_send: Option<f64>,
}

/// The name of a latency's number, taken apart.
pub(crate) struct LatencyName<'n> {
    /// `mean`, `median`, `std` or a percentile.
    pub(crate) statistic: &'n str,
    /// The place of the latency in [`LATENCIES`].
    pub(crate) latency: usize,
}

/// Takes the name of a latency's number apart, such as `p99_ttft_ms`.
pub(crate) fn latency_name(name: &str) -> Option<LatencyName<'_>> {
    let (statistic, latency) = name.strip_suffix("_ms")?.rsplit_once('_')?;
    let latency = LATENCIES.iter().position(|(known, _)| *known == latency)?;
    Some(LatencyName { statistic, latency })
}

/// Returns whether a statistic is one that pages show: a percentile only if it was asked for, where that is known.
pub(crate) fn is_shown(result: &LoadResult, statistic: &str) -> bool {
    let percentile = statistic.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
    let is_asked = |percentile: f64| result.percentiles.iter().any(|asked| (asked - percentile).abs() < 1e-9);
    result.percentiles.is_empty() || percentile.is_none_or(is_asked)
}

/// Returns where a statistic stands among others: mean, median, spread, then percentiles upwards.
pub(crate) fn statistic_order(statistic: &str) -> f64 {
    match statistic {
        "mean" => -3.0,
        "median" => -2.0,
        "std" => -1.0,
        percentile => percentile.strip_prefix('p').and_then(|p| p.parse().ok()).unwrap_or(f64::INFINITY),
    }
}

/// Returns every number of a load, and those that there were too few requests for, in the order of a page.
pub fn metric_rows(result: &LoadResult) -> Vec<MetricRow> {
    let absent = result.too_few.iter().filter(|name| !result.metrics.contains_key(*name)).map(|name| (name, None));
    let all = result.metrics.iter().map(|(name, value)| (name, Some(*value))).chain(absent);
    let mut rows: Vec<MetricRow> = all
        .map(|(name, value)| MetricRow {
            unit: unit(name),
            value,
            interval: result.intervals.get(name).copied(),
            from_send: result.from_send.get(name).copied(),
            name: name.clone(),
        })
        .collect();
    rows.sort_by(|a, b| {
        let (a_order, b_order) = (order(&a.name), order(&b.name));
        a_order.0.cmp(&b_order.0).then(a_order.1.total_cmp(&b_order.1)).then_with(|| a.name.cmp(&b.name))
    });
    rows
}

fn order(name: &str) -> (usize, f64) {
    if let Some(place) = OTHERS.iter().position(|(known, _)| *known == name) {
        return (place, 0.0);
    }
    match latency_name(name) {
        Some(LatencyName { statistic, latency }) => (OTHERS.len() + latency, statistic_order(statistic)),
        None => (usize::MAX, 0.0),
    }
}

fn unit(name: &str) -> &'static str {
    let other = OTHERS.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit);
    other.unwrap_or(if name.ends_with("_ms") { "ms" } else { "" })
}
