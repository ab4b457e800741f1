//! What the client makes of everything that a server can put on the wire.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

mod support;

use std::sync::Arc;

use isobench_loadgen::client::LoadOptions;
use isobench_schema::failure::FailureClass;
use isobench_schema::record::{RequestRecord, Usage};
use support::{
    DONE, LONG, SHORT, STREAM_HEAD, chunked, last_event, load, one_by_one, patient, read_request, server, text_event,
    whole_answer, write,
};

/// What the server does after it has written everything.
#[derive(Debug, Clone, Copy, PartialEq)]
enum After {
    Close,
    Hold,
}

/// Sends one request to a server that answers with these pieces, one write for each.
async fn answered(pieces: &[&[u8]], after: After, options: LoadOptions) -> RequestRecord {
    let pieces: Arc<Vec<Vec<u8>>> = Arc::new(pieces.iter().map(|piece| piece.to_vec()).collect());
    let url = server(move |_, mut stream| {
        let pieces = Arc::clone(&pieces);
        async move {
            read_request(&mut stream).await.unwrap();
            for piece in pieces.iter() {
                write(&mut stream, piece).await;
            }
            if after == After::Hold {
                read_request(&mut stream).await;
            }
        }
    })
    .await;
    let (mut records, summary) = load(&url, &one_by_one(1), options).await;
    assert_eq!((records.len(), summary.asked, summary.completed + summary.failed), (1, 1, 1));
    records.remove(0)
}

fn check_whole(record: &RequestRecord) {
    assert_eq!(record.failure, None);
    assert_eq!((record.text.as_str(), &record.chunk_tokens), (" größe 🦀 end", &vec![1, 1, 1]));
    assert_eq!((record.status, record.finish_reason.as_deref()), (Some(200), Some("length")));
    assert_eq!((record.input_tokens, record.output_tokens_asked, record.output_tokens()), (4, 3, 3));
    let mut times = vec![record.intended_ns, record.sent_ns.unwrap(), record.first_byte_ns.unwrap()];
    times.extend(&record.chunk_ns);
    times.push(record.end_ns);
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn an_answer_is_the_same_byte_by_byte_and_split_anywhere() {
    let answer = whole_answer();
    let bytes: Vec<&[u8]> = answer.as_bytes().chunks(1).collect();
    let record = answered(&bytes, After::Hold, patient()).await;
    check_whole(&record);
    // The server's claim is recorded as it is.
    assert_eq!(record.usage, Some(Usage { prompt_tokens: 4, completion_tokens: 999 }));
    for at in (0..answer.len()).step_by(3) {
        let (a, b) = answer.as_bytes().split_at(at);
        check_whole(&answered(&[a, b], After::Hold, patient()).await);
    }
}

#[tokio::test]
async fn every_way_to_write_the_same_answer_is_read() {
    let (a, b, c) = (text_event(" größe"), text_event(" 🦀"), last_event(" end"));
    let chatty = format!(": ping\n\n{a}: ping\n{b}\n\n: ping\n{c}{DONE}");
    let crlf = chatty.replace('\n', "\r\n");
    let cr = chatty.replace('\n', "\r");
    let no_done = format!("{a}{b}{c}");
    let no_blank = format!("{a}{b}{c}data: [DONE]");
    let bom = format!("\u{feff}{a}{b}{c}");
    for body in [&chatty, &crlf, &cr, &no_done, &no_blank, &bom] {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n";
        let framings = [
            (format!("{STREAM_HEAD}{}", chunked(&[body])), After::Hold),
            (format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()), After::Hold),
            (format!("{head}\r\n{body}"), After::Close),
            (format!("HTTP/1.1 200 OK\r\n\r\n{body}"), After::Close),
        ];
        for (answer, after) in framings {
            check_whole(&answered(&[answer.as_bytes()], after, patient()).await);
        }
    }
}

async fn check(answer: &str, after: After, class: FailureClass, message: &str) -> RequestRecord {
    let record = answered(&[answer.as_bytes()], after, patient()).await;
    let failure = record.failure.clone().unwrap_or_else(|| panic!("no failure for {answer:?}"));
    assert_eq!((failure.class, failure.message.as_str()), (class, message), "{answer:?}");
    assert!(record.end_ns >= record.intended_ns);
    record
}

#[tokio::test]
async fn a_server_that_closes_early_is_told_from_one_that_never_answered() {
    let truncated = "the server closed the connection after 1 chunks, before the end of the stream";
    let event = text_event(" a");
    let part = format!("{STREAM_HEAD}{:x}\r\n{event}\r\n", event.len());
    let record = check(&part, After::Close, FailureClass::StreamTruncated, truncated).await;
    assert_eq!((record.text.as_str(), record.chunk_tokens), (" a", vec![1]));
    let ended = "the stream ended after 1 chunks without a finish reason or `[DONE]`";
    let clean = format!("{STREAM_HEAD}{}", chunked(&[&event]));
    check(&clean, After::Hold, FailureClass::StreamTruncated, ended).await;
    let unanswered = "the server closed the connection before it had answered anything";
    check("", After::Close, FailureClass::ConnectionFailed, unanswered).await;
    let in_head = "the server closed the connection within the answer's head: HTTP/1.1 200";
    check("HTTP/1.1 200", After::Close, FailureClass::ConnectionFailed, in_head).await;
}

#[tokio::test]
async fn a_wrong_length_truncates_the_answer() {
    let body = format!("{}{}", text_event(" a"), last_event(" b"));
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    let message = "the server closed the connection after 2 chunks, before the end of the stream";
    check(&head(body.len() + 1), After::Close, FailureClass::StreamTruncated, message).await;
    let shown = last_event(" b").trim_end()["data: ".len()..].to_owned();
    let message = format!("the stream ended within an event: {}", &shown[..shown.len() - 3]);
    check(&head(body.len() - 5), After::Hold, FailureClass::StreamTruncated, &message).await;
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_shown() {
    let answer = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 21\r\n\r\n{\"error\":\"no\\nroom\"}x";
    let message = "the server answered with status 500: {\"error\":\"no\\nroom\"}x";
    let record = check(answer, After::Hold, FailureClass::HttpError, message).await;
    assert_eq!(record.status, Some(500));
    let long = format!("HTTP/1.1 404 Not Found\r\n\r\n{}", "y".repeat(200_000));
    let message = format!("the server answered with status 404: {}…", "y".repeat(300));
    check(&long, After::Close, FailureClass::HttpError, &message).await;
    let empty = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    let message = "the server answered with status 503, with an empty body";
    check(empty, After::Hold, FailureClass::HttpError, message).await;
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let message = "the answer is `application/json`, not a stream of events: {}";
    check(json, After::Hold, FailureClass::StreamMalformed, message).await;
    let gzip = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx";
    let message = "the answer's header `Content-Encoding: gzip` is not supported: the request asked for `identity`";
    check(gzip, After::Hold, FailureClass::StreamMalformed, message).await;
    let message = "the answer's head can't be read (invalid HTTP version): 220 smtp\\n\\n";
    check("220 smtp\n\n", After::Hold, FailureClass::StreamMalformed, message).await;
}

#[tokio::test]
async fn errors_and_nonsense_in_the_stream_fail_the_request_at_once() {
    let event = text_event(" a");
    let error = "data: {\"error\":{\"message\":\"boom\"}}\n\n";
    let message = "the stream holds an error: {\"error\":{\"message\":\"boom\"}}";
    let answer = format!("{STREAM_HEAD}{}", chunked(&[&event, error, DONE]));
    check(&answer, After::Hold, FailureClass::StreamError, message).await;
    let message = "an event can't be read (expected value at line 1 column 1): oops";
    let answer = format!("{STREAM_HEAD}{}", chunked(&[&event, "data: oops\n\n", DONE]));
    check(&answer, After::Hold, FailureClass::StreamMalformed, message).await;
    let message = "the chunked encoding is broken: a chunk's size is no hexadecimal number (at the byte `d`)";
    let answer = format!("{STREAM_HEAD}{:x}\r\n{event}\r\n{DONE}", event.len()).replace("data: [D", "[data: [D");
    let message = message.replace("`d`", "`[`");
    check(&answer, After::Hold, FailureClass::StreamMalformed, &message).await;
}

#[tokio::test]
async fn an_answer_is_whole_at_its_end_mark_whatever_the_connection_does_then() {
    let events = [&text_event(" größe"), &text_event(" 🦀"), &last_event(" end"), DONE].map(String::from);
    let chunks = events.map(|event| format!("{:x}\r\n{event}\r\n", event.len()));
    let body = chunks.concat();
    for after in [After::Close, After::Hold] {
        for tail in ["", "nonsense"] {
            let answer = format!("{STREAM_HEAD}{body}{tail}");
            check_whole(&answered(&[answer.as_bytes()], after, patient()).await);
        }
    }
}

#[tokio::test]
async fn a_stream_that_falls_silent_has_stalled() {
    let options = LoadOptions::new(LONG, SHORT);
    let event = text_event(" a");
    let part = format!("{STREAM_HEAD}{:x}\r\n{event}\r\n", event.len());
    let record = answered(&[part.as_bytes()], After::Hold, options).await;
    let failure = record.failure.unwrap();
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (FailureClass::StreamStalled, "the stream brought no event for 0.12 s")
    );
    assert_eq!((record.text.as_str(), record.chunk_ns.len()), (" a", 1));
}

#[tokio::test]
async fn comments_do_not_keep_a_stalled_stream_alive() {
    let url = server(|_, mut stream| async move {
        read_request(&mut stream).await.unwrap();
        let events = format!("HTTP/1.1 200 OK\r\n\r\n{}", text_event(" a"));
        write(&mut stream, events.as_bytes()).await;
        loop {
            write(&mut stream, b": ping\n\n").await;
            tokio::time::sleep(SHORT / 8).await;
        }
    })
    .await;
    let options = LoadOptions::new(LONG, SHORT);
    let (records, _) = load(&url, &one_by_one(1), options).await;
    assert_eq!(records[0].failure.as_ref().unwrap().class, FailureClass::StreamStalled);
}

#[tokio::test]
async fn a_late_first_token_is_no_stall() {
    let url = server(|_, mut stream| async move {
        read_request(&mut stream).await.unwrap();
        let answer = whole_answer();
        let (head, body) = answer.split_at(STREAM_HEAD.len());
        write(&mut stream, head.as_bytes()).await;
        tokio::time::sleep(SHORT * 2).await;
        write(&mut stream, body.as_bytes()).await;
        read_request(&mut stream).await;
    })
    .await;
    let options = LoadOptions::new(LONG, SHORT);
    let (records, _) = load(&url, &one_by_one(1), options).await;
    check_whole(&records[0]);
}

#[tokio::test]
async fn a_request_without_an_answer_ends_at_its_deadline() {
    let options = LoadOptions::new(SHORT, LONG);
    for answer in ["", STREAM_HEAD] {
        let record = answered(&[answer.as_bytes()], After::Hold, options.clone()).await;
        let failure = record.failure.unwrap();
        let message = "the answer wasn't complete 0.12 s after its intended send";
        assert_eq!((failure.class, failure.message.as_str()), (FailureClass::RequestTimeout, message));
    }
}

#[tokio::test]
async fn a_refused_connection_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (records, summary) = load(&format!("http://{address}"), &one_by_one(2), patient()).await;
    assert_eq!((records.len(), summary.failed), (2, 2));
    let failure = records[0].failure.as_ref().unwrap();
    assert_eq!(failure.class, FailureClass::ConnectionFailed);
    assert!(failure.message.starts_with(&format!("can't connect to `{address}`: ")), "{}", failure.message);
    assert_eq!(records[0].sent_ns, None);
}
