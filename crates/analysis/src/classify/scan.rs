//! Cuts a log into segments and gives only those in which a trigger stands, so that a healthy log costs one fast search.

use memchr::{memchr_iter, memchr2, memrchr2};

use super::triggers::Triggers;

/// The longest segment that is looked at, in bytes; what follows in it is passed over.
pub(super) const LONGEST: usize = 1 << 16;

/// A segment in which a trigger stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    /// The line that it is in, from 1.
    pub(super) line: u64,
    /// The byte at which it begins.
    pub(super) offset: u64,
    /// Its bytes, at most [`LONGEST`].
    pub(super) bytes: &'a [u8],
}

/// A push reader of such segments. It keeps at most one segment.
#[derive(Debug)]
pub(super) struct Scan {
    /// The beginning of a segment that hasn't ended yet.
    held: Vec<u8>,
    /// Where that segment begins.
    begin: u64,
    /// Bytes that were read.
    read: u64,
    /// The line in which the next byte is.
    line: u64,
    /// The end of the last segment that isn't blank, for logs that stop within a progress bar.
    last: Vec<u8>,
    last_at: (u64, u64),
}

impl Default for Scan {
    fn default() -> Self {
        Self { held: Vec::new(), begin: 0, read: 0, line: 1, last: Vec::new(), last_at: (1, 0) }
    }
}

impl Scan {
    /// Gives each segment with a trigger that ends within `bytes`, in order.
    pub(super) fn feed(&mut self, triggers: &Triggers, bytes: &[u8], mut each: impl FnMut(Found<'_>)) {
        let mut from = 0;
        if self.begin < self.read {
            let end = memchr2(b'\n', b'\r', bytes);
            self.hold(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
            let Some(end) = end else {
                self.read += bytes.len() as u64;
                return;
            };
            self.give_held(triggers, &mut each);
            self.line += u64::from(bytes.get(end) == Some(&b'\n'));
            from = end + 1;
        }
        let whole = memrchr2(b'\n', b'\r', bytes).map_or(from, |last| (last + 1).max(from));
        self.scan_whole(triggers, bytes, from..whole, &mut each);
        self.note_last(bytes, from..whole);
        self.held.clear();
        self.begin = self.read + whole as u64;
        self.hold(bytes.get(whole..).unwrap_or_default());
        self.read += bytes.len() as u64;
    }

    /// Gives the segment that is left, if it has a trigger, and then the last one that isn't blank.
    pub(super) fn finish(
        mut self,
        triggers: &Triggers,
        mut each: impl FnMut(Found<'_>),
        last: impl FnOnce(Found<'_>),
    ) -> u64 {
        if self.begin < self.read {
            self.give_held(triggers, &mut each);
        }
        last(Found { line: self.last_at.0, offset: self.last_at.1, bytes: &self.last });
        self.read
    }

    /// Gives the segments with triggers of a range that ends with a segment.
    fn scan_whole(
        &mut self,
        triggers: &Triggers,
        bytes: &[u8],
        range: std::ops::Range<usize>,
        each: &mut impl FnMut(Found<'_>),
    ) {
        let whole = bytes.get(..range.end).unwrap_or_default();
        let (mut cursor, mut counted) = (range.start, range.start);
        let mut search = triggers.search(whole);
        while let Some(found) = search.from(cursor) {
            let before = whole.get(cursor..found.start).unwrap_or_default();
            let start = memrchr2(b'\n', b'\r', before).map_or(cursor, |end| cursor + end + 1);
            let rest = whole.get(found.start..).unwrap_or_default();
            let end = memchr2(b'\n', b'\r', rest).map_or(whole.len(), |end| found.start + end);
            self.line += lines(whole, counted, start);
            counted = start;
            if found.end - start <= LONGEST {
                let bytes = whole.get(start..end.min(start + LONGEST)).unwrap_or_default();
                each(Found { line: self.line, offset: self.read + start as u64, bytes });
            }
            cursor = (end + 1).min(whole.len());
        }
        self.line += lines(whole, counted, whole.len());
    }

    /// Adds to the segment that hasn't ended yet.
    fn hold(&mut self, piece: &[u8]) {
        let room = LONGEST.saturating_sub(self.held.len());
        self.held.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
    }

    fn give_held(&mut self, triggers: &Triggers, each: &mut impl FnMut(Found<'_>)) {
        if triggers.is_in(&self.held) {
            each(Found { line: self.line, offset: self.begin, bytes: &self.held });
        }
        if !self.held.trim_ascii().is_empty() {
            self.last.clone_from(&self.held);
            self.last_at = (self.line, self.begin);
        }
        self.held.clear();
    }

    /// Keeps the last segment of a range that isn't blank. The line of the next byte must be known.
    fn note_last(&mut self, bytes: &[u8], range: std::ops::Range<usize>) {
        let whole = bytes.get(range.clone()).unwrap_or_default();
        let end = whole.trim_ascii_end().len();
        let text = whole.get(..end).unwrap_or_default();
        if text.is_empty() {
            return;
        }
        let start = memrchr2(b'\n', b'\r', text).map_or(0, |end| end + 1);
        let segment = text.get(start..).unwrap_or_default();
        self.last.clear();
        self.last.extend_from_slice(segment.get(..LONGEST.min(segment.len())).unwrap_or_default());
        let after = memchr_iter(b'\n', whole.get(start..).unwrap_or_default()).count() as u64;
        self.last_at = (self.line - after, self.read + (range.start + start) as u64);
    }
}

fn lines(bytes: &[u8], from: usize, to: usize) -> u64 {
    memchr_iter(b'\n', bytes.get(from..to).unwrap_or_default()).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments by line, offset and text.
    type Segments = Vec<(u64, u64, String)>;

    fn found(text: &[u8], chunk: usize) -> (Segments, (u64, String)) {
        let triggers = Triggers::new(&["rror", "raceback"]);
        let mut scan = Scan::default();
        let mut segments = Vec::new();
        let mut each =
            |found: Found<'_>| segments.push((found.line, found.offset, String::from_utf8_lossy(found.bytes).into()));
        for piece in text.chunks(chunk) {
            scan.feed(&triggers, piece, &mut each);
        }
        let mut last = (0, String::new());
        scan.finish(&triggers, each, |found| last = (found.line, String::from_utf8_lossy(found.bytes).into()));
        (segments, last)
    }

    #[test]
    fn segments_with_triggers_are_found_however_they_are_fed() {
        let text = b"one\nan error\r\nfine\rKeyError: x\n\n\n Traceback:\r\rlast  \r\n \n";
        let expected = [(2, 4, "an error"), (3, 19, "KeyError: x"), (6, 33, " Traceback:")];
        let expected: Vec<_> = expected.map(|(line, offset, text)| (line, offset, text.to_owned())).into();
        for chunk in 1..=text.len() {
            let (segments, last) = found(text, chunk);
            assert_eq!(segments, expected, "in chunks of {chunk}");
            assert_eq!((last.0, last.1.trim_end()), (6, "last"), "in chunks of {chunk}");
        }
    }

    #[test]
    fn a_log_may_end_without_a_line_end() {
        for chunk in [1, 5, 100] {
            let (segments, last) = found(b"a\nlast Error", chunk);
            assert_eq!(segments, [(2, 2, "last Error".to_owned())]);
            assert_eq!(last, (2, "last Error".to_owned()));
        }
        assert_eq!(found(b"", 1), (Vec::new(), (1, String::new())));
    }

    #[test]
    fn only_the_beginning_of_an_endless_line_is_looked_at() {
        let mut text = vec![b'x'; LONGEST - 2];
        text.extend(b" KeyError error error\nerror\n");
        for chunk in [999, LONGEST, text.len()] {
            let (segments, _) = found(&text, chunk);
            assert_eq!(segments.iter().map(|found| found.0).collect::<Vec<_>>(), [2], "in chunks of {chunk}");
        }
    }
}
