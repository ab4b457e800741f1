//! The truth server as a client sees it that looks at every byte.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on must fail")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use isobench_testkit::TruthServer;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n\
                    transfer-encoding: chunked\r\n\r\n";

const COMPLETION: &str = r#"{"prompt":"a b","max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}"#;

/// Sends a request on a new connection.
fn send(server: &TruthServer, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    send_on(&mut stream, path, body);
    stream
}

fn send_on(stream: &mut TcpStream, path: &str, body: &str) {
    let length = body.len();
    stream.write_all(format!("POST {path} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}").as_bytes()).unwrap();
}

/// Reads up to and with `end`.
fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(end.as_bytes()) {
        stream.read_exact(&mut byte).unwrap_or_else(|error| {
            panic!("{error} before {end:?}: {}", String::from_utf8_lossy(&bytes));
        });
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

/// Asks for a stream of 3 tokens and returns all bytes of the answer.
fn complete(ctl: &str) -> String {
    let server = TruthServer::start(ctl);
    read_to(&mut send(&server, "/v1/completions", COMPLETION), "0\r\n\r\n")
}

fn chat(ctl: &str) -> String {
    let server = TruthServer::start(ctl);
    let body = r#"{"messages":[{"role":"user","content":"a b"}],"max_completion_tokens":3,"stream":true}"#;
    read_to(&mut send(&server, "/v1/chat/completions", body), "0\r\n\r\n")
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// Returns the bytes of an answer of these events, each in a chunk.
fn wire<E: AsRef<str>>(events: &[E]) -> String {
    let chunks = events.iter().map(|event| chunk(event.as_ref())).collect::<Vec<_>>().concat();
    format!("{HEAD}{chunks}0\r\n\r\n")
}

/// Returns an event of the first completion, from its list of choices on.
fn completion(choices: &str) -> String {
    let id = "cmpl-00000000000000000000000000000001";
    let head = format!(r#""id":"{id}","object":"text_completion","created":1764275000,"model":"mock""#);
    format!("data: {{{head},\"choices\":[{choices}}}\n\n")
}

/// The same of the first chat.
fn delta(delta: &str, finish: &str) -> String {
    let id = "chatcmpl-00000000000000000000000000000001";
    let head = format!(r#""id":"{id}","object":"chat.completion.chunk","created":1764275000,"model":"mock""#);
    let tail = format!(r#""logprobs":null,"finish_reason":{finish}"#);
    let ids = if delta.contains("role") { "" } else { r#","stop_reason":null,"token_ids":null"# };
    format!("data: {{{head},\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},{tail}{ids}}}]}}\n\n")
}

fn token(text: &str, finish: &str) -> String {
    let ids = r#""stop_reason":null,"token_ids":null"#;
    completion(&format!(r#"{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{finish},{ids}}}]"#))
}

fn usage(tokens: i64) -> String {
    let total = 2 + tokens;
    completion(&format!(r#"],"usage":{{"prompt_tokens":2,"total_tokens":{total},"completion_tokens":{tokens}}}"#))
}

const DONE: &str = "data: [DONE]\n\n";

/// The events of a plain answer.
fn plain() -> [String; 5] {
    let last = token(" of", "\"length\"");
    [token(" in", "null"), token(" the", "null"), last, usage(3), DONE.to_owned()]
}

fn role() -> String {
    delta(r#""role":"assistant","content":"""#, "null")
}

#[test]
fn a_plain_stream_is_these_bytes() {
    let server = TruthServer::start("");
    let mut stream = send(&server, "/v1/completions", COMPLETION);
    assert_eq!(read_to(&mut stream, "0\r\n\r\n"), wire(&plain()));
    let log = server.log();
    let [record] = log.as_slice() else { panic!("{log:?}") };
    assert_eq!((record.tokens, record.asked, record.outcome.as_str()), (3, 3, "done"));
    let stats = server.stats();
    let counts = ["requests", "tokens", "accepts", "events", "maxactive"].map(|key| stats[key].as_u64());
    assert_eq!(counts, [1, 3, 1, 3, 1].map(Some), "{stats}");
    let [first, second, third, ..] = [" in", " the", " of"].map(|text| format!(r#""content":"{text}""#));
    assert_eq!(
        chat(""),
        wire(&[role(), delta(&first, "null"), delta(&second, "null"), delta(&third, "\"length\""), DONE.to_owned()])
    );
}

#[test]
fn each_setting_bends_just_its_part_of_a_stream() {
    let [one, two, three, used, done] = plain();
    let opening = completion(r#"{"index":0,"text":"","logprobs":null,"finish_reason":null}]"#);
    let inner = r#""message":"EngineCore died","type":"InternalServerError","param":null,"code":500"#;
    let error = format!("data: {{\"error\":{{{inner}}}}}\n\n");
    let whole = [one.as_str(), &two, &three, &used, &done];
    let with_ids = |ids: [u32; 3]| {
        let id = |event: &String, id: u32| event.replace("\"token_ids\":null", &format!("\"token_ids\":[{id}]"));
        [id(&one, ids[0]), id(&two, ids[1]), id(&three, ids[2]), used.clone(), done.clone()]
    };
    let with_usage = |event: &String, tokens: u64| {
        let usage =
            format!(r#"],"usage":{{"prompt_tokens":2,"total_tokens":{},"completion_tokens":{tokens}}}}}"#, 2 + tokens);
        event.replace("]}\n\n", &format!("{usage}\n\n"))
    };
    let second = |event: &String| event.replace("\"index\":0", "\"index\":1");
    let late = token(" late", "null");
    for (ctl, expected) in [
        ("ka=1", {
            let with = |event: &str| format!(": keepalive\n\n{event}");
            wire(&[&with(&one), &with(&two), &with(&three), &used, &done])
        }),
        ("crlf=1", wire(&whole.map(|event| event.replace('\n', "\r\n")))),
        ("cr=1", wire(&whole.map(|event| event.replace('\n', "\r")))),
        ("lines=3", {
            let split = |event: &String| {
                event.replace(",\"object\"", ",\ndata: \"object\"").replace(",\"created\"", ",\ndata: \"created\"")
            };
            wire(&[split(&one), split(&two), split(&three), used.clone(), done.clone()])
        }),
        ("tpc=2", wire(&[&token(" in the", "null"), &three, &used, &done])),
        ("empty=1", wire(&[&opening, &one, &two, &three, &used, &done])),
        ("coalesce=3&split_bytes=1", wire(&whole)),
        ("split_us=100&split_bytes=7", wire(&whole)),
        ("huge=20", {
            let pad = format!("],\"padding\":\"{}\"}}\n\n", "x".repeat(20));
            wire(&[&one.replace("]}\n\n", &pad), &two, &three, &used, &done])
        }),
        ("errmid=1", wire(&[&one, &error, &done])),
        ("errmid=1&errkind=1&nodone=1", wire(&[&one, &format!("event: error\n{error}")])),
        ("errmid=1&errkind=2", wire(&[&one, &format!("data: {{\"object\":\"error\",{inner}}}\n\n"), &done])),
        ("nodone=1", wire(&[&one, &two, &three, &used])),
        ("nofinish=1", wire(&[&one, &two, &token(" of", "null"), &used, &done])),
        ("finish=abort", wire(&[&one, &two, &token(" of", "\"abort\""), &used, &done])),
        ("nousage=1", wire(&[&one, &two, &three, &done])),
        ("wrongusage=-2", wire(&[&one, &two, &three, &usage(1), &done])),
        ("contusage=1", wire(&[&with_usage(&one, 1), &with_usage(&two, 2), &with_usage(&three, 3), &used, &done])),
        ("ids=1", wire(&with_ids([4, 0, 1]))),
        ("short=2", wire(&[&token(" in", "\"length\""), &usage(1), &done])),
        ("after_done=1", wire(&[&one, &two, &three, &used, &done, &late])),
        ("choices=2", wire(&[&one, &second(&one), &two, &second(&two), &three, &second(&three), &usage(6), &done])),
        ("ctype=text/plain", wire(&whole).replace("text/event-stream; charset=utf-8", "text/plain")),
        ("slow_head_us=1000", wire(&whole)),
        ("late_head=1&ttft_us=1000", wire(&whole)),
        ("utf8=1&ttft_us=10&itl_us=10&tpc=3", wire(&[&token(&" é中😀".repeat(3), "\"length\""), &used, &done])),
    ] {
        assert_eq!(complete(ctl), expected, "{ctl}");
    }
}

#[test]
fn a_write_is_cut_within_a_character() {
    let server = TruthServer::start("utf8=1&split_us=100000");
    let mut stream = send(&server, "/v1/completions", r#"{"prompt":"a","max_tokens":1,"stream":true}"#);
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let mut broken = 0;
    while !bytes.ends_with(b"0\r\n\r\n") {
        let count = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..count]);
        broken += u32::from(str::from_utf8(&bytes).is_err());
    }
    assert_eq!(broken, 1);
    assert_eq!(String::from_utf8(bytes).unwrap(), wire(&[token(" é中😀", "\"length\""), DONE.to_owned()]));
    // An event has left when all of it has.
    let log = server.log();
    assert!(log[0].first_ns - log[0].arrived_ns >= 100_000_000, "{log:?}");
}

#[test]
fn chats_have_faults_of_their_own() {
    let content = |text: &str, finish| delta(&format!(r#""content":"{text}""#), finish);
    let reasoning = |text: &str| delta(&format!(r#""reasoning_content":"{text}""#), "null");
    let last = content(" of", "\"length\"");
    let done = DONE.to_owned();
    let all = [content(" in", "null"), content(" the", "null"), last.clone(), done.clone()];
    let tool = |start: &str, text: &str| {
        delta(&format!(r#""tool_calls":[{{"index":0,{start}"arguments":"{text}"}}}}]"#), "null")
    };
    let call = r#""id":"call-1","type":"function","function":{"name":"look_up","#;
    for (ctl, expected) in [
        ("role=0", wire(&all)),
        ("role=2&ttft_us=1000", wire(&[&[role()], &all[..]].concat())),
        ("reason=2&role=0", wire(&[&reasoning(" in"), &reasoning(" the"), &last, &done])),
        ("reason=2&role=0&reason_field=1", {
            let other = |text| reasoning(text).replace("reasoning_content", "reasoning");
            wire(&[&other(" in"), &other(" the"), &last, &done])
        }),
        ("tool=2&role=0", wire(&[&tool(call, " in"), &tool("\"function\":{", " the"), &last, &done])),
    ] {
        assert_eq!(chat(ctl), expected, "{ctl}");
    }
}

#[test]
fn chunks_have_extensions_and_trailers_where_told() {
    let events = plain().map(|event| chunk(&event).replacen("\r\n", ";note=\"a;b\"\r\n", 1)).concat();
    let expected = HEAD.replace("chunked\r\n", "chunked\r\ntrailer: x-truth\r\n");
    let server = TruthServer::start("chunkext=1&trailers=1");
    let mut stream = send(&server, "/v1/completions", COMPLETION);
    assert_eq!(read_to(&mut stream, "told\r\n\r\n"), format!("{expected}{events}0;last=1\r\nx-truth: told\r\n\r\n"));
}

#[test]
fn streams_are_framed_without_chunks_where_told() {
    let server = TruthServer::start("framing=length");
    let body = plain().concat();
    let head = HEAD.replace("transfer-encoding: chunked", &format!("content-length: {}", body.len()));
    let mut stream = send(&server, "/v1/completions", COMPLETION);
    assert_eq!(read_to(&mut stream, "[DONE]\n\n"), format!("{head}{body}"));
    let server = TruthServer::start("framing=close");
    let mut bytes = String::new();
    send(&server, "/v1/completions", COMPLETION).read_to_string(&mut bytes).unwrap();
    let head = HEAD.replace("transfer-encoding: chunked", "connection: close");
    assert_eq!(bytes, format!("{head}{body}"));
}

#[test]
fn a_zipped_stream_holds_the_same_bytes() {
    let server = TruthServer::start("gzip=1&framing=close");
    let mut bytes = Vec::new();
    send(&server, "/v1/completions", COMPLETION).read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let (head, mut rest) = bytes.split_at(end);
    assert!(String::from_utf8_lossy(head).contains("\r\ncontent-encoding: gzip\r\n"));
    assert!(rest.starts_with(&[0x1f, 0x8b, 8]));
    rest = &rest[10..];
    let mut plain_bytes = Vec::new();
    while rest[0] == 0 {
        let length = usize::from(u16::from_le_bytes([rest[1], rest[2]]));
        plain_bytes.extend(&rest[5..5 + length]);
        rest = &rest[5 + length..];
    }
    assert_eq!(String::from_utf8(plain_bytes).unwrap(), plain().concat());
    assert_eq!(rest.len(), 5 + 8);
}

#[test]
fn connections_break_off_as_told() {
    let body = r#"{"prompt":"a","max_tokens":5,"stream":true}"#;
    for (ctl, outcome) in [("abort=2", "abort"), ("rst=2", "reset"), ("stall=2", "stall")] {
        let server = TruthServer::start(ctl);
        let mut stream = send(&server, "/v1/completions", body);
        let expected = format!("{HEAD}{}{}", chunk(&token(" in", "null")), chunk(&token(" the", "null")));
        let mut bytes = vec![0; expected.len()];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{ctl}");
        if outcome == "stall" {
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        }
        let end = stream.read(&mut [0; 100]).map_err(|error| error.kind());
        let right = match outcome {
            "abort" => end == Ok(0),
            "reset" => end == Err(ErrorKind::ConnectionReset),
            _ => end == Err(ErrorKind::WouldBlock),
        };
        assert!(right, "{ctl}: {end:?}");
        let log = server.log();
        assert_eq!((log[0].tokens, log[0].asked, log[0].outcome.as_str()), (2, 5, outcome));
        assert_eq!(server.stats()["active"].as_u64(), Some(0));
    }
}

#[test]
fn some_requests_are_refused_as_told() {
    let server = TruthServer::start("http_every=2&http_status=429");
    let mut stream = send(&server, "/v1/completions", COMPLETION);
    read_to(&mut stream, "0\r\n\r\n");
    for (status, line) in [
        (429, "429 Too Many Requests"),
        (503, "503 Service Unavailable"),
        (500, "500 Internal Server Error"),
        (400, "400 Bad Request"),
    ] {
        server.ctl(&format!("http_every=1&http_status={status}"));
        send_on(&mut stream, "/v1/completions", COMPLETION);
        let body = format!(
            r#"{{"error":{{"code":{status},"message":"refused as told","param":null,"type":"TruthServerError"}}}}"#
        );
        let bytes = read_to(&mut stream, "\"}}");
        assert!(bytes.starts_with(&format!("HTTP/1.1 {line}\r\ncontent-type: application/json\r\n")), "{bytes}");
        assert!(bytes.ends_with(&format!("\r\n\r\n{body}")), "{bytes}");
        assert_eq!(bytes.contains("retry-after: 1"), matches!(status, 429 | 503));
    }
    assert_eq!(server.stats()["refused"].as_u64(), Some(4));
    assert_eq!(server.stats()["accepts"].as_u64(), Some(1));
}

#[test]
fn a_kept_connection_is_closed_after_some_answers() {
    for (ctl, patience_us) in [("close_idle=2", 0), ("close_idle=2&close_idle_us=20000", 20_000)] {
        let server = TruthServer::start(ctl);
        let mut stream = send(&server, "/v1/completions", COMPLETION);
        read_to(&mut stream, "0\r\n\r\n");
        send_on(&mut stream, "/v1/completions", COMPLETION);
        let start = Instant::now();
        assert!(!read_to(&mut stream, "0\r\n\r\n").contains("connection"));
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        assert!(start.elapsed() >= Duration::from_micros(patience_us));
    }
}

#[test]
fn tokens_are_never_early_and_the_truth_is_consistent() {
    let server = TruthServer::start("ttft_us=20000&itl_us=2000");
    let body = r#"{"prompt":"a","max_tokens":5,"stream":true}"#;
    let mut streams: Vec<_> = (0..8).map(|_| send(&server, "/v1/completions", body)).collect();
    for stream in &mut streams {
        read_to(stream, "0\r\n\r\n");
    }
    let log = server.log();
    assert_eq!(log.len(), 8);
    for record in &log {
        // The kernel takes a connection and its first bytes before the server hears of either.
        assert!(record.arrived_ns <= record.first_ns);
        assert!(record.first_ns - record.arrived_ns >= 20_000_000, "{record:?}");
        assert!(record.last_ns - record.arrived_ns >= 28_000_000, "{record:?}");
    }
    let stats = server.stats();
    let (late, ttft) = (stats["late_max_ms"].as_f64().unwrap(), stats["ttft_ms"]["max"].as_f64().unwrap());
    // What is later than its time is late by no more than the server says.
    assert!(ttft <= 20.0 + late + 0.001, "{stats}");
    assert_eq!(stats["itl_ms"]["n"].as_u64(), Some(32));
}

#[test]
fn streams_wait_for_a_slot_and_slow_each_other_down() {
    let server = TruthServer::start("slots=1&ttft_us=10000&itl_us=1000&itl_per_active_us=1000");
    let body = r#"{"prompt":"a","max_tokens":3,"stream":true}"#;
    let mut streams: Vec<_> = (0..3).map(|_| send(&server, "/v1/completions", body)).collect();
    for stream in &mut streams {
        read_to(stream, "0\r\n\r\n");
    }
    let log = server.log();
    for (place, record) in (0..).zip(&log) {
        assert!(record.served_ns >= record.arrived_ns);
        assert!(record.first_ns - record.served_ns >= 10_000_000);
        // One stream is in service: each token takes 1 ms and 1 ms more.
        assert!(record.last_ns - record.served_ns >= 14_000_000, "{record:?}");
        assert!(place == 0 || record.served_ns >= log[place - 1].last_ns);
    }
    let stats = server.stats();
    let counts = ["maxactive", "maxwaiting", "active", "waiting"].map(|key| stats[key].as_u64());
    assert_eq!(counts, [3, 2, 0, 0].map(Some), "{stats}");
}

#[test]
fn a_client_that_goes_away_is_known() {
    let server = TruthServer::start("ttft_us=60000000");
    let mut stream = send(&server, "/v1/completions", r#"{"prompt":"a","max_tokens":5,"stream":true}"#);
    read_to(&mut stream, "\r\n\r\n");
    drop(stream);
    let deadline = Instant::now() + PATIENCE;
    while server.log().is_empty() {
        assert!(Instant::now() < deadline, "the server doesn't know that its client is gone");
    }
    assert_eq!(server.log()[0].outcome, "dropped");
}
