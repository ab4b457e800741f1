//! The numbers of the window.

use std::collections::BTreeMap;

use isobench_schema::load_result::{Goodput, Histogram, LoadInterval};
use isobench_schema::measurement::Measurement;

use super::in_flight::InFlight;
use super::latencies::Table;
use super::{Sample, Taken, Window, completed};
use crate::measure::gaps::Clock;
use crate::stats::real;

/// The numbers of the window, with all that goes by their names.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) from_send: BTreeMap<String, f64>,
    pub(super) intervals: BTreeMap<String, LoadInterval>,
    pub(super) too_few: Vec<String>,
    pub(super) requests_needed: BTreeMap<String, u64>,
    pub(super) distributions: BTreeMap<String, Histogram>,
    pub(super) goodput: Option<Goodput>,
}

impl Numbers {
    pub(super) fn of(taken: &Taken, counted: &Measurement, window: Window, in_flight: &InFlight) -> Self {
        let requests = in_order(&taken.samples.window);
        let mut table = Table::new(&taken.options.percentiles);
        table.requests("ttft", &requests, |sample| sample.ttft_ms);
        table.requests("ttfc", &requests, Sample::ttfc_ms);
        table.requests("tpot", &requests, |sample| sample.tpot_ms);
        table.requests("e2el", &requests, |sample| Some(sample.e2el_ms));
        let gaps = &taken.samples.gaps;
        if gaps.clocks_agree() {
            table.gaps(&["itl", "icl"], &requests, (gaps.by_token(), Clock::Tokens, &taken.slots));
        } else {
            table.gaps(&["itl"], &requests, (gaps.by_token(), Clock::Tokens, &taken.slots));
            table.gaps(&["icl"], &requests, (gaps.by_chunk(), Clock::Chunks, &taken.slots));
        }
        let from_send = from_send(&taken.options.percentiles, &requests);
        drop(requests);
        let Table { mut metrics, intervals, too_few, requests_needed, distributions, .. } = table;
        counts(&mut metrics, taken, counted, window);
        metrics.insert("max_concurrent_requests".to_owned(), real(in_flight.most()));
        let goodput = goodput(taken, counted);
        Self { metrics, from_send, intervals, too_few, requests_needed, distributions, goodput }
    }
}

/// Returns the completed requests in the order of their scheduled times.
pub(super) fn in_order(window: &[Sample]) -> Vec<&Sample> {
    let mut requests: Vec<&Sample> = completed(window).collect();
    requests.sort_by_key(|sample| (sample.intended_ns, sample.index));
    requests
}

/// Returns the durations that begin when the last byte of the request was handed over.
fn from_send(percentiles: &[f64], requests: &[&Sample]) -> BTreeMap<String, f64> {
    let mut table = Table::new(percentiles);
    table.requests("ttft", requests, |sample| sample.ms_after_send(sample.first_token.ns()?));
    table.requests("ttfc", requests, |sample| sample.ms_after_send(sample.content.ns()?));
    table.requests("e2el", requests, |sample| sample.ms_after_send(sample.end_ns));
    table.metrics
}

/// Adds counts and rates.
fn counts(metrics: &mut BTreeMap<String, f64>, taken: &Taken, counted: &Measurement, window: Window) {
    let mut put = |name: &str, value: f64| metrics.insert(name.to_owned(), value);
    put("completed", real(counted.requests.completed));
    put("failed", real(counted.requests.failed));
    if counted.requests.completed == 0 {
        return;
    }
    put("total_input_tokens", real(counted.input_tokens));
    // An interface that answers with no token, such as that of embeddings, has no rate of them.
    let has_output = counted.output_tokens > 0;
    if has_output {
        put("total_output_tokens", real(counted.output_tokens));
        put("max_output_tokens_per_s", real(taken.tokens.peak_per_second(window.start_ns)));
    }
    let seconds = counted.window_s;
    if seconds > 0.0 {
        put("duration", seconds);
        put("request_throughput", real(counted.requests.completed) / seconds);
        put("total_token_throughput", real(counted.input_tokens + counted.output_tokens) / seconds);
        if has_output {
            put("output_throughput", real(counted.output_tokens) / seconds);
        }
    }
}

fn goodput(taken: &Taken, counted: &Measurement) -> Option<Goodput> {
    let objective = taken.options.objective.as_ref()?;
    if counted.requests.asked == 0 || counted.window_s <= 0.0 {
        return None;
    }
    let good = u64::try_from(completed(&taken.samples.window).filter(|sample| sample.is_good).count()).ok()?;
    Some(Goodput {
        objective: objective.as_str().to_owned(),
        good,
        share: real(good) / real(counted.requests.asked),
        request_goodput: real(good) / counted.window_s,
    })
}
