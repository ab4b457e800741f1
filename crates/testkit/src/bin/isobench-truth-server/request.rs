//! Requests: their heads, and what is asked for in their bodies.

use serde::Deserialize;
use serde_json::Value;

use crate::prompt::Prompt;

/// The most headers that a request has.
const MOST_HEADERS: usize = 100;
/// The longest body, in bytes.
const LONGEST_BODY: usize = 256 * 1024 * 1024;

/// A whole request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// What follows `?`.
    pub(crate) query: String,
    pub(crate) body: Vec<u8>,
    /// Whether the client wants the connection closed after the answer.
    pub(crate) close: bool,
}

/// What the bytes of a connection hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A request and how many bytes it took.
    Whole(Request, usize),
    /// A part of one.
    Part {
        /// Whether the client waits for leave to send the body.
        waits: bool,
    },
    /// No request.
    Wrong,
}

/// Reads a request from the start of `bytes`.
pub(crate) fn read(bytes: &[u8]) -> Read {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Read::Part { waits: false },
        Err(_) => return Read::Wrong,
    };
    let (mut body_length, mut close, mut waits, mut chunked) = (0, head.version == Some(0), false, false);
    for header in head.headers.iter() {
        let value = str::from_utf8(header.value).unwrap_or_default().trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            match value.parse() {
                Ok(length) if length <= LONGEST_BODY => body_length = length,
                _ => return Read::Wrong,
            }
        } else if header.name.eq_ignore_ascii_case("connection") {
            close = value.eq_ignore_ascii_case("close");
        } else if header.name.eq_ignore_ascii_case("expect") {
            waits = value.eq_ignore_ascii_case("100-continue");
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.eq_ignore_ascii_case("chunked");
        }
    }
    let rest = bytes.get(length..).unwrap_or_default();
    let body = if chunked { dechunk(rest) } else { rest.get(..body_length).map(|body| (body.to_vec(), body_length)) };
    let Some((body, taken)) = body else {
        return Read::Part { waits: waits && rest.is_empty() };
    };
    let target = head.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Read::Whole(Request { path: path.to_owned(), query: query.to_owned(), body, close }, length + taken)
}

/// Returns a chunked body and how many bytes it took; `None` if it isn't whole.
fn dechunk(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut rest) = (Vec::new(), bytes);
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let (line, after) = rest.split_at_checked(end)?;
        let size = str::from_utf8(line).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        let after = after.get(2..)?;
        let chunk = after.get(..size)?;
        rest = after.get(size.checked_add(2)?..)?;
        if size == 0 {
            return Some((body, bytes.len() - rest.len()));
        }
        body.extend_from_slice(chunk);
    }
}

/// Which endpoint was asked to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Completions,
    Chat,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage_stats: bool,
}

/// What a body asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    return_token_ids: Option<bool>,
    dimensions: Option<usize>,
    prompt: Option<Value>,
    messages: Option<Value>,
    input: Option<Value>,
    text: Option<Value>,
}

impl Ask {
    /// Reads a body.
    pub(crate) fn read(body: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// Returns how many tokens are asked for.
    pub(crate) fn tokens(&self) -> Option<u64> {
        self.max_completion_tokens.or(self.max_tokens)
    }

    /// Returns whether a stream is asked for.
    pub(crate) fn stream(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// Returns whether usage is asked for at the end, and whether in each event.
    pub(crate) fn usage(&self) -> (bool, bool) {
        self.stream_options.as_ref().map_or((false, false), |o| (o.include_usage, o.continuous_usage_stats))
    }

    /// Returns whether the ids of tokens are asked for.
    pub(crate) fn token_ids(&self) -> bool {
        self.return_token_ids.unwrap_or(false)
    }

    /// Returns how many numbers an embedding has.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions.unwrap_or(16)
    }

    /// Returns how many texts are to be embedded.
    pub(crate) fn inputs(&self) -> usize {
        match &self.input {
            Some(Value::Array(items)) if items.first().is_some_and(|item| !item.is_number()) => items.len(),
            _ => 1,
        }
    }

    /// Returns the prompt, wherever it is.
    pub(crate) fn prompt(&self) -> Prompt {
        Prompt::of([&self.prompt, &self.messages, &self.input, &self.text].into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, query: &str, body: &[u8], close: bool) -> Request {
        Request { path: path.to_owned(), query: query.to_owned(), body: body.to_vec(), close }
    }

    #[test]
    fn requests_are_read_once_they_are_whole() {
        let bytes = b"POST /a?b=1 HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabcGET /";
        assert_eq!(read(bytes), Read::Whole(request("/a", "b=1", b"abc", true), bytes.len() - 5));
        for end in 0..bytes.len() - 5 {
            assert_eq!(read(&bytes[..end]), Read::Part { waits: false }, "{end}");
        }
    }

    #[test]
    fn chunked_bodies_and_expectations_are_understood() {
        let bytes = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        assert_eq!(read(bytes), Read::Whole(request("/", "", b"abcde", false), bytes.len()));
        assert_eq!(read(&bytes[..bytes.len() - 1]), Read::Part { waits: false });
        let bytes = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(read(bytes), Read::Part { waits: true });
        assert_eq!(read(b"\x16\x03\x01 no HTTP"), Read::Wrong);
    }
}
