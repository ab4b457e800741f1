//! What two running servers differ by that were sent the same requests in turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Bounds;

/// A difference: the second server over the first, less 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The difference: 0.05 is 5 % more at the second server.
    pub change: f64,
    /// Its 95 % interval, of these two running servers alone; absent where neighbouring slices depend on each other however
    /// long they are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Bounds>,
    /// The slices that the interval is over.
    pub slices: u32,
    /// So many of the first, shorter slices make one of them.
    pub merged: u32,
    /// The correlation of neighbouring slices that is left, for which the interval is widened.
    pub correlation: f64,
}

/// What is known of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PairedMetric {
    /// Too few requests were answered by both.
    TooFew {
        /// Pairs there are.
        pairs: u64,
        /// Pairs needed.
        needed: u64,
        /// How much more the second server has of the mean, as [`Difference::change`]: nothing says how far it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<f64>,
    },
    /// There are pairs enough, but they lie in too few slices of time to tell how far their difference is known.
    TooFewSlices {
        /// Pairs there are.
        pairs: u64,
        /// Slices that have any.
        slices: u64,
        /// Slices needed.
        needed: u64,
        /// See `too-few`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<f64>,
    },
    /// The metric doesn't tell servers apart, as the way of loading fixes it or one of them has nothing of it.
    Fixed {
        /// Why, in one sentence.
        reason: String,
    },
    /// They were compared.
    Compared {
        /// Pairs that both answered.
        pairs: u64,
        /// Of the means, over slices of time.
        by_time: Difference,
        /// Of the typical request: the geometric mean over pairs of one's value over the other's, over slices of neighbouring
        /// pairs. Absent where the metric has no value for each request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_pair: Option<Difference>,
    },
}

/// What two running servers differ by. Each was launched once, and how much another launch would differ isn't known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedChecks {
    /// What kind of evidence it is: always [`PairedChecks::MARK`].
    pub mark: String,
    /// The same in a sentence.
    pub note: String,
    /// By metric, such as `ttft` or `output_throughput`.
    pub metrics: BTreeMap<String, PairedMetric>,
}

impl PairedChecks {
    /// What kind of evidence a paired load is.
    pub const MARK: &'static str = "single-launch, exploratory";
    /// What that means.
    pub const NOTE: &'static str = "this is the difference between these two running servers, each launched once; it says \
                                    nothing of how another launch of either would differ";
}
