//! Any bytes as a result file: what they say doesn't depend on the pieces in which they come, a number is one, and a
//! measurement has neither a problem nor no metrics.

#![no_main]

use std::io::{self, Read};

use isobench_analysis::parse::binding::Binding;
use isobench_analysis::parse::read;
use isobench_schema::reading::MetricValue;
use libfuzzer_sys::fuzz_target;

/// Gives its bytes in pieces of one length.
struct Pieces<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.length.min(into.len());
        self.bytes.read(&mut into[..length])
    }
}

fuzz_target!(|data: &[u8]| {
    let reading = read(data, &Binding::default()).expect("a slice can be read");
    let pieces = Pieces { bytes: data, length: data.len() % 7 + 1 };
    assert_eq!(read(pieces, &Binding::default()).expect("a slice can be read"), reading);
    for (name, value) in &reading.metrics {
        let is_finite = match value {
            MetricValue::Number(number) => number.is_finite(),
            MetricValue::Series(numbers) => numbers.iter().all(|number| number.is_finite()),
            MetricValue::NotANumber => true,
        };
        assert!(is_finite, "{name} is {value:?}");
    }
    if let Some(problem) = &reading.problem {
        assert!(!problem.message.is_empty() && !reading.is_measurement());
    }
});
