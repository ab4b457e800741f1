//! The chunked transfer encoding (RFC 9112, section 7.1), strictly: CRLF everywhere, no white space around sizes.

use super::HttpError;

/// The most bytes of one chunk's extensions, and of the trailer section, that are accepted.
const LONGEST_EXTRA: usize = 16 * 1024;
/// The most digits of a chunk's size.
const MOST_DIGITS: u32 = 12;

/// A piece of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes of the body, never empty.
    Data(&'a [u8]),
    /// The body is complete.
    End,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// In a chunk's size, after so many digits.
    Size { size: u64, digits: u32 },
    /// In a chunk's extensions.
    Extension { size: u64 },
    /// After the CR that ends a chunk's first line.
    SizeLf { size: u64 },
    /// In a chunk, with so many bytes to come.
    Data { left: u64 },
    /// After a chunk's data.
    DataCr,
    /// After the CR behind a chunk's data.
    DataLf,
    /// At the start of a line of the trailer section.
    TrailerStart,
    /// In a line of the trailer section.
    Trailer,
    /// After the CR that ends a line of the trailer section.
    TrailerLf,
    /// After the CR of the last, empty line.
    EndLf,
    /// After the end.
    Done,
}

/// A decoder of one body.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    extra: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Returns a decoder at the start of a body.
    pub fn new() -> Self {
        Self { state: State::Size { size: 0, digits: 0 }, extra: 0 }
    }

    /// Returns the next piece and moves `input` past it; `None` if `input` is used up. After the end, `input` stays as
    /// it is.
    ///
    /// # Errors
    /// Returns an error at the first byte that breaks the encoding.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, HttpError> {
        while let Some((&byte, rest)) = input.split_first() {
            match self.state {
                State::Done => return Ok(None),
                State::Data { left } => {
                    let take = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    let (data, rest) = input.split_at(take);
                    let left = left - take as u64;
                    self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                    *input = rest;
                    return Ok(Some(Piece::Data(data)));
                }
                State::Size { .. }
                | State::Extension { .. }
                | State::SizeLf { .. }
                | State::DataCr
                | State::DataLf
                | State::TrailerStart
                | State::Trailer
                | State::TrailerLf
                | State::EndLf => {
                    self.state = self.step(byte)?;
                    *input = rest;
                    if matches!(self.state, State::Done) {
                        return Ok(Some(Piece::End));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the state after a byte that isn't data.
    fn step(&mut self, byte: u8) -> Result<State, HttpError> {
        let state = match (self.state, byte) {
            (State::Size { digits, .. }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits >= MOST_DIGITS => {
                return broken("a chunk's size has too many digits", byte);
            }
            (State::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                State::Size { size: size * 16 + digit, digits: digits + 1 }
            }
            (State::Size { size, digits }, b'\r') if digits > 0 => State::SizeLf { size },
            (State::Size { size, digits }, b';') if digits > 0 => State::Extension { size },
            (State::Size { .. }, _) => return broken("a chunk's size is no hexadecimal number", byte),
            (State::Extension { size }, b'\r') => State::SizeLf { size },
            (State::Extension { .. } | State::TrailerStart | State::Trailer, b'\n') => {
                return broken("a line ends in LF alone", byte);
            }
            (state @ State::Extension { .. }, _) => self.one_more(state)?,
            (State::SizeLf { size: 0 } | State::TrailerLf, b'\n') => State::TrailerStart,
            (State::SizeLf { size }, b'\n') => State::Data { left: size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataCr, _) => return broken("a chunk is longer than its size", byte),
            (State::DataLf, b'\n') => {
                self.extra = 0;
                State::Size { size: 0, digits: 0 }
            }
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::TrailerStart | State::Trailer, _) => self.one_more(State::Trailer)?,
            (State::EndLf, b'\n') => State::Done,
            (State::SizeLf { .. } | State::DataLf | State::TrailerLf | State::EndLf, _) => {
                return broken("a CR is not followed by an LF", byte);
            }
            (state @ (State::Data { .. } | State::Done), _) => state,
        };
        Ok(state)
    }

    fn one_more(&mut self, state: State) -> Result<State, HttpError> {
        self.extra += 1;
        if self.extra > LONGEST_EXTRA {
            let reason = format!("extensions or trailers are longer than {LONGEST_EXTRA} bytes");
            return Err(HttpError::Chunk { reason });
        }
        Ok(state)
    }
}

fn broken<T>(what: &str, byte: u8) -> Result<T, HttpError> {
    Err(HttpError::Chunk { reason: format!("{what} (at the byte `{}`)", std::ascii::escape_default(byte)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes the pieces: the body if it came to its end, and what was left behind it.
    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<u8>, Option<usize>), String> {
        let mut decoder = Decoder::new();
        let (mut body, mut left) = (Vec::new(), None);
        for mut input in pieces {
            loop {
                match decoder.next(&mut input).map_err(|error| error.to_string())? {
                    Some(Piece::Data(data)) => body.extend_from_slice(data),
                    Some(Piece::End) => left = Some(0),
                    None => break,
                }
            }
            left = left.map(|left| left + input.len());
        }
        Ok((body, left))
    }

    fn check(stream: &str, expected: Result<(&str, Option<usize>), &str>) {
        let expected = expected
            .map(|(body, left)| (body.as_bytes().to_vec(), left))
            .map_err(|reason| format!("the chunked encoding is broken: {reason}"));
        assert_eq!(decode([stream.as_bytes()]), expected, "{stream:?}");
        assert_eq!(decode(stream.as_bytes().chunks(1)), expected, "{stream:?} byte by byte");
    }

    #[test]
    fn sizes_extensions_and_trailers_are_read() {
        check("3\r\nabc\r\n0\r\n\r\n", Ok(("abc", Some(0))));
        check("00A;x=\"y\"\r\n0123456789\r\n1\r\n!\r\n0\r\nA: b\r\nC: d\r\n\r\nnext", Ok(("0123456789!", Some(4))));
        check("3\r\nab", Ok(("ab", None)));
        check("0\r\n\r", Ok(("", None)));
    }

    #[test]
    fn anything_else_is_refused() {
        check("x\r\n", Err("a chunk's size is no hexadecimal number (at the byte `x`)"));
        check("\r\n", Err("a chunk's size is no hexadecimal number (at the byte `\\r`)"));
        check("3\nabc", Err("a chunk's size is no hexadecimal number (at the byte `\\n`)"));
        check(" 3\r\nabc", Err("a chunk's size is no hexadecimal number (at the byte ` `)"));
        check("3;a\nabc", Err("a line ends in LF alone (at the byte `\\n`)"));
        check("2\r\nabc", Err("a chunk is longer than its size (at the byte `c`)"));
        check("2\r\nab\rX", Err("a CR is not followed by an LF (at the byte `X`)"));
        check("0\r\n\n", Err("a line ends in LF alone (at the byte `\\n`)"));
        check("fffffffffffff\r\n", Err("a chunk's size has too many digits (at the byte `f`)"));
        let long = format!("1;{}", "x".repeat(20_000));
        check(&long, Err("extensions or trailers are longer than 16384 bytes"));
    }

    proptest! {
        #[test]
        fn any_body_comes_back_whatever_the_chunks_and_the_reads(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..10),
            read in 1_usize..50,
        ) {
            let mut stream = Vec::new();
            for chunk in &chunks {
                stream.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                stream.extend_from_slice(chunk);
                stream.extend_from_slice(b"\r\n");
            }
            stream.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(decode(stream.chunks(read)), Ok((chunks.concat(), Some(0))));
            prop_assert_eq!(decode(stream[..stream.len() - 1].chunks(read)), Ok((chunks.concat(), None)));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode([bytes.as_slice()]);
        }
    }
}
