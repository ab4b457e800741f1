//! The table `knowledge/presets.toml`.

use serde::Deserialize;

use super::table;

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Presets {}

impl Presets {
    pub(super) fn embedded() -> Self {
        table("presets.toml", include_str!("../../../../knowledge/presets.toml"))
    }
}
