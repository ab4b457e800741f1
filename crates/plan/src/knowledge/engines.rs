//! The table `knowledge/engines.toml`.

use serde::Deserialize;

use super::table;

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Engines {}

impl Engines {
    pub(super) fn embedded() -> Self {
        table("engines.toml", include_str!("../../../../knowledge/engines.toml"))
    }
}
