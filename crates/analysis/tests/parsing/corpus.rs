//! Every sample gives its values, and every format and label has a sample.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use isobench_analysis::parse::binding::{Binding, ToolVersion};
use isobench_analysis::parse::{self, catalogue};
use isobench_schema::reading::ToolFamily;

use crate::support::{console_samples, folder, is_equal, read, samples};

#[test]
fn every_sample_gives_its_values() {
    let mut wrong = Vec::new();
    for sample in console_samples().iter().chain(&samples("real")) {
        let reading = read(&sample.bytes);
        for (name, expected) in &sample.expected {
            match reading.metrics.get(name) {
                Some(value) if is_equal(value, expected) => {}
                found => wrong.push(format!("{}: `{name}` is {found:?}, not {expected}", sample.name)),
            }
        }
        if sample.expected.is_empty() && (!reading.metrics.is_empty() || reading.problem.is_none()) {
            wrong.push(format!("{}: {reading:?} is no result", sample.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The columns of the index of layouts.
struct Layout {
    file: String,
    tool: Option<ToolFamily>,
    versions: String,
    problem: Option<String>,
}

fn layouts() -> Vec<Layout> {
    let index = fs::read_to_string(folder("layouts").join("index.tsv")).expect("the layouts have an index");
    let rows = index.lines().skip(1).map(|row| {
        let columns: Vec<&str> = row.split('\t').collect();
        let [file, tool, versions, _commits, problem] = columns.as_slice() else { panic!("{row}: five columns") };
        Layout {
            file: (*file).to_owned(),
            tool: ToolFamily::parse(tool),
            versions: (*versions).to_owned(),
            problem: Some((*problem).to_owned()).filter(|problem| problem != "-"),
        }
    });
    rows.collect()
}

#[test]
fn every_layout_is_known_as_its_tools_and_says_what_is_wrong_with_it() {
    let samples: BTreeMap<_, _> = console_samples().iter().map(|sample| (&sample.name, sample)).collect();
    let mut wrong = Vec::new();
    for layout in layouts() {
        let sample = samples.get(&layout.file).unwrap_or_else(|| panic!("{} has expected values", layout.file));
        let reading = read(&sample.bytes);
        let problem = reading.problem.as_ref().map(|problem| problem.kind.as_str().to_owned());
        if problem != layout.problem {
            wrong.push(format!("{}: {:?}, not {:?}", layout.file, reading.problem, layout.problem));
        }
        let tool = reading.tool.as_deref().and_then(ToolFamily::parse);
        if !sample.expected.is_empty() && tool != layout.tool {
            wrong.push(format!("{}: {tool:?}, not {:?}", layout.file, layout.tool));
        }
        // Both ends of the range print it, as far as a reader with that binding sees.
        for version in layout.versions.split("..").filter_map(ToolVersion::parse) {
            let binding = Binding { tool: layout.tool, version: Some(version), asked: None };
            let bound = parse::read(sample.bytes.as_slice(), &binding).expect("memory can be read");
            if bound != reading && !sample.expected.is_empty() {
                wrong.push(format!("{}: {:?} with {version}", layout.file, bound.problem));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_tools_really_printed_is_read_to_the_last_value() {
    let index = fs::read_to_string(folder("real").join("index.tsv")).expect("the real outputs have an index");
    let problems: BTreeMap<&str, &str> =
        index.lines().skip(1).filter_map(|row| Some((row.split('\t').next()?, row.split('\t').next_back()?))).collect();
    for sample in samples("real") {
        let reading = read(&sample.bytes);
        let names: Vec<_> = reading.metrics.keys().collect();
        assert_eq!(names, sample.expected.keys().collect::<Vec<_>>(), "{}", sample.name);
        let problem = reading.problem.as_ref().map_or("-", |problem| problem.kind.as_str());
        assert_eq!(Some(&problem), problems.get(sample.name.as_str()), "{}: {:?}", sample.name, reading.problem);
    }
}

#[test]
fn samples_without_a_problem_are_measurements() {
    let known = layouts();
    for sample in console_samples() {
        let is_known = known.iter().any(|layout| layout.file == sample.name && layout.problem.is_some());
        let reading = read(&sample.bytes);
        // These two say themselves that three of 200 requests failed.
        let some_failed = ["bench-serve-v0.11.1-v0.12.0.txt", "bench-serve-v0.14.0-v0.15-spec-decode.txt"];
        let is_measurement = !is_known && !sample.expected.is_empty() && !some_failed.contains(&sample.name.as_str());
        assert_eq!(reading.is_measurement(), is_measurement, "{}: {:?}", sample.name, reading.problem);
    }
}

#[test]
fn every_format_of_a_console_has_a_sample() {
    let found: BTreeSet<String> = console_samples().iter().filter_map(|sample| read(&sample.bytes).format).collect();
    let missing: Vec<&str> = catalogue::formats()
        .filter(|format| {
            matches!(format.kind, catalogue::FormatKind::ConsoleTable | catalogue::FormatKind::ConsoleLines)
        })
        .map(|format| format.id)
        .filter(|id| !found.contains(*id))
        .collect();
    assert!(missing.is_empty(), "{missing:?} have no sample");
}

#[test]
fn every_label_and_line_has_a_sample() {
    let samples: Vec<(Option<String>, BTreeSet<String>)> = console_samples()
        .iter()
        .map(|sample| {
            let reading = read(&sample.bytes);
            (reading.format, reading.metrics.into_keys().collect())
        })
        .collect();
    let mut missing = Vec::new();
    for printed in catalogue::printed() {
        let has = |metrics: &BTreeSet<String>| {
            printed.metrics.iter().all(|metric| metrics.contains(&metric.replace("RANK", "50")))
        };
        let is_of = |format: &Option<String>| format.as_deref() == Some(printed.format);
        // A probe has no mean; what stands for every statistic is `mean` in the catalogue.
        if !printed.text.starts_with("Mean probe")
            && !samples.iter().any(|(format, metrics)| is_of(format) && has(metrics))
        {
            missing.push(format!("{}: {}", printed.format, printed.text));
        }
    }
    assert!(missing.is_empty(), "no sample for:\n{}", missing.join("\n"));
}

#[test]
fn formats_have_names_of_their_own() {
    let mut seen = BTreeSet::new();
    for format in catalogue::formats() {
        assert!(seen.insert(format.id), "{} is there twice", format.id);
        assert!(!format.read.is_empty(), "{}", format.id);
        assert_eq!(catalogue::format(format.id), Some(format));
    }
}
