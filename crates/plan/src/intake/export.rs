//! Writes the rows of a dataset again, in the published form: every column that was read, and the published ones as far as they
//! are known.

use std::collections::BTreeSet;

use isobench_schema::commit_task::{CommitTask, DatasetHeader, Origin, RowFormat};
use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::{Map, Value, json};

/// The columns of the published form that a row of another form is filled with, in their order.
pub const PUBLISHED: &[&str] = &[
    "commit_hash",
    "commit_short",
    "commit_subject",
    "repo",
    "perf_command",
    "files_changed",
    "models",
    "parent_commit",
    "benchmark_mode",
];

/// How many digits of a commit are in its short form.
const SHORT_DIGITS: usize = 8;

/// Rows and the order of their columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// The columns: those of the dataset in their order, then the published ones that were added.
    pub columns: Vec<String>,
    /// The rows, in the order in which they were read.
    pub rows: Vec<Map<String, Value>>,
}

/// Returns the rows of tasks in the published form. Published rows are as they were read.
pub fn published(header: &DatasetHeader, tasks: &[CommitTask]) -> Rows {
    let mut placed: Vec<(&Origin, Map<String, Value>)> = Vec::new();
    for task in tasks {
        let further = task.further_rows.iter().map(|row| (&row.origin, &row.columns));
        for (origin, columns) in std::iter::once((&task.origin, &task.columns)).chain(further) {
            let mut row = columns.clone();
            if origin.format != RowFormat::Published {
                fill(&mut row, task);
            }
            placed.push((origin, row));
        }
    }
    placed.sort_by(|(one, _), (other, _)| (&one.file, one.row).cmp(&(&other.file, other.row)));
    let rows: Vec<Map<String, Value>> = placed.into_iter().map(|(_, row)| row).collect();
    Rows { columns: order(header, &rows), rows }
}

/// Returns the order of columns: the dataset's own, then the published ones, then whatever is left by name.
fn order(header: &DatasetHeader, rows: &[Map<String, Value>]) -> Vec<String> {
    let found: BTreeSet<&str> = rows.iter().flat_map(|row| row.keys().map(String::as_str)).collect();
    // A Parquet file has all of its columns, also those that no row fills.
    let is_kept = |name: &&str| found.contains(*name) || header.parquet.is_some();
    let mut seen = BTreeSet::new();
    let own = header.columns.iter().map(String::as_str).filter(is_kept);
    let added = PUBLISHED.iter().copied().filter(|name| found.contains(name)).chain(found.iter().copied());
    own.chain(added).filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

/// Adds the published columns that a row lacks and that are known.
fn fill(row: &mut Map<String, Value>, task: &CommitTask) {
    let commit = task.commit.as_str();
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    for name in PUBLISHED {
        let value = match *name {
            "commit_hash" => Some(json!(commit)),
            "commit_short" => Some(json!(commit.get(..SHORT_DIGITS).unwrap_or(commit))),
            "commit_subject" => text(&task.subject),
            "repo" => Some(json!(short_address(&task.repository))),
            "perf_command" => text(&task.command),
            "files_changed" => (!task.files_changed.is_empty()).then(|| json!(task.files_changed)),
            "models" => task.model.as_ref().map(|model| json!([model])),
            "parent_commit" => task.parent.as_ref().map(|parent| json!(parent)),
            "benchmark_mode" => text(&task.benchmark_kind),
            _ => None,
        };
        if let Some(value) = value.filter(|_| row.get(*name).is_none_or(Value::is_null)) {
            row.insert((*name).to_owned(), value);
        }
    }
}

/// Returns `OWNER/NAME` of a repository on GitHub, and any other address as it is.
fn short_address(address: &str) -> &str {
    let short = address.strip_prefix("https://github.com/").map(|rest| rest.strip_suffix(".git").unwrap_or(rest));
    short.unwrap_or(address)
}

/// Returns rows as JSON Lines, with the keys of each row in the order of the columns.
///
/// # Errors
/// Never for rows of JSON values; the signature follows the serialiser's.
pub fn to_lines(rows: &Rows) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for row in &rows.rows {
        text.push_str(&serde_json::to_string(&Ordered { row, columns: &rows.columns })?);
        text.push('\n');
    }
    Ok(text)
}

/// A row whose keys are written in the order of the columns.
struct Ordered<'r> {
    row: &'r Map<String, Value>,
    columns: &'r [String],
}

impl Serialize for Ordered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.row.len()))?;
        for name in self.columns {
            if let Some(value) = self.row.get(name) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}
