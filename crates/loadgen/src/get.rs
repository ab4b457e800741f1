//! Small questions to a server: is it healthy, what does it serve. Each takes a connection of its own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::failing::shown;
use crate::http::response::{Closing, Decode, Piece};
use crate::target::{Address, Endpoint};
use crate::tls;

/// The longest body that is accepted, in bytes.
const LONGEST_BODY: usize = 4 * 1024 * 1024;
/// How much one read takes at most, in bytes.
const READ_SIZE: usize = 16 * 1024;

/// Why a question brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// There is no connection to be had.
    #[error("can't connect to `{host}`")]
    Connect {
        /// The server, or its Unix socket.
        host: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The connection failed or ended before the answer was complete.
    #[error("the connection to `{host}` failed before the answer was complete")]
    Connection {
        /// The server.
        host: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The answer isn't HTTP, or longer than is accepted.
    #[error("the answer to `{method} {path}` can't be read: {reason}")]
    Malformed {
        /// The method.
        method: &'static str,
        /// The path.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// There was no answer in time.
    #[error("`{method} {path}` wasn't answered within {} s", timeout.as_secs_f64())]
    Timeout {
        /// The method.
        method: &'static str,
        /// The path.
        path: String,
        /// The time.
        timeout: Duration,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Asks for `route`, for example `/health`, on a fresh connection.
///
/// # Errors
/// Returns an error if there is no complete answer within `timeout`. A status of failure is an answer.
pub async fn get(endpoint: &Endpoint, route: &str, timeout: Duration) -> Result<Reply, GetError> {
    ask("GET", endpoint, route, timeout).await
}

/// Posts nothing to `route`, for example `/reset_prefix_cache`, on a fresh connection.
///
/// # Errors
/// As [`get`].
pub async fn post(endpoint: &Endpoint, route: &str, timeout: Duration) -> Result<Reply, GetError> {
    ask("POST", endpoint, route, timeout).await
}

async fn ask(method: &'static str, endpoint: &Endpoint, route: &str, timeout: Duration) -> Result<Reply, GetError> {
    let question = Question::new(method, endpoint, route, timeout);
    let host = endpoint.host().to_owned();
    let asked = tokio::task::spawn_blocking(move || question.ask()).await;
    asked.unwrap_or_else(|error| Err(GetError::Connection { host, source: io::Error::other(error) }))
}

/// Asks for `route` and waits for the answer on the current thread.
///
/// # Errors
/// As [`get`].
pub(crate) fn ask_blocking(
    method: &'static str,
    endpoint: &Endpoint,
    route: &str,
    timeout: Duration,
) -> Result<Reply, GetError> {
    Question::new(method, endpoint, route, timeout).ask()
}

/// One question, asked on a thread that may wait.
struct Question {
    method: &'static str,
    endpoint: Endpoint,
    path: String,
    timeout: Duration,
    until: Instant,
}

/// A stream that waits, with a deadline for each wait.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(address: &Address, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpStream::connect_timeout(address, timeout).map(Self::Tcp),
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_write_timeout(Some(timeout))?;
                stream.set_read_timeout(Some(timeout))
            }
            Self::Unix(stream) => {
                stream.set_write_timeout(Some(timeout))?;
                stream.set_read_timeout(Some(timeout))
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Question {
    fn new(method: &'static str, endpoint: &Endpoint, route: &str, timeout: Duration) -> Self {
        let (endpoint, path) = (endpoint.clone(), endpoint.path(route));
        Self { method, endpoint, path, timeout, until: Instant::now() + timeout }
    }

    fn ask(&self) -> Result<Reply, GetError> {
        let mut stream = self.connect()?;
        let host = self.endpoint.host();
        let length = if self.method == "POST" { "Content-Length: 0\r\n" } else { "" };
        let lines = self.endpoint.headers().iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat());
        let further = lines.collect::<Vec<String>>().concat();
        let request = format!(
            "{} {} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: identity\r\n{further}{length}Connection: \
             close\r\n\r\n",
            self.method, self.path
        );
        let mut session = match self.endpoint.secure() {
            Some(secure) => {
                let session = tls::Session::new(&secure.questions, &secure.name);
                Some(session.map_err(|source| self.lost(io::Error::other(source)))?)
            }
            None => None,
        };
        self.write(&mut stream, &mut session, request.as_bytes())?;
        let mut plain = Vec::new();
        let mut decode = Decode::new();
        let mut reply = Reply { status: 0, body: Vec::new() };
        let mut buffer = vec![0; READ_SIZE];
        loop {
            self.wait_at_most(&stream)?;
            let length = match stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(|source| self.lost(source))?,
            };
            if length == 0 {
                if let Some(session) = &session {
                    session.end().map_err(|source| self.lost(io::Error::other(source)))?;
                }
                return match decode.closing() {
                    Closing::AtEnd => Ok(reply),
                    Closing::BeforeHead | Closing::InHead | Closing::InBody => {
                        Err(self.lost(io::ErrorKind::UnexpectedEof.into()))
                    }
                };
            }
            let mut bytes = buffer.get(..length).unwrap_or_default();
            if let Some(tls) = &mut session {
                plain.clear();
                let fed = tls.feed(bytes, &mut plain);
                if tls.has_output() {
                    self.write(&mut stream, &mut session, &[])?;
                }
                fed.map_err(|source| self.lost(io::Error::other(source)))?;
                bytes = &plain;
            }
            while let Some(piece) = decode.next(&mut bytes).map_err(|error| self.malformed(error.to_string()))? {
                match piece {
                    Piece::Head(head) => reply.status = head.status,
                    Piece::Body(data) => reply.body.extend_from_slice(data),
                    Piece::End => return Ok(reply),
                }
                if reply.body.len() > LONGEST_BODY {
                    return Err(self.malformed(format!("it is longer than {LONGEST_BODY} bytes")));
                }
            }
        }
    }

    /// Writes bytes, encrypted where TLS is spoken, and whatever TLS itself has to say.
    fn write(&self, stream: &mut Stream, session: &mut Option<tls::Session>, bytes: &[u8]) -> Result<(), GetError> {
        let mut sealed = Vec::new();
        let bytes = match session {
            Some(session) => {
                session.seal(bytes, &mut sealed);
                &sealed
            }
            None => bytes,
        };
        self.wait_at_most(stream)?;
        stream.write_all(bytes).map_err(|source| self.lost(source))
    }

    /// Connects to the first address that takes a connection.
    fn connect(&self) -> Result<Stream, GetError> {
        let mut refused = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
        for address in self.endpoint.addresses() {
            match Stream::connect(address, self.left()?) {
                Ok(stream) => return Ok(stream),
                Err(error) => refused = error,
            }
        }
        self.left()?;
        Err(GetError::Connect { host: self.endpoint.place(), source: refused })
    }

    /// Returns the time that is left, or the error that there is none.
    fn left(&self) -> Result<Duration, GetError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.late()) } else { Ok(left) }
    }

    fn late(&self) -> GetError {
        GetError::Timeout { method: self.method, path: self.path.clone(), timeout: self.timeout }
    }

    fn wait_at_most(&self, stream: &Stream) -> Result<(), GetError> {
        let left = self.left()?;
        stream.set_timeout(left).map_err(|source| self.lost(source))
    }

    fn lost(&self, source: io::Error) -> GetError {
        if matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return self.late();
        }
        GetError::Connection { host: self.endpoint.host().to_owned(), source }
    }

    fn malformed(&self, reason: String) -> GetError {
        GetError::Malformed { method: self.method, path: self.path.clone(), reason }
    }
}

/// Why it isn't known what a server serves.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverModelError {
    /// The server wasn't reached.
    #[error("failed to ask the server which models it serves")]
    Get {
        /// The cause.
        #[from]
        source: GetError,
    },
    /// It doesn't say.
    #[error("the server doesn't say which models it serves (status {status}): {shown}")]
    Unanswered {
        /// The HTTP status.
        status: u16,
        /// The first 300 characters of the body.
        shown: String,
    },
    /// It serves none.
    #[error("the server serves no model")]
    None,
}

/// A model that a server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Its name.
    pub model: String,
    /// Tokens that a prompt and its answer may have together, where the server says.
    pub max_model_len: Option<u32>,
}

/// Returns the first model that the server lists at `/v1/models`.
///
/// # Errors
/// Returns an error if the server doesn't answer within `timeout`, or lists no model.
pub async fn discover(endpoint: &Endpoint, timeout: Duration) -> Result<Served, DiscoverModelError> {
    served(endpoint, timeout).await?.into_iter().next().ok_or(DiscoverModelError::None)
}

/// Returns the models that the server lists at `/v1/models`.
///
/// # Errors
/// Returns an error if the server doesn't answer within `timeout`.
pub async fn served(endpoint: &Endpoint, timeout: Duration) -> Result<Vec<Served>, DiscoverModelError> {
    #[derive(Deserialize)]
    struct Models {
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        id: String,
        #[serde(default)]
        max_model_len: Option<u32>,
    }
    let Reply { status, body } = get(endpoint, "/v1/models", timeout).await?;
    match serde_json::from_slice::<Models>(&body) {
        Ok(models) if status == 200 => {
            let served = |Model { id, max_model_len }| Served { model: id, max_model_len };
            Ok(models.data.into_iter().map(served).collect())
        }
        Ok(_) | Err(_) => Err(DiscoverModelError::Unanswered { status, shown: shown(&body) }),
    }
}
