//! Sessions with `h2`'s own server, in memory and over TCP.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use ::http::Response;
use h2::server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;

/// What a session saw of its streams: status, body, and how each ended.
type Seen = BTreeMap<u64, (u16, Vec<u8>, Option<Result<(), (String, bool)>>)>;

fn head(path: &str) -> RequestHead {
    let uri = Uri::builder().scheme("http").authority("localhost").path_and_query(path).build().unwrap();
    RequestHead { method: Method::POST, uri, fields: HeaderMap::new() }
}

fn take_events(session: &mut Session, seen: &mut Seen) {
    while let Some(Event { stream, kind, .. }) = session.next_event() {
        let (status, body, end) = seen.entry(stream.0).or_default();
        assert_eq!(*end, None, "{stream:?} goes on after its end");
        match kind {
            EventKind::Head { status: found, .. } => *status = found,
            EventKind::Data(bytes) => body.extend_from_slice(&bytes),
            EventKind::End => *end = Some(Ok(())),
            EventKind::Reset { reason, refused } => *end = Some(Err((reason, refused))),
        }
    }
}

/// Carries bytes between the session and the server until each of its streams has ended, in pieces of `size`.
async fn carry(session: &mut Session, mut server: DuplexStream, size: usize) -> Seen {
    let mut seen = Seen::new();
    let (mut out, mut buffer) = (Vec::new(), vec![0; size]);
    for at_ns in 1.. {
        session.take_output(&mut out);
        // What a server that has gone is told gets lost.
        let _ = server.write_all(&out).await;
        out.clear();
        take_events(session, &mut seen);
        if session.under_way() == 0 {
            return seen;
        }
        match server.read(&mut buffer).await.unwrap() {
            0 => session.end("the server closed the connection", at_ns),
            length => session.feed(&buffer[..length], at_ns),
        }
    }
    seen
}

async fn read_body(mut body: RecvStream) -> usize {
    let mut length = 0;
    while let Some(bytes) = body.data().await {
        let bytes = bytes.unwrap();
        body.flow_control().release_capacity(bytes.len()).unwrap();
        length += bytes.len();
    }
    length
}

fn stream_head() -> Response<()> {
    Response::builder().header("Content-Type", "Text/Event-Stream").body(()).unwrap()
}

/// Answers every request with `frames` frames: the length of its body, again and again.
async fn echo_lengths(
    io: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    builder: server::Builder,
    frames: usize,
) {
    let mut connection = builder.handshake::<_, Bytes>(io).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tasks.spawn(async move {
            let length = read_body(request.into_body()).await;
            let mut body = respond.send_response(stream_head(), false).unwrap();
            for _ in 0..frames {
                body.send_data(Bytes::from(format!("{length} ")), false).unwrap();
            }
            body.send_data(Bytes::new(), true).unwrap();
        });
    }
}

#[tokio::test]
async fn answers_come_back_whole_however_they_are_split() {
    let long = Bytes::from(vec![b'x'; 3 << 20]);
    for size in [1, 7, 1 << 16] {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let serving = tokio::spawn(echo_lengths(theirs, server::Builder::new(), 100));
        let mut session = Session::new().unwrap();
        session.send_request(head("/a"), long.clone()).unwrap();
        session.send_request(head("/b"), Bytes::new()).unwrap();
        session.send_request(head("/c"), Bytes::from_static(b"four")).unwrap();
        let seen = carry(&mut session, ours, size).await;
        for (stream, length) in [(0, long.len()), (1, 0), (2, 4)] {
            let body = format!("{length} ").repeat(100).into_bytes();
            assert_eq!(seen[&stream], (200, body, Some(Ok(()))), "in reads of {size}");
        }
        assert_eq!(session.over(), None);
        serving.abort();
    }
}

#[tokio::test]
async fn an_endless_row_of_small_frames_is_read() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(echo_lengths(theirs, server::Builder::new(), 100_000));
    let mut session = Session::new().unwrap();
    session.send_request(head("/"), Bytes::from_static(b"four")).unwrap();
    let seen = carry(&mut session, ours, 1 << 16).await;
    assert_eq!((seen[&0].1.len(), &seen[&0].2), (200_000, &Some(Ok(()))));
    serving.abort();
}

#[tokio::test]
async fn no_more_requests_are_sent_than_the_server_takes_at_a_time() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let mut builder = server::Builder::new();
    // The library's server ends the connection if there are more.
    builder.max_concurrent_streams(2);
    let serving = tokio::spawn(echo_lengths(theirs, builder, 3));
    let mut session = Session::new().unwrap();
    let mut ours = ours;
    let mut first = Vec::new();
    session.take_output(&mut first);
    ours.write_all(&first).await.unwrap();
    let mut buffer = [0; 1024];
    while session.has_room() && session.requests.current_max_send_streams() != 2 {
        let length = ours.read(&mut buffer).await.unwrap();
        session.feed(&buffer[..length], 1);
    }
    let streams: Vec<StreamId> =
        (0..9).map(|_| session.send_request(head("/"), Bytes::from_static(b"four")).unwrap()).collect();
    assert_eq!((session.has_room(), session.under_way()), (false, 9));
    assert!(!session.is_waiting(streams[1]) && session.is_waiting(streams[2]));
    let seen = carry(&mut session, ours, 1 << 16).await;
    assert!(seen.len() == 9 && seen.values().all(|(_, body, end)| body == b"4 4 4 " && *end == Some(Ok(()))));
    serving.abort();
}

#[tokio::test]
async fn every_event_has_the_time_of_the_read_that_brought_it() {
    let (mut ours, theirs) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(echo_lengths(theirs, server::Builder::new(), 3));
    let mut session = Session::new().unwrap();
    session.send_request(head("/"), Bytes::new()).unwrap();
    let mut out = Vec::new();
    let mut times = Vec::new();
    let mut buffer = [0; 1];
    let mut at_ns = 0;
    while session.under_way() > 0 {
        session.take_output(&mut out);
        ours.write_all(&out).await.unwrap();
        out.clear();
        at_ns += ours.read(&mut buffer).await.unwrap() as u64;
        session.feed(&buffer, at_ns);
        while let Some(event) = session.next_event() {
            assert_eq!(event.at_ns, at_ns);
            times.push((event.at_ns, event.kind));
        }
    }
    assert_eq!(times.len(), 5, "a head, three pieces and the end: {times:?}");
    let expected =
        EventKind::Head { status: 200, content_type: Some("text/event-stream".to_owned()), content_encoding: None };
    assert_eq!(times[0].1, expected);
    serving.abort();
}

#[tokio::test]
async fn a_reset_a_refusal_and_a_goaway_are_told_apart() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(async move {
        let mut connection = server::Builder::new().handshake::<_, Bytes>(theirs).await.unwrap();
        let mut held = Vec::new();
        for number in 0..3 {
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            match number {
                0 => {
                    let mut body = respond.send_response(stream_head(), false).unwrap();
                    body.send_data(Bytes::from_static(b"begun"), false).unwrap();
                    body.send_reset(Reason::INTERNAL_ERROR);
                }
                1 => respond.send_reset(Reason::REFUSED_STREAM),
                _ => held.push(respond),
            }
        }
        connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        let _ = std::future::poll_fn(|context| connection.poll_closed(context)).await;
    });
    let mut session = Session::new().unwrap();
    for _ in 0..3 {
        session.send_request(head("/"), Bytes::new()).unwrap();
    }
    let seen = carry(&mut session, ours, 1 << 16).await;
    let ended = |stream: u64| seen[&stream].2.clone().unwrap().unwrap_err();
    let (reason, refused) = ended(0);
    assert!(!refused && reason.contains("internal error"), "{reason}");
    let (reason, refused) = ended(1);
    assert!(refused && reason.contains("refused"), "{reason}");
    let (reason, _) = ended(2);
    assert!(reason.contains("calm") || reason.contains("load"), "{reason}");
    assert!(session.over().is_some() && !session.has_room());
    assert!(session.send_request(head("/"), Bytes::new()).is_err());
    serving.await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_connection_resets_what_is_not_complete() {
    let mut session = Session::new().unwrap();
    let stream = session.send_request(head("/"), Bytes::new()).unwrap();
    session.end("the server closed the connection", 7);
    let event = session.next_event().unwrap();
    assert_eq!((event.stream, event.at_ns), (stream, 7));
    assert!(matches!(event.kind, EventKind::Reset { refused: false, .. }), "{event:?}");
    assert_eq!((session.next_event(), session.under_way()), (None, 0));
    let mut session = Session::new().unwrap();
    session.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n", 1);
    assert!(session.over().is_some());
}

#[tokio::test]
async fn a_request_that_is_given_up_is_reset_and_the_others_go_on() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(echo_lengths(theirs, server::Builder::new(), 3));
    let mut session = Session::new().unwrap();
    let first = session.send_request(head("/"), Bytes::new()).unwrap();
    session.send_request(head("/"), Bytes::new()).unwrap();
    session.cancel(first);
    let seen = carry(&mut session, ours, 1 << 16).await;
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(seen[&1].2, Some(Ok(())));
    serving.abort();
}

#[test]
fn a_request_needs_its_whole_address() {
    let mut session = Session::new().unwrap();
    let head = RequestHead { uri: Uri::from_static("/v1"), ..head("/") };
    let error = session.send_request(head, Bytes::new()).unwrap_err().to_string();
    assert_eq!(error, "the request can't be sent over HTTP/2: `/v1` lacks its scheme and host");
}

#[test]
fn a_server_behind_a_socket_is_understood() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::from_std(stream).unwrap();
            echo_lengths(stream, server::Builder::new(), 1000).await;
        });
    });
    let mut session = Session::new().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    for _ in 0..20 {
        session.send_request(head("/"), Bytes::from_static(b"four")).unwrap();
    }
    let (mut out, mut buffer, mut seen) = (Vec::new(), vec![0; 4096], Seen::new());
    while session.under_way() > 0 {
        session.take_output(&mut out);
        stream.write_all(&out).unwrap();
        out.clear();
        let length = stream.read(&mut buffer).unwrap();
        session.feed(&buffer[..length], 1);
        take_events(&mut session, &mut seen);
    }
    assert!(seen.len() == 20 && seen.values().all(|(_, body, _)| body.len() == 2000));
    drop(stream);
    serving.join().unwrap();
}
