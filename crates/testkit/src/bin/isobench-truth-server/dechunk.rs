//! Bodies of answers in HTTP/1.1, taken apart as they come.

use bytes::{Buf as _, Bytes, BytesMut};

/// A body that breaks the rules.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the size of a chunk")]
pub(crate) struct InvalidChunkError(String);

/// Where in a body the next byte is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// In a body that ends with the connection.
    Rest,
    /// In a body of so many bytes more.
    Length(usize),
    /// Before a chunk.
    Size,
    /// In a chunk of so many bytes more.
    Chunk(usize),
    /// After a chunk.
    ChunkEnd,
    /// After the last chunk, with the trailers until here.
    Trailers(Vec<(String, String)>),
}

/// A part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Data(Bytes),
    /// The end, with trailers.
    End(Vec<(String, String)>),
}

impl Decoder {
    /// Returns the decoder of a body in chunks.
    pub(crate) fn chunked() -> Self {
        Self::Size
    }

    /// Takes the next part off `bytes`; `None` if there isn't one yet.
    pub(crate) fn next(&mut self, bytes: &mut BytesMut) -> Result<Option<Part>, InvalidChunkError> {
        loop {
            match self {
                Self::Rest | Self::Chunk(_) | Self::Length(1..) if bytes.is_empty() => return Ok(None),
                Self::Rest => return Ok(Some(Part::Data(bytes.split().freeze()))),
                Self::Length(0) => return Ok(Some(Part::End(Vec::new()))),
                Self::Length(left) => {
                    let data = bytes.split_to((*left).min(bytes.len())).freeze();
                    *left -= data.len();
                    return Ok(Some(Part::Data(data)));
                }
                Self::Chunk(left) => {
                    let data = bytes.split_to((*left).min(bytes.len())).freeze();
                    *left -= data.len();
                    if *left == 0 {
                        *self = Self::ChunkEnd;
                    }
                    return Ok(Some(Part::Data(data)));
                }
                Self::ChunkEnd => {
                    if bytes.len() < 2 {
                        return Ok(None);
                    }
                    bytes.advance(2);
                    *self = Self::Size;
                }
                Self::Size => {
                    let Some(line) = line(bytes) else { return Ok(None) };
                    let size = line.split(';').next().unwrap_or_default().trim();
                    *self = match usize::from_str_radix(size, 16) {
                        Ok(0) => Self::Trailers(Vec::new()),
                        Ok(size) => Self::Chunk(size),
                        Err(_) => return Err(InvalidChunkError(line)),
                    };
                }
                Self::Trailers(trailers) => {
                    let Some(line) = line(bytes) else { return Ok(None) };
                    if let Some((name, value)) = line.split_once(':') {
                        trailers.push((name.to_owned(), value.trim().to_owned()));
                    } else {
                        return Ok(Some(Part::End(std::mem::take(trailers))));
                    }
                }
            }
        }
    }
}

fn line(bytes: &mut BytesMut) -> Option<String> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let line = String::from_utf8_lossy(&bytes.split_to(end)).into_owned();
    bytes.advance(2);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `bytes` in pieces of `size` and returns the data and the end.
    fn decode(mut decoder: Decoder, bytes: &[u8], size: usize) -> (Vec<u8>, Option<Vec<(String, String)>>) {
        let (mut buffer, mut data) = (BytesMut::new(), Vec::new());
        for piece in bytes.chunks(size) {
            buffer.extend_from_slice(piece);
            while let Some(part) = decoder.next(&mut buffer).unwrap() {
                match part {
                    Part::Data(bytes) => data.extend_from_slice(&bytes),
                    Part::End(trailers) => return (data, Some(trailers)),
                }
            }
        }
        (data, None)
    }

    #[test]
    fn bodies_are_taken_apart_wherever_they_are_cut() {
        let chunked = b"3;a=b\r\nabc\r\n2\r\nde\r\n0;x\r\nx-y: z\r\n\r\n";
        let trailers = vec![("x-y".to_owned(), "z".to_owned())];
        for size in 1..=chunked.len() {
            assert_eq!(decode(Decoder::chunked(), chunked, size), (b"abcde".to_vec(), Some(trailers.clone())));
            assert_eq!(decode(Decoder::Length(3), b"abc", size), (b"abc".to_vec(), Some(Vec::new())));
            assert_eq!(decode(Decoder::Rest, b"abc", size), (b"abc".to_vec(), None));
        }
        let error = Decoder::chunked().next(&mut BytesMut::from("x\r\n")).unwrap_err();
        assert_eq!(error.to_string(), "`x` is not the size of a chunk");
    }
}
