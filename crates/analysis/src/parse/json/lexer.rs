//! Cuts a stream of bytes into the tokens of JSON: pull, in constant memory, whatever the length of a string or a list.
//!
//! It takes what Python's `json` writes, which is more than the standard has: `NaN`, `Infinity` and `-Infinity` as
//! values. Values at the top follow each other with or without blanks between them, as in JSON Lines and in files that
//! several runs append to.

use std::io::{self, Read};

use memchr::memchr2;

/// How much is read at once, in bytes.
const CHUNK: usize = 1 << 16;
/// How many bytes of a string are kept; no key or text that means something here is longer.
const MOST_KEPT: usize = 256;
/// The longest number or word, in bytes; Python writes floats in at most 24.
const LONGEST_WORD: usize = 400;
/// How deep lists and objects may be nested. No tool comes near it.
const DEEPEST: usize = 200;

/// What holds other values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Object,
    List,
}

/// A value that holds no other.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    /// A number. It may be infinite if it has too many digits before the point.
    Number(f64),
    /// `NaN`, `Infinity` or `-Infinity`, bare.
    NotFinite(&'static str),
    /// A string, or the beginning of one that is too long to mean something.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// `null`.
    Null,
}

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// An object or a list begins.
    Open(Container),
    /// An object or a list ends.
    Close(Container),
    /// The key of the value that follows, or the beginning of one that is too long to mean something.
    Key(String),
    /// A value.
    Scalar(Scalar),
    /// The input ends after a whole value, or holds none.
    End,
}

/// What is kept of the values that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Everything that a token has room for.
    Values,
    /// Nothing: keys and texts are empty, and what is no container is `null`. They are checked all the same.
    Nothing,
}

/// Why no token follows.
#[derive(Debug)]
pub(super) enum Stop {
    /// The input couldn't be read.
    Input(io::Error),
    /// It ends within a value.
    Cut,
    /// It holds something else than was expected.
    Wrong(String),
}

/// What may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A value at the top, or the end.
    Top,
    /// A value.
    Value,
    /// A value, or the end of a list.
    ValueOrClose,
    /// A key.
    Key,
    /// A key, or the end of an object.
    KeyOrClose,
    /// A colon.
    Colon,
    /// A comma, or the end of what holds the value before.
    CommaOrClose,
}

/// A pull reader of tokens.
pub(super) struct Lexer<'a> {
    input: &'a mut dyn Read,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    line: u64,
    open: Vec<Container>,
    expected: Expected,
    /// The string or word that is being read.
    text: Vec<u8>,
}

impl<'a> Lexer<'a> {
    /// Returns a reader of the tokens of `input`, which may begin with a byte order mark.
    pub(super) fn new(input: &'a mut dyn Read) -> Self {
        Self {
            input,
            buffer: vec![0; CHUNK],
            at: 0,
            filled: 0,
            line: 1,
            open: Vec::new(),
            expected: Expected::Top,
            text: Vec::new(),
        }
    }

    /// Returns the line of the token that was returned last, or of what stopped it. Lines are counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Returns the next token.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(super) fn next(&mut self, keep: Keep) -> Result<Token, Stop> {
        loop {
            let Some(byte) = self.next_byte_that_is_no_blank()? else {
                return if self.expected == Expected::Top { Ok(Token::End) } else { Err(Stop::Cut) };
            };
            match (self.expected, byte) {
                (Expected::Top, 0xef) if self.line == 1 => self.mark()?,
                (Expected::Colon, b':') => {
                    self.at += 1;
                    self.expected = Expected::Value;
                }
                (Expected::CommaOrClose, b',') => {
                    self.at += 1;
                    self.expected = match self.open.last() {
                        Some(Container::Object) => Expected::Key,
                        Some(Container::List) | None => Expected::Value,
                    };
                }
                (Expected::CommaOrClose | Expected::KeyOrClose | Expected::ValueOrClose, b'}' | b']') => {
                    return self.close(byte);
                }
                (Expected::Key | Expected::KeyOrClose, b'"') => {
                    self.string(keep)?;
                    self.expected = Expected::Colon;
                    return Ok(Token::Key(self.text()));
                }
                (Expected::Top, b'{' | b'[') | (Expected::Value | Expected::ValueOrClose, _) => {
                    return self.value(byte, keep);
                }
                (
                    Expected::Top | Expected::Key | Expected::KeyOrClose | Expected::Colon | Expected::CommaOrClose,
                    _,
                ) => {
                    return Err(self.wrong(byte));
                }
            }
        }
    }

    fn value(&mut self, first: u8, keep: Keep) -> Result<Token, Stop> {
        match first {
            b'{' | b'[' => {
                if self.open.len() >= DEEPEST {
                    return Err(Stop::Wrong(format!("values are nested more than {DEEPEST} deep")));
                }
                self.at += 1;
                let (container, expected) = if first == b'{' {
                    (Container::Object, Expected::KeyOrClose)
                } else {
                    (Container::List, Expected::ValueOrClose)
                };
                self.open.push(container);
                self.expected = expected;
                Ok(Token::Open(container))
            }
            b'"' => {
                self.string(keep)?;
                self.expected = Expected::CommaOrClose;
                Ok(Token::Scalar(Scalar::Text(self.text())))
            }
            b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                let scalar = self.word(keep)?;
                self.expected = Expected::CommaOrClose;
                Ok(Token::Scalar(scalar))
            }
            other => Err(self.wrong(other)),
        }
    }

    fn close(&mut self, byte: u8) -> Result<Token, Stop> {
        let closed = if byte == b'}' { Container::Object } else { Container::List };
        if self.open.last() != Some(&closed) {
            return Err(self.wrong(byte));
        }
        self.open.pop();
        self.at += 1;
        self.expected = if self.open.is_empty() { Expected::Top } else { Expected::CommaOrClose };
        Ok(Token::Close(closed))
    }

    /// Takes a byte order mark.
    fn mark(&mut self) -> Result<(), Stop> {
        for expected in [0xef, 0xbb, 0xbf] {
            match self.peek()? {
                Some(byte) if byte == expected => self.at += 1,
                Some(byte) => return Err(self.wrong(byte)),
                None => return Err(Stop::Cut),
            }
        }
        Ok(())
    }

    /// Takes a number, or a word such as `null`.
    fn word(&mut self, keep: Keep) -> Result<Scalar, Stop> {
        self.text.clear();
        loop {
            // At the end of the input a number may go on: what is there of it is none.
            if self.at == self.filled && !self.fill()? {
                return Err(Stop::Cut);
            }
            let rest = self.buffer.get(self.at..self.filled).unwrap_or_default();
            let length = rest.iter().position(|byte| !is_of_word(*byte)).unwrap_or(rest.len());
            if self.text.len() + length > LONGEST_WORD {
                return Err(Stop::Wrong(format!("a value has more than {LONGEST_WORD} characters")));
            }
            self.text.extend(rest.iter().take(length));
            self.at += length;
            if self.at < self.filled {
                break;
            }
        }
        let word = std::str::from_utf8(&self.text).unwrap_or_default();
        match keep {
            Keep::Nothing if is_number(word) => Ok(Scalar::Null),
            Keep::Nothing | Keep::Values => scalar(word).ok_or_else(|| Stop::Wrong(format!("`{word}` is no value"))),
        }
    }

    /// Returns what was kept of the string that was read. Bytes that are no UTF-8 are replaced.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Takes a string with its quotes and keeps the beginning of it.
    fn string(&mut self, keep: Keep) -> Result<(), Stop> {
        self.at += 1;
        self.text.clear();
        let most = match keep {
            Keep::Values => MOST_KEPT,
            Keep::Nothing => 0,
        };
        loop {
            if self.at == self.filled && !self.fill()? {
                return Err(Stop::Cut);
            }
            let rest = self.buffer.get(self.at..self.filled).unwrap_or_default();
            let end = memchr2(b'"', b'\\', rest);
            let plain = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            if let Some(place) = plain.iter().position(|byte| *byte < 0x20) {
                let byte = plain.get(place).copied().unwrap_or_default();
                self.at += place;
                return Err(Stop::Wrong(format!("a string holds the control character 0x{byte:02x}")));
            }
            self.text.extend(plain.iter().take(most.saturating_sub(self.text.len())));
            let stopped_at = plain.len() + 1;
            match end.and_then(|end| rest.get(end)) {
                None => self.at = self.filled,
                Some(b'"') => {
                    self.at += stopped_at;
                    return Ok(());
                }
                Some(_) => {
                    self.at += stopped_at;
                    let character = self.escaped()?;
                    if self.text.len() + character.len_utf8() <= most {
                        self.text.extend(character.encode_utf8(&mut [0; 4]).bytes());
                    }
                }
            }
        }
    }

    /// Takes what follows a backslash. Halves of a surrogate pair are replaced: no key has any.
    fn escaped(&mut self) -> Result<char, Stop> {
        let byte = self.take()?;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = 0;
                for _ in 0..4 {
                    let digit = self.take()?;
                    let value = char::from(digit).to_digit(16);
                    code = code * 16
                        + value.ok_or_else(|| {
                            Stop::Wrong("`\\u` is not followed by four hexadecimal digits".to_owned())
                        })?;
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => return Err(Stop::Wrong(format!("`\\{}` is no escape", other.escape_ascii()))),
        })
    }

    fn take(&mut self) -> Result<u8, Stop> {
        let byte = self.peek()?.ok_or(Stop::Cut)?;
        self.at += 1;
        Ok(byte)
    }

    fn next_byte_that_is_no_blank(&mut self) -> Result<Option<u8>, Stop> {
        while let Some(byte) = self.peek()? {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                _ => return Ok(Some(byte)),
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn peek(&mut self) -> Result<Option<u8>, Stop> {
        if self.at == self.filled && !self.fill()? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.at).copied())
    }

    /// Reads on, and returns whether there was anything.
    fn fill(&mut self) -> Result<bool, Stop> {
        loop {
            match self.input.read(&mut self.buffer) {
                Ok(count) => {
                    self.at = 0;
                    self.filled = count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Input(error)),
            }
        }
    }

    fn wrong(&self, found: u8) -> Stop {
        let expected = match (self.expected, self.open.last()) {
            (Expected::Top, _) => "the `{` or `[` of a value",
            (Expected::Value, _) => "a value",
            (Expected::ValueOrClose, _) => "a value or `]`",
            (Expected::Key, _) => "a key",
            (Expected::KeyOrClose, _) => "a key or `}`",
            (Expected::Colon, _) => "the colon after a key",
            (Expected::CommaOrClose, Some(Container::List)) => "`,` or `]`",
            (Expected::CommaOrClose, Some(Container::Object) | None) => "`,` or `}`",
        };
        Stop::Wrong(format!("`{}` stands where {expected} was expected", found.escape_ascii()))
    }
}

/// Returns whether a byte may be in a number or a word.
fn is_of_word(byte: u8) -> bool {
    matches!(byte, b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_')
}

/// Returns the value that a word is.
fn scalar(word: &str) -> Option<Scalar> {
    Some(match word {
        "null" => Scalar::Null,
        "true" => Scalar::Flag(true),
        "false" => Scalar::Flag(false),
        "NaN" => Scalar::NotFinite("NaN"),
        "Infinity" => Scalar::NotFinite("Infinity"),
        "-Infinity" => Scalar::NotFinite("-Infinity"),
        number if is_number(number) => Scalar::Number(number.parse().ok()?),
        _ => return None,
    })
}

/// Returns whether a word is a number by the grammar of JSON, which has no `+1`, `.5`, `1.`, `01` or `inf`.
fn is_number(word: &str) -> bool {
    let word = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(are_digits)
        && exponent.is_none_or(|exponent| are_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

#[cfg(test)]
mod tests;
