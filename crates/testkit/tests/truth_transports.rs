//! The truth server over TLS, Unix sockets and HTTP/2.
#![expect(clippy::unwrap_used, reason = "a test that can't go on must fail")]

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use isobench_testkit::TruthServer;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const BODY: &str = r#"{"prompt":"a b","max_tokens":3,"stream":true}"#;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(server: &TruthServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request and returns the answer up to the end of its last chunk.
fn exchange(mut stream: impl Read + Write) -> String {
    let length = BODY.len();
    write!(stream, "POST /v1/completions HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{BODY}").unwrap();
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n0\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    String::from_utf8(answer).unwrap()
}

/// Connects with TLS, offering these protocols.
fn connect_tls(server: &TruthServer, protocols: &[&[u8]]) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(server.certificate()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let client = ClientConnection::new(Arc::new(config), ServerName::try_from("127.0.0.1").unwrap()).unwrap();
    let mut stream = StreamOwned::new(client, connect(server));
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).unwrap();
    }
    stream
}

#[test]
fn all_transports_carry_the_same_bytes() {
    let server = TruthServer::start("");
    let expected = exchange(connect(&server));
    assert!(expected.contains("data: [DONE]"));
    let server = TruthServer::start("");
    assert_eq!(exchange(UnixStream::connect(server.socket()).unwrap()), expected);
    let server = TruthServer::start_with("", &["--tls"]);
    assert!(server.url().starts_with("https://127.0.0.1:"));
    assert_eq!(exchange(connect_tls(&server, &[])), expected);
    assert_eq!(server.log().len(), 1);
    let server = TruthServer::start_with("", &["--tls", "--http2"]);
    assert_eq!(exchange(connect_tls(&server, &[b"http/1.1"])), expected);
    let server = TruthServer::start_with("", &["--http2"]);
    assert_eq!(exchange(connect(&server)), expected);
}

/// An answer over HTTP/2: status, body, trailers, and how it broke off.
type Answer = (u16, String, Option<HeaderMap>, Option<h2::Reason>);

/// Sends requests at once over one HTTP/2 connection and returns the answers.
async fn exchange_http2<S>(socket: S, count: usize) -> Vec<Answer>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    // The default takes a server that sends each token by itself for an attacker.
    let mut builder = h2::client::Builder::new();
    let (client, connection) = builder.data_frame_budget(1 << 30).handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let mut responses = Vec::new();
    for _ in 0..count {
        let request = Request::post("http://localhost/v1/completions").body(()).unwrap();
        poll_fn(|context| client.poll_ready(context)).await.unwrap();
        let (response, mut send) = client.send_request(request, false).unwrap();
        send.send_data(Bytes::from_static(BODY.as_bytes()), true).unwrap();
        responses.push(response);
    }
    let mut answers = Vec::new();
    for response in responses {
        let response = response.await.unwrap();
        let status = response.status().as_u16();
        let (mut incoming, mut body, mut reset) = (response.into_body(), Vec::new(), None);
        while let Some(data) = incoming.data().await {
            match data {
                Ok(data) => body.extend_from_slice(&data),
                Err(error) => {
                    reset = error.reason();
                    break;
                }
            }
        }
        let trailers = if reset.is_none() { incoming.trailers().await.unwrap() } else { None };
        answers.push((status, String::from_utf8(body).unwrap(), trailers, reset));
    }
    answers
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn http2_carries_streams_and_their_faults() {
    let server = TruthServer::start_with("ttft_us=1000&itl_us=100&trailers=1", &["--http2"]);
    let connect = || async { tokio::net::TcpStream::connect(server.address()).await.unwrap() };
    let work = async {
        let answers = exchange_http2(connect().await, 20).await;
        assert_eq!(answers.len(), 20);
        for (status, body, trailers, reset) in answers {
            assert_eq!((status, body.matches("data: {").count(), reset), (200, 3, None), "{body}");
            assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
            assert_eq!(trailers.unwrap()["x-truth"], "told");
        }
        server.ctl("abort=2&trailers=0");
        let [(status, body, _, reset)] = exchange_http2(connect().await, 1).await.try_into().unwrap();
        assert_eq!((status, body.matches("data: {").count(), reset), (200, 2, Some(h2::Reason::INTERNAL_ERROR)));
        server.ctl("abort=0&http_every=1&http_status=503");
        assert_eq!(exchange_http2(connect().await, 1).await[0].0, 503);
    };
    runtime().block_on(async { tokio::time::timeout(PATIENCE, work).await }).unwrap();
    let stats = server.stats();
    assert_eq!((stats["requests"].as_u64(), stats["accepts"].as_u64()), (Some(20), Some(3)), "{stats}");
    let log = server.log();
    assert!(log[..20].iter().all(|record| record.connection == log[0].connection));
}

#[test]
fn tls_clients_may_choose_http2() {
    let server = TruthServer::start_with("", &["--tls", "--http2"]);
    let mut tls = connect_tls(&server, &[b"h2", b"http/1.1"]);
    assert_eq!(tls.conn.alpn_protocol(), Some(&b"h2"[..]));
    // The client's preface and settings; the server answers with its own settings.
    tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut frame = [0; 9];
    tls.read_exact(&mut frame).unwrap();
    assert_eq!((frame[3], &frame[5..]), (4, &[0, 0, 0, 0][..]));
}
