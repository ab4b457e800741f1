//! The result of a load: everything that `isobench load` says of one run of its client, as one JSON object.
//!
//! What wasn't measured is absent, never 0 or NaN. Names of numbers are vLLM's where it has one, the definitions are those
//! named in [`LoadResult::definition`]: times run from the scheduled send, inter-token latency is on the token clock.

mod audit;
mod paired;
mod series;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use audit::{ClientAudit, LagAudit, RateAudit, Spread};
pub use paired::{PairedDifference, PairedResult};
pub use series::{Histogram, LoadSlice};

use crate::failure::{Failure, FailureClass, spelt_enum};
use crate::format::Stored;
use crate::ids::Digest;
use crate::workload::{TokenCounter, Workload};

spelt_enum!(
    /// Whether the numbers of a load may be used, and if not, the first thing that speaks against them.
    Validity {
        /// Nothing speaks against them.
        Valid = "valid",
        /// More requests failed than were allowed.
        FailedRequests = "failed-requests",
        /// Records are missing, or their times contradict each other.
        Incomplete = "incomplete",
        /// The server's token counts aren't the client's.
        TokenCountMismatch = "token-count-mismatch",
        /// Answers aren't as long as asked.
        OutputLength = "output-length",
        /// The client, not the server, was the bottleneck.
        ClientBound = "client-bound",
        /// The window is too short.
        WindowTooShort = "window-too-short",
        /// The server didn't keep up with the arrivals.
        OverSaturated = "over-saturated",
        /// The numbers moved with time.
        Drift = "drift",
    }
);

/// The result of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadResult {
    /// Where the requests were sent: one URL, or two in paired mode.
    pub urls: Vec<String>,
    /// The model asked for.
    pub model: String,
    /// The client and its version, for example `isobench 0.1.0`.
    pub client: String,
    /// When the clock of the records began, RFC 3339 in UTC.
    pub started: String,
    /// The definitions that the numbers follow: [`crate::measurement::DEFINITION`].
    pub definition: String,
    /// What was asked for.
    pub workload: Workload,
    /// The seed of prompts and arrival times.
    pub seed: u64,
    /// The digest of all prompts and intended times.
    pub workload_digest: Digest,
    /// The digest of the tokenizer's file, where the client loaded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer_digest: Option<Digest>,
    /// The digest of the file of prompts, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset_digest: Option<Digest>,
    /// How output tokens were counted.
    pub counted_by: TokenCounter,
    /// Whether the numbers may be used.
    pub validity: Validity,
    /// The numbers of the window, by vLLM's names: counts (`completed`, `failed`, `total_input_tokens`,
    /// `total_output_tokens`, `max_concurrent_requests`), `duration` in seconds from the first scheduled send to the last end,
    /// `request_throughput` per second, `output_throughput`, `total_token_throughput` and `max_output_tokens_per_s` in
    /// tokens per second, and `mean`, `median`, `std`, `p50`, `p90`, `p95`, `p99` and whatever other percentile was asked
    /// for of `ttft`, `ttfc` (time to first content), `tpot`, `itl`, `icl` (inter-chunk latency) and `e2el` as
    /// `p99_ttft_ms`, in milliseconds. Only completed requests count, but for `failed`.
    pub metrics: BTreeMap<String, f64>,
    /// The same of `ttft`, `ttfc` and `e2el` from the moment when the last byte of the request was handed over, as clients
    /// measure that leave out the time that a request waits for its turn.
    pub from_send: BTreeMap<String, f64>,
    /// 95 % intervals of means and percentiles, by the same names as `metrics`. They tell how far the number is known
    /// from this one launch; another launch of the same server may lie outside.
    pub intervals: BTreeMap<String, LoadInterval>,
    /// Percentiles that the number of requests is too small for; they have no value in `metrics`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_few: Vec<String>,
    /// How many requests were good enough, where an objective was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// Failed requests by class, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<LoadFailures>,
    /// What the client saw of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<ClientAudit>,
    /// Every check that the load breaks, the one that counts first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Failure>,
    /// The numbers of requests that were due in the first and the second half of the window, by the names of `metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halves: Option<[BTreeMap<String, f64>; 2]>,
    /// The part of the window in which the server was steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyWindow>,
    /// Whether the server kept up with an open loop; absent in a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Saturation>,
    /// What the server said of itself over the window, by the names of its metrics: a claim.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server: BTreeMap<String, ServerMetric>,
    /// The load over time, in at most [`LoadSlice::MOST`] slices of equal length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<LoadSlice>,
    /// How `ttft`, `ttfc`, `tpot`, `itl`, `icl` and `e2el` are spread, for plots.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub distributions: BTreeMap<String, Histogram>,
    /// The difference between the two servers of paired mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<PairedResult>,
}

impl Stored for LoadResult {
    const NAME: &'static str = "load";
    const VERSION: u32 = 1;
}

/// An interval that covers a number with a probability of 95 %, in the number's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadInterval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// How many requests met an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goodput {
    /// The objective as it was given.
    pub objective: String,
    /// Requests that met it. A failed one never does.
    pub good: u64,
    /// Their share of all requests of the window, the failed ones included, from 0 to 1.
    pub share: f64,
    /// Good requests per second of the window.
    pub request_goodput: f64,
}

/// Failed requests of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadFailures {
    /// The class.
    pub class: FailureClass,
    /// How many requests.
    pub count: u64,
    /// The first different messages, at most [`LoadFailures::EXAMPLES`].
    pub examples: Vec<String>,
}

impl LoadFailures {
    /// How many messages are kept of each class.
    pub const EXAMPLES: usize = 3;
}

/// The part of the window in which the server was steady.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyWindow {
    /// Its beginning and end in seconds since the first scheduled send of the window.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// Completed requests that were due and ended in it.
    pub requests: u64,
    /// Their numbers, by the names of [`LoadResult::metrics`].
    pub metrics: BTreeMap<String, f64>,
}

/// Whether the server kept up with an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saturation {
    /// Whether it didn't.
    pub is_over_saturated: bool,
    /// The offered rate in requests per second, as it came about.
    pub offered_per_s: f64,
    /// The rate of completed requests per second.
    pub achieved_per_s: f64,
    /// The fitted change of the latency over the window, as a part of its mean; absent where there are too few requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_change: Option<f64>,
    /// The p of the trend of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend_p: Option<f64>,
    /// Mean requests in flight over arrival rate times mean latency: Little's law holds near 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub littles_law: Option<f64>,
}

/// One of the server's own metrics over the looks that fell into the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerMetric {
    /// How often it was looked at.
    pub looks: u64,
    /// Its value at the first look and at the last: the difference is what a counter counted.
    pub first: f64,
    /// See `first`.
    pub last: f64,
    /// The lowest value.
    pub min: f64,
    /// The mean of the looks.
    pub mean: f64,
    /// The highest value.
    pub max: f64,
}

#[cfg(test)]
mod tests;
