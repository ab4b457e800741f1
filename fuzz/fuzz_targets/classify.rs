//! Any bytes as a log: they are read whole and in pieces, without a panic and with the same cause.

#![no_main]

use isobench_analysis::classify::Classifier;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let classifier = Classifier::new();
    let whole = classifier.text("server.log", data);
    let size = data.first().map_or(1, |first| usize::from(*first) + 1);
    let mut reader = classifier.log("server.log");
    for piece in data.chunks(size) {
        reader.feed(piece);
    }
    let pieces = classifier.classify(&[reader.finish()], None);
    assert_eq!(whole, pieces, "in pieces of {size} bytes it shows something else");
    for line in &whole.evidence {
        assert!(line.offset <= data.len() as u64, "{line:?} is after the end");
    }
});
