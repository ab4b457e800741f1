//! Tells result files from console output by how they begin, and reads what may be either as both.

use std::io::{self, Read};

use super::console::Console;

/// The most bytes of blanks before a file's first other byte.
const MOST_BLANKS: usize = 1 << 12;

/// How a file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// As JSON does.
    Json,
    /// As anything else.
    Console,
}

impl Start {
    /// Reads as little as tells how a file begins, and returns what was read with it.
    pub(super) fn of(input: &mut impl Read) -> io::Result<(Vec<u8>, Self)> {
        let mut head = Vec::new();
        let mut byte = [0];
        loop {
            if let Some(start) = Self::tell(&head) {
                return Ok((head, start));
            }
            match input.read(&mut byte) {
                Ok(0) => return Ok((head, Self::Console)),
                Ok(_) => head.extend(byte),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns how a file begins if so much of it tells.
    fn tell(head: &[u8]) -> Option<Self> {
        if head.len() > MOST_BLANKS {
            return Some(Self::Console);
        }
        if matches!(head, [0xef] | [0xef, 0xbb]) {
            return None;
        }
        let text = head.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(head);
        let mut bytes = text.iter().filter(|byte| !byte.is_ascii_whitespace());
        match (bytes.next()?, bytes.next()) {
            // Loggers write `[2025-07-01 ..]` and `[INFO]`: only what no time and no word begins with is JSON.
            (b'{', _) | (b'[', Some(b'{' | b'[' | b'"' | b']')) => Some(Self::Json),
            (b'[', None) => None,
            _ => Some(Self::Console),
        }
    }
}

/// A reader that gives all it reads to a reader of console output, too.
pub(super) struct Tee<'a, R> {
    head: &'a [u8],
    input: &'a mut R,
    console: &'a mut Console,
}

impl<'a, R> Tee<'a, R> {
    pub(super) fn new(head: &'a [u8], input: &'a mut R, console: &'a mut Console) -> Self {
        Self { head, input, console }
    }
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = if self.head.is_empty() { self.input.read(into)? } else { self.head.read(into)? };
        self.console.feed(into.get(..count).unwrap_or_default());
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_as_json_does_is_told_from_what_loggers_begin_with() {
        for (text, start) in [
            (&b"{\"a\": 1}"[..], Start::Json),
            (b"\xef\xbb\xbf \n{", Start::Json),
            (b"[\n  {\"benchmark\"", Start::Json),
            (b"[]", Start::Json),
            (b"[2025-07-01 10:00:00] x", Start::Console),
            (b"[INFO] x", Start::Console),
            (b"\x1b[0m[{", Start::Console),
            (b"\r\nNamespace(", Start::Console),
            (b"[", Start::Console),
            (b"", Start::Console),
            (b"\xef", Start::Console),
        ] {
            let (head, found) = Start::of(&mut &text[..]).expect("a slice can be read");
            assert_eq!(found, start, "{}", text.escape_ascii());
            assert!(text.starts_with(&head));
        }
    }
}
