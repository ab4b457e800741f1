//! Samples and their expected values.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use isobench_analysis::parse::binding::Binding;
use isobench_analysis::parse::{self, console::Console};
use isobench_schema::reading::{MetricValue, Reading, ToolFamily};
use serde_json::Value;

/// A file with what must be read from it.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: BTreeMap<String, Value>,
}

/// Returns a folder of samples.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

/// Returns the samples of a folder that are named in its `expected.json`.
pub(crate) fn samples(name: &str) -> Vec<Sample> {
    let folder = folder(name);
    let expected = fs::read_to_string(folder.join("expected.json")).expect("the folder has expected values");
    let expected: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(&expected).expect("the expected values are an object of objects");
    let read = |(name, expected): (String, _)| {
        let bytes = fs::read(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Sample { name, bytes, expected }
    };
    expected.into_iter().map(read).collect()
}

/// Returns the samples of console output with made-up numbers: one of each layout, and short.
pub(crate) fn console_samples() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
        let all = ["formats", "layouts"].into_iter().flat_map(samples);
        all.filter(|sample| Path::new(&sample.name).extension().is_some_and(|extension| extension == "txt")).collect()
    });
    &SAMPLES
}

/// Returns what a text says, fed at once.
pub(crate) fn read(bytes: &[u8]) -> Reading {
    parse::read(bytes, &Binding::default()).expect("memory can be read")
}

/// Returns what console output says, fed in chunks.
pub(crate) fn read_in_chunks(bytes: &[u8], size: usize) -> Reading {
    let mut console = Console::default();
    for chunk in bytes.chunks(size) {
        console.feed(chunk);
    }
    console.finish()
}

/// Samples with the results of several batches, and the first words of each result.
const SEVERAL: &[(&str, &str)] = &[
    ("sglang-one-batch-v0.4.6-several.txt", "Prefill. latency:"),
    ("sglang-one-batch-server-v0.5.8.txt", "batch size:"),
];

/// The values that a sample's text holds: whatever becomes of the text, no others may be read from it.
pub(crate) struct Truth {
    whole: BTreeMap<String, MetricValue>,
    /// What is true of a text that ends before its last result.
    earlier: BTreeMap<String, MetricValue>,
}

impl Truth {
    /// Returns the values of a whole sample, with those of its progress bars, which are read where nothing else is.
    pub(crate) fn of(sample: &Sample) -> Self {
        let bars = Binding { tool: Some(ToolFamily::VllmGenerate), ..Binding::default() };
        let mut whole = parse::read(sample.bytes.as_slice(), &bars).expect("memory can be read").metrics;
        whole.extend(read(&sample.bytes).metrics);
        let several = SEVERAL.iter().find(|(name, _)| *name == sample.name);
        let earlier = several.map(|(_, begins)| {
            let text = String::from_utf8_lossy(&sample.bytes);
            read(text[..text.rfind(begins).expect("it has results")].as_bytes()).metrics
        });
        Self { whole, earlier: earlier.unwrap_or_default() }
    }

    /// Panics if a reading has a value that isn't one of the sample's.
    pub(crate) fn check(&self, reading: &Reading, what: &dyn Fn() -> String) {
        for (name, value) in &reading.metrics {
            let is_true = match (value, self.whole.get(name)) {
                // Of several values the last one counts.
                (MetricValue::Series(found), Some(MetricValue::Series(all))) => all.ends_with(found),
                (value, expected) => Some(value) == expected || Some(value) == self.earlier.get(name),
            };
            assert!(is_true, "{}: `{name}` is {value:?}, not {:?}", what(), self.whole.get(name));
        }
    }
}

/// Returns whether a value is what is expected.
pub(crate) fn is_equal(value: &MetricValue, expected: &Value) -> bool {
    match value {
        MetricValue::Number(number) => expected.as_f64() == Some(*number),
        MetricValue::Series(series) => {
            let expected: Option<Vec<f64>> =
                expected.as_array().and_then(|values| values.iter().map(Value::as_f64).collect());
            expected.as_ref() == Some(series)
        }
        MetricValue::NotANumber => expected.is_null(),
    }
}
