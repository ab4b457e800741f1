//! Any bytes as a streamed answer: they are read whole and in pieces without a panic, alike, and what is counted adds up.

#![no_main]

use isobench_loadgen::answer::{Answer, Lengths};
use isobench_loadgen::sse::Parser;
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::TokenCounter;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fn read(counter: TokenCounter, stream: &[u8], size: usize, cut: bool) -> RequestRecord {
    let lengths = Lengths { input_tokens: 4, output_tokens: 8, exact: false };
    let mut answer = Answer::new(counter, lengths);
    for piece in stream.chunks(size) {
        answer.push(piece, 1);
    }
    if cut {
        answer.cut("the connection was cut", 2)
    } else {
        answer.end(2)
    }
    let mut record = RequestRecord::intended(Phase::Measure, 0, 0);
    answer.write(&mut record, 2);
    record
}

fuzz_target!(|data: &[u8]| {
    // The first byte chooses how tokens are counted and how the stream ends, the second one how it is fed.
    let [how, size, stream @ ..] = data else { return };
    let counter = TokenCounter::ALL[usize::from(*how) % TokenCounter::ALL.len()];
    let cut = how & 0x80 != 0;
    let whole = read(counter, stream, stream.len().max(1), cut);
    let size = usize::from(*size) + 1;
    assert_eq!(read(counter, stream, size, cut), whole, "in pieces of {size} bytes it says something else");

    assert_eq!(whole.chunk_ns.len(), whole.chunk_tokens.len());
    assert!(whole.content_chunk.is_none_or(|place| place as usize <= whole.chunk_ns.len()), "{whole:?}");
    if whole.failure.is_some() {
        return;
    }
    let counted = whole.output_tokens();
    match counter {
        TokenCounter::TokenIds => assert_eq!(counted, whole.token_ids.as_ref().map_or(0, |ids| ids.len() as u64)),
        TokenCounter::Whitespace => assert_eq!(counted, whole.text.split_whitespace().count() as u64),
        TokenCounter::Tokenizer => {
            assert_eq!(whole.chunk_bytes.iter().map(|bytes| *bytes as usize).sum::<usize>(), whole.text.len());
        }
        TokenCounter::Usage if whole.chunk_ns.is_empty() => assert_eq!(counted, 0),
        TokenCounter::Usage => assert_eq!(Some(counted), whole.usage.map(|usage| usage.completion_tokens)),
    }
    // What was understood is JSON to others too.
    let (mut parser, mut rest) = (Parser::new(), stream);
    while let Some(event) = parser.next(&mut rest).expect("the stream is short") {
        let data = event.data.trim_ascii();
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok();
        assert!(data.is_empty() || data == b"[DONE]" || is_json, "{:?} is no JSON", String::from_utf8_lossy(data));
    }
    let line = serde_json::to_string(&whole).expect("a record can be written");
    assert_eq!(serde_json::from_str::<RequestRecord>(&line).expect("a record can be read back"), whole);
    let _: Value = serde_json::from_str(&line).expect("a record is JSON");
});
