//! The table `knowledge/recipes.toml`.

use serde::Deserialize;

use super::table;

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Recipes {}

impl Recipes {
    pub(super) fn embedded() -> Self {
        table("recipes.toml", include_str!("../../../../knowledge/recipes.toml"))
    }
}
