//! Every sample of the corpus: its metrics, its versions, and no false number when it is cut.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isobench_analysis::parse::binding::{Binding, ToolFamily};
use isobench_analysis::parse::catalogue::{FormatKind, formats};
use isobench_analysis::parse::read;
use isobench_schema::reading::{MetricValue, Reading};
use proptest::prelude::*;
use serde::Deserialize;

/// What is expected of a sample.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    format: Option<String>,
    versions: Option<String>,
    metrics: BTreeMap<String, MetricValue>,
    problem: Option<String>,
    notes: usize,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn samples() -> BTreeMap<String, Expected> {
    let text = std::fs::read_to_string(folder().join("expected-json.json")).expect("the expectations can be read");
    serde_json::from_str(&text).expect("the expectations are as described")
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join("formats").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn reading(bytes: &[u8]) -> Reading {
    read(bytes, &Binding::default()).expect("a slice can be read")
}

/// Returns whether two values are the same but for the last digits, in which a conversion of units may differ.
fn are_close(found: &MetricValue, expected: &MetricValue) -> bool {
    let close = |one: f64, other: f64| (one - other).abs() <= 1e-12 * one.abs().max(other.abs());
    match (found, expected) {
        (MetricValue::Number(one), MetricValue::Number(other)) => close(*one, *other),
        (one, other) => one == other,
    }
}

#[test]
fn every_sample_says_what_is_expected_of_it() {
    for (name, expected) in samples() {
        let found = reading(&bytes(&name));
        assert_eq!(found.format, expected.format, "{name}: {:?}", found.problem);
        assert_eq!(found.versions, expected.versions, "{name}");
        let kind = found.problem.as_ref().map(|problem| problem.kind.to_string());
        assert_eq!(kind, expected.problem, "{name}: {:?}", found.problem);
        assert_eq!(found.notes.len(), expected.notes, "{name}: {:?}", found.notes);
        let names = |metrics: &BTreeMap<String, MetricValue>| metrics.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found.metrics), names(&expected.metrics), "{name}");
        for (metric, value) in &expected.metrics {
            assert!(are_close(&found.metrics[metric], value), "{name}: {metric} is {:?}", found.metrics[metric]);
        }
    }
}

#[test]
fn every_format_has_a_sample_and_every_sample_is_in_a_known_range() {
    let samples = samples();
    for format in formats().filter(|format| matches!(format.kind, FormatKind::Json | FormatKind::JsonLines)) {
        let measured = samples
            .values()
            .filter(|expected| expected.format.as_deref() == Some(format.id) && expected.problem.is_none());
        assert!(measured.count() > 0, "{} has no sample that is a measurement", format.id);
    }
}

#[test]
fn a_sample_is_told_from_the_results_of_every_other_tool() {
    for (name, expected) in samples().into_iter().filter(|(_, expected)| expected.problem.is_none()) {
        let bytes = bytes(&name);
        let found = reading(&bytes);
        for tool in ToolFamily::ALL {
            let bound = Binding { tool: Some(*tool), ..Binding::default() };
            let bound = read(bytes.as_slice(), &bound).expect("a slice can be read");
            if found.tool.as_deref() == Some(tool.as_str()) {
                assert_eq!(bound, found, "{name}");
            } else {
                let problem = bound.problem.unwrap_or_else(|| panic!("{name} is no result of {tool}"));
                assert_eq!(problem.kind.as_str(), "not-a-result", "{name}");
                let format = expected.format.as_deref().expect("a measurement has a format");
                assert!(problem.message.contains(format), "{name}: {}", problem.message);
                assert!(bound.metrics.is_empty(), "{name}");
            }
        }
    }
}

/// Returns the places at which a sample is cut: all of them in short samples and near both ends of long ones, and with
/// `ISOBENCH_SLOW` all of them in all but the longest.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    const NEAR: usize = 120;
    let shortest_with_gaps = if std::env::var_os("ISOBENCH_SLOW").is_some() { 10_000 } else { 600 };
    let step = if length <= shortest_with_gaps { 1 } else { 1 + length / 150 };
    (0..length).filter(move |place| *place < NEAR || *place + NEAR > length || place % step == 0)
}

#[test]
fn no_cut_at_the_end_gives_a_number_that_no_whole_record_gives() {
    for name in samples().into_keys() {
        let whole = bytes(&name);
        let breaks = (0..whole.len()).filter(|place| name.ends_with("jsonl") && whole[*place] == b'\n');
        let ends: Vec<usize> = breaks.chain([whole.len()]).collect();
        let is_end = |length: usize| {
            let kept = whole[..length].trim_ascii_end().len();
            ends.iter().any(|end| whole[..*end].trim_ascii_end().len() == kept)
        };
        for length in cuts(whole.len()).filter(|length| !is_end(*length)) {
            let found = reading(&whole[..length]);
            assert!(found.metrics.is_empty(), "{name} cut to {length} bytes gives {:?}", found.metrics);
            assert!(!found.is_measurement(), "{name} cut to {length} bytes");
        }
    }
}

#[test]
fn no_cut_at_the_beginning_gives_a_number_that_the_last_record_does_not_give() {
    for name in samples().into_keys() {
        let whole = bytes(&name);
        let last = reading(&whole).metrics;
        for place in cuts(whole.len()).filter(|place| *place > 0) {
            let found = reading(&whole[place..]);
            let is_last_record = found.metrics == last
                && (whole[..place].ends_with(b"\n") || whole[place..].contains(&b'\n') || whole.starts_with(b"\xef"));
            assert!(found.metrics.is_empty() || is_last_record, "{name} from byte {place}: {:?}", found.metrics);
        }
    }
}

#[test]
fn reading_in_small_pieces_changes_nothing() {
    struct OneByOne<'a>(&'a [u8]);
    impl std::io::Read for OneByOne<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = into.len().min(1);
            self.0.read(&mut into[..count])
        }
    }
    for name in samples().into_keys() {
        let whole = bytes(&name);
        let found = read(OneByOne(&whole), &Binding::default()).expect("a slice can be read");
        assert_eq!(found, reading(&whole), "{name}");
    }
}

/// A change of a few bytes.
#[derive(Debug, Clone)]
enum Change {
    Replace(prop::sample::Index, u8),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Replace(place, byte) => {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            Self::Remove(place, length) => {
                let place = place.index(bytes.len());
                bytes.drain(place..(place + length).min(bytes.len()));
            }
            Self::Repeat(place, length) => {
                let place = place.index(bytes.len());
                let end = (place + length).min(bytes.len());
                let repeated = bytes[place..end].to_vec();
                bytes.splice(place..place, repeated);
            }
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"{}[],:\"\\0-.eEnN\n ".to_vec())];
    prop_oneof![
        (any::<prop::sample::Index>(), byte).prop_map(|(place, byte)| Change::Replace(place, byte)),
        (any::<prop::sample::Index>(), 1usize..40).prop_map(|(place, length)| Change::Remove(place, length)),
        (any::<prop::sample::Index>(), 1usize..200).prop_map(|(place, length)| Change::Repeat(place, length)),
    ]
}

proptest! {
    #[test]
    fn changed_samples_are_read_without_harm(
        sample in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let names: Vec<String> = samples().into_keys().collect();
        let mut bytes = bytes(&names[sample.index(names.len())]);
        for change in &changes {
            change.apply(&mut bytes);
        }
        let found = reading(&bytes);
        for (metric, value) in &found.metrics {
            prop_assert!(value.number().is_none_or(f64::is_finite), "{metric} is {value:?}");
        }
        prop_assert!(found.is_measurement() || found.problem.is_some() || found.metrics.is_empty());
    }
}
