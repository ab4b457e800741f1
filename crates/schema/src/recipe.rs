//! Recipes that were applied to every arm of a task, with what each changes, so that it can be read back.

use serde::{Deserialize, Serialize};

use crate::ids::Digest;

/// What a recipe changes: what is looked at to see whether it took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RecipeChange {
    /// A package is installed, in a version that the requirement allows.
    Package {
        /// The requirement, as pip writes it.
        requirement: String,
    },
    /// A package isn't installed.
    NoPackage {
        /// The package.
        package: String,
    },
    /// A module stands in the folder of packages.
    Module {
        /// Its file there.
        path: String,
        /// The digest of what is in it.
        digest: Digest,
    },
    /// The engine has a variable.
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// The engine's command has an option.
    Option {
        /// Its name without dashes.
        name: String,
        /// Its value.
        value: String,
    },
}

/// A recipe that was applied to every arm alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedRecipe {
    /// Its id in the table of recipes.
    pub id: String,
    /// What it changes.
    pub change: RecipeChange,
    /// What it means for comparisons.
    pub effect: String,
}
