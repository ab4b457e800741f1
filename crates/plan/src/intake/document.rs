//! Files that are one JSON value: a record, a list of rows, a plan file, or a mapping whose keys are commits.

use isobench_schema::commit_task::RowFormat;
use serde_json::{Map, Value};

use super::collect::{Collector, RowPlace};
use super::columns::{describe, present};
use super::row::{Fault, Surroundings, is_commit};
use super::{Extent, detect, parse};

/// The key of a plan file's rows.
const ITEMS: &str = "items";

impl Collector<'_> {
    /// Takes in a file that is one JSON value.
    pub(crate) fn document(&mut self, file: &str, bytes: &[u8]) {
        let parsed = match parse(bytes, Extent::File) {
            Ok(parsed) => parsed,
            Err(message) => return self.problem(file, None, Fault::row(message)),
        };
        match parsed.value {
            Value::Object(object) if matches!(object.get(ITEMS), Some(Value::Array(_))) => self.plan(file, object),
            Value::Object(object) if detect::names_commit(&object) => {
                self.row(RowPlace { file, row: 1 }, object, &parsed.keys);
            }
            Value::Object(object) if object.keys().any(|key| is_commit(key)) => {
                self.mapping(file, object, &parsed.keys);
            }
            Value::Object(object) => self.row(RowPlace { file, row: 1 }, object, &parsed.keys),
            Value::Array(items) => {
                for (number, item) in (1..).zip(items) {
                    self.element(RowPlace { file, row: number }, item);
                }
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                let message = format!("the file holds {}, and rows are objects", describe(&other));
                self.problem(file, None, Fault::row(message));
            }
        }
    }

    /// Takes in an element of a list.
    fn element(&mut self, place: RowPlace<'_>, item: Value) {
        match item {
            Value::Object(columns) => {
                let keys: Vec<String> = columns.keys().cloned().collect();
                self.row(place, columns, &keys);
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                self.rows += 1;
                let message = format!("the row is {}, and rows are objects", describe(&other));
                self.problem(place.file, Some(place.row), Fault::row(message));
            }
        }
    }

    /// Takes in a plan file: `repo` and `task_id` hold for all items.
    fn plan(&mut self, file: &str, mut object: Map<String, Value>) {
        let text = |key: &str| object.get(key).and_then(present).and_then(Value::as_str).map(str::to_owned);
        let (repository, name) = (text("repo"), text("task_id"));
        let Some(Value::Array(items)) = object.remove(ITEMS) else { return };
        for (number, item) in (1..).zip(items) {
            let place = RowPlace { file, row: number };
            let Value::Object(columns) = item else {
                self.element(place, item);
                continue;
            };
            self.rows += 1;
            let keys: Vec<String> = columns.keys().cloned().collect();
            self.name_columns(&keys);
            let name = name.as_deref().unwrap_or(file);
            let around = Surroundings { repository: repository.as_deref(), name, ..self.alone(file) };
            self.formed(place, RowFormat::PlanItem, columns, around);
        }
    }

    /// Takes in a mapping, in the order of its keys as they stand.
    fn mapping(&mut self, file: &str, mut object: Map<String, Value>, keys: &[String]) {
        for (number, key) in (1..).zip(keys) {
            let Some(value) = object.remove(key) else { continue };
            self.rows += 1;
            let place = RowPlace { file, row: number };
            if !is_commit(key) {
                let shown = detect::shorten(key);
                let message = format!("the key `{shown}` of the mapping is no commit: 7 to 40 hexadecimal digits");
                self.problem(file, Some(number), Fault::column(&shown, message));
                continue;
            }
            match entry(key, value) {
                Ok(columns) => {
                    let names: Vec<String> = columns.keys().cloned().collect();
                    self.name_columns(&names);
                    let around = Surroundings { key: Some(key), ..self.alone(file) };
                    self.formed(place, RowFormat::Mapping, columns, around);
                }
                Err(message) => self.problem(file, Some(number), Fault::column(key, message)),
            }
        }
    }
}

/// Returns the columns of a mapping's entry. One that isn't an object names the parent: its text, or the first of a list.
fn entry(key: &str, value: Value) -> Result<Map<String, Value>, String> {
    let parent = match &value {
        Value::Object(_) => None,
        Value::Array(items) => items.iter().find_map(present).cloned(),
        Value::Null | Value::String(_) => present(&value).cloned(),
        Value::Bool(_) | Value::Number(_) => {
            let what = describe(&value);
            return Err(format!("the value of `{key}` is {what}, and an object or the parent's id is meant"));
        }
    };
    if let Value::Object(columns) = value {
        return Ok(columns);
    }
    let mut columns = Map::new();
    columns.extend(parent.map(|parent| ("parent".to_owned(), parent)));
    columns.insert(RowFormat::Mapping.as_str().to_owned(), value);
    Ok(columns)
}
