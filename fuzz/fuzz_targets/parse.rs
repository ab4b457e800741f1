//! Any bytes as what a benchmark tool left: they are read without a panic, alike however they are fed, and every number that
//! is given is finite and stands in the text.

#![no_main]

use isobench_analysis::parse::binding::Binding;
use isobench_analysis::parse::{self, console::Console};
use isobench_schema::reading::MetricValue;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let reading = parse::read(data, &Binding::default()).expect("memory can be read");
    let numbers = reading.metrics.values().flat_map(|value| match value {
        MetricValue::Number(number) => vec![*number],
        MetricValue::Series(series) => series.clone(),
        MetricValue::NotANumber => Vec::new(),
    });
    assert!(numbers.chain(reading.engine_log.values().copied()).all(f64::is_finite), "{reading:?}");
    assert!(reading.problem.is_some() || !reading.metrics.is_empty(), "{reading:?} says neither values nor why");

    // The first byte chooses how the rest is fed.
    let Some((size, text)) = data.split_first() else { return };
    let mut whole = Console::default();
    whole.feed(text);
    let mut pieces = Console::default();
    for piece in text.chunks(usize::from(*size) + 1) {
        pieces.feed(piece);
    }
    assert_eq!(pieces.finish(), whole.finish(), "fed in pieces of {}", usize::from(*size) + 1);
});
