//! What the client saw of itself in the window, and whether that is good enough.

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;

spelt_enum!(
    /// Whether the numbers are the server's or the client's.
    AuditVerdict {
        /// Every bound was kept.
        Ok = "ok",
        /// A bound was broken: the numbers are invalid.
        ClientBound = "client-bound",
        /// No bound was broken, but something that a bound needs isn't known.
        Unproven = "unproven",
    }
);

spelt_enum!(
    /// A bound that the client must keep.
    AuditBound {
        /// Processor time of the busiest thread over the length of the window.
        Busy = "busy",
        /// Time in which the busiest thread was ready and had no processor, over the length of the window. It counts only
        /// where most reads lack the kernel's stamp.
        Waited = "waited",
        /// The 99th percentile of the lag.
        Lag = "lag",
        /// The 99th percentile of the release lateness of an open loop.
        Lateness = "lateness",
        /// What the client's own delay adds to the reported TTFT.
        TtftBias = "ttft-bias",
        /// Time of a closed loop's slots in which they had no request.
        IdleSlots = "idle-slots",
        /// The sent rate of an open loop against the rate that was due.
        Rate = "rate",
    }
);

/// A bound that the client didn't keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokenBound {
    /// The bound.
    pub bound: AuditBound,
    /// What was measured: milliseconds for [`AuditBound::Lag`] and [`AuditBound::Lateness`], else a share.
    pub value: f64,
    /// The most that is allowed, in the same unit.
    pub limit: f64,
    /// Both in one sentence, with what to do.
    pub message: String,
}

/// Median, 99th percentile and largest value, whatever their number: bounds for checks, no estimates.
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

/// How long bytes waited in the kernel until the client read them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lag {
    /// In milliseconds; median and 99th percentile are the upper bounds of the buckets that they lie in.
    pub lag_ms: Spread,
    /// The width of the wider one of those two buckets, as a part of its upper bound: so much too long they may be.
    pub resolution: f64,
    /// Reads with the kernel's stamp.
    pub reads: u64,
}

/// What the client's own delay adds to the reported TTFT, as a part of the TTFT without it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TtftBias {
    /// Of the mean.
    pub mean: f64,
    /// Of the 99th percentile.
    pub p99: f64,
}

/// A number of the schedule, of what was sent, and of the process asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgainstProcess {
    /// Of the times at which requests were due.
    pub drawn: f64,
    /// Of the times at which they were sent.
    pub sent: f64,
    /// What the process gives on average, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// The standard error of such a number about `expected` with as many requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
}

/// How well the arrivals of an open loop were kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pacing {
    /// The rate asked for in requests per second, where the arrivals have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// The rate at which requests were due, as it was drawn.
    pub drawn_per_s: f64,
    /// The rate at which they were sent.
    pub sent_per_s: f64,
    /// `sent_per_s` over `drawn_per_s`, less 1.
    pub rate_error: f64,
    /// The coefficient of variation of the gaps; absent with too few of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_cv: Option<AgainstProcess>,
    /// The index of dispersion (variance over mean) of counts in intervals of 100 ms; absent with too few of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispersion: Option<AgainstProcess>,
    /// The share of gaps under 50 µs; absent with too few gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_gaps: Option<AgainstProcess>,
}

/// What the client saw of itself in the window, and whether that is good enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// The verdict.
    pub verdict: AuditVerdict,
    /// The broken bounds. The load is `client-bound` if there is any.
    pub broken: Vec<BrokenBound>,
    /// What isn't known and would be needed, each in one sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Threads that sent and read.
    pub workers: u32,
    /// Processor time of the busiest thread over the length of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// How long the busiest thread was ready and had no processor, over the length of the window, where the kernel says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_share: Option<f64>,
    /// The share of reads that had the kernel's stamp; absent if nothing was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamped_share: Option<f64>,
    /// The lag of those; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Lag>,
    /// In an open loop: from when a request could be released until it was, in milliseconds. Waiting for a place where only
    /// so many may be under way isn't part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Spread>,
    /// In a closed loop: from the end of an answer to the first byte of the request that takes its place, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turnaround_ms: Option<Spread>,
    /// In a closed loop: the share of the slots' time that those turnarounds take, by which the offered load is too low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
    /// What the client's delay adds to the reported TTFT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_bias: Option<TtftBias>,
    /// How well the arrivals of an open loop were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// TCP segments that the machine sent again, where the kernel says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Requests that were sent once more because their kept connection turned out to be closed.
    pub reconnects: u32,
    /// Connections opened.
    pub connections: u64,
}
