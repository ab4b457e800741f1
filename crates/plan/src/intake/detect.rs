//! Which form a row has, by its columns.

use isobench_schema::commit_task::RowFormat;
use serde_json::{Map, Value};

use super::columns::{self, Field};
use crate::nearest::nearest;

/// The columns that tell a form from the others.
const TELLING: &[(RowFormat, &[&str])] = &[
    (RowFormat::TaskList, &["bottleneck_family", "benchmark_kind", "server_command", "project"]),
    (RowFormat::PlanItem, &["item_id", "pre", "pre_parent_index"]),
    (RowFormat::Result, &["human_commit", "human_commit_full", "metrics", "runner", "duration_s"]),
    (
        RowFormat::Extraction,
        &[
            "analysis_extracted_at",
            "apis",
            "functions_changed",
            "has_general_test",
            "has_lm_eval",
            "has_performance",
            "has_serving",
            "llm_reason",
            "repo_path",
            "stats",
            "test_details",
            "timeline_extracted_at",
        ],
    ),
    (
        RowFormat::Published,
        &[
            "agent_model",
            "agent_name",
            "benchmark_mode",
            "command_source",
            "commit_short",
            "gpu_config",
            "has_agent_patch",
            "instance_id",
            "parent_commit",
        ],
    ),
];

/// Returns the form of a row that names a commit: that of which it has the most telling columns, and without any the published
/// one.
///
/// # Errors
/// Returns a sentence that names the row's columns if none of them names a commit.
pub(crate) fn format(row: &Map<String, Value>) -> Result<RowFormat, String> {
    if !names_commit(row) {
        return Err(unknown(row));
    }
    let score = |columns: &[&str]| columns.iter().filter(|column| row.contains_key(**column)).count();
    let best = TELLING.iter().map(|(format, columns)| (score(columns), *format)).rev().max_by_key(|(score, _)| *score);
    Ok(best.filter(|(score, _)| *score > 0).map_or(RowFormat::Published, |(_, format)| format))
}

/// Returns whether a row has a column for a commit.
pub(crate) fn names_commit(row: &Map<String, Value>) -> bool {
    columns::names(Field::Commit).iter().any(|name| row.contains_key(*name))
}

/// Returns what is wrong with a row in which nothing names a commit.
fn unknown(row: &Map<String, Value>) -> String {
    /// How many columns are named.
    const MOST: usize = 8;
    let names: Vec<&str> = row.keys().map(String::as_str).collect();
    let shown = names.iter().take(MOST).map(|name| format!("`{}`", shorten(name))).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let found = if names.is_empty() { "there are none".to_owned() } else { format!("found {shown}{more}") };
    let known = columns::names(Field::Commit);
    let hint = names.iter().find_map(|name| Some((name, nearest(name, known.iter().copied())?)));
    let hint = hint.map_or_else(
        || format!("; a commit stands in `{}` or `{}`", known.first().unwrap_or(&""), known.get(1).unwrap_or(&"")),
        |(name, near)| format!("; did you mean `{near}` by `{name}`?"),
    );
    format!("no column names a commit: {found}{hint}")
}

/// Returns a name that fits on a line.
pub(crate) fn shorten(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = name.chars().take(LONGEST).collect();
    if short.len() < name.len() {
        short.push_str("..");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: &[&str]) -> Map<String, Value> {
        columns.iter().map(|name| ((*name).to_owned(), Value::Null)).collect()
    }

    #[test]
    fn a_form_is_known_by_its_columns() {
        for (columns, expected) in [
            (&["project", "commit", "parent", "perf_command", "benchmark_kind"][..], RowFormat::TaskList),
            (&["commit_hash", "has_performance", "stats", "perf_command"], RowFormat::Extraction),
            (&["item_id", "human", "pre", "pre_parent_index"], RowFormat::PlanItem),
            (&["commit_short", "agent_name", "human_ttft_mean"], RowFormat::Published),
            (&["human_commit", "human_commit_full", "parent_commit", "metrics"], RowFormat::Result),
            (&["commit_hash", "perf_command"], RowFormat::Published),
        ] {
            assert_eq!(format(&row(columns)), Ok(expected), "{columns:?}");
        }
    }

    #[test]
    fn an_unknown_form_names_its_columns_and_the_nearest_known_one() {
        for (columns, expected) in [
            (
                &["comit_hash", "x"][..],
                "no column names a commit: found `comit_hash`, `x`; did you mean `commit_hash` by `comit_hash`?",
            ),
            (&["q"], "no column names a commit: found `q`; a commit stands in `commit_hash` or `commit`"),
            (&[], "no column names a commit: there are none; a commit stands in `commit_hash` or `commit`"),
        ] {
            assert_eq!(format(&row(columns)), Err(expected.to_owned()));
        }
    }
}
