//! Settings: values put over every task, such as `server.max-model-len=2048`.

use isobench_schema::deviation::{Deviation, DeviationKind};

use crate::keys::{self, KeyDefault, KeyKind};
use crate::node::{Node, NodeValue};
use crate::shape;

/// Why a text is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseSettingError {
    /// There is no `=`, or nothing before it.
    #[error("`{text}` is no setting: write it as KEY=VALUE")]
    NoValue {
        /// The text.
        text: String,
    },
    /// The key can't be set for all tasks at once.
    #[error("`{key}` can't be set: it is each task's own")]
    Refused {
        /// The key.
        key: String,
    },
    /// The key or the value is wrong.
    #[error("{message}")]
    Wrong {
        /// What is wrong, naming the key.
        message: String,
    },
}

/// A value put over every task, with its key and type checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key as it was typed, for people.
    written: String,
    /// The key's path in the task.
    path: String,
    value: NodeValue,
}

impl Setting {
    /// Reads `KEY=VALUE`, where the key is any path of [`keys::task_keys`] or an entry of one of its tables.
    ///
    /// `server.NAME`, where no such key exists, means `server.options.NAME`. Strings need no quotes; lists and tables are
    /// written as in TOML.
    ///
    /// # Errors
    /// Returns what is wrong with the key, with the nearest known one, or with the value.
    pub fn parse(text: &str) -> Result<Self, ParseSettingError> {
        let no_value = || ParseSettingError::NoValue { text: shape::shortened(text) };
        let (written, value) = text.split_once('=').ok_or_else(no_value)?;
        let (written, value) = (written.trim(), value.trim());
        if written.is_empty() {
            return Err(no_value());
        }
        let is_own = |key: &str| key == "id" || key == "agent" || key.starts_with("agent.");
        if is_own(written) || written.starts_with("environment.aliases.") {
            return Err(ParseSettingError::Refused { key: shape::shortened(written) });
        }
        let (path, is_text) = resolve(written).map_err(|message| ParseSettingError::Wrong { message })?;
        let value = typed_value(value, is_text);
        let mut root = Node::table(None);
        let parts: Vec<&str> = path.split('.').collect();
        root.set(&parts, value.clone())
            .map_err(|part| ParseSettingError::Wrong { message: format!("`{part}` in `{path}` is no table") })?;
        match shape::check_part(&root).into_iter().next() {
            Some(finding) => Err(ParseSettingError::Wrong { message: finding.message }),
            None => Ok(Self { written: written.to_owned(), path, value }),
        }
    }

    /// Returns the key as it was typed.
    pub fn key(&self) -> &str {
        &self.written
    }

    /// Puts the value over a task's, and returns the deviation if it differs from what the task has.
    pub(crate) fn apply(&self, root: &mut Node) -> Result<Option<Deviation>, String> {
        let parts: Vec<&str> = self.path.split('.').collect();
        let old = root
            .set(&parts, self.value.clone())
            .map_err(|part| format!("can't set `{}`: what holds `{part}` is no table", self.written))?;
        let run = self.value.to_string();
        let asked = match old {
            Some(old) => old.to_string(),
            None => match keys::key(&self.path).map(|key| &key.default) {
                Some(KeyDefault::Value(default)) => default.trim_matches('"').to_owned(),
                Some(KeyDefault::Absent | KeyDefault::Required | KeyDefault::RequiredHere) | None => {
                    "nothing".to_owned()
                }
            },
        };
        let reason = "set on the command line".to_owned();
        let deviation = || Deviation {
            kind: DeviationKind::Override,
            subject: self.written.clone(),
            asked: asked.clone(),
            run,
            reason,
        };
        Ok((asked != self.value.to_string()).then(deviation))
    }
}

/// Returns the path in a task that a typed key means, and whether its value is a string.
fn resolve(written: &str) -> Result<(String, bool), String> {
    if let Some(key) = keys::key(written) {
        return Ok((written.to_owned(), matches!(key.kind, KeyKind::Text | KeyKind::OneOf(_))));
    }
    let mut table = written;
    while let Some((above, _)) = table.rsplit_once('.') {
        table = above;
        let Some(key) = keys::key(table) else { continue };
        match key.kind {
            KeyKind::TextMap => return Ok((written.to_owned(), true)),
            KeyKind::OptionMap | KeyKind::AnyMap => return Ok((written.to_owned(), false)),
            KeyKind::Table => break,
            KeyKind::Text
            | KeyKind::OneOf(_)
            | KeyKind::Switch
            | KeyKind::Whole { .. }
            | KeyKind::Number(_)
            | KeyKind::TextList
            | KeyKind::CommandList
            | KeyKind::TableList => return Err(format!("`{table}` takes {}, it has no keys", key.kind)),
        }
    }
    match written.strip_prefix("server.") {
        Some(name) if !name.is_empty() && !name.contains('.') => Ok((format!("server.options.{name}"), false)),
        Some(_) | None => Err(shape::unknown(written, written.rsplit_once('.').map_or("", |(table, _)| table))),
    }
}

/// Returns the value of a text: for a string as it is, unless it is quoted; else as TOML reads it, or a string.
fn typed_value(text: &str, is_text: bool) -> NodeValue {
    match Node::value_from_toml(text) {
        Some(value @ NodeValue::Text(_)) => value,
        Some(value) if !is_text => value,
        Some(_) | None => NodeValue::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&str, &str), &str>) {
        let found = Setting::parse(text).map(|setting| (setting.path, setting.value.to_string()));
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, expected.map(|(p, v)| (p.to_owned(), v.to_owned())).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn a_setting_names_a_key_or_an_option_of_the_server() {
        check("server.max-model-len=2048", Ok(("server.options.max-model-len", "2048")));
        check("server.model=./m", Ok(("server.model", "./m")));
        check("server.environment.OMP_NUM_THREADS=2", Ok(("server.environment.OMP_NUM_THREADS", "2")));
        check("workload.requests = 10", Ok(("workload.requests", "10")));
        check("design.blocks=2", Ok(("design.blocks", "2")));
        check("limits.ready-s=5", Ok(("limits.ready-s", "5")));
        check("title=\"a b\"", Ok(("title", "a b")));
        check("title=a=b", Ok(("title", "a=b")));
        check("human=123", Ok(("human", "123")));
        check("workload.extra-body.top_k=5", Ok(("workload.extra-body.top_k", "5")));
        check(
            "workload.arrival={kind=\"closed\", concurrency=2}",
            Ok(("workload.arrival", "{concurrency = 2, kind = closed}")),
        );
        check("server.command=[\"a\", \"b\"]", Ok(("server.command", "[a, b]")));
    }

    #[test]
    fn a_wrong_setting_says_what_is_wrong() {
        check("workload.requests", Err("`workload.requests` is no setting: write it as KEY=VALUE"));
        check("=1", Err("`=1` is no setting: write it as KEY=VALUE"));
        check("id=x", Err("`id` can't be set: it is each task's own"));
        check("agent.patch=x", Err("`agent.patch` can't be set: it is each task's own"));
        check("workload.reqests=1", Err("unknown key `workload.reqests`; did you mean `workload.requests`?"));
        check(
            "workload.requests=many",
            Err("`workload.requests` must be a whole number of at least 1, found a string"),
        );
        check("workload.requests=0", Err("`workload.requests` must be a whole number of at least 1, found 0"));
        check("workload.requests.x=1", Err("`workload.requests` takes a whole number of at least 1, it has no keys"));
        check(
            "workload.kind=servin",
            Err(
                "`workload.kind` must be one of `serving`, `throughput`, `latency`, found `servin`; did you mean `serving`?",
            ),
        );
        check(
            "workload.arrival={knd=\"open\"}",
            Err("unknown key `workload.arrival.knd`; did you mean `workload.arrival.kind`?"),
        );
        check("server.a.b=1", Err("unknown key `server.a.b`"));
    }
}
