//! The result of a load: everything that `isobench load` says of one run of its client, as one JSON object.
//!
//! What wasn't measured is absent, never 0 or NaN. Names of numbers are vLLM's where it has one, the definitions are those
//! named in [`LoadResult::definition`]: times run from the scheduled send, inter-token latency is on the token clock.

mod numbers;
mod paired;
mod series;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use paired::Paired;
pub use series::{Histogram, LoadSlice};

use crate::failure::{Failure, FailureClass, spelt_enum};
use crate::format::Stored;
use crate::ids::Digest;
use crate::load_checks::{Audit, Flow, FullLoop, Halves, LittlesLaw, SweepReport, WarmUp};
use crate::workload::{TokenCounter, Workload};

spelt_enum!(
    /// Whether the numbers of a load may be used, and if not, the first thing that speaks against them.
    Validity {
        /// Nothing speaks against them.
        Valid = "valid",
        /// The load was stopped before its end.
        Interrupted = "interrupted",
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
        /// The server, or as many requests as were let under way, didn't keep up with the arrivals.
        OverSaturated = "over-saturated",
        /// The numbers moved with time.
        Drift = "drift",
    }
);

spelt_enum!(
    /// How it is known how many tokens prompts have.
    InputCounter {
        /// By the server's `usage`: a claim.
        Usage = "usage",
        /// By the model's tokenizer, run by the client.
        Tokenizer = "tokenizer",
        /// They were sent as so many token ids.
        TokenIds = "token-ids",
        /// By what the rows of the dataset say.
        Rows = "rows",
        /// Not at all: they were drawn as so many words, and the server gave no `usage`. Such numbers are words.
        Words = "words",
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
    /// How the tokens of prompts were counted (`total_input_tokens` and what is made of it); absent in results that are
    /// older than this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_counted_by: Option<InputCounter>,
    /// Whether the numbers may be used.
    pub validity: Validity,
    /// The numbers of the window, by vLLM's names: counts (`completed`, `failed`, `total_input_tokens`,
    /// `total_output_tokens`, `max_concurrent_requests`), `duration` in seconds from the first scheduled send to the last end,
    /// `request_throughput` per second, `output_throughput`, `total_token_throughput` and `max_output_tokens_per_s` in
    /// tokens per second, and `mean`, `median`, `std`, `p50`, `p90`, `p95`, `p99` and whatever other percentile was asked
    /// for of `ttft`, `ttfc` (time to first content), `tpot`, `itl`, `icl` (inter-chunk latency) and `e2el` as
    /// `p99_ttft_ms`, in milliseconds. Only completed requests count, but for `failed`.
    #[serde(serialize_with = "numbers::with_whole_counts")]
    pub metrics: BTreeMap<String, f64>,
    /// The percentiles that were asked for, between 0 and 100: pages show these. `metrics` has others too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<f64>,
    /// The same of `ttft`, `ttfc` and `e2el` from the moment when the last byte of the request was handed over, as clients
    /// measure that leave out the time that a request waits for its turn.
    pub from_send: BTreeMap<String, f64>,
    /// 95 % intervals of means and percentiles, by the same names as `metrics`. They tell how far the number is known
    /// from this one launch; another launch of the same server may lie outside.
    pub intervals: BTreeMap<String, LoadInterval>,
    /// Percentiles that the number of requests is too small for; they have no value in `metrics`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_few: Vec<String>,
    /// How many requests each percentile in `too_few` needs, by its name such as `p99`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests_needed: BTreeMap<String, u64>,
    /// How many requests were good enough, where an objective was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// Failed requests by class, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<LoadFailures>,
    /// What the client saw of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// Every check that the load breaks, the one that counts first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Failure>,
    /// The first and the second half of the window, by the names of `metrics`: latencies of the requests that were due in it,
    /// rates of what ended or came in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halves: Option<[BTreeMap<String, f64>; 2]>,
    /// Whether the second half differs from the first by more than chance: in output tokens per second of a closed loop (in
    /// completed requests per second where answers have no tokens), in the mean end-to-end latency in milliseconds of any
    /// other arrivals. A closed loop is looked at while it is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halves_change: Option<Halves>,
    /// How far the warm-up before the window came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// The stretch of a closed loop in which every slot had a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_loop: Option<FullLoop>,
    /// The numbers of that stretch, by the names of `metrics`: latencies of the requests that began and ended in it, rates of
    /// what ended or came in it. Where it is only a few latencies long, those are the quicker ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub full_loop_metrics: BTreeMap<String, f64>,
    /// Whether the server kept up with an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// Little's law over the stretch in which the load was whole: a closed loop while it is full, an open one while requests
    /// are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub littles_law: Option<LittlesLaw>,
    /// What the server said of itself over the window, by the names of its metrics: a claim.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server: BTreeMap<String, ServerMetric>,
    /// The load over time, in at most [`LoadSlice::MOST`] slices of equal length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<LoadSlice>,
    /// How `ttft`, `ttfc`, `tpot`, `itl`, `icl` and `e2el` are spread, for plots.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub distributions: BTreeMap<String, Histogram>,
    /// What the two servers of paired mode differ by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<Paired>,
    /// The search that this load is a step of: that of the highest level sustained, else the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepReport>,
}

impl Validity {
    /// What breaks a check other than that of failed requests, whose class is that of the most frequent failure.
    const BY_CLASS: [(FailureClass, Self); 10] = [
        (FailureClass::EvidenceUnreadable, Self::Incomplete),
        (FailureClass::Implausible, Self::Incomplete),
        (FailureClass::Interrupted, Self::Interrupted),
        (FailureClass::WorkloadTimeout, Self::Interrupted),
        (FailureClass::TokenCountMismatch, Self::TokenCountMismatch),
        (FailureClass::OutputLength, Self::OutputLength),
        (FailureClass::ClientBound, Self::ClientBound),
        (FailureClass::WindowTooShort, Self::WindowTooShort),
        (FailureClass::OverSaturated, Self::OverSaturated),
        (FailureClass::Drift, Self::Drift),
    ];

    /// Returns what the first of the broken checks makes of a load.
    pub fn of(findings: &[Failure]) -> Self {
        findings.first().map_or(Self::Valid, |finding| {
            let known = Self::BY_CLASS.iter().find(|(class, _)| *class == finding.class);
            known.map_or(Self::FailedRequests, |(_, validity)| *validity)
        })
    }
}

impl Stored for LoadResult {
    const NAME: &'static str = "load";
    const VERSION: u32 = 2;

    fn upgrade(version: u32, value: serde_json::Value) -> Option<serde_json::Value> {
        // Version 2 only adds: how prompts are counted, and the percentiles that were asked for.
        (version == 1).then_some(value)
    }
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

/// One of the server's own metrics over the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerMetric {
    /// The looks that the lowest, the mean and the highest value are of: those in the window, or if there are none, that
    /// before it and that after it.
    pub looks: u64,
    /// Its value at the last look before the window and at the first one after it (at the first and the last one within where
    /// there is none): the difference is what a counter counted.
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
