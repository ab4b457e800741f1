//! The reading of one HTTP/1.1 answer, from bytes to a record.

use std::io::{self, Write as _};

use isobench_schema::failure::FailureClass;
use isobench_schema::record::RequestRecord;
use isobench_schema::workload::Api;

use crate::answer::{Answer, Progress};
use crate::failing::shown;
use crate::http::head::{Framing, Head, Persistence};
use crate::http::response::{Closing, Decode, Piece};

/// How much is kept of a body that only explains a failure, in bytes.
const LONGEST_MESSAGE: usize = 64 * 1024;
/// How long a whole answer may be, in bytes.
const LONGEST_WHOLE: usize = 64 << 20;

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

/// Whether more of a body is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

/// What the body is taken for.
#[derive(Debug)]
enum Body {
    /// A stream of events.
    Stream,
    /// Something else, which is kept until its end.
    Whole { kind: Kind, bytes: Vec<u8> },
}

/// What a body is that is no stream.
#[derive(Debug)]
enum Kind {
    /// The answer that was asked for.
    Embedding,
    /// The message to a status of failure.
    Refusal { status: u16 },
    /// A body of this type, where a stream was asked for.
    Unstreamed { content_type: String },
}

impl Kind {
    /// Returns how much is kept of the body, in bytes.
    fn longest(&self) -> usize {
        match self {
            Self::Embedding => LONGEST_WHOLE,
            Self::Refusal { .. } | Self::Unstreamed { .. } => LONGEST_MESSAGE,
        }
    }
}

/// The reading of one answer.
#[derive(Debug)]
pub(crate) struct Reading {
    api: Api,
    decode: Decode,
    body: Body,
    persistence: Persistence,
    framing: Framing,
}

impl Reading {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            decode: Decode::new(),
            body: Body::Stream,
            persistence: Persistence::Closed,
            framing: Framing::Chunked,
        }
    }

    /// Takes the bytes of one read.
    pub(crate) fn take(&mut self, state: &mut State, mut bytes: &[u8], at_ns: u64) -> Next {
        loop {
            match self.decode.next(&mut bytes) {
                Ok(Some(Piece::Head(head))) => self.take_head(state, head),
                Ok(Some(Piece::Body(data))) => {
                    if self.push(state, data, at_ns) == Room::Full {
                        return Next::DropConnection;
                    }
                }
                Ok(Some(Piece::End)) => {
                    self.end_body(state, at_ns);
                    let reusable = self.persistence == Persistence::Kept
                        && bytes.is_empty()
                        && (matches!(self.body, Body::Whole { kind: Kind::Refusal { .. }, .. })
                            || state.answer.progress() != Progress::Failed);
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
        self.judge(state, at_ns)
    }

    /// Takes a part of the body that one read brought.
    pub(crate) fn take_body(&mut self, state: &mut State, data: &[u8], at_ns: u64) -> Next {
        match self.push(state, data, at_ns) {
            Room::Full => Next::DropConnection,
            Room::Left => self.judge(state, at_ns),
        }
    }

    fn push(&mut self, state: &mut State, data: &[u8], at_ns: u64) -> Room {
        match &mut self.body {
            Body::Stream => state.answer.push(data, at_ns),
            Body::Whole { kind, bytes } => {
                bytes.extend_from_slice(data);
                if bytes.len() > kind.longest() {
                    self.end_body(state, at_ns);
                    return Room::Full;
                }
            }
        }
        Room::Left
    }

    /// Returns what to do after what was taken.
    fn judge(&self, state: &mut State, at_ns: u64) -> Next {
        match state.answer.progress() {
            Progress::Failed => Next::DropConnection,
            Progress::Done if self.framing == Framing::UntilClose => Next::DropConnection,
            Progress::Streaming => {
                state.quiet_since_ns = Some(state.answer.last_event_ns().unwrap_or(at_ns));
                Next::Read
            }
            Progress::Waiting => {
                // A message of failure comes in one go; a stream may take its time for the first token.
                if matches!(self.body, Body::Whole { .. }) {
                    state.quiet_since_ns = Some(at_ns);
                }
                Next::Read
            }
            Progress::Done => Next::Read,
        }
    }

    fn take_head(&mut self, state: &mut State, head: Head) {
        self.persistence = head.persistence;
        self.framing = head.framing;
        self.begin(state, head.status, head.content_type);
    }

    /// Takes what the head says of the answer.
    pub(crate) fn begin(&mut self, state: &mut State, status: u16, content_type: Option<String>) {
        state.record.status = Some(status);
        let whole = |kind| Body::Whole { kind, bytes: Vec::new() };
        self.body = match (self.api, content_type) {
            _ if !(200..300).contains(&status) => whole(Kind::Refusal { status }),
            (Api::Embeddings, _) => whole(Kind::Embedding),
            (Api::Completions | Api::Chat, Some(content_type)) if !content_type.starts_with("text/event-stream") => {
                whole(Kind::Unstreamed { content_type })
            }
            (Api::Completions | Api::Chat, _) => Body::Stream,
        };
    }

    /// Takes the end of the body, in order or given up.
    pub(crate) fn end_body(&mut self, state: &mut State, at_ns: u64) {
        state.end_ns = Some(at_ns);
        match &self.body {
            Body::Stream => state.answer.end(at_ns),
            Body::Whole { kind: Kind::Embedding, bytes } => state.answer.embedding(bytes, at_ns),
            Body::Whole { kind: Kind::Unstreamed { content_type }, bytes } => {
                state.answer.unstreamed(content_type, bytes);
            }
            Body::Whole { kind: Kind::Refusal { status }, bytes } => {
                let said =
                    if bytes.is_empty() { ", with an empty body".to_owned() } else { format!(": {}", shown(bytes)) };
                state
                    .answer
                    .fail_by(FailureClass::HttpError, format!("the server answered with status {status}{said}"));
            }
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
        match self.decode.closing() {
            Closing::BeforeHead => return Next::Unanswered(format!("{how} before it had answered anything")),
            Closing::InHead => {
                let head = shown(self.decode.head_so_far());
                return Next::Unanswered(format!("{how} within the answer's head: {head}"));
            }
            Closing::InBody | Closing::AtEnd => self.cut_body(state, how, at_ns),
        }
        Next::DropConnection
    }

    /// Takes the end of a body that isn't whole.
    pub(crate) fn cut_body(&mut self, state: &mut State, how: &str, at_ns: u64) {
        match &self.body {
            // What came of a message says more than how it ended.
            Body::Whole { kind: Kind::Refusal { .. } | Kind::Unstreamed { .. }, .. } => self.end_body(state, at_ns),
            Body::Whole { kind: Kind::Embedding, .. } => {
                state.end_ns = Some(at_ns);
                state.answer.fail_by(FailureClass::StreamTruncated, format!("{how} before the answer was whole"));
            }
            Body::Stream => {
                state.end_ns = Some(at_ns);
                state.answer.cut(how, at_ns);
            }
        }
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
