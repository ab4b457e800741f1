//! The table `knowledge/coverage.toml`: what a workload must have to run the code in a file.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use serde::Deserialize;

use super::{table, within};
use crate::lint::condition::Condition;

/// Files that don't matter at run time, or don't tell what a commit changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Aside {
    /// Patterns of paths.
    pub paths: Vec<String>,
    /// Why they are put aside.
    pub because: String,
    /// Where this is known from.
    pub source: String,
}

/// What a workload must have to run the code in some files.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Need {
    /// Its name.
    pub id: String,
    /// The engine.
    pub engine: EngineKind,
    /// Patterns of the files whose code needs it.
    pub paths: Vec<String>,
    /// Patterns of subjects: where one matches and one of the files is changed, the whole commit needs it.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Whether files count only where the subject matches, since they also hold code that needs nothing.
    #[serde(default)]
    pub only_with_subject: bool,
    /// The workload must meet one of these; with none, no workload runs the code.
    #[serde(default)]
    pub any: Vec<Condition>,
    /// What the workload must have, to follow "it needs".
    pub needs: String,
    /// Why, in one sentence.
    pub because: String,
    /// The first moment at which it holds; absent: from the beginning.
    pub since: Option<Moment>,
    /// The first moment at which it no longer holds; absent: it still does.
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// A file that belongs to one family of models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelFile {
    /// Patterns of its path.
    pub paths: Vec<String>,
    /// The family, for people.
    pub family: String,
    /// Architectures that it holds, as `config.json` names them.
    pub architectures: Vec<String>,
    /// Patterns of names of models that it runs.
    pub models: Vec<String>,
    /// A model that it runs.
    pub example: String,
    /// Where this is known from.
    pub source: String,
}

impl Need {
    /// Returns whether it holds at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        within(self.since.as_ref(), self.until.as_ref(), moment)
    }
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Coverage {
    /// Files that no benchmark runs.
    pub inert: Vec<Aside>,
    /// Files that only carry settings and names, and are changed along with others.
    pub neutral: Vec<Aside>,
    /// What workloads must have.
    pub need: Vec<Need>,
    /// Files of models.
    pub model_file: Vec<ModelFile>,
}

impl Coverage {
    pub(super) fn embedded() -> Self {
        table("coverage.toml", include_str!("../../../../knowledge/coverage.toml"))
    }
}
