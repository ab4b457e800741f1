//! Every key of a task: its type, its default and what it means. Used to check tasks and to write the user's reference.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use crate::key_table;

/// Which numbers a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberRange {
    /// 0 and above.
    NotNegative,
    /// Above 0.
    Positive,
    /// Above 0 and below 1.
    Fraction,
    /// From 0 to 1.
    Share,
    /// Above 1.
    AboveOne,
}

impl NumberRange {
    /// Returns whether `value` is finite and in the range.
    pub fn holds(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::NotNegative => value >= 0.0,
                Self::Positive => value > 0.0,
                Self::Fraction => value > 0.0 && value < 1.0,
                Self::Share => (0.0..=1.0).contains(&value),
                Self::AboveOne => value > 1.0,
            }
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotNegative => "a number of at least 0",
            Self::Positive => "a number above 0",
            Self::Fraction => "a number above 0 and below 1",
            Self::Share => "a number from 0 to 1",
            Self::AboveOne => "a number above 1",
        })
    }
}

/// What a key takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyKind {
    /// A string with at least one character.
    Text,
    /// One of these strings.
    OneOf(Vec<&'static str>),
    /// `true` or `false`.
    Switch,
    /// A whole number in this range.
    Whole {
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// A number.
    Number(NumberRange),
    /// A list of strings.
    TextList,
    /// A list of lists of strings.
    CommandList,
    /// A table of strings under names of the user's own.
    TextMap,
    /// A table of strings, numbers and switches under names of the user's own.
    OptionMap,
    /// A table of anything under names of the user's own.
    AnyMap,
    /// A table whose keys are listed here too.
    Table,
    /// A list of tables whose keys are listed here too.
    TableList,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => write!(formatter, "a string that isn't empty"),
            Self::OneOf(names) => write!(formatter, "one of `{}`", names.join("`, `")),
            Self::Switch => write!(formatter, "true or false"),
            Self::Whole { least, most: u32::MAX } => write!(formatter, "a whole number of at least {least}"),
            Self::Whole { least, most } => write!(formatter, "a whole number from {least} to {most}"),
            Self::Number(range) => write!(formatter, "{range}"),
            Self::TextList => write!(formatter, "a list of strings"),
            Self::CommandList => write!(formatter, "a list of lists of strings"),
            Self::TextMap => write!(formatter, "a table of strings"),
            Self::OptionMap => write!(formatter, "a table of strings, numbers and switches"),
            Self::AnyMap | Self::Table => write!(formatter, "a table"),
            Self::TableList => write!(formatter, "a list of tables"),
        }
    }
}

/// What a task gets when it doesn't have a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyDefault {
    /// The key must be there.
    Required,
    /// The key must be there if the table that it belongs to, or the kind chosen in it, is.
    RequiredHere,
    /// Nothing: the value stays absent.
    Absent,
    /// This value, as TOML writes it or in words.
    Value(String),
}

/// One key of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDoc {
    /// The path, for example `server.options`. The keys of a list's tables have the list's path before them.
    pub path: &'static str,
    /// What it takes.
    pub kind: KeyKind,
    /// What a task without it gets.
    pub default: KeyDefault,
    /// What it means, in one sentence or two.
    pub doc: &'static str,
}

/// Returns every key of a task, tables before their keys, in the order of the reference.
pub fn task_keys() -> &'static [KeyDoc] {
    &KEYS
}

/// Returns the key of that path.
pub(crate) fn key(path: &str) -> Option<&'static KeyDoc> {
    BY_PATH.get(path).copied()
}

static KEYS: LazyLock<Vec<KeyDoc>> = LazyLock::new(key_table::all);

static BY_PATH: LazyLock<BTreeMap<&'static str, &'static KeyDoc>> =
    LazyLock::new(|| KEYS.iter().map(|key| (key.path, key)).collect());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_listed_once_in_kebab_case_after_its_table_with_a_sentence() {
        for (place, key) in task_keys().iter().enumerate() {
            assert!(key.path.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'-' | b'.')), "{}", key.path);
            assert!(key.doc.ends_with(['.', '%']), "{}", key.path);
            assert_eq!(task_keys().iter().position(|other| other.path == key.path), Some(place), "{}", key.path);
            if let Some((table, _)) = key.path.rsplit_once('.') {
                let kind = &task_keys().iter().find(|other| other.path == table).expect(table).kind;
                assert!(matches!(kind, KeyKind::Table | KeyKind::TableList), "{table}");
            }
        }
    }

    #[test]
    fn kinds_are_described_for_people() {
        for (path, expected) in [
            ("id", "a string that isn't empty"),
            ("workload.requests", "a whole number of at least 1"),
            ("design.blocks", "a whole number from 1 to 100000"),
            ("metric.margin", "a number above 0 and below 1"),
            ("metric.believable-ratio", "a number above 1"),
            ("engine.kind", "one of `generic`, `vllm`, `sglang`"),
            ("environment.build", "a list of lists of strings"),
        ] {
            assert_eq!(key(path).unwrap().kind.to_string(), expected, "{path}");
        }
    }
}
