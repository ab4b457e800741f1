//! The table of the formats that are read: who prints them, in which versions, and what is read from them.

use super::binding::{ToolFamily, VersionRange};

/// What a format looks like from afar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatKind {
    /// Rows between a heading and a closing rule, on a console.
    ConsoleTable,
    /// Lines of their own, on a console.
    ConsoleLines,
    /// One JSON value.
    Json,
    /// A JSON value on each line.
    JsonLines,
}

impl FormatKind {
    /// Returns the words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConsoleTable => "console table",
            Self::ConsoleLines => "console lines",
            Self::Json => "JSON",
            Self::JsonLines => "JSON Lines",
        }
    }
}

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Its name, as [`Reading::format`](isobench_schema::reading::Reading::format) has it.
    pub id: &'static str,
    /// Who prints or writes it.
    pub tool: ToolFamily,
    /// What it looks like from afar.
    pub kind: FormatKind,
    /// The versions of the tool that print it.
    pub versions: VersionRange,
    /// What is read from it, in a few words for people.
    pub read: &'static str,
}

/// What is printed on a console in a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The format's id.
    pub format: &'static str,
    /// The label, or the line with its metrics in braces.
    pub text: String,
    /// The metrics that are read from it. `mean` stands for every statistic, `RANK` for every percentile.
    pub metrics: Vec<String>,
    /// The versions that print it.
    pub versions: VersionRange,
}

/// Returns every label and line that is read from consoles, format by format.
pub fn printed() -> Vec<Printed> {
    let mut rows = super::console::printed();
    rows.sort_by_key(|row| formats().position(|format| format.id == row.format));
    rows
}

/// Returns every format that is read, tool by tool.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    super::console::FORMATS.iter().chain(super::json::FORMATS)
}

/// Returns the format with an id.
pub fn format(id: &str) -> Option<&'static Format> {
    formats().find(|format| format.id == id)
}
