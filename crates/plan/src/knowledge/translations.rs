//! How an option that a program refuses at one moment is said to another program, or at another moment.

use std::collections::BTreeMap;

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use isobench_schema::tool::{Tool, ToolKind};
use serde::Deserialize;

use super::table;

/// The side of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The benchmark program.
    Client,
    /// The server.
    Server,
}

/// One way to say an option. It counts only where the option is refused and what it becomes is taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Translation {
    /// The engine.
    pub engine: EngineKind,
    /// The option that is refused.
    pub from: String,
    /// The kinds of benchmark on whose programs it counts; empty: every kind.
    #[serde(default)]
    pub kinds: Vec<ToolKind>,
    /// Only with this value.
    #[serde(default)]
    pub value: Option<String>,
    /// Only if these options are given with these values.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// Only if none of these options is given.
    #[serde(default)]
    pub unless: Vec<String>,
    /// The option that it becomes.
    pub to: String,
    /// Whose option that is.
    pub side: Side,
    /// The value that it gets; absent: the same.
    #[serde(default)]
    pub to_value: Option<String>,
    /// Values that are called otherwise there.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// The option is a JSON object, and the value is this key's in it.
    #[serde(default)]
    pub json_key: Option<String>,
    /// The value is a JSON object, and these of its keys are options of their own there; the option that it becomes is one of
    /// them.
    #[serde(default)]
    pub spread: BTreeMap<String, String>,
    /// Options of the same side that it needs beside it, added unless they are given; an empty value is a switch.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
    /// Why it is the same.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// An option that a program refuses and needs no more: what it asks for is so without it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Superseded {
    /// The engine.
    pub engine: EngineKind,
    /// The option.
    pub option: String,
    /// The kinds of benchmark on whose programs it counts; empty: every kind.
    #[serde(default)]
    pub kinds: Vec<ToolKind>,
    /// Only with one of these values; empty: with any.
    #[serde(default)]
    pub values: Vec<String>,
    /// The first moment at which it is so; absent: from the beginning.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is; absent: it still is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Only if one of these options is given; empty: always.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Why it is so.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// A switch that an offline benchmark gives its engine by itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Own {
    /// The programs.
    pub tools: Vec<Tool>,
    /// The first moment at which they do; absent: from the beginning.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which they no longer do; absent: they still do.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The switch, as the server spells it.
    pub option: String,
    /// Only if none of these options is given.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Why the server must be told.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// What becomes of something that a command gives and isobench looks at before a server gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The server gets it.
    Kept,
    /// The server gets it, with a warning.
    Warned,
    /// isobench sets it itself.
    Superseded,
    /// An error.
    Refused,
}

/// Variables of a command. What no row names is refused.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variable {
    /// Their names; `*` stands for any text.
    pub names: Vec<String>,
    /// What becomes of them.
    pub verdict: Verdict,
    /// Names that are refused all the same; `*` stands for any text.
    #[serde(default)]
    pub except: Vec<String>,
    /// Why.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// Options of a server that don't go to it unremarked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerOption {
    /// Their names; `*` stands for any text.
    pub options: Vec<String>,
    /// What becomes of them.
    pub verdict: Verdict,
    /// Values that change nothing, so that nothing is said of them.
    #[serde(default)]
    pub harmless: Vec<String>,
    /// Only with a value that begins so.
    #[serde(default)]
    pub value_prefix: Option<String>,
    /// Why.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// The table `knowledge/translations.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Translations {
    /// In the order in which they are tried.
    #[serde(default)]
    pub translation: Vec<Translation>,
    /// Options that are needed no more.
    #[serde(default)]
    pub superseded: Vec<Superseded>,
    /// What offline benchmarks tell their engine by themselves.
    #[serde(default)]
    pub own: Vec<Own>,
    /// Variables of commands.
    #[serde(default)]
    pub variable: Vec<Variable>,
    /// Options of servers that don't go to them unremarked.
    #[serde(default)]
    pub server_option: Vec<ServerOption>,
}

impl Translations {
    pub(super) fn embedded() -> Self {
        table("translations.toml", include_str!("../../../../knowledge/translations.toml"))
    }

    /// Returns the row of a variable; none for one that is refused.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        self.variable.iter().find(|row| fits(&row.names) && !fits(&row.except))
    }

    /// Returns what is to be said of a server's option.
    pub fn server_option(&self, name: &str, values: &[String]) -> Option<&ServerOption> {
        let counts = |row: &&ServerOption| {
            row.options.iter().any(|pattern| matches(pattern, name))
                && !values.iter().any(|value| row.harmless.contains(value))
                && row.value_prefix.as_ref().is_none_or(|start| values.iter().any(|value| value.starts_with(start)))
        };
        self.server_option.iter().find(counts)
    }
}

/// Returns whether a name fits a pattern, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(left) = name.strip_prefix(start) else { return false };
    rest.is_empty() || left.char_indices().any(|(at, _)| left.get(at..).is_some_and(|left| matches(rest, left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("A", "A", true),
            ("A", "AB", false),
            ("A_*", "A_B", true),
            ("A_*", "B_A_B", false),
            ("*_DIR", "A_DIR", true),
            ("*_DIR", "A_DIRS", false),
            ("*_DIR", "_DIR_DIR", true),
            ("*P*", "APB", true),
            ("*P*", "AB", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
