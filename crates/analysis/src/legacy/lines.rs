//! The objects of a file: one, a list, or JSON Lines; as Python writes them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::read::ReadLegacyError;

/// An object of a file, with its row where the file has several, or what is wrong with that row.
pub(super) type Row = (Option<u64>, Result<Map<String, Value>, String>);

/// Words that Python writes for numbers that JSON doesn't have.
const NO_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Returns the objects of a file.
pub(super) fn values(bytes: &[u8], file: &str) -> Result<Vec<Row>, ReadLegacyError> {
    // A byte-order mark is no part of JSON, but of many a file.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let text = with_halves_replaced(&text);
    let text = with_words_quoted(&text);
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(object)) => Ok(vec![(None, Ok(object))]),
        Ok(Value::Array(items)) if items.is_empty() => {
            Err(ReadLegacyError::NotAnObject { file: file.to_owned(), found: "an empty list" })
        }
        Ok(Value::Array(items)) => Ok(items.into_iter().enumerate().map(item).collect()),
        Ok(other) => Err(ReadLegacyError::NotAnObject { file: file.to_owned(), found: kind(&other) }),
        Err(error) => rows(&text, file, &error),
    }
}

fn item((place, value): (usize, Value)) -> Row {
    (Some(number(place)), object(value))
}

fn number(place: usize) -> u64 {
    u64::try_from(place).unwrap_or(u64::MAX).saturating_add(1)
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(format!("this is {}, where an object was expected", kind(&other)))
        }
    }
}

/// Reads JSON Lines, if the first line is an object of its own; otherwise the whole file is broken where it breaks.
fn rows(text: &str, file: &str, error: &serde_json::Error) -> Result<Vec<Row>, ReadLegacyError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(place, line): (usize, &str)| {
        let value = serde_json::from_str::<Value>(line).map_err(|error| format!("not JSON: {error}"));
        (Some(number(place)), value.and_then(object))
    };
    let rows: Vec<Row> = lines.map(read).collect();
    let is_rows = rows.iter().any(|(_, row)| row.is_ok());
    if is_rows { Ok(rows) } else { Err(not_json(file, error)) }
}

fn not_json(file: &str, error: &serde_json::Error) -> ReadLegacyError {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned();
    ReadLegacyError::NotJson { file: file.to_owned(), line: error.line(), column: error.column(), message }
}

/// Returns what a value is, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Puts `NaN`, `Infinity` and `-Infinity` into quotes where they stand outside of text, so that they can be told apart.
fn with_words_quoted(text: &str) -> Cow<'_, str> {
    if !NO_NUMBERS.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest, mut is_text) = (String::with_capacity(text.len() + 64), text, false);
    while let Some(c) = rest.chars().next() {
        if !is_text && let Some(word) = NO_NUMBERS.iter().find(|word| rest.starts_with(**word)) {
            out.extend(["\"", word, "\""]);
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        let taken = match c {
            // What follows a backslash in text ends nothing.
            '\\' if is_text => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            other => other.len_utf8(),
        };
        is_text ^= c == '"';
        out.push_str(rest.get(..taken).unwrap_or(rest));
        rest = rest.get(taken..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// Replaces each half of a surrogate pair that stands alone by U+FFFD, in as many bytes. Python writes a byte of a program's
/// output that is no text so, as in `\udcff`, and JSON can't be read with it.
fn with_halves_replaced(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let next = escape.get(ESCAPE..).and_then(half);
        let (taken, replaced) = match (half(escape), next) {
            (Some(Half::First), Some(Half::Second)) => (2 * ESCAPE, None),
            (Some(_), _) => (ESCAPE, Some("\\ufffd")),
            (None, _) => (1 + escape.chars().nth(1).map_or(0, char::len_utf8), None),
        };
        out.push_str(replaced.unwrap_or_else(|| escape.get(..taken).unwrap_or(escape)));
        rest = escape.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The bytes of an escape such as `\udcff`.
const ESCAPE: usize = 6;

/// One half of a surrogate pair.
enum Half {
    First,
    Second,
}

/// Returns which half of a surrogate pair a text begins with as an escape, if it does.
fn half(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..ESCAPE - 2)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_are_replaced_and_whole_pairs_stay() {
        for (text, expected) in [
            (r#""a\udcffb""#, r#""a\ufffdb""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\uD83D x""#, r#""\ufffd x""#),
            (r#""\\udcff""#, r#""\\udcff""#),
            (r#""\ud8""#, r#""\ud8""#),
            (r#""\udcé\ud"#, r#""\udcé\ud"#),
            (r"\ud\", r"\ud\"),
        ] {
            assert_eq!(with_halves_replaced(text), expected);
        }
        let rows = values(br#"{"error": "\udcff"}"#, "f").unwrap();
        assert!(matches!(rows.as_slice(), [(None, Ok(object))] if object["error"] == "\u{fffd}"), "{rows:?}");
    }

    #[test]
    fn an_empty_list_is_no_result() {
        let error = values(b"[]", "f").unwrap_err().to_string();
        assert_eq!(error, "`f` holds an empty list, where an object or a list of objects was expected");
    }

    #[test]
    fn pythons_words_for_no_numbers_are_read_and_text_stays() {
        for (text, expected) in [
            (r#"{"a": NaN, "b": -Infinity}"#, r#"{"a": "NaN", "b": "-Infinity"}"#),
            (r#"{"a": "it is NaN \" NaN", "b": NaN}"#, r#"{"a": "it is NaN \" NaN", "b": "NaN"}"#),
            (r#"{"a": "\\", "b": Infinity}"#, r#"{"a": "\\", "b": "Infinity"}"#),
            ("{\"a\": \"é\u{fffd}\", \"b\": NaN}", "{\"a\": \"é\u{fffd}\", \"b\": \"NaN\"}"),
            ("NaN", "\"NaN\""),
            ("{}", "{}"),
        ] {
            assert_eq!(with_words_quoted(text), expected);
        }
    }
}
