//! HTTP/2: a thread that turns each request into one of HTTP/1.1 to the serving thread and its answer back, so that one
//! thread alone knows times, settings and faults.
//!
//! What the log calls the time at which a token left is when the serving thread handed it to this one, some tens of
//! microseconds before the kernel has it. An answer that breaks off resets its HTTP/2 stream and not the connection.

use std::error::Error;
use std::future::poll_fn;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::dechunk::{Decoder, Part};

/// The window of each stream and connection for the bodies of requests, in bytes.
const WINDOW: u32 = 16 * 1024 * 1024;
/// The most streams of one connection.
const MOST_STREAMS: u32 = 100_000;
/// The most headers of an answer of our own.
const MOST_HEADERS: usize = 16;

/// What ends a connection or a request early; nobody needs to know.
type Failure = Box<dyn Error + Send + Sync>;

/// The turns that others have before a stream is reset.
const TURNS: usize = 4;

/// The connection that a request came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) connection: u64,
    /// In nanoseconds.
    pub(crate) accepted: u64,
}

/// A connection that speaks HTTP/2, without TLS.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) socket: UnixStream,
    pub(crate) origin: Origin,
}

/// A connection for one request in HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) socket: UnixStream,
    pub(crate) origin: Origin,
}

/// The way to the serving thread.
#[derive(Debug)]
struct Way {
    requests: Sender<Outbound>,
    rope: UnixStream,
    origin: Origin,
}

/// Serves connections as they come.
pub(crate) async fn serve(mut inbound: UnboundedReceiver<Inbound>, requests: Sender<Outbound>, rope: UnixStream) {
    while let Some(Inbound { socket, origin }) = inbound.recv().await {
        let Ok(rope) = rope.try_clone() else { continue };
        let way = Way { requests: requests.clone(), rope, origin };
        // A connection that ends with an error is the client's concern.
        tokio::spawn(async move { connection(socket, way).await.ok() });
    }
}

async fn connection(socket: UnixStream, way: Way) -> Result<(), Failure> {
    let socket = tokio::net::UnixStream::from_std(socket)?;
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).max_concurrent_streams(MOST_STREAMS);
    let mut connection = builder.handshake(socket).await?;
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted?;
        let inner = way.open()?;
        tokio::spawn(async move { exchange(request, respond, inner).await.ok() });
    }
    Ok(())
}

impl Way {
    /// Opens a connection to the serving thread.
    fn open(&self) -> Result<tokio::net::UnixStream, Failure> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        self.requests.send(Outbound { socket: far, origin: self.origin })?;
        // If there is no room to ring, it rings already.
        (&self.rope).write_all(&[0]).ok();
        Ok(tokio::net::UnixStream::from_std(near)?)
    }
}

/// Serves one request.
async fn exchange(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    mut inner: tokio::net::UnixStream,
) -> Result<(), Failure> {
    let (head, mut incoming) = request.into_parts();
    let mut body = BytesMut::new();
    while let Some(data) = incoming.data().await {
        let data = data?;
        incoming.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let start =
        format!("{} {path} HTTP/1.1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", head.method, body.len());
    inner.write_all(&[start.as_bytes(), &body].concat()).await?;
    let mut bytes = BytesMut::new();
    let (response, decoder) = loop {
        if inner.read_buf(&mut bytes).await? == 0 {
            respond.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        }
        if let Some(read) = answer_head(&mut bytes)? {
            break read;
        }
    };
    let send = respond.send_response(response, false)?;
    forward(send, inner, decoder, bytes).await
}

/// Sends the body of an answer as it comes.
async fn forward(
    mut send: SendStream<Bytes>,
    mut inner: tokio::net::UnixStream,
    mut decoder: Decoder,
    mut bytes: BytesMut,
) -> Result<(), Failure> {
    loop {
        while let Some(part) = decoder.next(&mut bytes)? {
            match part {
                Part::Data(data) => send.send_data(data, false)?,
                Part::End(trailers) if trailers.is_empty() => return Ok(send.send_data(Bytes::new(), true)?),
                Part::End(trailers) => {
                    let mut map = HeaderMap::new();
                    for (name, value) in trailers {
                        map.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
                    }
                    return Ok(send.send_trailers(map)?);
                }
            }
        }
        let read = tokio::select! {
            read = inner.read_buf(&mut bytes) => read,
            // The client doesn't want the rest.
            _ = poll_fn(|context| send.poll_reset(context)) => return Ok(()),
        };
        if !matches!(read, Ok(count) if count > 0) {
            if decoder == Decoder::Rest {
                return Ok(send.send_data(Bytes::new(), true)?);
            }
            // A reset throws away what isn't written yet, so the connection's task has its turn before.
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            send.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        }
    }
}

/// Takes an answer's head off `bytes`, if it is whole.
fn answer_head(bytes: &mut BytesMut) -> Result<Option<(Response<()>, Decoder)>, Failure> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = head.parse(bytes)? else { return Ok(None) };
    let mut response = Response::builder().status(head.code.unwrap_or(500));
    let mut decoder = Decoder::Rest;
    for header in head.headers.iter() {
        match header.name {
            "transfer-encoding" => decoder = Decoder::chunked(),
            "connection" | "trailer" => {}
            name => {
                if name == "content-length" {
                    decoder = Decoder::Length(str::from_utf8(header.value)?.parse()?);
                }
                response = response.header(name, header.value);
            }
        }
    }
    let response = response.body(())?;
    drop(bytes.split_to(length));
    Ok(Some((response, decoder)))
}
