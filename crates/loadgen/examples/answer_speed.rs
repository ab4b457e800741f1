//! Reads streams of answers as servers send them, and prints the nanoseconds that one event takes.
//!
//! Run it with `cargo run --release -p isobench-loadgen --example answer_speed`.
#![allow(clippy::print_stdout, reason = "an example's output is what it is for")]

use std::time::Instant;

use isobench_loadgen::answer::{Answer, Lengths};
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::TokenCounter;

/// Events in one answer.
const EVENTS: u32 = 1024;
/// Answers in one round.
const ANSWERS: u32 = 10;
/// Rounds, of which the fastest counts: the others were disturbed.
const ROUNDS: u32 = 100;

/// What the choice of an event holds, by the kind of stream.
const KINDS: &[(&str, TokenCounter, &str)] = &[
    (
        "completion",
        TokenCounter::Tokenizer,
        r#""text":" token","logprobs":null,"finish_reason":null,"stop_reason":null"#,
    ),
    (
        "completion with ids",
        TokenCounter::TokenIds,
        r#""text":" token","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":[15496],"prompt_token_ids":null"#,
    ),
    (
        "chat",
        TokenCounter::Tokenizer,
        r#""delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null"#,
    ),
    (
        "chat with escapes",
        TokenCounter::Tokenizer,
        r#""delta":{"content":"\n\"token\" \u00e9"},"logprobs":null,"finish_reason":null,"token_ids":null"#,
    ),
];

/// Returns one event of about 300 bytes.
fn event(choice: &str) -> String {
    format!(
        r#"data: {{"id":"cmpl-5d1c0f8e8a6b4c1f9f0e2d7c6b5a4938","object":"text_completion","created":1764275000,"model":"organisation/a-model-of-eight-billion-parameters","choices":[{{"index":0,{choice}}}],"usage":{{"prompt_tokens":1024,"total_tokens":1088,"completion_tokens":64}}}}"#
    ) + "\n\n"
}

/// Reads one answer in the pieces given, and returns how many chunks were seen.
fn read(counter: TokenCounter, pieces: &[String]) -> usize {
    let mut answer = Answer::new(counter, Lengths { input_tokens: 32, output_tokens: EVENTS, exact: false });
    for (at_ns, piece) in (0..).zip(pieces) {
        answer.push(piece.as_bytes(), at_ns);
    }
    answer.push(b"data: [DONE]\n\n", u64::from(EVENTS));
    answer.end(u64::from(EVENTS));
    let mut record = RequestRecord::intended(Phase::Measure, 0, 0);
    answer.write(&mut record, u64::from(EVENTS));
    assert_eq!(record.failure, None, "the sample is a whole answer");
    record.chunk_ns.len()
}

fn main() {
    for (name, counter, choice) in KINDS {
        let event = event(choice);
        for at_once in [1_u32, 64] {
            let pieces: Vec<String> =
                (0..EVENTS / at_once).map(|_| (0..at_once).map(|_| event.as_str()).collect()).collect();
            let fastest = (0..ROUNDS)
                .map(|_| {
                    let begun = Instant::now();
                    let chunks: usize = (0..ANSWERS).map(|_| read(*counter, &pieces)).sum();
                    begun.elapsed().as_secs_f64() * 1e9 / f64::from(u32::try_from(chunks).unwrap_or(u32::MAX))
                })
                .fold(f64::INFINITY, f64::min);
            println!("{name}, {} bytes, {at_once} in a read: {fastest:.0} ns per event", event.len());
        }
    }
}
