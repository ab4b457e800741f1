//! The columns that datasets of commits use, under all the names that they give them.

use serde_json::{Map, Value};

/// What a column says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The commit.
    Commit,
    /// The revision before it.
    Parent,
    /// Its subject line, or a message that begins with it.
    Subject,
    /// The model.
    Model,
    /// The benchmark's kind.
    BenchmarkKind,
    /// The benchmark command.
    Command,
    /// The server's command.
    ServerCommand,
    /// The files that the commit changes.
    FilesChanged,
    /// The agent whose result the row holds.
    Agent,
    /// The agent's model, which tells two results of one agent apart.
    AgentModel,
    /// The repository or the engine.
    Engine,
}

/// The names that a column goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDoc {
    /// What it says.
    pub field: Field,
    /// Its names, the most telling first.
    pub names: &'static [&'static str],
    /// What it means and how it is read, for people.
    pub doc: &'static str,
}

/// Every column that is read. All others are kept as they are.
pub const COLUMNS: &[ColumnDoc] = &[
    ColumnDoc {
        field: Field::Commit,
        names: &[
            "commit_hash",
            "commit",
            "human_commit_full",
            "full_commit",
            "head_commit",
            "opt_commit",
            "human",
            "human_commit",
            "commit_short",
            "human_commit_short",
        ],
        doc: "The commit, in 7 to 40 hexadecimal digits. Of several columns the longest counts, and each other one must be \
              its beginning.",
    },
    ColumnDoc {
        field: Field::Parent,
        names: &["parent_commit", "parent", "base_commit", "pre", "parent_short"],
        doc: "The revision before it, read as the commit is. Absent: the commit's first parent.",
    },
    ColumnDoc {
        field: Field::Subject,
        names: &["commit_subject", "subject", "gt_commit_message", "commit_message"],
        doc: "The commit's subject: the first line of the first one that is there.",
    },
    ColumnDoc {
        field: Field::Model,
        names: &["model", "models"],
        doc: "The model: a text, or a list whose first model counts.",
    },
    ColumnDoc {
        field: Field::BenchmarkKind,
        names: &["benchmark_kind", "benchmark_mode", "benchmark_type"],
        doc: "The benchmark's kind, as the row says it.",
    },
    ColumnDoc {
        field: Field::Command,
        names: &["perf_command", "command"],
        doc: "The benchmark command. Two that differ are a problem.",
    },
    ColumnDoc { field: Field::ServerCommand, names: &["server_command"], doc: "The server's command." },
    ColumnDoc {
        field: Field::FilesChanged,
        names: &["files_changed"],
        doc: "The files that the commit changes: a list of paths.",
    },
    ColumnDoc {
        field: Field::Agent,
        names: &["agent_name", "agent"],
        doc: "The agent whose result the row holds. Rows of one commit that name agents are one task.",
    },
    ColumnDoc {
        field: Field::AgentModel,
        names: &["agent_model"],
        doc: "The agent's model. An agent that occurs with two models is two arms, `AGENT-MODEL`.",
    },
    ColumnDoc {
        field: Field::Engine,
        names: &["project", "repo", "pr_url", "repo_path", "instance_id", "task_id"],
        doc: "The engine: a name, `OWNER/NAME`, a URL or a path that names it. Those that name one must agree. `repo`, as \
              `OWNER/NAME` or URL, is also the repository.",
    },
];

/// Returns the names of a column.
pub(crate) fn names(field: Field) -> &'static [&'static str] {
    COLUMNS.iter().find(|column| column.field == field).map_or(&[], |column| column.names)
}

/// Returns the columns of a row that say something, in the order of their names.
pub(crate) fn given(row: &Map<String, Value>, field: Field) -> impl Iterator<Item = (&'static str, &Value)> {
    names(field).iter().filter_map(|name| Some((*name, present(row.get(*name)?)?)))
}

/// Returns a value unless it stands for a missing one: null, an empty text or list, `N/A`, `None`, `NaN`.
pub(crate) fn present(value: &Value) -> Option<&Value> {
    const ABSENT: [&str; 5] = ["", "n/a", "none", "nan", "null"];
    match value {
        Value::Null => None,
        Value::String(text) => (!ABSENT.contains(&text.trim().to_ascii_lowercase().as_str())).then_some(value),
        Value::Array(items) => items.iter().any(|item| present(item).is_some()).then_some(value),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Some(value),
    }
}

/// Returns what a value is, for people.
pub(crate) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stands_for_a_missing_value_is_missing() {
        for value in
            [json!(null), json!(""), json!(" N/A "), json!("None"), json!("nan"), json!([]), json!(["N/A", null])]
        {
            assert_eq!(present(&value), None, "{value}");
        }
        for value in [json!(0), json!(false), json!("none of these"), json!(["N/A", "x"]), json!({})] {
            assert_eq!(present(&value), Some(&value), "{value}");
        }
    }

    #[test]
    fn no_name_belongs_to_two_columns() {
        let mut names: Vec<&str> = COLUMNS.iter().flat_map(|column| column.names.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
