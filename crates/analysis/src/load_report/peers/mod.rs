//! The result files of other tools, from the same records and with those tools' own definitions, so that what reads their
//! files reads ours.
//!
//! Common to both, as their sources have it: times begin where the client turns to the request, before it connects; the
//! first token is the first chunk; an inter-token latency is the time between two chunks, however many tokens
//! these hold; percentiles are `numpy.percentile`'s and deviations `numpy.std`'s; requests that failed have no latency; a second's
//! requests are all that were under way in any part of it. Two things the records don't have: chunks without text or
//! tokens, which vLLM counts as the first token, and answers that ended wrongly, which these tools count as good and we
//! don't.

mod sglang;
mod vllm;
mod writer;

use isobench_schema::workload::Arrival;

use super::{LoadReport, Sample};
use crate::objective::{Objective, UpperBounds};
use crate::stats::{Sorted, Summary, real, summarise};
use writer::Value;

const NS_PER_S: f64 = 1e9;

/// What other tools write of how they were called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFacts {
    /// The local time at the end, as `20261128-101500`.
    pub date: String,
    /// The tokenizer's name or folder; the model's name, where there is none.
    pub tokenizer: String,
    /// The dataset by its name there, such as `random`.
    pub dataset: String,
    /// A label of the user's.
    pub label: Option<String>,
}

/// The requests as these tools see them, in seconds.
struct PeerView<'a> {
    report: &'a LoadReport,
    /// All requests in the order in which they were scheduled, the failed ones among them.
    requests: Vec<&'a Sample>,
    duration_s: f64,
}

impl<'a> PeerView<'a> {
    fn of(report: &'a LoadReport) -> Self {
        let mut requests: Vec<&Sample> = report.taken.samples.window.iter().collect();
        requests.sort_by_key(|sample| sample.index);
        // The clock of these tools runs from the first request until all are answered.
        let start = requests.iter().map(|sample| sample.start_ns()).min();
        let end = requests.iter().map(|sample| sample.end_ns).max();
        let duration_s = start.zip(end).map_or(0.0, |(start, end)| real(end.saturating_sub(start)) / NS_PER_S);
        Self { report, requests, duration_s }
    }

    fn completed(&self) -> impl Iterator<Item = &'a Sample> {
        self.requests.iter().copied().filter(|sample| sample.failure.is_none())
    }

    /// Returns the objective, if these tools can express it.
    fn upper_bounds(&self) -> Option<UpperBounds> {
        self.report.taken.options.objective.as_ref().and_then(Objective::upper_bounds)
    }

    /// Returns a count of completed requests as a number to calculate with.
    fn count(&self) -> f64 {
        real(u64::try_from(self.completed().count()).unwrap_or(u64::MAX))
    }

    /// Returns something for each second of the benchmark, and 0 for one that took no time.
    fn rate(&self, count: f64) -> Value {
        Value::Real(if self.duration_s > 0.0 { count / self.duration_s } else { 0.0 })
    }

    /// Returns the highest count of chunks in one second, from the first start on.
    fn peak_chunks(&self) -> Value {
        let start_ns = self.completed().map(Sample::start_ns).min().unwrap_or(0);
        Value::Real(real(self.report.taken.chunks.peak_per_second(start_ns)))
    }

    /// Returns the most requests that were under way in any part of one second; `end_ns` says when one ended.
    fn peak_requests(&self, end_ns: impl Fn(&Sample) -> u64) -> Value {
        let start_ns = self.completed().map(Sample::start_ns).min().unwrap_or(0);
        let second = |at_ns: u64| at_ns.saturating_sub(start_ns) / 1_000_000_000;
        let mut starts: Vec<u64> = self.completed().map(|sample| second(sample.start_ns())).collect();
        let mut ends: Vec<u64> = self.completed().map(|sample| second(end_ns(sample).max(sample.start_ns()))).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        let mut ended = ends.iter().peekable();
        let (mut now, mut most) = (0_u64, 0);
        for start in &starts {
            while ended.next_if(|end| *end < start).is_some() {
                now -= 1;
            }
            now += 1;
            most = most.max(now);
        }
        Value::Count(most)
    }
}

/// Returns whether a time keeps within a bound, if there is one.
fn keeps(value_s: f64, bound_ms: Option<f64>) -> bool {
    bound_ms.is_none_or(|bound_ms| value_s <= bound_ms / 1e3)
}

/// Returns the seconds from a request's start to a moment, never negative.
fn since_start(sample: &Sample, at_ns: u64) -> f64 {
    real(at_ns.saturating_sub(sample.start_ns())) / NS_PER_S
}

/// Returns the seconds from a request's start to its first chunk. Without a chunk these tools have 0.
fn ttft_s(sample: &Sample) -> f64 {
    sample.first_chunk.ns().map_or(0.0, |at| since_start(sample, at))
}

/// Returns the statistics of values in seconds, which are turned into milliseconds; of nothing all are 0, as there.
fn statistics(values: &dyn Sorted, percentiles: &[f64], to_ms: f64) -> Summary {
    let shares: Vec<f64> = [50.0].iter().chain(percentiles).map(|percentile| percentile / 100.0).collect();
    let nothing = Summary { total: 0, mean: 0.0, deviation: 0.0, quantiles: vec![0.0; shares.len()] };
    let summary = summarise(values, &shares, |_, _| {}).unwrap_or(nothing);
    Summary {
        total: summary.total,
        mean: summary.mean * to_ms,
        deviation: summary.deviation * to_ms,
        quantiles: summary.quantiles.iter().map(|value| value * to_ms).collect(),
    }
}

/// Returns the rate that was asked for; `None` for one without limit.
fn request_rate(arrival: &Arrival) -> Option<f64> {
    match arrival {
        Arrival::Open { rate_per_s, .. } | Arrival::Constant { rate_per_s } => Some(*rate_per_s),
        Arrival::Closed { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => None,
    }
}

/// Returns the most requests under way that were asked for.
fn max_concurrency(report: &LoadReport) -> Value {
    let asked = match &report.result.workload.arrival {
        Arrival::Closed { concurrency, .. } => Some(*concurrency),
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => report.result.workload.max_in_flight,
    };
    asked.map_or(Value::Null, |asked| Value::Count(u64::from(asked)))
}
