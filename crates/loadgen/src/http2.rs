//! HTTP/2 without sockets: the client's side of a connection, as bytes in, bytes out, and events.
//!
//! The frames are `h2`'s, over a pipe in memory. Whatever bytes bring is handed out before more are taken, so that each
//! event has the time of the read that completed it. Only streams that have news are looked at.

mod pipe;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use ::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use ::http::{HeaderMap, Method, Request, Uri, Version};
use bytes::Bytes;
use h2::client::{Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};

use pipe::Pipe;

/// How many bytes of one answer may be under way, unread.
const STREAM_WINDOW: u32 = 4 << 20;
/// How many bytes of all answers on a connection may be under way, unread.
const CONNECTION_WINDOW: u32 = 64 << 20;
/// How many bytes smaller than the library's ideal small frames may be in all. An engine sends one small frame for each
/// token, for hours, so that there is no bound.
const SMALL_FRAMES: usize = usize::MAX;
/// How many requests are sent before the server has said how many it takes at a time.
const STREAMS_AT_FIRST: usize = 100;

/// Why a session can't begin, or a request can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Http2Error {
    /// The connection is over.
    #[error("the HTTP/2 connection is over: {reason}")]
    Over {
        /// Why.
        reason: String,
    },
    /// The request can't be written as one of HTTP/2.
    #[error("the request can't be sent over HTTP/2: {reason}")]
    Request {
        /// Why.
        reason: String,
    },
}

/// What a request's head says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// Scheme, authority and path.
    pub uri: Uri,
    /// Its other fields.
    pub fields: HeaderMap,
}

/// The number of a request in its session, from 0, in the order of [`Session::send_request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Something that happened to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The request.
    pub stream: StreamId,
    /// When the bytes were read that brought it.
    pub at_ns: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The head of its answer came.
    Head {
        /// The HTTP status.
        status: u16,
        /// The `Content-Type`, in lower case.
        content_type: Option<String>,
        /// The `Content-Encoding`, where it isn't `identity`.
        content_encoding: Option<String>,
    },
    /// Bytes of the answer's body came, never none.
    Data(Bytes),
    /// The answer is complete.
    End,
    /// The answer won't be completed.
    Reset {
        /// Why.
        reason: String,
        /// Whether the server says that it hasn't begun with the request.
        refused: bool,
    },
}

/// The streams that have news, by number.
type News = Arc<Mutex<Vec<StreamId>>>;

/// Notes that a stream has news.
#[derive(Debug)]
struct Notify {
    stream: StreamId,
    news: News,
}

impl Wake for Notify {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(self.stream);
    }
}

/// Where an answer stands.
#[derive(Debug)]
enum Answer {
    Head(ResponseFuture),
    Body(RecvStream),
}

/// A request under way.
#[derive(Debug)]
struct Exchange {
    answer: Answer,
    /// Held so that the request can be given up, and isn't before.
    request: SendStream<Bytes>,
    waker: Waker,
}

/// A request that waits until the server takes one more.
#[derive(Debug)]
struct Waiting {
    stream: StreamId,
    head: Request<()>,
    body: Bytes,
}

/// One connection, as a client.
#[derive(Debug)]
pub struct Session {
    pipe: Pipe,
    connection: Connection<Pipe, Bytes>,
    requests: SendRequest<Bytes>,
    exchanges: BTreeMap<StreamId, Exchange>,
    waiting: VecDeque<Waiting>,
    events: VecDeque<Event>,
    news: News,
    next: u64,
    /// When the last bytes were read.
    at_ns: u64,
    /// Why it is over, once it is.
    over: Option<String>,
}

impl Session {
    /// Returns a session whose first bytes wait in [`Self::take_output`].
    ///
    /// # Errors
    /// Returns an error if the library refuses to begin.
    pub fn new() -> Result<Self, Http2Error> {
        let pipe = Pipe::default();
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .data_frame_budget(SMALL_FRAMES)
            .enable_push(false);
        let mut shaking = Box::pin(builder.handshake(pipe.clone()));
        // The client's side of it only writes, which memory always takes at once.
        match shaking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok((requests, connection))) => {
                let mut session = Self {
                    pipe,
                    connection,
                    requests,
                    exchanges: BTreeMap::new(),
                    waiting: VecDeque::new(),
                    events: VecDeque::new(),
                    news: News::default(),
                    next: 0,
                    at_ns: 0,
                    over: None,
                };
                session.turn();
                Ok(session)
            }
            Poll::Ready(Err(error)) => Err(Http2Error::Over { reason: error.to_string() }),
            Poll::Pending => Err(Http2Error::Over { reason: "the handshake doesn't begin".to_owned() }),
        }
    }

    /// Sends a request as soon as the server takes one more; its bytes then are in [`Self::take_output`]. An answer in a
    /// compressed form is refused, if `head` doesn't say otherwise.
    ///
    /// # Errors
    /// Returns an error if the connection is over or the request can't be one.
    pub fn send_request(&mut self, head: RequestHead, body: Bytes) -> Result<StreamId, Http2Error> {
        if let Some(reason) = &self.over {
            return Err(Http2Error::Over { reason: reason.clone() });
        }
        let RequestHead { method, uri, fields } = head;
        if uri.scheme().is_none() || uri.authority().is_none() {
            return Err(Http2Error::Request { reason: format!("`{uri}` lacks its scheme and host") });
        }
        let mut head = Request::new(());
        *head.method_mut() = method;
        *head.uri_mut() = uri;
        *head.version_mut() = Version::HTTP_2;
        *head.headers_mut() = fields;
        head.headers_mut().entry(ACCEPT_ENCODING).or_insert(::http::HeaderValue::from_static("identity"));
        let stream = StreamId(self.next);
        self.next += 1;
        self.waiting.push_back(Waiting { stream, head, body });
        self.turn();
        Ok(stream)
    }

    /// Takes bytes that one read at `at_ns` brought. What they bring is in [`Self::next_event`].
    pub fn feed(&mut self, bytes: &[u8], at_ns: u64) {
        self.at_ns = at_ns;
        self.pipe.bring(bytes);
        self.turn();
    }

    /// Takes the end of the connection at `at_ns`; `how` says how it ended. Every answer that isn't complete is reset.
    pub fn end(&mut self, how: &str, at_ns: u64) {
        self.at_ns = at_ns;
        self.pipe.close();
        self.turn();
        self.finish(how);
    }

    /// Gives up a request: nothing more is handed out of it.
    pub fn cancel(&mut self, stream: StreamId) {
        self.waiting.retain(|waiting| waiting.stream != stream);
        self.events.retain(|event| event.stream != stream);
        if let Some(mut exchange) = self.exchanges.remove(&stream) {
            exchange.request.send_reset(Reason::CANCEL);
        }
        self.turn();
    }

    /// Puts what the server must be told behind `out`.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        self.pipe.take(out);
    }

    /// Returns whether there is something in [`Self::take_output`].
    pub fn has_output(&self) -> bool {
        self.pipe.has_output()
    }

    /// Returns what happened next.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns how many requests have no complete answer, those that wait included.
    pub fn under_way(&self) -> usize {
        self.exchanges.len() + self.waiting.len()
    }

    /// Returns whether a request would be sent at once rather than wait until the server takes one more.
    pub fn has_room(&self) -> bool {
        self.over.is_none() && self.under_way() < self.requests.current_max_send_streams()
    }

    /// Returns whether `stream` waits for the server to take one more.
    pub fn is_waiting(&self, stream: StreamId) -> bool {
        self.waiting.iter().any(|waiting| waiting.stream == stream)
    }

    /// Returns why the connection takes no more requests, once it takes none.
    pub fn over(&self) -> Option<&str> {
        self.over.as_deref()
    }

    /// Does everything that can be done with what has come.
    fn turn(&mut self) {
        loop {
            self.run_connection();
            self.open_waiting();
            let mut news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
            if news.is_empty() {
                break;
            }
            for stream in news.drain(..) {
                self.look_at(stream);
            }
        }
        // What was read makes room, which the server must be told.
        self.run_connection();
        if self.exchanges.is_empty()
            && let Some(reason) = self.over.clone()
        {
            self.finish(&reason);
        }
    }

    fn run_connection(&mut self) {
        if self.pipe.is_over() {
            return;
        }
        match Pin::new(&mut self.connection).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => {}
            Poll::Ready(ended) => {
                self.pipe.set_over();
                let reason = match ended {
                    Ok(()) => "the server ended it".to_owned(),
                    Err(error) => error.to_string(),
                };
                self.over.get_or_insert(reason);
            }
        }
    }

    fn open_waiting(&mut self) {
        loop {
            match self.requests.poll_ready(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    // The server takes no more; those that it has begun with may go on.
                    let reason = self.over.get_or_insert_with(|| error.to_string()).clone();
                    return self.refuse_waiting(&reason);
                }
            }
            if self.exchanges.len() >= self.requests.current_max_send_streams() {
                return;
            }
            let Some(Waiting { stream, head, body }) = self.waiting.pop_front() else { return };
            match self.open(stream, head, body) {
                Ok(exchange) => {
                    self.exchanges.insert(stream, exchange);
                    self.news.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                }
                Err(error) => self.reset(stream, &error),
            }
            self.run_connection();
        }
    }

    fn open(&mut self, stream: StreamId, head: Request<()>, body: Bytes) -> Result<Exchange, h2::Error> {
        let (answer, mut request) = self.requests.send_request(head, body.is_empty())?;
        if !body.is_empty() {
            request.send_data(body, true)?;
        }
        let waker = Waker::from(Arc::new(Notify { stream, news: Arc::clone(&self.news) }));
        Ok(Exchange { answer: Answer::Head(answer), request, waker })
    }

    /// Takes everything that has come of one answer.
    fn look_at(&mut self, stream: StreamId) {
        let at_ns = self.at_ns;
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        let waker = exchange.waker.clone();
        let mut context = Context::from_waker(&waker);
        let ended = loop {
            match &mut exchange.answer {
                Answer::Head(head) => match Pin::new(head).poll(&mut context) {
                    Poll::Pending => return,
                    Poll::Ready(Err(error)) => break Err(error),
                    Poll::Ready(Ok(response)) => {
                        let (parts, body) = response.into_parts();
                        let field = |name| {
                            let value = parts.headers.get(name)?;
                            Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
                        };
                        let kind = EventKind::Head {
                            status: parts.status.as_u16(),
                            content_type: field(CONTENT_TYPE),
                            content_encoding: field(CONTENT_ENCODING).filter(|encoding| encoding != "identity"),
                        };
                        self.events.push_back(Event { stream, at_ns, kind });
                        exchange.answer = Answer::Body(body);
                    }
                },
                Answer::Body(body) => match body.poll_data(&mut context) {
                    Poll::Pending => return,
                    Poll::Ready(None) => break Ok(()),
                    Poll::Ready(Some(Err(error))) => break Err(error),
                    Poll::Ready(Some(Ok(bytes))) => {
                        // It fails only for more than came.
                        let _ = body.flow_control().release_capacity(bytes.len());
                        if !bytes.is_empty() {
                            self.events.push_back(Event { stream, at_ns, kind: EventKind::Data(bytes) });
                        }
                    }
                },
            }
        };
        self.exchanges.remove(&stream);
        match ended {
            Ok(()) => self.happened(stream, EventKind::End),
            Err(error) => self.reset(stream, &error),
        }
    }

    fn reset(&mut self, stream: StreamId, error: &h2::Error) {
        // After GOAWAY, only streams that the server hasn't begun with end by it.
        let refused = error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM));
        // What ended the connection says more than that it has ended.
        let reason = self.over.clone().filter(|_| error.is_io()).unwrap_or_else(|| error.to_string());
        self.happened(stream, EventKind::Reset { reason, refused });
    }

    fn refuse_waiting(&mut self, reason: &str) {
        while let Some(Waiting { stream, .. }) = self.waiting.pop_front() {
            self.happened(stream, EventKind::Reset { reason: reason.to_owned(), refused: true });
        }
    }

    /// Resets everything that is left, which the end of the connection leaves without an answer.
    fn finish(&mut self, how: &str) {
        self.over.get_or_insert_with(|| how.to_owned());
        for stream in std::mem::take(&mut self.exchanges).into_keys() {
            self.happened(stream, EventKind::Reset { reason: how.to_owned(), refused: false });
        }
        self.refuse_waiting(how);
    }

    fn happened(&mut self, stream: StreamId, kind: EventKind) {
        self.events.push_back(Event { stream, at_ns: self.at_ns, kind });
    }
}

#[cfg(test)]
mod tests;
