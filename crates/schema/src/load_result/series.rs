//! A load over time, and how its latencies are spread: for plots.

use serde::{Deserialize, Serialize};

/// A stretch of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSlice {
    /// Its beginning in seconds since the first scheduled send of the window.
    pub t_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// Requests that ended well in it.
    pub completed: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests in flight, on average over the slice: scheduled and not ended.
    pub in_flight: f64,
    /// Output tokens of completed requests that came in it, per second.
    pub output_throughput: f64,
    /// Median and 99th percentile of the time to first token of completed requests that were due in it, in milliseconds. A
    /// slice has few requests, so its 99th percentile is a hint and no estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ttft_ms: Option<f64>,
    /// See `median_ttft_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ttft_ms: Option<f64>,
    /// Median and 99th percentile of the inter-token latencies that ended in it, in milliseconds, to 1 %: the middle of the
    /// bucket of a logarithmic histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_itl_ms: Option<f64>,
    /// See `median_itl_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_itl_ms: Option<f64>,
}

impl LoadSlice {
    /// The most slices that a result has.
    pub const MOST: usize = 200;
}

/// Counts in buckets of equal ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// The lower bound of the first bucket, in milliseconds. Values below it, zero among them, are in the first bucket.
    pub first_ms: f64,
    /// The upper bound of a bucket over its lower bound.
    pub ratio: f64,
    /// The counts, from the first bucket that holds anything to the last.
    pub counts: Vec<u64>,
}
