//! What the truth server says besides streams.
#![expect(clippy::unwrap_used, reason = "a test that can't go on must fail")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use isobench_testkit::TruthServer;
use serde_json::{Value, json};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(server: &TruthServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request and returns the status line's rest and the body.
fn ask(server: &TruthServer, method: &str, path: &str, body: &str) -> (String, String) {
    let mut stream = connect(server);
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().replace("HTTP/1.1 ", ""), body.to_owned())
}

fn ask_json(server: &TruthServer, method: &str, path: &str, body: &str) -> Value {
    let (status, body) = ask(server, method, path, body);
    assert_eq!(status, "200 OK", "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// Returns a metric's value.
fn metric(server: &TruthServer, name: &str) -> f64 {
    let (_, page) = ask(server, "GET", "/metrics", "");
    let start = format!("vllm:{name}{{engine=\"0\",model_name=\"mock\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&start)).unwrap().parse().unwrap()
}

#[test]
fn pages_that_clients_look_at_are_there() {
    let server = TruthServer::start("");
    for path in ["/health", "/ping"] {
        assert_eq!(ask(&server, "GET", path, ""), ("200 OK".to_owned(), String::new()));
    }
    assert_eq!(ask_json(&server, "GET", "/v1/models", "")["data"][0]["id"], "mock");
    assert!(ask_json(&server, "GET", "/version", "")["version"].is_string());
    let tokens = ask_json(&server, "POST", "/tokenize", r#"{"prompt":"a b c"}"#);
    assert_eq!((&tokens["count"], &tokens["tokens"]), (&json!(3), &json!([0, 1, 2])));
    let chat = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a b"}]}]}"#;
    assert_eq!(ask_json(&server, "POST", "/tokenize", chat)["count"], 2);
    let embedded = ask_json(&server, "POST", "/v1/embeddings", r#"{"input":["a","b c"],"dimensions":3}"#);
    assert_eq!(embedded["data"][1]["embedding"], json!([1.0, 0.0, 0.0]));
    assert_eq!(embedded["usage"]["prompt_tokens"], 3);
    assert_eq!(ask(&server, "GET", "/nothing", "").0, "404 Not Found");
    assert_eq!(ask(&server, "POST", "/v1/completions", "{").0, "400 Bad Request");
}

#[test]
fn whole_answers_take_the_time_of_a_stream() {
    let server = TruthServer::start("ttft_us=10000&itl_us=5000");
    let answer = ask_json(&server, "POST", "/v1/completions", r#"{"prompt":"a b","max_tokens":3}"#);
    assert_eq!(answer["choices"][0]["text"], " in the of");
    assert_eq!(answer["usage"], json!({ "prompt_tokens": 2, "total_tokens": 5, "completion_tokens": 3 }));
    let body = r#"{"messages":[{"content":"a"}],"max_tokens":2,"return_token_ids":true}"#;
    let answer = ask_json(&server, "POST", "/v1/chat/completions", body);
    assert_eq!(answer["choices"][0]["message"], json!({ "role": "assistant", "content": " to in" }));
    assert_eq!(answer["choices"][0]["token_ids"], json!([3, 4]));
    let log = server.log();
    assert!(log[0].last_ns - log[0].arrived_ns >= 20_000_000, "{log:?}");
    assert!(log[1].last_ns - log[1].arrived_ns >= 15_000_000, "{log:?}");
    assert_eq!(server.stats()["ttft_ms"], Value::Null);
}

#[test]
fn metrics_follow_the_state_and_the_settings() {
    let server = TruthServer::start("ttft_us=60000000&slots=1&kv_tokens=100");
    let words = "word ".repeat(20);
    let body = format!(r#"{{"prompt":"{words}","max_tokens":30,"stream":true}}"#);
    let length = body.len();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(&server);
        write!(stream, "POST /v1/completions HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        // The head says that the server has the request.
        stream.read_exact(&mut [0; 10]).unwrap();
        streams.push(stream);
    }
    for (name, expected) in [
        ("num_requests_running", 1.0),
        ("num_requests_waiting", 1.0),
        ("kv_cache_usage_perc", 0.5),
        ("prefix_cache_queries_total", 40.0),
        ("prefix_cache_hits_total", 16.0),
        ("num_preemptions_total", 0.0),
    ] {
        assert!((metric(&server, name) - expected).abs() < 1e-9, "{name}");
    }
    server.ctl("waiting=7&kv_usage=0.25&preemptions=3&running=real");
    for (name, expected) in
        [("num_requests_waiting", 7.0), ("kv_cache_usage_perc", 0.25), ("num_preemptions_total", 3.0)]
    {
        assert!((metric(&server, name) - expected).abs() < 1e-9, "{name}");
    }
    assert_eq!(ask(&server, "POST", "/reset_prefix_cache", "").0, "200 OK");
    assert_eq!(ask(&server, "POST", "/flush_cache", "").0, "200 OK");
    let stats = server.stats();
    let counts = ["prefix_cache_resets", "cache_flushes", "active", "waiting"].map(|key| stats[key].as_u64());
    assert_eq!(counts, [1, 1, 1, 1].map(Some), "{stats}");
    drop(streams);
    let deadline = Instant::now() + PATIENCE;
    while server.log().len() < 2 {
        assert!(Instant::now() < deadline, "the server doesn't know that its clients are gone");
    }
    server.ctl("waiting=real&kv_usage=real");
    assert!(metric(&server, "num_requests_waiting") + metric(&server, "kv_cache_usage_perc") < 1e-9);
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let server = TruthServer::start("");
    let body = r#"{"prompt":"a","max_tokens":1}"#;
    let request = format!("POST /v1/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let last = "GET /health HTTP/1.1\r\nconnection: close\r\n\r\n";
    let mut stream = connect(&server);
    stream.write_all((request.repeat(500) + last).as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let ids: Vec<&str> = answers.split("\"id\":\"cmpl-").skip(1).map(|rest| &rest[..32]).collect();
    assert_eq!(ids.len(), 500);
    assert!(ids.is_sorted());
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 501);
}

#[test]
fn settings_are_taken_whole_or_not_at_all() {
    let server = TruthServer::start("");
    let (status, said) = ask(&server, "GET", "/ctl?nodone=1&foo=2", "");
    assert_eq!((status.as_str(), said.starts_with("there is no setting `foo`")), ("400 Bad Request", true));
    let (_, settings) = ask(&server, "GET", "/ctl", "");
    assert!(settings.contains("\nnodone=0\n"), "{settings}");
    ask(&server, "POST", "/v1/completions", r#"{"prompt":"a","max_tokens":1}"#);
    assert_eq!(server.log().len(), 1);
    server.ctl("reset=1");
    assert_eq!(server.log(), []);
}
