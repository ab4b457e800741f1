//! The table `knowledge/bugs.toml`: known bugs of revisions that only some workloads meet.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{CommitId, Moment};
use serde::Deserialize;

use super::{table, within};
use crate::lint::condition::Condition;

/// One bug.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bug {
    /// Its name: the engine and the number of its thread.
    pub id: String,
    /// The engine.
    pub engine: EngineKind,
    /// The first moment at which it is there.
    pub since: Moment,
    /// The first moment at which it is mended; absent: it isn't.
    pub until: Option<Moment>,
    /// One of these must hold for certain.
    pub any: Vec<Condition>,
    /// What happens, in a few words.
    pub title: String,
    /// What happens, and why.
    pub message: String,
    /// The recipe that gets round it; absent: nothing does, and a task that meets it can't be run.
    pub recipe: Option<String>,
    /// Commits that were taken to meet it and don't.
    #[serde(default)]
    pub unaffected: Vec<CommitId>,
    /// What else is to be said.
    pub note: Option<String>,
    /// Where this is known from.
    pub source: String,
}

impl Bug {
    /// Returns whether it is there at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        within(Some(&self.since), self.until.as_ref(), moment)
    }
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bugs {
    /// The bugs.
    pub bug: Vec<Bug>,
}

impl Bugs {
    pub(super) fn embedded() -> Self {
        table("bugs.toml", include_str!("../../../../knowledge/bugs.toml"))
    }
}
