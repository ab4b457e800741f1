//! Whether a server was steady, and whether it kept up.

use serde::{Deserialize, Serialize};

use super::Bounds;
use crate::failure::spelt_enum;

spelt_enum!(
    /// How far a warm-up is.
    SteadyState {
        /// The latest slices look steady.
        Steady = "steady",
        /// They don't yet, or are too few to say so.
        NotYet = "not-yet",
        /// The most slices allowed went by without.
        GaveUp = "gave-up",
    }
);

/// Where a warm-up became steady.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// How far it is.
    pub state: SteadyState,
    /// Slices seen.
    pub slices: u32,
    /// Slices at the beginning that belong to the start; absent with too few slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_slices: Option<u32>,
    /// The mean of the slices after those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The mean of their second half over that of their first, less 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
}

/// The second half of a series against its first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Halves {
    /// Too few slices.
    TooFew {
        /// Slices there are.
        slices: u32,
        /// Slices needed.
        needed: u32,
    },
    /// They were compared.
    Compared {
        /// The mean of the first half.
        first: f64,
        /// The mean of the second half.
        second: f64,
        /// `second` over `first`, less 1.
        change: f64,
        /// The 95 % interval of `change` over slices, widened for their serial correlation.
        interval: Bounds,
        /// Slices in each half.
        slices: u32,
    },
}

/// A rate per second with what the edges of a stretch of time leave open.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateBounds {
    /// By what ended in the stretch.
    pub ended_per_s: f64,
    /// Low: by what began and ended in it. High: by all that was under way in it at any time.
    pub bounds: Bounds,
}

/// The stretch of a closed loop in which every slot had a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FullLoop {
    /// There never were as many under way as asked.
    NeverFull {
        /// The most that were under way.
        most: u32,
        /// How many were asked for.
        concurrency: u32,
    },
    /// The loop was full.
    Full {
        /// When every slot had its first request, in nanoseconds of the clock.
        from_ns: u64,
        /// When the first slot found no more work, in nanoseconds of the clock.
        to_ns: u64,
        /// Its share of the whole window.
        share: f64,
        /// Requests that began and ended in it.
        whole: u64,
        /// Requests that ended in it.
        ended: u64,
        /// Requests under way on average, over those asked for.
        filled: f64,
        /// Completed requests per second.
        requests: RateBounds,
        /// Their output tokens per second.
        output_tokens: RateBounds,
    },
}

spelt_enum!(
    /// Whether a server keeps up with an open loop.
    FlowState {
        /// Nothing shows that it doesn't.
        KeepsUp = "keeps-up",
        /// Its queue grows: the offered rate can't be sustained.
        OverSaturated = "over-saturated",
        /// The data are too few to tell.
        TooFew = "too-few",
    }
);

/// Whether a server keeps up with an open loop, and what shows it: counts of the later half of the time looked at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The state.
    pub state: FlowState,
    /// Requests that were due.
    pub due: u64,
    /// Requests that ended, well or not.
    pub ended: u64,
    /// `ended` over `due`; absent if none was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How far `due` exceeds `ended`, in standard errors of two Poisson counts of the same rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// The one-sided p of the requests in flight not growing, by Mann's and Kendall's test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth_p: Option<f64>,
    /// The one-sided p of the requests due in the second third of the time not taking longer than those of the first, by
    /// Mann's and Whitney's test of latencies cut off at a third of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_p: Option<f64>,
}
