//! What is made of streams in the shapes that servers send, whatever their line ends and wherever their reads end.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of it is test code")]

use std::fs;
use std::path::{Path, PathBuf};

use isobench_loadgen::answer::{Answer, Lengths};
use isobench_schema::failure::FailureClass;
use isobench_schema::record::{Phase, RequestRecord, Usage};
use isobench_schema::workload::TokenCounter;
use serde::Deserialize;

/// What a stream must be read as.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    counter: TokenCounter,
    text: String,
    chunk_tokens: Vec<u32>,
    #[serde(default)]
    chunk_bytes: Vec<u32>,
    content_chunk: Option<u32>,
    #[serde(default)]
    spread: bool,
    token_ids: Option<Vec<u32>>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    failure: Option<FailureClass>,
}

fn streams() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut streams: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "sse")).collect();
    streams.sort();
    assert!(streams.len() >= 10);
    streams
}

/// Reads a stream in these pieces, the first of which comes at 0 ns.
fn read<'s>(counter: TokenCounter, pieces: impl IntoIterator<Item = &'s [u8]>) -> RequestRecord {
    let mut answer = Answer::new(counter, Lengths { input_tokens: 50, output_tokens: 16, exact: false });
    let mut at_ns = 0;
    for piece in pieces {
        answer.push(piece, at_ns);
        at_ns += 1;
    }
    answer.end(at_ns);
    let mut record = RequestRecord::intended(Phase::Measure, 0, 0);
    answer.write(&mut record, at_ns);
    record
}

fn check(record: &RequestRecord, expected: &Expected, what: &str) {
    let RequestRecord { text, chunk_tokens, chunk_bytes, token_ids, .. } = record;
    assert_eq!((text, chunk_tokens), (&expected.text, &expected.chunk_tokens), "{what}");
    assert_eq!((chunk_bytes, token_ids), (&expected.chunk_bytes, &expected.token_ids), "{what}");
    assert_eq!((record.content_chunk, record.spread), (expected.content_chunk, expected.spread), "{what}");
    assert_eq!((record.usage, &record.finish_reason), (expected.usage, &expected.finish_reason), "{what}");
    assert_eq!(record.failure.as_ref().map(|failure| failure.class), expected.failure, "{what}: {:?}", record.failure);
    assert_eq!(record.chunk_ns.len(), chunk_tokens.len(), "{what}");
}

#[test]
fn every_stream_is_read_the_same_wherever_its_reads_end() {
    for path in streams() {
        let stream = fs::read_to_string(&path).unwrap();
        let expected: Expected = serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let commented = stream.replace("data: ", ": ping\n\ndata: ");
        let several_lines = stream.replace(",\"object\"", ",\ndata: \"object\"");
        let no_space = stream.replace("data: ", "data:");
        let marked = format!("\u{feff}{stream}");
        let named = stream.replace("data: {", "event: message\nid: 1\ndata: {");
        for (form, lf) in [
            ("as it is", &stream),
            ("with comments", &commented),
            ("with several data lines", &several_lines),
            ("without spaces", &no_space),
            ("with a byte order mark", &marked),
            ("with other fields", &named),
        ] {
            for (end, name) in [("\n", "LF"), ("\r\n", "CRLF"), ("\r", "CR")] {
                let bytes = lf.replace('\n', end).into_bytes();
                let what = |how: &str| format!("{} {form}, {name}, {how}", path.display());
                check(&read(expected.counter, [bytes.as_slice()]), &expected, &what("whole"));
                // Each split of a form adds little to those of the stream itself.
                let step = if lf == &stream { 1 } else { 13 };
                for at in (0..=bytes.len()).step_by(step) {
                    let (a, b) = bytes.split_at(at);
                    check(&read(expected.counter, [a, b]), &expected, &what(&format!("split at {at}")));
                }
                for size in [1, 2, 3, 7, 64] {
                    check(&read(expected.counter, bytes.chunks(size)), &expected, &what(&format!("by {size}")));
                }
            }
        }
    }
}

#[test]
fn a_chunk_has_the_time_of_the_read_that_completed_it() {
    for path in streams() {
        let stream = fs::read(&path).unwrap();
        let expected: Expected = serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let record = read(expected.counter, stream.chunks(1));
        // In a read for each byte, the time of an event is the place of its last line end.
        let ends = (1..stream.len()).filter(|at| stream[at - 1..=*at] == *b"\n\n").map(|at| at as u64);
        let ends: Vec<u64> = ends.collect();
        assert!(record.chunk_ns.iter().all(|time| ends.contains(time)), "{}", path.display());
        assert!(record.chunk_ns.is_sorted_by(|a, b| a < b), "{}", path.display());
        let at_once = read(expected.counter, [stream.as_slice()]);
        assert!(at_once.chunk_ns.iter().all(|time| *time == 0), "{}", path.display());
    }
}
