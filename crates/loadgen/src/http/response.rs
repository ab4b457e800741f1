//! One answer as a push decoder: bytes as they were read go in, head and body come out.

use super::HttpError;
use super::chunked::{self, Decoder};
use super::head::{self, Framing, Head, LONGEST_HEAD};

/// How an alert of TLS begins (RFC 8446, section 5.1), which a server of TLS answers to HTTP.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// A piece of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The head.
    Head(Head),
    /// Bytes of the body, never empty.
    Body(&'a [u8]),
    /// The answer is complete.
    End,
}

#[derive(Debug)]
enum State {
    Head,
    Counted { left: u64 },
    Chunked(Decoder),
    UntilClose,
    Done,
}

/// What it means that the connection closes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Nothing of the answer has come.
    BeforeHead,
    /// The head isn't whole.
    InHead,
    /// The body isn't whole.
    InBody,
    /// The answer is whole.
    AtEnd,
}

/// A decoder of one answer.
#[derive(Debug)]
pub struct Decode {
    state: State,
    head: Vec<u8>,
}

impl Default for Decode {
    fn default() -> Self {
        Self::new()
    }
}

impl Decode {
    /// Returns a decoder at the start of an answer.
    pub fn new() -> Self {
        Self { state: State::Head, head: Vec::new() }
    }

    /// Returns the next piece and moves `input` past it; `None` if `input` is used up or the answer is complete.
    ///
    /// # Errors
    /// Returns an error if the answer breaks the protocol.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, HttpError> {
        match &mut self.state {
            State::Head => self.next_of_head(input),
            State::Done => Ok(None),
            State::Counted { left: 0 } => {
                self.state = State::Done;
                Ok(Some(Piece::End))
            }
            State::Counted { left } => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                let (data, rest) = input.split_at(take);
                *left -= take as u64;
                *input = rest;
                Ok((!data.is_empty()).then_some(Piece::Body(data)))
            }
            State::UntilClose => {
                let data = std::mem::take(input);
                Ok((!data.is_empty()).then_some(Piece::Body(data)))
            }
            State::Chunked(decoder) => match decoder.next(input)? {
                Some(chunked::Piece::Data(data)) => Ok(Some(Piece::Body(data))),
                Some(chunked::Piece::End) => {
                    self.state = State::Done;
                    Ok(Some(Piece::End))
                }
                None => Ok(None),
            },
        }
    }

    /// Returns what it means that the connection closes now.
    pub fn closing(&self) -> Closing {
        match &self.state {
            State::Head if self.head.is_empty() => Closing::BeforeHead,
            State::Head => Closing::InHead,
            State::Counted { left: 0 } | State::UntilClose | State::Done => Closing::AtEnd,
            State::Counted { .. } | State::Chunked(_) => Closing::InBody,
        }
    }

    /// Returns the bytes of a head that isn't whole.
    pub fn head_so_far(&self) -> &[u8] {
        &self.head
    }

    fn next_of_head<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, HttpError> {
        loop {
            let from = self.head.len();
            let room = LONGEST_HEAD.saturating_sub(from);
            let (taken, _) = input.split_at(room.min(input.len()));
            self.head.extend_from_slice(taken);
            if self.head.starts_with(&TLS_ALERT) {
                return Err(HttpError::Tls);
            }
            if !head::is_complete(&self.head, from) {
                *input = input.get(taken.len()..).unwrap_or_default();
                return if input.is_empty() { Ok(None) } else { Err(HttpError::HeadTooLong) };
            }
            let (head, length) = head::parse(&self.head)?;
            *input = input.get(length.saturating_sub(from)..).unwrap_or_default();
            self.head.clear();
            // An interim answer (such as 100) is followed by the real one.
            if (100..200).contains(&head.status) {
                if input.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            self.state = match head.framing {
                Framing::Length(left) => State::Counted { left },
                Framing::Chunked => State::Chunked(Decoder::new()),
                Framing::UntilClose => State::UntilClose,
            };
            return Ok(Some(Piece::Head(head)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the reads: status, body, how it closes, and the bytes left behind the end.
    fn decode<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Result<(u16, String, Closing, usize), HttpError> {
        let mut decode = Decode::new();
        let (mut status, mut body, mut left) = (0, Vec::new(), 0);
        for mut input in reads {
            while let Some(piece) = decode.next(&mut input)? {
                match piece {
                    Piece::Head(head) => status = head.status,
                    Piece::Body(data) => body.extend_from_slice(data),
                    Piece::End => {}
                }
            }
            left += input.len();
        }
        Ok((status, String::from_utf8(body).unwrap(), decode.closing(), left))
    }

    fn check(answer: &str, expected: (u16, &str, Closing, usize)) {
        let expected = Ok((expected.0, expected.1.to_owned(), expected.2, expected.3));
        for size in 1..=answer.len() {
            assert_eq!(decode(answer.as_bytes().chunks(size)), expected, "{answer:?} in reads of {size}");
        }
    }

    #[test]
    fn every_framing_is_read_however_it_is_split() {
        let ok = "HTTP/1.1 200 OK\r\n";
        check(&format!("{ok}Content-Length: 3\r\n\r\nabc"), (200, "abc", Closing::AtEnd, 0));
        check(&format!("{ok}Content-Length: 3\r\n\r\nabcd"), (200, "abc", Closing::AtEnd, 1));
        check(&format!("{ok}Content-Length: 4\r\n\r\nabc"), (200, "abc", Closing::InBody, 0));
        check(&format!("{ok}Content-Length: 0\r\n\r\n"), (200, "", Closing::AtEnd, 0));
        check(&format!("{ok}\r\nabc"), (200, "abc", Closing::AtEnd, 0));
        check(&format!("{ok}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), (200, "abc", Closing::AtEnd, 0));
        check(&format!("{ok}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"), (200, "abc", Closing::InBody, 0));
        check(ok, (0, "", Closing::InHead, 0));
        check("\r\n\nHTTP/1.1 200 OK\nContent-Length: 3\n\r\nabc", (200, "abc", Closing::AtEnd, 0));
    }

    #[test]
    fn an_interim_answer_is_passed_over() {
        let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        check(answer, (200, "x", Closing::AtEnd, 0));
    }

    #[test]
    fn an_alert_of_tls_is_known() {
        let alert: &[u8] = &[0x15, 3, 3, 0, 2, 2, 10];
        assert_eq!(decode(alert.chunks(1)), Err(HttpError::Tls));
    }

    #[test]
    fn an_endless_head_is_refused() {
        let line = [b'x'; 1024];
        let reads = (0..100).map(|_| line.as_slice());
        assert_eq!(decode(reads), Err(HttpError::HeadTooLong));
    }
}
