//! The table `knowledge/datasets.toml`: where the well-known files of benchmark datasets are published.

use serde::Deserialize;

use super::table;

/// A file of prompts by the name that commands give it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DatasetFile {
    /// The file's name, without folders.
    pub name: String,
    /// The dataset's repository on the hub.
    pub repository: String,
    /// The branch, tag or commit.
    pub revision: String,
    /// The file's path there.
    pub file: String,
    /// Where this is known from.
    pub source: String,
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DatasetFiles {
    /// The files.
    pub file: Vec<DatasetFile>,
}

impl DatasetFiles {
    pub(super) fn embedded() -> Self {
        table("datasets.toml", include_str!("../../../../knowledge/datasets.toml"))
    }

    /// Returns the row of a file's name.
    pub fn find(&self, name: &str) -> Option<&DatasetFile> {
        self.file.iter().find(|row| row.name == name)
    }
}
