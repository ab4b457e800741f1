//! Cuts a stream of bytes into segments, which end with a line feed, a carriage return, or where the input ends.

use memchr::memchr2;

/// The longest segment that is kept whole, in bytes. What is longer is cut there, and said to be.
pub const LONGEST: usize = 1 << 16;

/// What ends a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A line feed, with any carriage returns before it: a terminal makes two of them of Windows' line ends.
    Line,
    /// Carriage returns alone, after which a terminal would write over the line.
    Return,
    /// Nothing: the input ends here, and more may have been written.
    Input,
}

/// A piece of a log that was written at once, most likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The line that it is in, from 1. A carriage return alone doesn't end a line.
    pub line: u64,
    /// The byte of the input at which it begins.
    pub offset: u64,
    /// Its bytes, without what ends it.
    pub bytes: &'a [u8],
    /// What ends it.
    pub end: End,
    /// Whether it was longer than [`LONGEST`], so that `bytes` is only its beginning.
    pub cut: bool,
}

/// A push reader of segments. It keeps at most one segment.
#[derive(Debug, Clone)]
pub struct Segments {
    held: Vec<u8>,
    cut: bool,
    line: u64,
    begin: u64,
    read: u64,
    /// Whether carriage returns were the last bytes that were read.
    after_return: bool,
}

impl Default for Segments {
    fn default() -> Self {
        Self { held: Vec::new(), cut: false, line: 1, begin: 0, read: 0, after_return: false }
    }
}

impl Segments {
    /// Gives each segment that ends within `bytes`, in order.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Segment<'_>)) {
        let mut rest = bytes;
        if self.after_return {
            let Some(left) = self.end_returns(rest, &[], &mut each) else { return };
            rest = left;
        }
        while let Some(place) = memchr2(b'\n', b'\r', rest) {
            let (piece, tail) = rest.split_at(place);
            self.read += piece.len() as u64;
            let Some(left) = self.end_returns(tail, piece, &mut each) else { return };
            rest = left;
        }
        self.hold(rest);
        self.read += rest.len() as u64;
    }

    /// Gives what is left, if anything is.
    pub fn finish(mut self, mut each: impl FnMut(Segment<'_>)) {
        if self.after_return {
            self.give(&[], End::Return, &mut each);
        } else if !self.held.is_empty() {
            self.give(&[], End::Input, &mut each);
        }
    }

    /// Ends a segment, whose last bytes `piece` are, by the carriage returns and the line feed at the beginning of `bytes`.
    /// Returns what is left, or nothing if only the next byte shows what ends it.
    fn end_returns<'a>(
        &mut self,
        bytes: &'a [u8],
        piece: &[u8],
        each: &mut impl FnMut(Segment<'_>),
    ) -> Option<&'a [u8]> {
        let returns = bytes.iter().take_while(|byte| **byte == b'\r').count();
        let left = bytes.get(returns..).unwrap_or_default();
        self.read += returns as u64;
        self.after_return = left.is_empty();
        if self.after_return {
            self.hold(piece);
            return None;
        }
        let line = left.strip_prefix(b"\n");
        self.give(piece, if line.is_some() { End::Line } else { End::Return }, each);
        self.read += u64::from(line.is_some());
        self.begin = self.read;
        Some(line.unwrap_or(left))
    }

    fn hold(&mut self, piece: &[u8]) {
        let room = LONGEST.saturating_sub(self.held.len());
        self.cut |= piece.len() > room;
        self.held.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
    }

    fn give(&mut self, piece: &[u8], end: End, each: &mut impl FnMut(Segment<'_>)) {
        let (line, offset) = (self.line, self.begin);
        if self.held.is_empty() && piece.len() <= LONGEST {
            each(Segment { line, offset, bytes: piece, end, cut: self.cut });
        } else {
            self.hold(piece);
            each(Segment { line, offset, bytes: &self.held, end, cut: self.cut });
            self.held.clear();
        }
        self.cut = false;
        if end == End::Line {
            self.line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(bytes: &[u8], chunk: usize) -> Vec<(u64, u64, String, End, bool)> {
        let mut found = Vec::new();
        let mut each = |segment: Segment<'_>| {
            let text = String::from_utf8_lossy(segment.bytes).into_owned();
            found.push((segment.line, segment.offset, text, segment.end, segment.cut));
        };
        let mut reader = Segments::default();
        for piece in bytes.chunks(chunk) {
            reader.feed(piece, &mut each);
        }
        reader.finish(&mut each);
        found
    }

    #[test]
    fn segments_end_where_lines_and_carriage_returns_do_however_they_are_fed() {
        let text = b"one\r\ntwo\rthree\n\n\r\rfour\r\r\nfive";
        let expected = [
            (1, 0, "one", End::Line),
            (2, 5, "two", End::Return),
            (2, 9, "three", End::Line),
            (3, 15, "", End::Line),
            (4, 16, "", End::Return),
            (4, 18, "four", End::Line),
            (5, 25, "five", End::Input),
        ];
        let expected: Vec<_> = expected.map(|(line, at, text, end)| (line, at, text.to_owned(), end, false)).into();
        for chunk in 1..=text.len() {
            assert_eq!(segments(text, chunk), expected, "in chunks of {chunk}");
        }
    }

    #[test]
    fn the_last_segment_says_whether_it_was_ended() {
        assert_eq!(segments(b"a\n", 1).len(), 1);
        assert_eq!(segments(b"a\r", 1), [(1, 0, "a".to_owned(), End::Return, false)]);
        assert_eq!(segments(b"", 1), []);
    }

    #[test]
    fn an_endless_line_is_cut_and_its_end_still_found() {
        let mut text = vec![b'x'; LONGEST + 10];
        text.extend(b"\nnext\n");
        for chunk in [1000, text.len()] {
            let found = segments(&text, chunk);
            assert_eq!(
                found.iter().map(|segment| (segment.0, segment.2.len(), segment.4)).collect::<Vec<_>>(),
                [(1, LONGEST, true), (2, 4, false)]
            );
            assert_eq!(found.last().map(|segment| segment.1), Some(LONGEST as u64 + 11));
        }
    }
}
