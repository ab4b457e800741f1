//! JSON as datasets hold it: with a byte order mark, with Python's `NaN`, and never with a key that stands twice.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value, and the keys of its outermost object in the order in which they stand.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Parsed {
    /// The value.
    pub(crate) value: Value,
    /// The keys.
    pub(crate) keys: Vec<String>,
}

/// What parsing one text gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A line of JSON Lines: a place in it is a column.
    Line,
    /// A whole file: a place in it is a line and a column.
    File,
}

/// Returns the bytes of a text without its byte order mark.
///
/// # Errors
/// Returns a sentence if the text is UTF-16 or UTF-32.
pub(crate) fn without_mark(bytes: &[u8]) -> Result<&[u8], &'static str> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => Ok(rest),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, _, ..] | [_, 0, ..] => {
            Err("the file is UTF-16 or UTF-32; save it as UTF-8")
        }
        _ => Ok(bytes),
    }
}

/// Parses one value.
///
/// # Errors
/// Returns what is wrong, with the place.
pub(crate) fn parse(bytes: &[u8], extent: Extent) -> Result<Parsed, String> {
    let strict = parse_strictly(bytes);
    // Only a text that is no JSON is searched for what Python writes beside it.
    let parsed = strict.or_else(|error| without_bare_words(bytes).map_or(Err(error), |text| parse_strictly(&text)));
    parsed.map_err(|error| message(&error, extent))
}

fn parse_strictly(bytes: &[u8]) -> Result<Parsed, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let mut keys = Vec::new();
    let value = Strict { keys: Some(&mut keys) }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Parsed { value, keys })
}

/// Returns what is wrong. The parser's own text counts lines within the one line that it was given.
fn message(error: &serde_json::Error, extent: Extent) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let place = match extent {
        Extent::Line => format!("column {}", error.column()),
        Extent::File => format!("line {}, column {}", error.line(), error.column()),
    };
    format!("this is not JSON: {what} at {place}")
}

/// Returns the text with Python's `NaN`, `Infinity` and `-Infinity`, which are no JSON, as `null`: none is a value. `None` if it
/// has none of them.
fn without_bare_words(bytes: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let holds = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    if !holds(b"NaN") && !holds(b"Infinity") {
        return None;
    }
    let mut text = Vec::with_capacity(bytes.len());
    let (mut rest, mut in_string) = (bytes, false);
    while let [first, after @ ..] = rest {
        let word = WORDS.iter().find(|word| !in_string && rest.starts_with(word));
        if let Some(word) = word {
            // As wide as the word where that is wider, so that a later place is right in most texts.
            text.extend_from_slice(b"null");
            text.extend(std::iter::repeat_n(b' ', word.len().saturating_sub(4)));
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        text.push(*first);
        rest = after;
        match (in_string, first) {
            (true, b'\\') => {
                if let [escaped, after @ ..] = rest {
                    text.push(*escaped);
                    rest = after;
                }
            }
            (_, b'"') => in_string = !in_string,
            (true | false, _) => {}
        }
    }
    Some(text)
}

/// Builds a value and refuses a key that stands twice.
struct Strict<'k> {
    /// Where the keys of this object go, if they are asked for.
    keys: Option<&'k mut Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict { keys: None })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (mut object, mut order) = (Map::new(), Vec::new());
        let mut twice = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Strict { keys: None })?;
            if self.keys.is_some() {
                order.push(key.clone());
            }
            if object.contains_key(&key) {
                twice.insert(key.clone());
            }
            object.insert(key, value);
        }
        if let Some(key) = twice.first() {
            return Err(A::Error::custom(format!("the key `{key}` stands twice")));
        }
        if let Some(keys) = self.keys {
            *keys = order;
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expected: Result<Value, &str>) {
        let found = parse(text.as_bytes(), Extent::Line).map(|parsed| parsed.value);
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        check(r#"{"a":1,"b":{"c":1,"c":2}}"#, Err("this is not JSON: the key `c` stands twice at column 24"));
        check(r#"[{"a":1},{"a":2}]"#, Ok(json!([{"a": 1}, {"a": 2}])));
    }

    #[test]
    fn python_s_bare_words_are_null_and_texts_that_hold_them_stay() {
        check(r#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN \" NaN"}"#, {
            Ok(json!({"a": null, "b": [null, null], "c": "NaN \" NaN"}))
        });
        check("{\"a\":Nan}", Err("this is not JSON: expected value at column 6"));
    }

    #[test]
    fn keys_come_in_the_order_in_which_they_stand() {
        let parsed = parse(br#"{"z":{"b":1,"a":1},"a":1}"#, Extent::Line).unwrap();
        assert_eq!(parsed.keys, ["z", "a"]);
    }

    #[test]
    fn marks_and_other_encodings_are_seen() {
        assert_eq!(without_mark("\u{feff}{}".as_bytes()), Ok(&b"{}"[..]));
        for text in [&b"\xFF\xFE{\0"[..], b"\xFE\xFF\0{", b"{\0}\0", b"\0{\0}"] {
            assert!(without_mark(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn nesting_too_deep_for_the_parser_is_an_error() {
        let found = parse("[".repeat(100_000).as_bytes(), Extent::Line).unwrap_err();
        assert_eq!(found, "this is not JSON: recursion limit exceeded at column 128");
    }
}
