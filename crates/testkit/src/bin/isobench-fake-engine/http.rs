//! As much of HTTP/1.1 as clients of an engine use.

use std::io::{self, BufRead, Read as _, Write};

/// The longest request body, in bytes.
const LONGEST_BODY: u64 = 64 * 1024 * 1024;
/// The longest line of a request's head, in bytes.
const LONGEST_LINE: u64 = 64 * 1024;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path without the query.
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    /// Whether the client wants the connection closed after the answer.
    pub(crate) close: bool,
}

/// Reads a request; `None` if the client has closed the connection.
pub(crate) fn read(input: &mut impl BufRead) -> io::Result<Option<Request>> {
    let first = line(input)?;
    let mut parts = first.split(' ');
    let (Some(method), Some(target)) = (parts.next().filter(|method| !method.is_empty()), parts.next()) else {
        return Ok(None);
    };
    let path = target.split('?').next().unwrap_or(target).to_owned();
    let (mut length, mut close) = (0, false);
    loop {
        let header = line(input)?;
        let Some((name, value)) = header.split_once(':') else { break };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        } else if name.eq_ignore_ascii_case("connection") {
            close = value.eq_ignore_ascii_case("close");
        }
    }
    if length > LONGEST_BODY {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the body is too long"));
    }
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    Ok(Some(Request { method: method.to_owned(), path, body, close }))
}

fn line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.take(LONGEST_LINE).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// Writes a whole answer with a JSON body.
pub(crate) fn respond(mut output: impl Write, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    output.write_all((head + body).as_bytes())
}

/// Writes the head of a stream of events.
pub(crate) fn start_stream(mut output: impl Write) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n\
                transfer-encoding: chunked\r\n\r\n";
    output.write_all(head.as_bytes())
}

/// Writes an event, in one piece.
pub(crate) fn event(mut output: impl Write, data: &str) -> io::Result<()> {
    let length = data.len() + "data: \n\n".len();
    output.write_all(format!("{length:x}\r\ndata: {data}\n\n\r\n").as_bytes())
}

/// Writes the end of a stream.
pub(crate) fn end_stream(mut output: impl Write) -> io::Result<()> {
    output.write_all(b"0\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_on_one_connection_are_read_one_by_one() {
        let mut input =
            b"POST /v1/completions?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET /health HTTP/1.1\r\n\
                          Connection: close\r\n\r\n"
                .as_slice();
        let request = |method: &str, path: &str, body: &[u8], close| Request {
            method: method.to_owned(),
            path: path.to_owned(),
            body: body.to_vec(),
            close,
        };
        assert_eq!(read(&mut input).unwrap(), Some(request("POST", "/v1/completions", b"{}", false)));
        assert_eq!(read(&mut input).unwrap(), Some(request("GET", "/health", b"", true)));
        assert_eq!(read(&mut input).unwrap(), None);
    }

    #[test]
    fn an_event_is_one_chunk() {
        let mut output = Vec::new();
        event(&mut output, "x").unwrap();
        assert_eq!(output, b"9\r\ndata: x\n\n\r\n");
    }
}
