//! The table `knowledge/devices.toml`.

use serde::Deserialize;

use super::table;

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Devices {}

impl Devices {
    pub(super) fn embedded() -> Self {
        table("devices.toml", include_str!("../../../../knowledge/devices.toml"))
    }
}
