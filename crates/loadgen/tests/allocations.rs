//! While chunks come as asked, reading them allocates nothing, so that no read waits for an allocator.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

use std::alloc::System;

use isobench_loadgen::answer::{Answer, Lengths};
use isobench_loadgen::http::response::{Decode, Piece};
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::TokenCounter;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Tokens asked, and events sent.
const EVENTS: u32 = 2000;

/// Returns an event in a chunk of its own, as it is written.
fn chunk(choice: &str) -> Vec<u8> {
    let event = format!(
        "data: {{\"id\":\"cmpl-1\",\"choices\":[{{\"index\":0,{choice},\"logprobs\":null}}],\"usage\":{{\"prompt_tokens\":3,\
         \"completion_tokens\":7}}}}\n\n"
    );
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// Returns how many allocations the reading of `reads` takes, between the head and the end.
fn allocations(counter: TokenCounter, reads: &[&[u8]]) -> usize {
    let mut decode = Decode::new();
    let lengths = Lengths { input_tokens: 3, output_tokens: EVENTS, exact: false };
    let mut answer = Answer::new(counter, lengths);
    let mut head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice();
    assert!(matches!(decode.next(&mut head), Ok(Some(Piece::Head(_)))));
    let region = Region::new(ALLOCATOR);
    for (at_ns, read) in (0..).zip(reads) {
        let mut bytes = *read;
        while let Some(Piece::Body(data)) = decode.next(&mut bytes).unwrap() {
            answer.push(data, at_ns);
        }
    }
    let stats = region.change();
    answer.cut("the test ended", 0);
    let mut record = RequestRecord::intended(Phase::Measure, 0, 0);
    answer.write(&mut record, 0);
    assert_eq!(record.chunk_ns.len(), EVENTS as usize);
    stats.allocations + stats.reallocations
}

/// Checks that no event of this kind allocates; a first event that is split may, for the room that it waits in.
fn check(counter: TokenCounter, choice: &str) {
    let event = chunk(choice);
    let whole: Vec<&[u8]> = vec![event.as_slice(); EVENTS as usize];
    let halves: Vec<&[u8]> =
        whole.iter().flat_map(|event| <[&[u8]; 2]>::from(event.split_at(event.len() / 2))).collect();
    let many = event.repeat(100);
    let many: Vec<&[u8]> = vec![many.as_slice(); EVENTS as usize / 100];
    for (reads, most) in [(whole, 0), (many, 0), (halves, 8)] {
        // Other threads of the test's harness may allocate beside it, but not every time.
        let fewest = (0..5).map(|_| allocations(counter, &reads)).min();
        assert!(fewest.is_some_and(|count| count <= most), "{choice}: {fewest:?} allocations in {} reads", reads.len());
    }
}

#[test]
fn chunks_are_read_without_allocation() {
    check(TokenCounter::TokenIds, r#""text":" token","token_ids":[15496]"#);
    check(TokenCounter::Whitespace, r#""text":" token""#);
    check(TokenCounter::Tokenizer, r#""delta":{"content":"\n\"\u00e9"}"#);
    check(TokenCounter::Usage, r#""delta":{"reasoning":"why"}"#);
    check(TokenCounter::Usage, r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#);
}
