//! The head of an answer: status, framing, and what the connection is good for afterwards.

use httparse::{Response, Status};

use super::HttpError;
use crate::failing::shown;

/// The longest head that is accepted, in bytes.
pub const LONGEST_HEAD: usize = 64 * 1024;
/// The most headers that are accepted.
const MOST_HEADERS: usize = 128;

/// How an answer's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// By the chunked encoding's own end.
    Chunked,
    /// When the server closes the connection.
    UntilClose,
}

/// Whether a connection can carry another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// It can.
    Kept,
    /// The server closes it.
    Closed,
}

/// What the head says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection can carry another request.
    pub persistence: Persistence,
    /// The `Content-Type`, in lower case.
    pub content_type: Option<String>,
}

/// Returns whether `bytes` hold a whole head, looking only at the end lines that can lie at or behind `from`. Empty lines
/// before the status line are passed over, as the parser does.
pub fn is_complete(bytes: &[u8], from: usize) -> bool {
    let begun = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let tail = bytes.get(from.saturating_sub(2).max(begun)..).unwrap_or_default();
    tail.windows(3).any(|three| three == b"\n\r\n") || tail.windows(2).any(|two| two == b"\n\n")
}

/// Reads a head that [`is_complete`]; returns it with its length in bytes.
///
/// # Errors
/// Returns an error if it is no head, or announces a body that can't be read.
pub fn parse(bytes: &[u8]) -> Result<(Head, usize), HttpError> {
    let refused = |reason: String| HttpError::Head { reason, shown: shown(bytes) };
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = Response::new(&mut headers);
    let length = match response.parse(bytes).map_err(|error| refused(error.to_string()))? {
        Status::Complete(length) => length,
        Status::Partial => return Err(refused("it has no end".to_owned())),
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(refused("it has no status".to_owned()));
    };
    let mut fields = Fields::default();
    for header in response.headers.iter() {
        fields.take(header.name, &String::from_utf8_lossy(header.value))?;
    }
    let framing = match (status, fields.chunked, fields.length) {
        (100..=199 | 204 | 304, _, _) => Framing::Length(0),
        (_, true, Some(length)) => {
            let rule = "it contradicts `Transfer-Encoding: chunked`";
            return Err(HttpError::Header { name: "Content-Length", value: length.to_string(), rule });
        }
        (_, true, None) => Framing::Chunked,
        (_, false, Some(length)) => Framing::Length(length),
        (_, false, None) => Framing::UntilClose,
    };
    let kept = framing != Framing::UntilClose && !fields.close && (minor == 1 || fields.keep_alive);
    let persistence = if kept { Persistence::Kept } else { Persistence::Closed };
    Ok((Head { status, framing, persistence, content_type: fields.content_type }, length))
}

/// The headers that matter.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    content_type: Option<String>,
}

impl Fields {
    fn take(&mut self, name: &str, value: &str) -> Result<(), HttpError> {
        let value = value.trim();
        let refused = |name, rule| Err(HttpError::Header { name, value: shown(value.as_bytes()), rule });
        if name.eq_ignore_ascii_case("content-length") {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let Some(length) = value.parse().ok().filter(|_| digits) else {
                return refused("Content-Length", "it must be a number of bytes");
            };
            if self.length.is_some_and(|other| other != length) {
                return refused("Content-Length", "it contradicts another one");
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case("chunked") {
                return refused("Transfer-Encoding", "only `chunked` is, once");
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case("content-encoding") {
            if !value.eq_ignore_ascii_case("identity") {
                return refused("Content-Encoding", "the request asked for `identity`");
            }
        } else if name.eq_ignore_ascii_case("connection") {
            for word in value.split(',').map(str::trim) {
                self.close |= word.eq_ignore_ascii_case("close");
                self.keep_alive |= word.eq_ignore_ascii_case("keep-alive");
            }
        } else if name.eq_ignore_ascii_case("content-type") {
            self.content_type = Some(value.to_ascii_lowercase());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: Result<(u16, Framing, Persistence), &str>) {
        let found = parse(head.as_bytes()).map(|(head, _)| (head.status, head.framing, head.persistence));
        assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{head:?}");
    }

    #[test]
    fn the_framing_is_the_one_that_the_head_announces() {
        use Framing::{Chunked, Length, UntilClose};
        use Persistence::{Closed, Kept};
        check("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", Ok((200, Length(12), Kept)));
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n", Ok((200, Chunked, Kept)));
        check("HTTP/1.1 200 OK\r\n\r\n", Ok((200, UntilClose, Closed)));
        check("HTTP/1.1 500 No\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", Ok((500, Length(0), Closed)));
        check("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", Ok((200, Length(1), Closed)));
        check("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n", Ok((200, Length(1), Kept)));
        check("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, Length(0), Kept)));
    }

    #[test]
    fn a_head_that_could_be_read_in_two_ways_is_refused() {
        let refused = |header: &str, expected: &str| {
            check(&format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n"), Err(expected));
        };
        refused(
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "the answer's header `Content-Length: 5` is not supported: it contradicts `Transfer-Encoding: chunked`",
        );
        refused(
            "Content-Length: 5\r\nContent-Length: 6",
            "the answer's header `Content-Length: 6` is not supported: it contradicts another one",
        );
        refused(
            "Content-Length: +5",
            "the answer's header `Content-Length: +5` is not supported: it must be a number of bytes",
        );
        refused(
            "Transfer-Encoding: gzip, chunked",
            "the answer's header `Transfer-Encoding: gzip, chunked` is not supported: only `chunked` is, once",
        );
        refused(
            "Content-Encoding: br",
            "the answer's header `Content-Encoding: br` is not supported: the request asked for `identity`",
        );
        check(
            "SSH-2.0-x\r\n\r\n",
            Err("the answer's head can't be read (invalid HTTP version): SSH-2.0-x\u{fffd}\\n\u{fffd}\\n"),
        );
    }
}
