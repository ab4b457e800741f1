//! A scripted server on a loopback socket, and a client for it.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of it is test code")]

use std::future::Future;
use std::time::Duration;

use isobench_loadgen::cancel::Cancel;
use isobench_loadgen::client::{Client, LoadOptions, PhaseSummary};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::schedule::{Resources, Schedule};
use isobench_loadgen::target::Target;
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Long enough for any machine; no test waits for it unless it fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Short enough for a test that waits for it.
pub(crate) const SHORT: Duration = Duration::from_millis(120);

pub(crate) fn workload(requests: u32, arrival: Arrival) -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests,
        prompts: Prompts::Words { input_tokens: 4 },
        output_tokens: 3,
        ignore_eos: true,
        temperature: 0.0,
        arrival,
        max_in_flight: None,
        warm_up_requests: 0,
        probes: Probes { count: 0, output_tokens: 1 },
        counter: TokenCounter::Whitespace,
        extra_body: [].into(),
        script: None,
    }
}

pub(crate) fn one_by_one(requests: u32) -> Workload {
    workload(requests, Arrival::closed(1))
}

pub(crate) fn patient() -> LoadOptions {
    LoadOptions::new(LONG, LONG)
}

/// Starts a server that gives connection number N (from 0) to `serve`; returns its URL.
pub(crate) async fn server<F, S>(serve: S) -> String
where
    F: Future<Output = ()> + Send + 'static,
    S: Fn(usize, TcpStream) -> F + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for number in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(serve(number, stream));
        }
    });
    url
}

/// Reads one request; returns its head and body, or `None` if the client has gone.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length: usize = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let body = &bytes[end + 4..];
                return Some((head, if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() }));
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

/// Writes; a client that has gone is no error.
pub(crate) async fn write(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes).await;
    tokio::task::yield_now().await;
}

pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Frames each piece as one chunk, and ends the body.
pub(crate) fn chunked(pieces: &[&str]) -> String {
    let chunks = pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len()));
    chunks.chain(["0\r\n\r\n".to_owned()]).collect()
}

pub(crate) fn text_event(text: &str) -> String {
    format!("data: {}\n\n", serde_json::json!({ "choices": [{ "index": 0, "text": text, "finish_reason": null }] }))
}

pub(crate) fn last_event(text: &str) -> String {
    format!("data: {}\n\n", serde_json::json!({ "choices": [{ "index": 0, "text": text, "finish_reason": "length" }] }))
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A whole answer of three words.
pub(crate) fn whole_answer() -> String {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":999}}\n\n";
    let events = [&text_event(" größe"), &text_event(" 🦀"), &last_event(" end"), usage, DONE];
    format!("{STREAM_HEAD}{}", chunked(&events))
}

/// Sends the measured phase of `workload` to the server at `url`.
pub(crate) async fn load(url: &str, workload: &Workload, options: LoadOptions) -> (Vec<RequestRecord>, PhaseSummary) {
    load_until(url, workload, options, Cancel::new()).await
}

/// The same, until `cancel` is thrown.
pub(crate) async fn load_until(
    url: &str,
    workload: &Workload,
    options: LoadOptions,
    cancel: Cancel,
) -> (Vec<RequestRecord>, PhaseSummary) {
    let schedule = Schedule::new(workload, 7, Phase::Measure, &Resources::default()).unwrap().into();
    let client = Client::new(Target::parse(url, "tiny").unwrap(), options, Clock::start(), cancel);
    let mut records = Vec::new();
    let sink = |record| {
        records.push(record);
        Ok(())
    };
    let summary = tokio::time::timeout(LONG * 2, client.run_phase(&schedule, sink)).await.unwrap().unwrap();
    (records, summary)
}
