//! Checks a task's values against the table of keys: unknown keys, wrong types, numbers out of range, missing keys.

use std::fmt::Write as _;

use crate::keys::{self, KeyDefault, KeyDoc, KeyKind};
use crate::nearest;
use crate::node::{Node, NodeValue};

/// Something wrong with a task, and the line that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The line, from 1, if known.
    pub(crate) line: Option<u64>,
    /// What is wrong, naming the key.
    pub(crate) message: String,
}

impl Finding {
    /// Returns a finding about a value.
    pub(crate) fn at(node: Option<&Node>, message: impl Into<String>) -> Self {
        Self { line: node.and_then(|node| node.line), message: message.into() }
    }
}

/// The most findings that are listed for one task: a file of another kind would give one for each of its keys.
const MOST: usize = 20;

/// Returns what is wrong with the shape of a task. Nothing means that every value can be read by its key's kind.
pub(crate) fn check(root: &Node) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !matches!(root.value, NodeValue::Table(_)) {
        return vec![Finding::at(Some(root), format!("a task must be a table, found {}", root.value.describe()))];
    }
    check_table(root, "", &mut findings);
    for key in keys::task_keys() {
        if key.default == KeyDefault::Required && root.at(key.path).is_none() {
            findings
                .push(Finding::at(nearest_table(root, key.path), format!("required key `{}` is missing", key.path)));
        }
    }
    findings.truncate(MOST);
    findings
}

/// Returns what is wrong with the keys and values that are there, with no regard to those that are missing.
pub(crate) fn check_part(root: &Node) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_table(root, "", &mut findings);
    findings
}

/// Returns the innermost table of a path that is there: where a missing key should stand.
fn nearest_table<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    path.rsplit_once('.').and_then(|(table, _)| root.at(table).or_else(|| nearest_table(root, table)))
}

fn check_table(table: &Node, prefix: &str, findings: &mut Vec<Finding>) {
    for (name, node) in table.entries() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        // A quoted key with a dot in it is one key, not a path, and no key has a dot.
        match keys::key(&path).filter(|_| !name.contains('.')) {
            Some(key) => check_value(node, key, findings),
            None => findings.push(Finding::at(Some(node), unknown(&path, prefix))),
        }
    }
}

/// Returns the text for an unknown key: with the nearest one, or with the keys that could stand there.
pub(crate) fn unknown(path: &str, prefix: &str) -> String {
    let mut text = format!("unknown key `{path}`");
    if let Some(near) =
        nearest::nearest(path, keys::task_keys().iter().map(|key| key.path)).filter(|near| *near != path)
    {
        let _ = write!(text, "; did you mean `{near}`?");
        return text;
    }
    let here = |key: &&KeyDoc| key.path.rsplit_once('.').map_or("", |(table, _)| table) == prefix;
    let names: Vec<&str> = keys::task_keys().iter().filter(here).map(|key| key.path).collect();
    if !names.is_empty() {
        let _ = write!(text, "; known here are `{}`", names.join("`, `"));
    }
    text
}

fn check_value(node: &Node, key: &KeyDoc, findings: &mut Vec<Finding>) {
    if let Some(message) = mismatch(&node.value, key.path, &key.kind) {
        findings.push(Finding::at(Some(node), message));
        return;
    }
    match key.kind {
        KeyKind::Table => check_table(node, key.path, findings),
        KeyKind::TableList => {
            for item in node.items() {
                check_table(item, key.path, findings);
                check_required_here(item, key.path, findings);
            }
        }
        KeyKind::Text
        | KeyKind::OneOf(_)
        | KeyKind::Switch
        | KeyKind::Whole { .. }
        | KeyKind::Number(_)
        | KeyKind::TextList
        | KeyKind::CommandList
        | KeyKind::TextMap
        | KeyKind::OptionMap
        | KeyKind::AnyMap => {}
    }
}

/// Checks the keys that each table of a list must have.
fn check_required_here(item: &Node, list: &str, findings: &mut Vec<Finding>) {
    for key in keys::task_keys().iter().filter(|key| key.default == KeyDefault::RequiredHere) {
        let Some(name) = key.path.strip_prefix(list).and_then(|rest| rest.strip_prefix('.')) else { continue };
        if item.get(name).is_none() {
            findings.push(Finding::at(Some(item), format!("required key `{}` is missing", key.path)));
        }
    }
}

/// Returns why `value` isn't what the key of that path takes, or `None` if it is.
pub(crate) fn mismatch(value: &NodeValue, path: &str, kind: &KeyKind) -> Option<String> {
    let wrong = |found: String| Some(format!("`{path}` must be {kind}, found {found}"));
    let is_text = |node: &Node| node.text().is_some();
    match (kind, value) {
        (KeyKind::Text, NodeValue::Text(text)) if text.is_empty() => wrong("an empty string".to_owned()),
        (KeyKind::Text, NodeValue::Text(_))
        | (KeyKind::Switch, NodeValue::Switch(_))
        | (KeyKind::Table | KeyKind::AnyMap, NodeValue::Table(_)) => None,
        (KeyKind::OneOf(names), NodeValue::Text(text)) => {
            if names.contains(&text.as_str()) {
                return None;
            }
            let hint = nearest::hint(text, names.iter().copied());
            wrong(format!("`{}`{hint}", shortened(text)))
        }
        (KeyKind::Whole { least, most }, NodeValue::Whole(number)) => {
            let fits = u32::try_from(*number).is_ok_and(|number| (*least..=*most).contains(&number));
            if fits { None } else { wrong(number.to_string()) }
        }
        (KeyKind::Whole { .. }, NodeValue::Number(number)) => wrong(number.to_string()),
        #[expect(
            clippy::cast_precision_loss,
            reason = "no limit or margin is near 2^53, and a rounded one still checks"
        )]
        (KeyKind::Number(range), NodeValue::Whole(number)) => {
            if range.holds(*number as f64) {
                None
            } else {
                wrong(number.to_string())
            }
        }
        (KeyKind::Number(range), NodeValue::Number(number)) => {
            if range.holds(*number) {
                None
            } else {
                wrong(number.to_string())
            }
        }
        (KeyKind::TextList, NodeValue::List(items)) => wrong_item(items, is_text, &wrong),
        (KeyKind::CommandList, NodeValue::List(items)) => wrong_item(items, is_command, &wrong),
        (KeyKind::TableList, NodeValue::List(items)) => {
            wrong_item(items, |item| matches!(item.value, NodeValue::Table(_)), &wrong)
        }
        (KeyKind::TextMap, NodeValue::Table(entries)) => wrong_entry(entries, path, is_text, "a string"),
        (KeyKind::OptionMap, NodeValue::Table(entries)) => {
            wrong_entry(entries, path, is_option, "a string, a number or a switch")
        }
        (_, found) => wrong(found.describe().to_owned()),
    }
}

fn is_command(node: &Node) -> bool {
    let whole = |items: &Vec<Node>| !items.is_empty() && items.iter().all(|item| item.text().is_some());
    matches!(&node.value, NodeValue::List(items) if whole(items))
}

fn is_option(node: &Node) -> bool {
    match &node.value {
        NodeValue::Switch(_) | NodeValue::Whole(_) | NodeValue::Text(_) => true,
        NodeValue::Number(number) => number.is_finite(),
        NodeValue::Null | NodeValue::Time(_) | NodeValue::List(_) | NodeValue::Table(_) => false,
    }
}

fn wrong_item(
    items: &[Node],
    fits: impl Fn(&Node) -> bool,
    wrong: &impl Fn(String) -> Option<String>,
) -> Option<String> {
    let item = items.iter().find(|item| !fits(item))?;
    let found = if matches!(&item.value, NodeValue::List(inner) if inner.is_empty()) {
        "an empty list"
    } else {
        item.value.describe()
    };
    wrong(format!("{found} in it"))
}

fn wrong_entry(entries: &[(String, Node)], path: &str, fits: impl Fn(&Node) -> bool, what: &str) -> Option<String> {
    let (name, node) = entries.iter().find(|(_, node)| !fits(node))?;
    Some(format!("`{path}.{name}` must be {what}, found {}", node.value.describe()))
}

/// Returns a text that is short enough for a message.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 120;
    let cut = text.chars().nth(LONGEST).is_some();
    text.chars().take(LONGEST).chain(cut.then_some('…')).collect()
}
