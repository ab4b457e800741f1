//! The metrics of one launch, by the definitions of `docs/methodology.md`.

use std::collections::BTreeMap;

use isobench_schema::ids::LaunchId;
use isobench_schema::measurement::{DEFINITION, Measurement, MetricName, RequestCounts};

use super::{Sample, Samples};
use crate::stats::{Sorted, Summary, Weighted, enough_for_quantile, real, summarise};

const NS_PER_S: f64 = 1e9;

/// The four metrics of one duration.
struct Family {
    mean: MetricName,
    median: MetricName,
    p90: MetricName,
    p99: MetricName,
}

const TTFT: Family = Family {
    mean: MetricName::MeanTtftMs,
    median: MetricName::MedianTtftMs,
    p90: MetricName::P90TtftMs,
    p99: MetricName::P99TtftMs,
};
const TPOT: Family = Family {
    mean: MetricName::MeanTpotMs,
    median: MetricName::MedianTpotMs,
    p90: MetricName::P90TpotMs,
    p99: MetricName::P99TpotMs,
};
const ITL: Family = Family {
    mean: MetricName::MeanItlMs,
    median: MetricName::MedianItlMs,
    p90: MetricName::P90ItlMs,
    p99: MetricName::P99ItlMs,
};
const E2EL: Family = Family {
    mean: MetricName::MeanE2elMs,
    median: MetricName::MedianE2elMs,
    p90: MetricName::P90E2elMs,
    p99: MetricName::P99E2elMs,
};

/// Returns the numbers of the window. Only completed requests count; what wasn't measured is absent.
pub(super) fn measurement(launch: LaunchId, samples: &Samples) -> Measurement {
    let completed: Vec<&Sample> = samples.window.iter().filter(|sample| sample.failure.is_none()).collect();
    let input_tokens: u64 = completed.iter().map(|sample| u64::from(sample.input_tokens)).sum();
    let output_tokens: u64 = completed.iter().map(|sample| sample.tokens).sum();
    let (asked, done) = (count(samples.window.len()), count(completed.len()));
    let window_s = window_s(&samples.window);

    let mut table = Table::default();
    if window_s > 0.0 && done > 0 {
        table.values.insert(MetricName::RequestThroughput, real(done) / window_s);
        table.values.insert(MetricName::OutputThroughput, real(output_tokens) / window_s);
        table.values.insert(MetricName::TotalTokenThroughput, real(input_tokens + output_tokens) / window_s);
    }
    // The tokens of one request depend on each other, so for the gaps too it is the requests that must be many.
    let plain = |value: fn(&Sample) -> Option<f64>| completed.iter().filter_map(move |sample| value(sample));
    table.add(&TTFT, &Weighted::plain(plain(|sample| sample.ttft_ms)), done);
    table.add(&TPOT, &Weighted::plain(plain(|sample| sample.tpot_ms)), done);
    table.add(&ITL, &samples.gaps.by_token(), done);
    table.add(&E2EL, &Weighted::plain(plain(|sample| Some(sample.e2el_ms))), done);

    Measurement {
        launch,
        definition: DEFINITION.to_owned(),
        values: table.values,
        too_few: table.too_few,
        requests: RequestCounts { asked, completed: done, failed: asked - done },
        input_tokens,
        output_tokens,
        window_s,
    }
}

/// Returns the seconds from the first intended send of the window to its last end; 0 without requests.
fn window_s(window: &[Sample]) -> f64 {
    let start = window.iter().map(|sample| sample.intended_ns).min();
    let end = window.iter().map(|sample| sample.end_ns).max();
    start.zip(end).map_or(0.0, |(start, end)| real(end.saturating_sub(start)) / NS_PER_S)
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

#[derive(Default)]
struct Table {
    values: BTreeMap<MetricName, f64>,
    too_few: Vec<MetricName>,
}

impl Table {
    /// Adds the metrics of one duration, whose percentiles are those of so many requests.
    fn add(&mut self, family: &Family, values: &dyn Sorted, requests: u64) {
        let Some(Summary { mean, quantiles, .. }) = summarise(values, &[0.5, 0.9, 0.99], |_, _| {}) else { return };
        self.values.insert(family.mean, mean);
        let names =
            [(family.median, None), (family.p90, enough_for_quantile(0.9)), (family.p99, enough_for_quantile(0.99))];
        for ((name, enough), value) in names.into_iter().zip(quantiles) {
            if enough.is_none_or(|enough| requests >= enough) {
                self.values.insert(name, value);
            } else {
                self.too_few.push(name);
            }
        }
    }
}
