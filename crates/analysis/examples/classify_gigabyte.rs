//! Classifies a gigabyte of log, made up piece by piece: the ordinary lines of a server with a failure in the middle, and logs
//! made to be slow to read. Prints seconds, those on the processor, MB/s of them, and the peak of the memory used.
//!
//! `cargo run --release -p isobench-analysis --example classify_gigabyte [MEGABYTES]`

#![allow(clippy::print_stdout, reason = "the figures are the example's output")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use isobench_analysis::classify::Classifier;

/// How much is fed at once, in bytes.
const PIECE: usize = 1 << 20;

/// A name and what makes the lines of a log.
type Log = (&'static str, fn(u64) -> String);

const FAILURE: &str = "\
(EngineCore_0 pid=97) ERROR 08-03 11:42:20 [core.py:632] EngineCore encountered a fatal error.
(EngineCore_0 pid=97) ERROR 08-03 11:42:20 [core.py:632] Traceback (most recent call last):
(EngineCore_0 pid=97) ERROR 08-03 11:42:20 [core.py:632]   File \"/opt/vllm/v1/worker/gpu_model_runner.py\", line 1179, in execute_model
(EngineCore_0 pid=97) ERROR 08-03 11:42:20 [core.py:632]     valid_sampled_token_ids = sampled_token_ids.tolist()
(EngineCore_0 pid=97) ERROR 08-03 11:42:20 [core.py:632] RuntimeError: CUDA error: an illegal memory access was encountered
";

fn main() {
    let megabytes = env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let logs: [Log; 6] = [
        ("ordinary log of a server", ordinary),
        ("the same with each request's prompt", with_prompts),
        ("an unknown error on every line", errors),
        ("a known error on every line", known),
        ("a traceback of six lines, again and again", tracebacks),
        ("one endless line", endless),
    ];
    let classifier = Classifier::new();
    println!("log                                          MB   seconds  on processor    MB/s   signature  peak MiB");
    for (name, lines) in logs {
        let mut reader = classifier.log("server.log");
        let piece = piece(lines);
        let pieces = megabytes * 1_000_000 / piece.len();
        let (start, before) = (Instant::now(), on_processor());
        for number in 0..pieces {
            if number == pieces / 2 {
                reader.feed(FAILURE.as_bytes());
            }
            reader.feed(piece.as_bytes());
        }
        let cause = classifier.classify(&[reader.finish()], None);
        let (seconds, on_processor) =
            (start.elapsed().as_secs_f64(), on_processor().saturating_sub(before).as_secs_f64());
        let read = piece.len() * pieces / 1_000_000;
        let rate = f64::from(u32::try_from(read).unwrap_or(u32::MAX)) / on_processor.max(0.001);
        let signature = cause.signature.unwrap_or_else(|| cause.class.clone());
        println!(
            "{name:<42} {read:>5} {seconds:>9.3} {on_processor:>13.3} {rate:>7.0}   {signature:<9} {:>8}",
            peak_mib()
        );
    }
}

/// Returns how long this thread has had a processor.
fn on_processor() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Returns a piece of a log, whole lines where it has some.
fn piece(lines: fn(u64) -> String) -> String {
    let mut text = String::with_capacity(PIECE + 4096);
    let mut number = 0;
    while text.len() < PIECE {
        text.push_str(&lines(number));
        number += 1;
    }
    text
}

fn ordinary(number: u64) -> String {
    let mut text = format!(
        "(APIServer pid=21) INFO 08-03 11:42:{:02} [loggers.py:123] Engine 000: Avg prompt throughput: {}.2 tokens/s, Avg \
         generation throughput: {}.5 tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.7%, Prefix cache \
         hit rate: 0.0%\n",
        number % 60,
        number % 9973,
        number % 997,
        number % 101
    );
    for request in 0..12 {
        let port = 32768 + (number * 12 + request) % 28000;
        let _ =
            writeln!(text, "(APIServer pid=21) INFO:     127.0.0.1:{port} - \"POST /v1/completions HTTP/1.1\" 200 OK");
    }
    text
}

fn with_prompts(number: u64) -> String {
    let words =
        ["the", "model", "must", "answer", "a", "question", "about", "memory", "and", "time", "which", "failed"];
    let mut prompt = String::new();
    for place in 0..200 {
        let word = usize::try_from((number * 7 + place * place) % 12).ok().and_then(|at| words.get(at));
        prompt.push_str(word.unwrap_or(&"the"));
        prompt.push(' ');
    }
    format!(
        "INFO 08-03 11:42:05 [logger.py:41] Received request cmpl-{number}: prompt: '{prompt}', params: SamplingParams(n=1, \
         temperature=0.0, max_tokens=128), lora_request: None.\n{}",
        ordinary(number)
    )
}

fn errors(number: u64) -> String {
    format!("ERROR 08-03 11:42:20 [serving.py:12] Error {number} in request cmpl-{number}: the flux is out of order\n")
}

fn known(number: u64) -> String {
    format!("(Worker_TP{} pid=97) aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected\n", number % 8)
}

fn tracebacks(number: u64) -> String {
    format!(
        "Traceback (most recent call last):\n  File \"/opt/serving.py\", line {number}, in step\n    raise \
         FluxError(\"Error of the flux\")\nflux.FluxError: the flux {number} is out of order\n\nDuring handling of the \
         above exception, another exception occurred:\n\n"
    )
}

fn endless(number: u64) -> String {
    format!("Error {number} Traceback ")
}

/// Returns the most memory that the process has had, in MiB.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}
