//! The reading of one HTTP/1.1 answer, from bytes to a record.

use std::io::{self, Write as _};

use isobench_schema::failure::FailureClass;
use isobench_schema::record::RequestRecord;
use isobench_schema::workload::Api;

use crate::answer::{Answer, Progress};
use crate::failing::shown;
use crate::http::head::{Framing, Head, Persistence};
use crate::http::response::{Closing, Decode, Piece};

/// How much is kept of a body that is no stream, in bytes.
const LONGEST_PLAIN_BODY: usize = 64 * 1024;

/// What is known of a request so far.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) record: RequestRecord,
    pub(crate) answer: Answer,
    pub(crate) end_ns: Option<u64>,
    /// When the last event came, once the answer is streaming: a server may take its time for the first token.
    pub(crate) quiet_since_ns: Option<u64>,
}

/// What to do after a read.
pub(crate) enum Next {
    /// Read on.
    Read,
    /// The answer is complete, and the connection can carry another request.
    KeepConnection,
    /// The answer is complete or has failed, and the connection can't be used again.
    DropConnection,
    /// The connection ended before an answer began, in this way.
    Unanswered(String),
}

/// What the body is taken for.
#[derive(Debug)]
enum Body {
    /// A stream of events.
    Stream,
    /// Something else, whose first bytes are kept for the message.
    Plain { class: FailureClass, what: String, bytes: Vec<u8> },
}

/// The reading of one answer.
#[derive(Debug)]
pub(crate) struct Reading {
    decode: Decode,
    body: Body,
    persistence: Persistence,
    framing: Framing,
}

impl Reading {
    pub(crate) fn new(_api: Api) -> Self {
        Self {
            decode: Decode::new(),
            body: Body::Stream,
            persistence: Persistence::Closed,
            framing: Framing::UntilClose,
        }
    }

    /// Takes the bytes of one read.
    pub(crate) fn take(&mut self, state: &mut State, mut bytes: &[u8], at_ns: u64) -> Next {
        loop {
            match self.decode.next(&mut bytes) {
                Ok(Some(Piece::Head(head))) => self.take_head(state, head),
                Ok(Some(Piece::Body(data))) => match &mut self.body {
                    Body::Stream => state.answer.push(data, at_ns),
                    Body::Plain { bytes, .. } => {
                        bytes.extend_from_slice(data);
                        if bytes.len() > LONGEST_PLAIN_BODY {
                            self.end_body(state, at_ns);
                            return Next::DropConnection;
                        }
                    }
                },
                Ok(Some(Piece::End)) => {
                    self.end_body(state, at_ns);
                    let reusable = self.persistence == Persistence::Kept
                        && bytes.is_empty()
                        && (matches!(self.body, Body::Plain { .. }) || state.answer.progress() != Progress::Failed);
                    return if reusable { Next::KeepConnection } else { Next::DropConnection };
                }
                Ok(None) => break,
                Err(error) => {
                    // A broken end of a body can't take back an answer that was whole before it.
                    state.answer.fail_by(FailureClass::StreamMalformed, error.to_string());
                    return Next::DropConnection;
                }
            }
        }
        match state.answer.progress() {
            Progress::Failed => Next::DropConnection,
            Progress::Done if self.framing == Framing::UntilClose => Next::DropConnection,
            Progress::Streaming => {
                state.quiet_since_ns = Some(state.answer.last_event_ns().unwrap_or(at_ns));
                Next::Read
            }
            Progress::Waiting => {
                // A message of failure comes in one go; a stream may take its time for the first token.
                if matches!(self.body, Body::Plain { .. }) {
                    state.quiet_since_ns = Some(at_ns);
                }
                Next::Read
            }
            Progress::Done => Next::Read,
        }
    }

    fn take_head(&mut self, state: &mut State, head: Head) {
        state.record.status = Some(head.status);
        self.persistence = head.persistence;
        self.framing = head.framing;
        let plain = |class, what| Body::Plain { class, what, bytes: Vec::new() };
        self.body = match head.content_type {
            _ if !(200..300).contains(&head.status) => {
                plain(FailureClass::HttpError, format!("the server answered with status {}", head.status))
            }
            Some(kind) if !kind.starts_with("text/event-stream") => {
                let what = format!("the answer is `{}`, not a stream of events", shown(kind.as_bytes()));
                plain(FailureClass::StreamMalformed, what)
            }
            Some(_) | None => Body::Stream,
        };
    }

    /// Takes the end of the body, in order or given up.
    fn end_body(&mut self, state: &mut State, at_ns: u64) {
        state.end_ns = Some(at_ns);
        match &self.body {
            Body::Stream => state.answer.end(at_ns),
            Body::Plain { class, what, bytes } if bytes.is_empty() => {
                state.answer.fail_by(*class, format!("{what}, with an empty body"));
            }
            Body::Plain { class, what, bytes } => state.answer.fail_by(*class, format!("{what}: {}", shown(bytes))),
        }
    }

    /// Takes the end of the connection, where the server closed it in order.
    pub(crate) fn close(&mut self, state: &mut State, how: &str, at_ns: u64) -> Next {
        match self.decode.closing() {
            Closing::AtEnd => {
                self.end_body(state, at_ns);
                Next::DropConnection
            }
            Closing::BeforeHead | Closing::InHead | Closing::InBody => self.cut(state, how, at_ns),
        }
    }

    /// Takes the end of the connection by an error, which never is an order of things.
    pub(crate) fn fail(&mut self, state: &mut State, error: &io::Error, at_ns: u64) -> Next {
        self.cut(state, &format!("the connection failed ({error})"), at_ns)
    }

    fn cut(&mut self, state: &mut State, how: &str, at_ns: u64) -> Next {
        match (self.decode.closing(), &self.body) {
            (Closing::BeforeHead, _) => return Next::Unanswered(format!("{how} before it had answered anything")),
            (Closing::InHead, _) => {
                let head = shown(self.decode.head_so_far());
                return Next::Unanswered(format!("{how} within the answer's head: {head}"));
            }
            (Closing::InBody | Closing::AtEnd, Body::Plain { .. }) => self.end_body(state, at_ns),
            (Closing::InBody | Closing::AtEnd, Body::Stream) => {
                state.end_ns = Some(at_ns);
                state.answer.cut(how, at_ns);
            }
        }
        Next::DropConnection
    }
}

/// Appends an answer to the history of its conversation, as the assistant's message with a comma.
///
/// # Errors
/// Returns no error: memory takes everything.
pub(crate) fn write_answer(text: &str, history: &mut Vec<u8>) -> io::Result<()> {
    history.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
    serde_json::to_writer(&mut *history, text)?;
    history.write_all(b"},")
}
