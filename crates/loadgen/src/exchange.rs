//! One request and its answer, from the connection to the record.
//!
//! The rule for connections: one that the server keeps is used again after its answer was read to the end. If such a
//! connection turns out to be closed before a single byte of the next answer has come, the request is sent once more on
//! a fresh one; its intended time stays, so the loss counts in its latency, and the phase's summary counts it. Nothing
//! else is ever sent twice.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use isobench_schema::failure::FailureClass;
use isobench_schema::record::{Phase, RequestFailure, RequestRecord};
use isobench_schema::workload::TokenCounter;

use crate::answer::{Answer, Lengths, Progress};
use crate::cancel::Cancel;
use crate::client::LoadOptions;
use crate::clock::{Clock, nanoseconds};
use crate::connection::{Age, Connection, Pool};
use crate::failing::{connection_class, failure, shown};
use crate::http::head::{Framing, Head, Persistence};
use crate::http::response::{Closing, Decode, Piece};

/// How much is kept of a body that is no stream, in bytes.
const LONGEST_PLAIN_BODY: usize = 64 * 1024;
/// How long the end of a body is waited for after `[DONE]`, before the connection is given up.
const DRAIN: std::time::Duration = std::time::Duration::from_millis(250);

/// What all exchanges of a client share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) options: LoadOptions,
    pub(crate) cancel: Cancel,
}

/// One request, ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) index: u32,
    pub(crate) phase: Phase,
    pub(crate) counter: TokenCounter,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
}

/// What came of one request.
#[derive(Debug)]
pub(crate) struct Exchanged {
    pub(crate) record: RequestRecord,
    /// How often it was sent again because a kept connection was closed.
    pub(crate) reconnects: u32,
}

/// Sends one request and reads its answer to the end, to a failure, to a deadline, or until the load is stopped.
pub(crate) async fn exchange(context: &Context, prepared: &Prepared, intended_ns: u64) -> Exchanged {
    let watch = Watch { quiet_since_ns: AtomicU64::new(NOT_STREAMING) };
    let Prepared { input_tokens, output_tokens, .. } = *prepared;
    let lengths = Lengths { input_tokens, output_tokens, exact: false };
    let mut state = State {
        record: blank(prepared, intended_ns),
        answer: Answer::new(prepared.counter, lengths),
        end_ns: None,
        reconnects: 0,
    };
    let stopped = tokio::select! {
        biased;
        () = drive(context, prepared, &mut state, &watch) => None,
        cause = context.cancel.stopped() => Some(failure(cause.class(), cause.message())),
        overdue = watch.overdue(context, intended_ns) => Some(overdue),
    };
    if let Some(RequestFailure { class, message }) = stopped {
        state.answer.fail_by(class, message);
    }
    let State { mut record, answer, end_ns, reconnects } = state;
    answer.write(&mut record, end_ns.unwrap_or_else(|| context.clock.now_ns()));
    Exchanged { record, reconnects }
}

/// What is known of a request so far.
struct State {
    record: RequestRecord,
    answer: Answer,
    end_ns: Option<u64>,
    reconnects: u32,
}

fn blank(prepared: &Prepared, intended_ns: u64) -> RequestRecord {
    RequestRecord {
        input_tokens: prepared.input_tokens,
        output_tokens_asked: prepared.output_tokens,
        ..RequestRecord::intended(prepared.phase, prepared.index, intended_ns)
    }
}

/// The mark of a request that has nothing streaming yet: a server may take its time for the first token.
const NOT_STREAMING: u64 = u64::MAX;

/// The two deadlines of a request.
struct Watch {
    /// When the last event came, once the answer is streaming.
    quiet_since_ns: AtomicU64,
}

impl Watch {
    fn heard(&self, at_ns: u64) {
        self.quiet_since_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Waits until the request has missed one of its deadlines.
    ///
    /// One timer does for both: it isn't set anew with each event, only when it goes off too early.
    async fn overdue(&self, context: &Context, intended_ns: u64) -> RequestFailure {
        let LoadOptions { request_timeout, stall_timeout } = context.options;
        let deadline_ns = intended_ns.saturating_add(nanoseconds(request_timeout));
        let stall_ns = nanoseconds(stall_timeout);
        loop {
            let now_ns = context.clock.now_ns();
            let (streaming, quiet_since_ns) = match self.quiet_since_ns.load(Ordering::Relaxed) {
                NOT_STREAMING => (false, now_ns),
                at_ns => (true, at_ns),
            };
            let stalled_ns = quiet_since_ns.saturating_add(stall_ns);
            if now_ns >= deadline_ns {
                let message =
                    format!("the answer wasn't complete {} s after its intended send", request_timeout.as_secs_f64());
                return failure(FailureClass::RequestTimeout, message);
            }
            if streaming && now_ns >= stalled_ns {
                let message = format!("the stream brought no event for {} s", stall_timeout.as_secs_f64());
                return failure(FailureClass::StreamStalled, message);
            }
            let wake_ns = deadline_ns.min(stalled_ns).max(now_ns.saturating_add(1));
            tokio::time::sleep_until(context.clock.instant(wake_ns).into()).await;
        }
    }
}

/// How one attempt on one connection ended.
enum Attempt {
    /// With an answer or a failure.
    Ended,
    /// The kept connection was closed before a byte of the answer came.
    Stale,
}

/// Sends the request and reads the answer, on a kept connection if there is one.
async fn drive(context: &Context, prepared: &Prepared, state: &mut State, watch: &Watch) {
    let mut kept = context.pool.take();
    loop {
        let connection = match kept.take() {
            Some(connection) => connection,
            None => match context.pool.open().await {
                Ok(connection) => connection,
                Err(error) => {
                    let host = context.pool.endpoint().host();
                    let message = format!("can't connect to `{host}`: {error}");
                    return state.answer.fail_by(connection_class(&error), message);
                }
            },
        };
        match attempt(context, prepared, connection, &mut *state, watch).await {
            Attempt::Ended => return,
            Attempt::Stale => state.reconnects += 1,
        }
    }
}

/// Sends the request on `connection` and reads the answer.
async fn attempt(
    context: &Context,
    prepared: &Prepared,
    mut connection: Connection,
    state: &mut State,
    watch: &Watch,
) -> Attempt {
    if let Err(error) = connection.send(&prepared.bytes).await {
        if connection.age() == Age::Reused {
            return Attempt::Stale;
        }
        state.answer.fail_by(connection_class(&error), format!("the connection failed while sending: {error}"));
        return Attempt::Ended;
    }
    state.record.sent_ns = Some(context.clock.now_ns());
    let mut reading = Reading::new();
    loop {
        let read = if state.answer.progress() == Progress::Done {
            match tokio::time::timeout(DRAIN, connection.read(&context.clock)).await {
                Ok(read) => read,
                // The answer is there; only the connection isn't worth keeping.
                Err(_elapsed) => return Attempt::Ended,
            }
        } else {
            connection.read(&context.clock).await
        };
        let next = match read {
            Ok(read) if read.bytes.is_empty() => {
                reading.close(state, "the server closed the connection", context.clock.now_ns())
            }
            Ok(read) => {
                state.record.first_byte_ns.get_or_insert(read.at_ns);
                reading.take(state, watch, read.bytes, read.at_ns)
            }
            Err(error) => reading.fail(state, &error, context.clock.now_ns()),
        };
        match next {
            Next::Read => {}
            Next::KeepConnection => {
                context.pool.keep(connection);
                return Attempt::Ended;
            }
            Next::DropConnection => return Attempt::Ended,
            Next::Unanswered(how) => {
                if connection.age() == Age::Reused && state.record.first_byte_ns.is_none() {
                    return Attempt::Stale;
                }
                state.answer.fail_by(FailureClass::ConnectionFailed, how);
                return Attempt::Ended;
            }
        }
    }
}

/// What to do after a read.
enum Next {
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
enum Body {
    /// A stream of events.
    Stream,
    /// Something else, whose first bytes are kept for the message.
    Plain { class: FailureClass, what: String, bytes: Vec<u8> },
}

/// The reading of one answer.
struct Reading {
    decode: Decode,
    body: Body,
    persistence: Persistence,
    framing: Framing,
}

impl Reading {
    fn new() -> Self {
        Self {
            decode: Decode::new(),
            body: Body::Stream,
            persistence: Persistence::Closed,
            framing: Framing::UntilClose,
        }
    }

    /// Takes the bytes of one read.
    fn take(&mut self, state: &mut State, watch: &Watch, mut bytes: &[u8], at_ns: u64) -> Next {
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
                watch.heard(state.answer.last_event_ns().unwrap_or(at_ns));
                Next::Read
            }
            Progress::Waiting => {
                // A message of failure comes in one go; a stream may take its time for the first token.
                if matches!(self.body, Body::Plain { .. }) {
                    watch.heard(at_ns);
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
    fn close(&mut self, state: &mut State, how: &str, at_ns: u64) -> Next {
        match self.decode.closing() {
            Closing::AtEnd => {
                self.end_body(state, at_ns);
                Next::DropConnection
            }
            Closing::BeforeHead | Closing::InHead | Closing::InBody => self.cut(state, how, at_ns),
        }
    }

    /// Takes the end of the connection by an error, which never is an order of things.
    fn fail(&mut self, state: &mut State, error: &io::Error, at_ns: u64) -> Next {
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
