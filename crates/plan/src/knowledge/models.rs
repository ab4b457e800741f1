//! The table `knowledge/models.toml`.

use serde::Deserialize;

use super::table;

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Models {}

impl Models {
    pub(super) fn embedded() -> Self {
        table("models.toml", include_str!("../../../../knowledge/models.toml"))
    }
}
