//! A reader of JSON that borrows what it reads and never allocates: what it costs stands between a read and the next.
//!
//! It takes the texts that the standard (RFC 8259) allows, and no others. Values that aren't asked for are checked and
//! passed over.

/// How deep values may lie in one another.
const DEEPEST: u32 = 128;

/// What is wrong with a text, as a lower-case fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

type Read<T> = Result<T, Malformed>;

/// A string between its quotes, as it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    text: &'a str,
    escaped: bool,
}

impl<'a> Raw<'a> {
    /// Reads a string without escapes up to its end, behind its first quote; returns it and what is left, from the last quote
    /// on.
    pub(crate) fn unescaped(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        // A text is short, so that a search by wide instructions doesn't pay.
        let stop = bytes.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'))?;
        let (text, rest) = bytes.split_at_checked(stop)?;
        if rest.first() != Some(&b'"') {
            return None;
        }
        Some((Self { text: std::str::from_utf8(text).ok()?, escaped: false }, rest))
    }

    /// Returns whether the string has escapes.
    pub(crate) fn is_escaped(self) -> bool {
        self.escaped
    }

    /// Returns whether the string has no character.
    pub(crate) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    /// Returns the string as it stands in the text: with its escapes, if it has any.
    pub(crate) fn as_written(self) -> &'a str {
        self.text
    }

    /// Puts the string behind `to`.
    pub(crate) fn push_onto(self, to: &mut String) -> Read<()> {
        let mut rest = self.text;
        if self.escaped {
            while let Some((plain, escape)) = rest.split_once('\\') {
                to.push_str(plain);
                let (c, after) = unescaped(escape)?;
                to.push(c);
                rest = after;
            }
        }
        to.push_str(rest);
        Ok(())
    }
}

/// Returns the character that an escape means, and what follows it; the text is behind the backslash.
fn unescaped(text: &str) -> Read<(char, &str)> {
    let mut chars = text.chars();
    let c = match chars.next() {
        Some(c @ ('"' | '\\' | '/')) => c,
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => return unicode(chars.as_str()),
        Some(_) | None => return Err(Malformed("an escape is unknown")),
    };
    Ok((c, chars.as_str()))
}

/// Returns the character of `\u`, which may take two escapes, and what follows it.
fn unicode(text: &str) -> Read<(char, &str)> {
    let lone = Malformed("an escape holds half of a character");
    let (high, rest) = hexadecimal(text)?;
    if let Some(c) = char::from_u32(high) {
        return Ok((c, rest));
    }
    let (low, rest) = rest.strip_prefix("\\u").ok_or(lone).and_then(hexadecimal)?;
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return Err(lone);
    }
    let c = char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)).ok_or(lone)?;
    Ok((c, rest))
}

fn hexadecimal(text: &str) -> Read<(u32, &str)> {
    let wrong = Malformed("an escape has no four hexadecimal digits");
    let (digits, rest) = text.split_at_checked(4).ok_or(wrong)?;
    let value = digits.chars().try_fold(0, |value, c| Some(value * 16 + c.to_digit(16)?)).ok_or(wrong)?;
    Ok((value, rest))
}

/// A reader at a place of a text.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns a reader at the start of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next byte behind white space, which it passes over.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Passes over `null`, if that is next; returns whether it was.
    pub(crate) fn null(&mut self) -> Read<bool> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    /// Reads an object, whose values `each` takes, by their keys as they are written.
    pub(crate) fn object(&mut self, mut each: impl FnMut(&mut Self, &'a str) -> Read<()>) -> Read<()> {
        self.mark(b'{', "an object is expected")?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.mark(b':', "a colon is expected")?;
            each(self, key.text)?;
            if !self.goes_on(b'}')? {
                return Ok(());
            }
        }
    }

    /// Reads an array, whose values `each` takes.
    pub(crate) fn array(&mut self, mut each: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.mark(b'[', "an array is expected")?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Read<Raw<'a>> {
        self.mark(b'"', "a string is expected")?;
        let from = self.at;
        let mut escaped = false;
        loop {
            let rest = self.rest();
            let Some(stop) = memchr::memchr2(b'"', b'\\', rest) else { return Err(Malformed("a string has no end")) };
            let (plain, _) = rest.split_at(stop);
            // Without an early end, so that many bytes are looked at with one instruction.
            if plain.iter().fold(0, |found, byte| found | u8::from(*byte < b' ')) != 0 {
                return Err(Malformed("a string holds a control character"));
            }
            self.at += stop;
            if self.byte() == Some(b'"') {
                let text = self.text.get(from..self.at).unwrap_or_default();
                self.at += 1;
                return Ok(Raw { text, escaped });
            }
            escaped = true;
            self.escape()?;
        }
    }

    /// Reads a string or `null`.
    pub(crate) fn string_or_null(&mut self) -> Read<Option<Raw<'a>>> {
        if self.null()? { Ok(None) } else { self.string().map(Some) }
    }

    /// Reads a number of things, or `null`.
    pub(crate) fn count_or_null(&mut self) -> Read<Option<u64>> {
        if self.null()? {
            return Ok(None);
        }
        let number = self.span(Self::number)?;
        number.parse().map(Some).map_err(|_kind| Malformed("a number of things is expected"))
    }

    /// Passes over any value and returns it as it stands in the text.
    pub(crate) fn value(&mut self) -> Read<&'a str> {
        self.span(|reader| reader.pass(0))
    }

    /// Checks that nothing follows.
    pub(crate) fn end(&mut self) -> Read<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Malformed("something follows the value")),
        }
    }

    fn span(&mut self, pass: impl FnOnce(&mut Self) -> Read<()>) -> Read<&'a str> {
        self.peek();
        let from = self.at;
        pass(self)?;
        Ok(self.text.get(from..self.at).unwrap_or_default())
    }

    fn pass(&mut self, depth: u32) -> Read<()> {
        if depth == DEEPEST {
            return Err(Malformed("values lie too deep in one another"));
        }
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.object(|reader, _| reader.pass(depth + 1)),
            Some(b'[') => self.array(|reader| reader.pass(depth + 1)),
            Some(b'n') => self.word("null"),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(_) | None => self.number(),
        }
    }

    fn number(&mut self) -> Read<()> {
        let wrong = Malformed("a value is expected");
        self.one_of(b"-");
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            Some(_) | None => return Err(wrong),
        }
        if self.one_of(b".") {
            self.digits()?;
        }
        if self.one_of(b"eE") {
            self.one_of(b"+-");
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Read<()> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(Malformed("a digit is expected")) } else { Ok(()) }
    }

    /// Passes over an escape, which is only looked at where its string is wanted but for the digits.
    fn escape(&mut self) -> Read<()> {
        self.at += 1;
        match self.byte() {
            Some(b'u') => {
                let digits = self.rest().get(1..5).unwrap_or_default();
                if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Malformed("an escape has no four hexadecimal digits"));
                }
                self.at += 5;
                Ok(())
            }
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(_) | None => Err(Malformed("an escape is unknown")),
        }
    }

    fn word(&mut self, word: &str) -> Read<()> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(Malformed("a value is expected"));
        }
        self.at += word.len();
        Ok(())
    }

    fn mark(&mut self, mark: u8, what: &'static str) -> Read<()> {
        if self.peek() != Some(mark) {
            return Err(Malformed(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over a comma or the end of a list; returns whether it goes on.
    fn goes_on(&mut self, end: u8) -> Read<bool> {
        let next = self.peek();
        self.at += 1;
        match next {
            Some(b',') => Ok(true),
            Some(byte) if byte == end => Ok(false),
            Some(_) | None => Err(Malformed("a comma or an end is expected")),
        }
    }

    fn one_of(&mut self, bytes: &[u8]) -> bool {
        let is_one = self.byte().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(is_one);
        is_one
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the place in the text, in bytes.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Returns what is left of the text.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn passes(text: &str) -> Result<String, Malformed> {
        let mut reader = Reader::new(text);
        let value = reader.value()?.to_owned();
        reader.end().map(|()| value)
    }

    #[test]
    fn what_the_standard_allows_is_passed_over_and_nothing_else() {
        for text in [
            "null",
            "true",
            "false",
            "0",
            "-0",
            "12",
            "-1.5e+10",
            "1E5",
            "\"\"",
            "\"a\\u00e9\\n\"",
            "[]",
            "{}",
            "[1, [2, {\"a\" : [ ] }]]",
            "{\"a\":1,\"b\":{\"c\":null}}",
            "\"\\ud800\"",
        ] {
            assert_eq!(passes(&format!(" {text} ")), Ok(text.to_owned()));
        }
        for text in [
            "",
            "nul",
            "+1",
            "01",
            "1.",
            ".5",
            "1e",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12",
            "\"\n\"",
            "[1,]",
            "[",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "1 2",
            "[1}",
            "nan",
        ] {
            assert!(passes(text).is_err(), "{text}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(passes(&deep), Err(Malformed("values lie too deep in one another")));
    }

    fn string(text: &str) -> Result<String, Malformed> {
        let mut string = String::new();
        Reader::new(text).string()?.push_onto(&mut string)?;
        Ok(string)
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(string(r#""\"\\\/\b\f\n\r\tx""#).as_deref(), Ok("\"\\/\u{8}\u{c}\n\r\tx"));
        assert_eq!(string(r#""a\u00E9\ud83e\udd80 é""#).as_deref(), Ok("aé🦀 é"));
        let half = Err(Malformed("an escape holds half of a character"));
        for text in [r#""\ud83e""#, r#""\ud83ex""#, r#""\udd80\ud83e""#, r#""\ud83e\u0041""#] {
            assert_eq!(string(text), half, "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e300_f64..1e300).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_passed_over_whole(value in any_json(), at in any::<proptest::sample::Index>()) {
            let text = value.to_string();
            prop_assert_eq!(passes(&text), Ok(text.clone()));
            if let Some(string_value) = value.as_str() {
                prop_assert_eq!(string(&text), Ok(string_value.to_owned()));
            }
            let mut shorter = text.clone();
            let at = at.index(text.chars().count());
            shorter = shorter.chars().enumerate().filter(|(place, _)| *place != at).map(|(_, c)| c).collect();
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&shorter).is_ok();
            prop_assert_eq!(passes(&shorter).is_ok(), theirs, "{}", shorter);
        }
    }
}
