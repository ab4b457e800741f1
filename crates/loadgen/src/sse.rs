//! Server-sent events: a push parser that takes bytes however they are split.
//!
//! The rules are those of the HTML standard, section "Interpreting an event stream": lines end in LF, CRLF or CR; a line
//! that starts with a colon is a comment; several `data` lines make one event; a byte order mark at the start is skipped.
//! Beyond them, a field `error` makes an event of the kind `error`.
//! Data stay bytes, so that a character split over two reads is never damaged.

/// The longest event that is accepted, in bytes.
pub const LONGEST_EVENT: usize = 16 * 1024 * 1024;

/// An event longer than [`LONGEST_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {LONGEST_EVENT} bytes")]
pub struct EventTooLongError;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The field `event`; empty if there is none.
    pub kind: &'a [u8],
    /// The `data` lines, joined by LF.
    pub data: &'a [u8],
}

/// A parser of one stream.
#[derive(Debug, Default)]
pub struct Parser {
    /// The line at hand, as far as it has come.
    line: Vec<u8>,
    kind: Vec<u8>,
    data: Vec<u8>,
    pending: Pending,
    /// The last byte was a CR, so that an LF that follows belongs to it.
    after_cr: bool,
    past_first_line: bool,
}

/// What `kind` and `data` hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Pending {
    /// No data.
    #[default]
    Nothing,
    /// The data of an event that hasn't ended.
    Data,
    /// An event that was handed out.
    HandedOut,
}

impl Parser {
    /// Returns a parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the next event that ends in `input` and moves `input` past it; `None` if `input` is used up. An event that
    /// lies in `input` whole is borrowed from it.
    ///
    /// # Errors
    /// Returns an error if the event at hand is too long. The parser must not be used after that.
    pub fn next<'p, 'i: 'p>(&'p mut self, input: &mut &'i [u8]) -> Result<Option<Event<'p>>, EventTooLongError> {
        self.clear_handed_out();
        if let Some(data) = self.whole_event(input) {
            return Ok(Some(Event { kind: &[], data }));
        }
        while let Some((&first, rest)) = input.split_first() {
            if self.after_cr {
                self.after_cr = false;
                if first == b'\n' {
                    *input = rest;
                    continue;
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                self.line.extend_from_slice(input);
                *input = &[];
                self.check_length(0)?;
                break;
            };
            let (line, rest) = input.split_at(end);
            self.check_length(line.len())?;
            self.after_cr = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            let ends_event = if self.line.is_empty() {
                self.take_line(line)
            } else {
                self.line.extend_from_slice(line);
                let whole = std::mem::take(&mut self.line);
                let ends_event = self.take_line(&whole);
                self.line = whole;
                self.line.clear();
                ends_event
            };
            if ends_event {
                return Ok(Some(self.hand_out()));
            }
        }
        Ok(None)
    }

    /// Returns the data of an event that is all that `input` begins with, as almost every one is: one `data` line and an
    /// empty one. Moves `input` past it.
    fn whole_event<'i>(&mut self, input: &mut &'i [u8]) -> Option<&'i [u8]> {
        let is_between = self.line.is_empty() && self.kind.is_empty() && self.pending == Pending::Nothing;
        if !is_between {
            return None;
        }
        let whole: &'i [u8] = input;
        let whole = if self.after_cr { whole.strip_prefix(b"\n").unwrap_or(whole) } else { whole };
        let value = whole.strip_prefix(b"data:")?;
        let (data, ends) = value.split_at(memchr::memchr2(b'\n', b'\r', value)?);
        let rest = ends.strip_prefix(b"\n\n").or_else(|| ends.strip_prefix(b"\r\n\r\n"))?;
        self.check_length(b"data:".len() + data.len()).ok()?;
        self.after_cr = false;
        self.past_first_line = true;
        *input = rest;
        Some(data.strip_prefix(b" ").unwrap_or(data))
    }

    /// Returns the event that the stream ended in, where its last blank line is missing.
    pub fn finish(&mut self) -> Option<Event<'_>> {
        self.clear_handed_out();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line);
        }
        (self.pending == Pending::Data).then(|| self.hand_out())
    }

    /// Takes a line without its end; returns whether it ends an event that has data.
    fn take_line(&mut self, line: &[u8]) -> bool {
        let mut line = line;
        if !self.past_first_line {
            self.past_first_line = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let has_data = self.pending == Pending::Data;
            if !has_data {
                self.kind.clear();
            }
            return has_data;
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = colon.map_or((line, &[][..]), |at| line.split_at(at));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.pending == Pending::Data {
                    self.data.push(b'\n');
                }
                self.pending = Pending::Data;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.kind.clear();
                self.kind.extend_from_slice(value);
            }
            // llama.cpp sends an error as a field of this name, which the standard doesn't know.
            b"error" => {
                self.kind.clear();
                self.kind.extend_from_slice(b"error");
                self.pending = Pending::Data;
                self.data.extend_from_slice(value);
            }
            // A comment has the empty field; `id`, `retry` and unknown fields mean nothing here.
            _ => {}
        }
        false
    }

    fn hand_out(&mut self) -> Event<'_> {
        self.pending = Pending::HandedOut;
        Event { kind: &self.kind, data: &self.data }
    }

    fn clear_handed_out(&mut self) {
        if self.pending == Pending::HandedOut {
            self.pending = Pending::Nothing;
            self.data.clear();
            self.kind.clear();
        }
    }

    /// Checks the length of the event with so many bytes more: the same, however it comes.
    fn check_length(&self, more: usize) -> Result<(), EventTooLongError> {
        let length = self.line.len() + self.kind.len() + self.data.len() + more;
        if length > LONGEST_EVENT { Err(EventTooLongError) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (String, Vec<u8>);

    /// Parses the pieces one after the other, and the end.
    fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
        let mut parser = Parser::new();
        let mut events = Vec::new();
        let own = |event: Event<'_>| (String::from_utf8(event.kind.to_vec()).unwrap(), event.data.to_vec());
        for mut piece in pieces {
            while let Some(event) = parser.next(&mut piece).unwrap() {
                events.push(own(event));
            }
        }
        events.extend(parser.finish().map(own));
        events
    }

    fn check(stream: &str, expected: &[&str]) {
        let expected: Vec<Owned> = expected.iter().map(|data| (String::new(), data.as_bytes().to_vec())).collect();
        let bytes = stream.as_bytes();
        assert_eq!(parse([bytes]), expected, "{stream:?} whole");
        for at in 0..=bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(parse([a, b]), expected, "{stream:?} split at {at}");
        }
        assert_eq!(parse(bytes.chunks(1)), expected, "{stream:?} byte by byte");
    }

    #[test]
    fn all_three_line_ends_are_the_same() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\n\ndata: b\r\r\n", &["a", "b"]);
    }

    #[test]
    fn comments_other_fields_and_empty_events_are_no_events() {
        check(": ping\n\n\n: ping\ndata: a\n: ping\nid: 1\nretry: 5\nother\n\n\n\n", &["a"]);
        check("event: x\n\ndata: a\n\n", &["a"]);
    }

    #[test]
    fn several_data_lines_are_joined() {
        check("data: {\ndata\ndata:}\n\n", &["{\n\n}"]);
    }

    #[test]
    fn one_space_after_the_colon_is_dropped_and_no_more() {
        check("data:a\n\ndata: b\n\ndata:  c \n\n", &["a", "b", " c "]);
    }

    #[test]
    fn a_byte_order_mark_and_split_characters_do_no_harm() {
        check("\u{feff}data: größe 🦀\n\ndata: \u{feff}x\n\n", &["größe 🦀", "\u{feff}x"]);
    }

    #[test]
    fn a_stream_may_end_without_its_last_blank_line() {
        check("data: a\n\ndata: [DONE]\n", &["a", "[DONE]"]);
        check("data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
        check("data: a\n\ndata: b\r", &["a", "b"]);
    }

    #[test]
    fn the_kind_of_an_event_is_kept_for_that_event_only() {
        let events = parse([b"event: error\ndata: a\n\ndata: b\n\n".as_slice()]);
        assert_eq!(events, [("error".to_owned(), b"a".to_vec()), (String::new(), b"b".to_vec())]);
        let events = parse([b"error: {}\n\ndata: b\n\n".as_slice()]);
        assert_eq!(events, [("error".to_owned(), b"{}".to_vec()), (String::new(), b"b".to_vec())]);
    }

    #[test]
    fn an_event_that_lies_in_a_read_is_borrowed_from_it() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", ["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
            ("data: a\n\ndata:\n\n", ["a", ""]),
        ] {
            let mut parser = Parser::new();
            let mut input = stream.as_bytes();
            let range = input.as_ptr_range();
            for data in expected {
                let event = parser.next(&mut input).unwrap().unwrap();
                assert_eq!(event.data, data.as_bytes());
                assert!(range.contains(&event.data.as_ptr()) || event.data.is_empty());
            }
            assert_eq!(parser.next(&mut input), Ok(None));
            assert_eq!(parser.data.capacity(), 0);
        }
    }

    #[test]
    fn the_longest_event_is_read_and_a_longer_one_refused_however_it_comes() {
        for (length, is_read) in [(LONGEST_EVENT - 6, true), (LONGEST_EVENT - 5, false), (LONGEST_EVENT, false)] {
            let stream = ["data: ".as_bytes(), &vec![b'x'; length], b"\n\n"].concat();
            for size in [1 << 20, stream.len()] {
                let mut parser = Parser::new();
                let mut found = Ok(None);
                for mut piece in stream.chunks(size) {
                    match parser.next(&mut piece) {
                        Ok(None) => {}
                        Ok(Some(event)) => found = Ok(Some(event.data.len())),
                        Err(error) => {
                            found = Err(error);
                            break;
                        }
                    }
                }
                let expected = if is_read { Ok(Some(length)) } else { Err(EventTooLongError) };
                assert_eq!(found, expected, "{length} bytes in pieces of {size}");
            }
        }
    }

    #[test]
    fn an_endless_event_is_refused_before_it_fills_the_memory() {
        let piece = vec![b'x'; 1 << 20];
        let mut parser = Parser::new();
        let refused = (0..32).find(|_| parser.next(&mut piece.as_slice()).is_err());
        assert_eq!(refused, Some(16));
        let mut parser = Parser::new();
        let line = [b"data:".as_slice(), &piece, b"\n"].concat();
        let refused = (0..32).find(|_| parser.next(&mut line.as_slice()).is_err());
        assert_eq!(refused, Some(15));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            lines in proptest::collection::vec(
                prop_oneof![Just(""), Just("data: a"), Just("data:ä🦀"), Just(": c"), Just("event: e"), Just("data")], 0..20),
            ends in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 20),
            cuts in proptest::collection::vec(0_usize..200, 0..10),
        ) {
            let stream: String = lines.iter().zip(&ends).flat_map(|(line, end)| [*line, *end]).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([stream.len()]) {
                pieces.push(&stream.as_bytes()[from..cut]);
                from = cut;
            }
            prop_assert_eq!(parse(pieces), parse([stream.as_bytes()]));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut parser = Parser::new();
            let mut input = bytes.as_slice();
            while parser.next(&mut input).unwrap().is_some() {}
            let _ = parser.finish();
        }
    }
}
