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

/// How many bytes tell that a file is none of text.
const TELLING: usize = 8;

/// A reader that keeps the first bytes that it reads.
pub(super) struct Beginning<R> {
    input: R,
    first: Vec<u8>,
}

impl<R: Read> Beginning<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, first: Vec::new() }
    }

    /// Returns what the file is and what is to be done with it, in words for people, if it is none of text in UTF-8.
    pub(super) fn disguise(&self) -> Option<&'static str> {
        match self.first.as_slice() {
            [0x1f, 0x8b, ..] => Some("the file is compressed by gzip: decompress it first"),
            [b'B', b'Z', b'h', ..] => Some("the file is compressed by bzip2: decompress it first"),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("the file is compressed by xz: decompress it first"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("the file is compressed by Zstandard: decompress it first"),
            [b'P', b'K', 3, 4, ..] => Some("the file is a ZIP archive: unpack it first"),
            [0xff, 0xfe, _, 0, ..]
            | [0xfe, 0xff, 0, ..]
            | [1..=0xff, 0, 1..=0xff, 0, ..]
            | [0, 1..=0xff, 0, 1..=0xff, ..] => {
                Some("the text is in UTF-16, as PowerShell writes it: convert it to UTF-8 first")
            }
            _ => None,
        }
    }
}

impl<R: Read> Read for Beginning<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        let room = TELLING.saturating_sub(self.first.len());
        self.first.extend(into.iter().take(count.min(room)));
        Ok(count)
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
    fn files_that_are_no_text_are_told() {
        for (bytes, word) in [
            (&b"\x1f\x8b\x08\0\0"[..], Some("gzip")),
            (b"BZh91AY", Some("bzip2")),
            (b"\xfd7zXZ\0", Some(" xz")),
            (b"\x28\xb5\x2f\xfd\x04", Some("Zstandard")),
            (b"PK\x03\x04", Some("ZIP")),
            (b"\xff\xfe=\0=\0", Some("UTF-16")),
            (b"\xfe\xff\0=", Some("UTF-16")),
            (b"{\0\"\0d\0", Some("UTF-16")),
            (b"\0{\0\"", Some("UTF-16")),
            (b"\0\0\0\0====", None),
            (b"BZ", None),
            (b"====", None),
            (b"", None),
        ] {
            let mut beginning = Beginning::new(bytes);
            io::copy(&mut beginning, &mut io::sink()).expect("a slice can be read");
            let told = beginning.disguise();
            assert_eq!(told.is_some(), word.is_some(), "{}", bytes.escape_ascii());
            assert!(told.unwrap_or_default().contains(word.unwrap_or_default()), "{told:?}");
        }
    }

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
