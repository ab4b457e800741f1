//! What the client saw of itself while it loaded a server.

use serde::{Deserialize, Serialize};

/// What the client saw of itself in the window, and whether that is good enough.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientAudit {
    /// The bounds that are broken, each with the value measured, as a lower-case fragment. Empty if the client was good
    /// enough; else the load is `client-bound`.
    pub broken: Vec<String>,
    /// How long bytes of answers waited in the kernel until the client read them; absent without the kernel's stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<LagAudit>,
    /// How late requests were released after their scheduled time, in milliseconds; in an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_lateness_ms: Option<Spread>,
    /// Processor time of the busiest thread over the length of the window, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// How long the busiest thread was ready to run and had no processor, over the length of the window, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_share: Option<f64>,
    /// Threads that sent and read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// TCP segments that the machine sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Requests that were sent once more because their kept connection turned out to be closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnects: Option<u64>,
    /// Connections opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// How well the arrivals were kept; in an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateAudit>,
}

/// The client's lag.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LagAudit {
    /// Of all reads with the kernel's stamp, in milliseconds.
    pub lag_ms: Spread,
    /// The share of reads that had the kernel's stamp, from 0 to 1.
    pub stamped_share: f64,
}

/// Median, 99th percentile and largest value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

/// The arrivals asked for and those that came about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateAudit {
    /// The rate of the schedule, in requests per second.
    pub asked_per_s: f64,
    /// The rate of the releases, in requests per second.
    pub achieved_per_s: f64,
    /// The coefficient of variation of the gaps between scheduled times: 1 for a Poisson process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_gap_cv: Option<f64>,
    /// The same of the releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_gap_cv: Option<f64>,
    /// The index of dispersion (variance over mean) of the counts in intervals of 100 ms of the schedule: 1 for a Poisson
    /// process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_dispersion: Option<f64>,
    /// The same of the releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_dispersion: Option<f64>,
}
