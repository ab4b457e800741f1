//! What the lexer takes, refuses, and where it says that it stopped.

use std::io::{self, Read};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Gives its bytes in pieces of one length.
struct Pieces<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.length.min(into.len());
        (&mut self.bytes).take(length as u64).read(into)
    }
}

/// Returns the tokens of a text in pieces of one length, as text, then the end or why there is none, with its line.
fn tokens(text: &[u8], length: usize) -> (Vec<Token>, String) {
    let mut input = Pieces { bytes: text, length };
    let mut lexer = Lexer::new(&mut input);
    let mut tokens = Vec::new();
    loop {
        match lexer.next(Keep::Values) {
            Ok(Token::End) => return (tokens, "end".to_owned()),
            Ok(token) => tokens.push(token),
            Err(Stop::Cut) => return (tokens, format!("cut in line {}", lexer.line())),
            Err(Stop::Wrong(message)) => return (tokens, format!("{message} in line {}", lexer.line())),
            Err(Stop::Input(error)) => panic!("a slice can be read: {error}"),
        }
    }
}

/// Returns the end of a text, or why there is none, with its line, if nothing is kept.
fn passed(mut text: &[u8]) -> String {
    let mut lexer = Lexer::new(&mut text);
    loop {
        match lexer.next(Keep::Nothing) {
            Ok(Token::End) => return "end".to_owned(),
            Ok(_) => {}
            Err(Stop::Cut) => return format!("cut in line {}", lexer.line()),
            Err(Stop::Wrong(message)) => return format!("{message} in line {}", lexer.line()),
            Err(Stop::Input(error)) => panic!("a slice can be read: {error}"),
        }
    }
}

fn check(text: &str, ends: &str) {
    assert_eq!(tokens(text.as_bytes(), usize::MAX).1, ends, "{text}");
}

/// Builds the value that the tokens of one value stand for.
fn value(tokens: &mut impl Iterator<Item = Token>) -> Option<Value> {
    Some(match tokens.next()? {
        Token::Open(Container::Object) => {
            let mut object = serde_json::Map::new();
            while let Token::Key(key) = tokens.next()? {
                object.insert(key, value(tokens)?);
            }
            Value::Object(object)
        }
        Token::Open(Container::List) => {
            let mut list = Vec::new();
            while let Some(element) = value(tokens) {
                list.push(element);
            }
            Value::Array(list)
        }
        Token::Scalar(Scalar::Number(number)) => Value::from(number),
        Token::Scalar(Scalar::Text(text)) => Value::from(text),
        Token::Scalar(Scalar::Flag(flag)) => Value::from(flag),
        Token::Scalar(Scalar::Null) => Value::Null,
        Token::Scalar(Scalar::NotFinite(word)) => panic!("{word} is in no JSON of the standard"),
        Token::Close(_) | Token::Key(_) | Token::End => return None,
    })
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\"\\\\\n\t{}\\[\\]:,]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map("\\PC{0,8}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_comes_out_as_it_went_in_whatever_the_pieces(inner in json(), length in 1usize..9) {
        let text = serde_json::to_string(&Value::Array(vec![inner.clone()])).expect("a value can be written");
        let (found, end) = tokens(text.as_bytes(), length);
        prop_assert_eq!(end, "end");
        let built = value(&mut found.into_iter());
        prop_assert_eq!(built, Some(Value::Array(vec![inner])));
    }

    #[test]
    fn any_bytes_end_in_the_same_way_whatever_the_pieces(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        prop_assert_eq!(tokens(&bytes, 1), tokens(&bytes, usize::MAX));
    }

    #[test]
    fn what_is_not_kept_is_checked_all_the_same(text in "[\\[{]{0,2}[\\[\\]{}:,\"0-9nulNa.eE+\\\\ -]{0,14}") {
        prop_assert_eq!(passed(text.as_bytes()), tokens(text.as_bytes(), usize::MAX).1, "{}", text);
    }

    #[test]
    fn what_the_standard_refuses_is_refused_and_nothing_else(text in "[\\[\\]{}:,\"0-9a-f.eE+\\\\ -]{0,14}") {
        let whole = format!("[{text}]");
        let ours = tokens(whole.as_bytes(), usize::MAX).1;
        match serde_json::Deserializer::from_str(&whole).into_iter::<Value>().collect::<Result<Vec<Value>, _>>() {
            Ok(values) => {
                // At the top we take no number and no text.
                let containers = values.iter().all(|value| value.is_array() || value.is_object());
                prop_assert_eq!(ours == "end", containers, "{}: {}", whole, ours);
            }
            Err(error) => {
                let too_large = error.to_string().starts_with("number out of range");
                prop_assert!(ours != "end" || too_large, "{} is refused: {}", whole, error);
            }
        }
    }
}

#[test]
fn words_of_python_are_values_outside_of_strings_only() {
    let text = br#"{"a": NaN, "b": -Infinity, "c": Infinity, "NaN": "Infinity, \"NaN"}"#;
    for length in 1..text.len() {
        let (found, end) = tokens(text, length);
        assert_eq!(end, "end");
        let scalars: Vec<&Token> = found.iter().filter(|token| matches!(token, Token::Scalar(_))).collect();
        assert_eq!(
            scalars,
            [
                &Token::Scalar(Scalar::NotFinite("NaN")),
                &Token::Scalar(Scalar::NotFinite("-Infinity")),
                &Token::Scalar(Scalar::NotFinite("Infinity")),
                &Token::Scalar(Scalar::Text("Infinity, \"NaN".to_owned())),
            ]
        );
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    check("", "end");
    check("\u{feff}{}\n", "end");
    check("{}{}\n[1]", "end");
    check("{\n\"a\": 1", "cut in line 2");
    check("{\"a\": 12", "cut in line 1");
    check("{\"a", "cut in line 1");
    check("[1,\n\n2}", "`}` stands where `,` or `]` was expected in line 3");
    check("{\"a\" 1}", "`1` stands where the colon after a key was expected in line 1");
    check("{1: 2}", "`1` stands where a key or `}` was expected in line 1");
    check("{\"a\": 1,}", "`}` stands where a key was expected in line 1");
    check("[1 2]", "`2` stands where `,` or `]` was expected in line 1");
    check("{}, {}", "`,` stands where the `{` or `[` of a value was expected in line 1");
    check("{}\n3.5", "`3` stands where the `{` or `[` of a value was expected in line 2");
    for word in ["01", "1.", ".5", "+1", "1e", "--1", "inf", "nan", "None", "True", "Infinit", "0x10", "1_000"] {
        check(&format!("[{word}]"), &format!("`{word}` is no value in line 1"));
    }
    check("[\"a\nb\"]", "a string holds the control character 0x0a in line 1");
    check("[\"\\x\"]", "`\\x` is no escape in line 1");
    check("[\"\\u12g4\"]", "`\\u` is not followed by four hexadecimal digits in line 1");
}

#[test]
fn depth_and_length_are_limited() {
    let deep = "[".repeat(100_000);
    check(&deep, "values are nested more than 200 deep in line 1");
    check(&format!("[{}]", "1".repeat(500)), "a value has more than 400 characters in line 1");
    let (found, end) = tokens(format!("[\"{}\"]", "x".repeat(1 << 20)).as_bytes(), 1 << 14);
    assert_eq!(end, "end");
    assert_eq!(found.get(1), Some(&Token::Scalar(Scalar::Text("x".repeat(MOST_KEPT)))));
}

#[test]
fn bytes_that_are_no_text_are_replaced_in_strings_and_refused_elsewhere() {
    let (found, end) = tokens(b"[\"\xff\xfe\"]", usize::MAX);
    assert_eq!(end, "end");
    assert_eq!(found.get(1), Some(&Token::Scalar(Scalar::Text("\u{fffd}\u{fffd}".to_owned()))));
    assert_eq!(tokens(b"\xff\xfe{\0}\0", usize::MAX).1.split(' ').next(), Some("`\\xff`"));
}
