//! A value of a task file with the line that it stands in: what TOML and JSON have in common, before typing.

use std::fmt;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The line, from 1; absent for a value that was set on the command line.
    pub(crate) line: Option<u64>,
    /// The value.
    pub(crate) value: NodeValue,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeValue {
    /// JSON's null.
    Null,
    /// A switch.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number with a fraction, or a whole one that is too large.
    Number(f64),
    /// A string.
    Text(String),
    /// A date or time of TOML, which no key takes.
    Time(String),
    /// A list.
    List(Vec<Node>),
    /// A table: keys with their values, in the order of the parser.
    Table(Vec<(String, Node)>),
}

impl NodeValue {
    /// Returns what the value is, for people.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Switch(_) => "true or false",
            Self::Whole(_) => "a whole number",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Time(_) => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Display for NodeValue {
    /// Writes the value on one line, strings without quotes: for people, not for parsers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => write!(formatter, "null"),
            Self::Switch(value) => write!(formatter, "{value}"),
            Self::Whole(value) => write!(formatter, "{value}"),
            Self::Number(value) => write!(formatter, "{value}"),
            Self::Text(text) | Self::Time(text) => write!(formatter, "{text}"),
            Self::List(items) => {
                write!(formatter, "[")?;
                for (place, item) in items.iter().enumerate() {
                    write!(formatter, "{}{}", if place == 0 { "" } else { ", " }, item.value)?;
                }
                write!(formatter, "]")
            }
            Self::Table(entries) => {
                write!(formatter, "{{")?;
                for (place, (key, item)) in entries.iter().enumerate() {
                    write!(formatter, "{}{key} = {}", if place == 0 { "" } else { ", " }, item.value)?;
                }
                write!(formatter, "}}")
            }
        }
    }
}

impl Node {
    /// Returns an empty table.
    pub(crate) fn table(line: Option<u64>) -> Self {
        Self { line, value: NodeValue::Table(Vec::new()) }
    }

    /// Returns the value under a key path such as `server.options`, if every table on the way is there.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// Returns the value of one key, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Returns the entries of a table, or none.
    pub(crate) fn entries(&self) -> &[(String, Self)] {
        if let NodeValue::Table(entries) = &self.value { entries } else { &[] }
    }

    /// Returns the items of a list, or none.
    pub(crate) fn items(&self) -> &[Self] {
        if let NodeValue::List(items) = &self.value { items } else { &[] }
    }

    /// Returns a number, whole or not.
    #[expect(clippy::cast_precision_loss, reason = "no rate, time, limit or margin is near 2^53")]
    pub(crate) fn number(&self) -> Option<f64> {
        match self.value {
            NodeValue::Number(value) => Some(value),
            NodeValue::Whole(value) => Some(value as f64),
            NodeValue::Null
            | NodeValue::Switch(_)
            | NodeValue::Text(_)
            | NodeValue::Time(_)
            | NodeValue::List(_)
            | NodeValue::Table(_) => None,
        }
    }

    /// Returns the text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        if let NodeValue::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Puts `value` under a key path, making tables on the way, and returns what was there.
    ///
    /// Returns the path's part that is no table as an error.
    pub(crate) fn set(&mut self, path: &[&str], value: NodeValue) -> Result<Option<NodeValue>, String> {
        let Some((key, rest)) = path.split_first() else {
            return Ok(Some(std::mem::replace(&mut self.value, value)));
        };
        let NodeValue::Table(entries) = &mut self.value else {
            return Err((*key).to_owned());
        };
        if let Some((_, node)) = entries.iter_mut().find(|(name, _)| name == key) {
            return node.set(rest, value);
        }
        let mut node = Self::table(None);
        let old = node.set(rest, value)?;
        entries.push(((*key).to_owned(), node));
        // A leaf that was made just now held nothing.
        Ok(old.filter(|_| !rest.is_empty()))
    }

    /// Returns the value as JSON.
    pub(crate) fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Switch(value) => Value::Bool(*value),
            NodeValue::Whole(value) => Value::from(*value),
            NodeValue::Number(value) => Value::from(*value),
            NodeValue::Text(text) | NodeValue::Time(text) => Value::from(text.as_str()),
            NodeValue::List(items) => items.iter().map(Self::to_json).collect(),
            NodeValue::Table(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_json())).collect())
            }
        }
    }

    /// Returns the node of a JSON value that stands in `line`.
    pub(crate) fn from_json(value: Value, line: u64) -> Self {
        let value = match value {
            Value::Null => NodeValue::Null,
            Value::Bool(value) => NodeValue::Switch(value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => NodeValue::Whole(whole),
                None => NodeValue::Number(number.as_f64().unwrap_or(f64::INFINITY)),
            },
            Value::String(text) => NodeValue::Text(text),
            Value::Array(items) => NodeValue::List(items.into_iter().map(|item| Self::from_json(item, line)).collect()),
            Value::Object(map) => {
                NodeValue::Table(map.into_iter().map(|(key, item)| (key, Self::from_json(item, line))).collect())
            }
        };
        Self { line: Some(line), value }
    }

    /// Reads a TOML text. The error is the line, if known, and what is wrong.
    pub(crate) fn from_toml(text: &str) -> Result<Self, (Option<u64>, String)> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text)
            .map_err(|error| (error.span().map(|span| lines.line(span.start)), error.message().to_owned()))?;
        let mut root = Self { line: Some(1), value: from_table(table.into_inner(), &lines) };
        if let NodeValue::Table(entries) = &mut root.value {
            // The parser sorts by key; problems read better in the order of the file.
            entries.sort_by_key(|(_, node)| node.line);
        }
        Ok(root)
    }

    /// Reads one TOML value, such as `3`, `"x"` or `["a", "b"]`.
    pub(crate) fn value_from_toml(text: &str) -> Option<NodeValue> {
        let value = DeValue::parse(text).ok()?;
        Some(from_value(value.into_inner(), &Lines::of("")))
    }
}

fn from_table(table: DeTable<'_>, lines: &Lines) -> NodeValue {
    let entries = table.into_iter().map(|(key, value)| {
        let line = Some(lines.line(key.span().start));
        (key.into_inner().into_owned(), Node { line, value: from_value(value.into_inner(), lines) })
    });
    NodeValue::Table(entries.collect())
}

fn from_value(value: DeValue<'_>, lines: &Lines) -> NodeValue {
    match value {
        DeValue::String(text) => NodeValue::Text(text.into_owned()),
        DeValue::Integer(whole) => match i64::from_str_radix(whole.as_str(), whole.radix()) {
            Ok(whole) => NodeValue::Whole(whole),
            Err(_) => NodeValue::Number(whole.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(number) => NodeValue::Number(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => NodeValue::Switch(value),
        DeValue::Datetime(time) => NodeValue::Time(time.to_string()),
        DeValue::Array(items) => {
            let node = |item: toml::Spanned<DeValue<'_>>| Node {
                line: Some(lines.line(item.span().start)),
                value: from_value(item.into_inner(), lines),
            };
            NodeValue::List(items.into_iter().map(node).collect())
        }
        DeValue::Table(table) => from_table(table, lines),
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(place, _)| place).collect())
    }

    /// Returns the line of a byte offset, from 1.
    fn line(&self, offset: usize) -> u64 {
        self.0.partition_point(|end| *end < offset) as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_and_json_give_the_same_values() {
        let toml = Node::from_toml("a = 1\nb = [true, 1.5]\n[c]\nd = \"x\"\n").unwrap();
        let json = r#"{"a":1,"b":[true,1.5],"c":{"d":"x"}}"#;
        assert_eq!(toml.to_json().to_string(), json);
        let json = Node::from_json(serde_json::from_str(json).unwrap(), 7);
        assert_eq!(json.to_json(), toml.to_json());
        assert_eq!(toml.at("c.d").unwrap().line, Some(4));
        assert_eq!(json.at("c.d").unwrap().line, Some(7));
    }

    #[test]
    fn a_value_can_be_put_anywhere_but_inside_a_value() {
        let mut node = Node::from_toml("[a]\nb = 1\n").unwrap();
        assert_eq!(node.set(&["a", "b"], NodeValue::Whole(2)), Ok(Some(NodeValue::Whole(1))));
        assert_eq!(node.set(&["c", "d"], NodeValue::Whole(3)), Ok(None));
        assert_eq!(node.set(&["a", "b", "c"], NodeValue::Whole(3)), Err("c".to_owned()));
        assert_eq!(node.value.to_string(), "{a = {b = 2}, c = {d = 3}}");
    }

    #[test]
    fn a_syntax_error_has_its_line() {
        let (line, message) = Node::from_toml("a = 1\nb = \n").unwrap_err();
        assert_eq!(line, Some(2), "{message}");
    }
}
