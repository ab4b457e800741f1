//! The fields of an object, taken out one by one; what isn't taken stays.

use isobench_schema::plan::Problem;
use serde_json::{Map, Value};

use super::lines::kind;
use super::read::problem;
use super::shapes::Place;

/// What stands for nothing in the files of the earlier systems.
const PLACEHOLDERS: [&str; 7] = ["", "-", "N/A", "n/a", "None", "null", "unknown"];

/// The fields of one object.
pub(super) struct Fields<'a> {
    left: Map<String, Value>,
    place: &'a Place<'a>,
    problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(object: Map<String, Value>, place: &'a Place<'a>) -> Self {
        Self { left: object, place, problems: Vec::new() }
    }

    /// Takes a text. A placeholder and what isn't text stay where they are; the latter is a problem.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        match self.left.get(key)? {
            Value::Null => self.left.remove(key).and(None),
            Value::String(text) if PLACEHOLDERS.contains(&text.trim()) => None,
            Value::String(_) => match self.left.remove(key) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            },
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                let message = format!("`{key}` holds {}, where text was expected", kind(other));
                self.problem(key, message);
                None
            }
        }
    }

    /// Takes the first of several keys that holds a text.
    pub(super) fn any_text(&mut self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// Takes a finite number. Anything else stays where it is and is a problem.
    pub(super) fn number(&mut self, key: &str) -> Option<f64> {
        match self.left.get(key)? {
            Value::Null => self.left.remove(key).and(None),
            Value::Number(number) => {
                let number = number.as_f64().filter(|number| number.is_finite());
                self.left.remove(key);
                number
            }
            other @ (Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                let message = format!("`{key}` holds {}, where a number was expected", kind(other));
                self.problem(key, message);
                None
            }
        }
    }

    /// Takes an object. Anything else but null stays where it is and is a problem.
    pub(super) fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        match self.left.get(key)? {
            Value::Null => self.left.remove(key).and(None),
            Value::Object(_) => match self.left.remove(key) {
                Some(Value::Object(object)) => Some(object),
                _ => None,
            },
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                let message = format!("`{key}` holds {}, where an object was expected", kind(other));
                self.problem(key, message);
                None
            }
        }
    }

    /// Takes every field whose key begins so, without that beginning.
    pub(super) fn beginning(&mut self, prefix: &str) -> Map<String, Value> {
        let keys: Vec<String> = self.left.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        let take = |key: String| Some((key.strip_prefix(prefix)?.to_owned(), self.left.remove(&key)?));
        keys.into_iter().filter_map(take).collect()
    }

    /// Takes every field whose key passes.
    pub(super) fn matching(&mut self, passes: impl Fn(&str) -> bool) -> Map<String, Value> {
        let keys: Vec<String> = self.left.keys().filter(|key| passes(key)).cloned().collect();
        keys.into_iter().filter_map(|key| self.left.remove(&key).map(|value| (key, value))).collect()
    }

    /// Puts something back that belongs to no record.
    pub(super) fn keep(&mut self, key: &str, value: Value) {
        self.left.insert(key.to_owned(), value);
    }

    pub(super) fn problem(&mut self, key: &str, message: String) {
        self.problems.push(problem(self.place.file, self.place.row, Some(key), message));
    }

    /// Returns what wasn't taken, and what is wrong.
    pub(super) fn finish(self) -> (Map<String, Value>, Vec<Problem>) {
        (self.left, self.problems)
    }
}
