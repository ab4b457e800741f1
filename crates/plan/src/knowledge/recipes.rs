//! The table `knowledge/recipes.toml`: what makes an environment run that otherwise wouldn't.

use std::fmt;

use isobench_schema::assessment::NeededRecipe;
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{Digest, Moment};
use isobench_schema::recipe::{AppliedRecipe, RecipeChange};
use serde::Deserialize;

use super::{table, within};
use crate::lint::condition::Condition;

/// What a recipe does.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Installs a requirement beside those of the engine.
    Require {
        /// The requirement, as pip writes it.
        requirement: String,
    },
    /// Installs a requirement in place of what packages ask for.
    Override {
        /// The requirement, as pip writes it.
        requirement: String,
    },
    /// Never installs a package, whoever asks for it.
    LeaveOut {
        /// The package.
        package: String,
    },
    /// Installs a requirement for a build only.
    BuildRequire {
        /// The requirement, as pip writes it.
        requirement: String,
    },
    /// Writes a module into site-packages.
    StubModule {
        /// Its file there.
        module: String,
        /// What is in it.
        content: String,
    },
    /// Takes a file from the revision's own tree where a package would bring its own, or none.
    KeepFile {
        /// The file in the tree.
        path: String,
    },
    /// Sets a variable for the engine.
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Sets a server option that isn't given.
    Option {
        /// Its name without dashes.
        name: String,
        /// Its value.
        value: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Require { requirement } | Self::Override { requirement } => write!(formatter, "{requirement}"),
            Self::LeaveOut { package } => write!(formatter, "without the package {package}"),
            Self::BuildRequire { requirement } => write!(formatter, "{requirement} to build"),
            Self::StubModule { module, .. } => write!(formatter, "a stub of {module}"),
            Self::KeepFile { path } => write!(formatter, "the revision's own {path}"),
            Self::Variable { name, value } => write!(formatter, "{name}={value}"),
            Self::Option { name, value } => write!(formatter, "--{name} {value}"),
        }
    }
}

/// One recipe.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecipeRow {
    /// Its name.
    pub id: String,
    /// The engine.
    pub engine: EngineKind,
    /// The first moment at which it is needed; absent: from the beginning.
    pub since: Option<Moment>,
    /// The first moment at which it no longer is; absent: it still is.
    pub until: Option<Moment>,
    /// One of these must hold for certain; with none, the span alone decides.
    #[serde(default)]
    pub any: Vec<Condition>,
    /// A requirement that must follow from what is installed anyway; absent: nothing must.
    pub beside: Option<String>,
    /// What it does.
    pub action: Action,
    /// The failure signatures that it cures.
    pub symptoms: Vec<String>,
    /// Why it is needed.
    pub reason: String,
    /// What it means for comparisons.
    pub effect: String,
    /// Where this is known from.
    pub source: String,
}

impl RecipeRow {
    /// Returns whether it is needed at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        within(self.since.as_ref(), self.until.as_ref(), moment)
    }

    /// Returns it as something that a task needs.
    pub fn needed(&self) -> NeededRecipe {
        NeededRecipe {
            id: self.id.clone(),
            action: self.action.to_string(),
            reason: self.reason.clone(),
            effect: self.effect.clone(),
        }
    }

    /// Returns it with what it changes, where that can be read back by itself.
    pub fn applied(&self) -> Option<AppliedRecipe> {
        let change = match self.action.clone() {
            Action::Require { requirement }
            | Action::Override { requirement }
            | Action::BuildRequire { requirement } => RecipeChange::Package { requirement },
            Action::LeaveOut { package } => RecipeChange::NoPackage { package },
            Action::StubModule { module, content } => {
                RecipeChange::Module { path: module, digest: Digest::of(content.as_bytes()) }
            }
            // The proof of the environment has every file of the tree.
            Action::KeepFile { .. } => return None,
            Action::Variable { name, value } => RecipeChange::Variable { name, value },
            Action::Option { name, value } => RecipeChange::Option { name, value },
        };
        Some(AppliedRecipe { id: self.id.clone(), change, effect: self.effect.clone() })
    }
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Recipes {
    /// The recipes, in the order in which they are applied.
    pub recipe: Vec<RecipeRow>,
}

impl Recipes {
    pub(super) fn embedded() -> Self {
        table("recipes.toml", include_str!("../../../../knowledge/recipes.toml"))
    }

    /// Returns the recipe of an id.
    pub fn find(&self, id: &str) -> Option<&RecipeRow> {
        self.recipe.iter().find(|row| row.id == id)
    }
}
