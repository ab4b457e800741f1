//! Reads datasets of performance commits as they are: rows as ISO-Bench publishes them, extraction records, mapping files, plan
//! files, lists of tasks, results.
//!
//! A row becomes a [`CommitTask`]: what the planner reads is typed, the whole row is kept beside it. A bad row is a problem
//! with its file, row and column, and the rest goes on.

pub mod columns;
pub mod export;

mod collect;
mod detect;
mod document;
mod engine;
mod json;
mod row;
#[cfg(test)]
mod tests;

use isobench_schema::commit_task::{CommitTask, DatasetHeader, ParquetShape};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::CommitId;
use serde_json::{Map, Value};

use crate::knowledge::Knowledge;

pub(crate) use collect::{Collector, RowPlace};
pub(crate) use detect::names_commit;
pub(crate) use json::{Extent, Parsed, parse, without_mark};

/// A commit that is known without a clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCommit {
    /// The engine that it belongs to.
    pub engine: EngineKind,
    /// Its whole id.
    pub commit: CommitId,
}

/// Returns the one known commit that begins with these digits.
pub(crate) fn known_commit(digits: &str) -> Option<KnownCommit> {
    let commits = &Knowledge::embedded().commits;
    let of = |engine: &EngineKind| {
        let commit = commits.find(*engine, digits)?.commit.clone();
        Some(KnownCommit { engine: *engine, commit })
    };
    let mut found = EngineKind::ALL.iter().filter_map(of);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The rows of a file that isn't text, as its reader gives them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The columns, in their order.
    pub columns: Vec<String>,
    /// The rows, each with every column.
    pub rows: Vec<Map<String, Value>>,
    /// What the file says of itself.
    pub parquet: Option<ParquetShape>,
}

/// Returns the lines of a file of commit tasks: its header, then one task on each line.
///
/// # Errors
/// Never for values built by these types; the signature follows the serialiser's.
pub fn to_lines(header: &DatasetHeader, tasks: &[CommitTask]) -> Result<String, serde_json::Error> {
    use isobench_schema::format::to_line;
    let mut text = to_line(header)? + "\n";
    for task in tasks {
        text.push_str(&to_line(task)?);
        text.push('\n');
    }
    Ok(text)
}
