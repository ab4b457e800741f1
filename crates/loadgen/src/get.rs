//! Small questions to a server: is it healthy, what does it serve. Each takes a connection of its own.

use std::io;
use std::time::Duration;

use serde::Deserialize;

use crate::clock::Clock;
use crate::connection::Pool;
use crate::failing::shown;
use crate::http::response::{Closing, Decode, Piece};
use crate::target::Endpoint;

/// The longest body that is accepted, in bytes.
const LONGEST_BODY: usize = 4 * 1024 * 1024;

/// Why a `GET` brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// There is no connection to be had.
    #[error("can't connect to `{host}`")]
    Connect {
        /// The server.
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
    #[error("the answer to `GET {path}` can't be read: {reason}")]
    Malformed {
        /// The path.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// There was no answer in time.
    #[error("`GET {path}` wasn't answered within {} s", timeout.as_secs_f64())]
    Timeout {
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
    let path = endpoint.path(route);
    let answered = tokio::time::timeout(timeout, ask(endpoint, &path)).await;
    answered.unwrap_or(Err(GetError::Timeout { path, timeout }))
}

async fn ask(endpoint: &Endpoint, path: &str) -> Result<Reply, GetError> {
    let host = endpoint.host();
    let connecting = |source| GetError::Connect { host: host.to_owned(), source };
    let lost = |source| GetError::Connection { host: host.to_owned(), source };
    let malformed = |reason: String| GetError::Malformed { path: path.to_owned(), reason };
    let clock = Clock::start();
    let mut connection = Pool::new(endpoint.clone()).open().await.map_err(connecting)?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n");
    connection.send(request.as_bytes()).await.map_err(lost)?;
    let mut decode = Decode::new();
    let mut reply = Reply { status: 0, body: Vec::new() };
    loop {
        let mut bytes = connection.read(&clock).await.map_err(lost)?.bytes;
        if bytes.is_empty() {
            return match decode.closing() {
                Closing::AtEnd => Ok(reply),
                Closing::BeforeHead | Closing::InHead | Closing::InBody => {
                    Err(lost(io::ErrorKind::UnexpectedEof.into()))
                }
            };
        }
        while let Some(piece) = decode.next(&mut bytes).map_err(|error| malformed(error.to_string()))? {
            match piece {
                Piece::Head(head) => reply.status = head.status,
                Piece::Body(data) => reply.body.extend_from_slice(data),
                Piece::End => return Ok(reply),
            }
            if reply.body.len() > LONGEST_BODY {
                return Err(malformed(format!("it is longer than {LONGEST_BODY} bytes")));
            }
        }
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

/// Returns the first model that the server lists at `/v1/models`.
///
/// # Errors
/// Returns an error if the server doesn't answer within `timeout`, or lists no model.
pub async fn discover_model(endpoint: &Endpoint, timeout: Duration) -> Result<String, DiscoverModelError> {
    #[derive(Deserialize)]
    struct Models {
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        id: String,
    }
    let Reply { status, body } = get(endpoint, "/v1/models", timeout).await?;
    match serde_json::from_slice::<Models>(&body) {
        Ok(models) if status == 200 => {
            models.data.into_iter().next().map(|model| model.id).ok_or(DiscoverModelError::None)
        }
        Ok(_) | Err(_) => Err(DiscoverModelError::Unanswered { status, shown: shown(&body) }),
    }
}
