//! The difference between two running servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::LoadInterval;

/// The difference between two running servers that were sent the same requests in turn. It is exploratory: each server was
/// launched once, and how much another launch would differ isn't known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedResult {
    /// What kind of evidence it is: always `single-launch, exploratory`.
    pub mark: String,
    /// The time slices that the interval is over.
    pub slices: u32,
    /// The numbers of the first URL and of the second, by the names of [`super::LoadResult::metrics`].
    pub metrics: [BTreeMap<String, f64>; 2],
    /// The differences by the same names.
    pub differences: BTreeMap<String, PairedDifference>,
}

impl PairedResult {
    /// What kind of evidence a paired result is.
    pub const MARK: &'static str = "single-launch, exploratory";
}

/// The difference of one number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedDifference {
    /// The second URL over the first, less 1: 0.05 is 5 % more.
    pub change: f64,
    /// The 95 % interval of `change` over time slices; absent with too few of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<LoadInterval>,
}
