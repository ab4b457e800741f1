//! The table `knowledge/conflicts.toml`: options that don't go together, or not with a model, device or revision.

use isobench_schema::assessment::Severity;
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use serde::Deserialize;

use super::{table, within};
use crate::lint::condition::Condition;

/// One conflict.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Conflict {
    /// Its name.
    pub id: String,
    /// The engine.
    pub engine: EngineKind,
    /// How much it matters.
    pub severity: Severity,
    /// All of these must hold.
    pub when: Vec<Condition>,
    /// The option or variable that it is about.
    pub subject: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// The recipe that mends it wherever it holds, if one does.
    pub recipe: Option<String>,
    /// The first moment at which it holds; absent: from the beginning.
    pub since: Option<Moment>,
    /// The first moment at which it no longer holds; absent: it still does.
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

impl Conflict {
    /// Returns whether it holds at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        within(self.since.as_ref(), self.until.as_ref(), moment)
    }
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Conflicts {
    /// The conflicts.
    pub conflict: Vec<Conflict>,
}

impl Conflicts {
    pub(super) fn embedded() -> Self {
        table("conflicts.toml", include_str!("../../../../knowledge/conflicts.toml"))
    }
}
