//! A request as the registry got it.

use std::io::{self, Read};

/// The longest head that is read, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;
/// The longest body that is read, in bytes.
const LONGEST_BODY: usize = 64 << 20;
/// The most headers.
const MOST_HEADERS: usize = 64;

/// A request that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRequest {
    /// Its method.
    pub method: String,
    /// Its path with the query.
    pub target: String,
    /// What it said of who asks, if it did.
    pub authorization: Option<String>,
    /// Which part of an answer it wants, as `bytes=100-`.
    pub range: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
}

impl AskedRequest {
    /// Reads one; none if the connection ended before.
    pub(super) fn read(stream: &mut dyn Read) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let mut chunk = [0_u8; 4096];
        loop {
            let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
            let mut request = httparse::Request::new(&mut headers);
            let parsed = request.parse(&bytes).map_err(io::Error::other)?;
            if let httparse::Status::Complete(head) = parsed {
                let header = |name: &str| {
                    let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
                    std::str::from_utf8(found.value).ok().map(str::to_owned)
                };
                let length: usize = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
                let mut asked = Self {
                    method: request.method.unwrap_or_default().to_owned(),
                    target: request.path.unwrap_or_default().to_owned(),
                    authorization: header("authorization"),
                    range: header("range"),
                    body: bytes.get(head..).unwrap_or_default().to_vec(),
                };
                let missing = length.min(LONGEST_BODY).saturating_sub(asked.body.len());
                let missing = u64::try_from(missing).map_err(io::Error::other)?;
                Read::take(&mut *stream, missing).read_to_end(&mut asked.body)?;
                return Ok(Some(asked));
            }
            if bytes.len() > LONGEST_HEAD {
                return Err(io::Error::other("the head is too long"));
            }
            let read = stream.read(&mut chunk)?;
            if read == 0 {
                return Ok(None);
            }
            bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
    }

    /// Returns where the part of an answer begins that it wants.
    pub(super) fn from(&self) -> Option<usize> {
        self.range.as_ref()?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }

    /// Returns the path without its query.
    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns a value of the query, decoded.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        form_value(query, name)
    }
}

/// Returns a value of `a=b&c=d`, decoded.
pub(super) fn form_value(form: &str, name: &str) -> Option<String> {
    let pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| decode(value))
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes().iter().copied();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match byte {
            b'%' => {
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                bytes.extend(high.zip(low).and_then(|(high, low)| u8::try_from(high * 16 + low).ok()));
            }
            b'+' => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
