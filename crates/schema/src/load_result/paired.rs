//! What came of two running servers that were sent the same requests in turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load_checks::PairedChecks;

/// What came of two running servers that were sent the same requests in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paired {
    /// What they differ by, and what kind of evidence that is.
    pub checks: PairedChecks,
    /// The numbers of the first URL and of the second, by the names of [`super::LoadResult::metrics`].
    pub metrics: [BTreeMap<String, f64>; 2],
}
