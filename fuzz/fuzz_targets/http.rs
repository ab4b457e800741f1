//! Any bytes as an answer over HTTP/1.1: they are read whole and in pieces without a panic, and alike.

#![no_main]

use std::mem::Discriminant;

use isobench_loadgen::http::HttpError;
use isobench_loadgen::http::head::Head;
use isobench_loadgen::http::response::{Closing, Decode, Piece};
use libfuzzer_sys::fuzz_target;

/// What was read: heads, body, whether the answer ended, what closing would mean, and the bytes that were left.
#[derive(Debug, PartialEq)]
struct Seen {
    heads: Vec<Head>,
    body: Vec<u8>,
    ended: bool,
    closing: Closing,
    left: usize,
    error: Option<Discriminant<HttpError>>,
}

fn read(answer: &[u8], size: usize) -> Seen {
    let mut decode = Decode::new();
    let mut seen =
        Seen { heads: Vec::new(), body: Vec::new(), ended: false, closing: Closing::BeforeHead, left: 0, error: None };
    for mut input in answer.chunks(size) {
        loop {
            match decode.next(&mut input) {
                Ok(Some(Piece::Head(head))) => seen.heads.push(head),
                Ok(Some(Piece::Body(bytes))) => {
                    assert!(!bytes.is_empty() && !seen.ended);
                    seen.body.extend_from_slice(bytes);
                }
                Ok(Some(Piece::End)) => {
                    assert!(!seen.ended);
                    seen.ended = true;
                }
                Ok(None) => break,
                Err(error) => {
                    seen.error = Some(std::mem::discriminant(&error));
                    return seen;
                }
            }
        }
        seen.left += input.len();
    }
    seen.closing = decode.closing();
    seen
}

fuzz_target!(|data: &[u8]| {
    // The first byte chooses how the rest is fed.
    let [size, answer @ ..] = data else { return };
    let size = usize::from(*size) + 1;
    let whole = read(answer, answer.len().max(1));
    assert_eq!(read(answer, size), whole, "in pieces of {size} bytes it says something else");
    assert!(whole.heads.len() <= 1);
    assert!(whole.left + whole.body.len() <= answer.len());
});
