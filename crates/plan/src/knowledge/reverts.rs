//! The table `knowledge/reverts.toml`: which commit a revert takes back.

use isobench_schema::ids::CommitId;
use serde::Deserialize;

use super::table;

/// One revert.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Revert {
    /// The commit that takes back.
    pub commit: CommitId,
    /// The commit that is taken back.
    pub takes_back: CommitId,
    /// Where this is known from.
    pub source: String,
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reverts {
    /// The reverts.
    pub revert: Vec<Revert>,
}

impl Reverts {
    pub(super) fn embedded() -> Self {
        table("reverts.toml", include_str!("../../../../knowledge/reverts.toml"))
    }
}
