//! The table `knowledge/commits.toml`.

use serde::Deserialize;

use super::table;

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Commits {}

impl Commits {
    pub(super) fn embedded() -> Self {
        table("commits.toml", include_str!("../../../../knowledge/commits.toml"))
    }
}
