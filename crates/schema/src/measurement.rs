//! Names, directions and values of metrics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;
use crate::ids::LaunchId;

/// The identity of the definitions in `docs/methodology.md`: times run from the intended send, ITL is on the token clock.
pub const DEFINITION: &str = "isobench/1";

spelt_enum!(
    /// A metric by vLLM's name. Durations are in milliseconds (what a script says of itself: in seconds), rates per second.
    MetricName {
        /// Completed requests per second of the window.
        RequestThroughput = "request_throughput",
        /// Output tokens of completed requests per second of the window.
        OutputThroughput = "output_throughput",
        /// Input and output tokens of completed requests per second of the window.
        TotalTokenThroughput = "total_token_throughput",
        /// Mean time to first token.
        MeanTtftMs = "mean_ttft_ms",
        /// Median time to first token.
        MedianTtftMs = "median_ttft_ms",
        /// 90th percentile of the time to first token.
        P90TtftMs = "p90_ttft_ms",
        /// 99th percentile of the time to first token.
        P99TtftMs = "p99_ttft_ms",
        /// Mean time per output token after the first.
        MeanTpotMs = "mean_tpot_ms",
        /// Median time per output token after the first.
        MedianTpotMs = "median_tpot_ms",
        /// 90th percentile of the time per output token after the first.
        P90TpotMs = "p90_tpot_ms",
        /// 99th percentile of the time per output token after the first.
        P99TpotMs = "p99_tpot_ms",
        /// Mean inter-token latency.
        MeanItlMs = "mean_itl_ms",
        /// Median inter-token latency.
        MedianItlMs = "median_itl_ms",
        /// 90th percentile of the inter-token latency.
        P90ItlMs = "p90_itl_ms",
        /// 99th percentile of the inter-token latency.
        P99ItlMs = "p99_itl_ms",
        /// Mean end-to-end latency.
        MeanE2elMs = "mean_e2el_ms",
        /// Median end-to-end latency.
        MedianE2elMs = "median_e2el_ms",
        /// 90th percentile of the end-to-end latency.
        P90E2elMs = "p90_e2el_ms",
        /// 99th percentile of the end-to-end latency.
        P99E2elMs = "p99_e2el_ms",
        /// Mean time of a batch, as a latency script says it of itself.
        AvgLatencyS = "avg_latency_s",
        /// Median time of a batch, as a latency script says it of itself.
        P50LatencyS = "p50_latency_s",
        /// 90th percentile of the time of a batch, as a latency script says it of itself.
        P90LatencyS = "p90_latency_s",
        /// 99th percentile of the time of a batch, as a latency script says it of itself.
        P99LatencyS = "p99_latency_s",
        /// Time of all prompts, as a prefix-caching script says it of itself.
        CostTimeS = "cost_time_s",
    }
);

spelt_enum!(
    /// Which way a metric improves.
    Direction {
        /// More is better.
        Higher = "higher",
        /// Less is better.
        Lower = "lower",
    }
);

impl MetricName {
    /// Returns which way the metric improves.
    pub fn direction(self) -> Direction {
        match self {
            Self::RequestThroughput | Self::OutputThroughput | Self::TotalTokenThroughput => Direction::Higher,
            Self::MeanTtftMs
            | Self::MedianTtftMs
            | Self::P90TtftMs
            | Self::P99TtftMs
            | Self::MeanTpotMs
            | Self::MedianTpotMs
            | Self::P90TpotMs
            | Self::P99TpotMs
            | Self::MeanItlMs
            | Self::MedianItlMs
            | Self::P90ItlMs
            | Self::P99ItlMs
            | Self::MeanE2elMs
            | Self::MedianE2elMs
            | Self::P90E2elMs
            | Self::P99E2elMs
            | Self::AvgLatencyS
            | Self::P50LatencyS
            | Self::P90LatencyS
            | Self::P99LatencyS
            | Self::CostTimeS => Direction::Lower,
        }
    }

    /// Returns the unit, as people write it.
    pub fn unit(self) -> &'static str {
        match self {
            Self::RequestThroughput => "req/s",
            Self::OutputThroughput | Self::TotalTokenThroughput => "tok/s",
            Self::MeanTtftMs
            | Self::MedianTtftMs
            | Self::P90TtftMs
            | Self::P99TtftMs
            | Self::MeanTpotMs
            | Self::MedianTpotMs
            | Self::P90TpotMs
            | Self::P99TpotMs
            | Self::MeanItlMs
            | Self::MedianItlMs
            | Self::P90ItlMs
            | Self::P99ItlMs
            | Self::MeanE2elMs
            | Self::MedianE2elMs
            | Self::P90E2elMs
            | Self::P99E2elMs => "ms",
            Self::AvgLatencyS | Self::P50LatencyS | Self::P90LatencyS | Self::P99LatencyS | Self::CostTimeS => "s",
        }
    }
}

/// How many requests of the window ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestCounts {
    /// Requests of the window.
    pub asked: u64,
    /// Requests that gave a whole answer.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// The numbers of one launch, derived from its stored records. What wasn't measured is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The launch.
    pub launch: LaunchId,
    /// The definitions that the numbers follow: [`DEFINITION`].
    pub definition: String,
    /// The metrics, each in its unit.
    pub values: BTreeMap<MetricName, f64>,
    /// Percentiles that the number of requests is too small for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_few: Vec<MetricName>,
    /// How the requests ended.
    pub requests: RequestCounts,
    /// Input tokens of completed requests.
    pub input_tokens: u64,
    /// Output tokens of completed requests, counted by the client.
    pub output_tokens: u64,
    /// From the first intended send to the last end, in seconds.
    pub window_s: f64,
}
