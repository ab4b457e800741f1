//! The guide to the 96 commits is what the program says of them, beside what reports of earlier runs said.
//!
//! `ISOBENCH_WRITE_DOCS=1 cargo test -p isobench --test guide` writes it anew; without the variable, the test compares.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isobench_report::guide::{Measure, Reported, ReportedCategory};
use serde::Deserialize;

/// The dataset, as a path from the repository's root.
const DATASET: &str = "examples/iso-bench/vllm-96.jsonl";

/// What the reports say, copied from them.
const REPORTED: &str = "examples/iso-bench/reported.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reports {
    report: Vec<ReportRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportRow {
    title: String,
    date: String,
    about: String,
    category: Vec<CategoryRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CategoryRow {
    name: String,
    reported: u32,
    measure: Option<MeasureName>,
    #[serde(default)]
    rules: Vec<String>,
    devices: Option<u32>,
    note: Option<String>,
    commits: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MeasureName {
    Rules,
    DevicesAsked,
    TooLarge,
    DevicesNeeded,
    Devices,
    NoWheel,
}

impl From<CategoryRow> for ReportedCategory {
    fn from(row: CategoryRow) -> Self {
        let measure = row.measure.map(|name| match name {
            MeasureName::Rules => Measure::Rules(row.rules.clone()),
            MeasureName::DevicesAsked => Measure::DevicesAsked,
            MeasureName::TooLarge => Measure::TooLarge,
            MeasureName::DevicesNeeded => Measure::DevicesNeeded,
            MeasureName::Devices => Measure::Devices(row.devices.expect("a category by devices says how many")),
            MeasureName::NoWheel => Measure::NoWheel,
        });
        Self { name: row.name, reported: row.reported, commits: row.commits, measure, note: row.note }
    }
}

impl From<ReportRow> for Reported {
    fn from(row: ReportRow) -> Self {
        let categories = row.category.into_iter().map(ReportedCategory::from).collect();
        Self { title: row.title, date: row.date, about: row.about, categories }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is two folders up")
}

fn reports() -> Vec<Reported> {
    let text = fs::read_to_string(root().join(REPORTED)).expect("the reports' tables can be read");
    let reports: Reports = toml::from_str(&text).expect("the reports' tables are TOML");
    reports.report.into_iter().map(Reported::from).collect()
}

/// Returns the first eight digits of every commit of the dataset.
fn commits() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(DATASET)).expect("the dataset can be read");
    let commit = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row is JSON");
        row.get("commit_hash")
            .and_then(|hash| hash.as_str()?.get(..8).map(str::to_owned))
            .expect("a row has its commit")
    };
    text.lines().map(commit).collect()
}

#[test]
fn the_reports_tables_name_the_datasets_commits_once_each() {
    let known = commits();
    assert_eq!(known.len(), 96);
    for report in reports() {
        let mut seen = BTreeSet::new();
        for category in &report.categories {
            let place = format!("{}, {}", report.date, category.name);
            for commit in &category.commits {
                assert!(known.contains(commit), "{place}: {commit} isn't in the dataset");
                assert!(seen.insert(commit.clone()), "{place}: {commit} is in two categories");
            }
            let is_whole = usize::try_from(category.reported).is_ok_and(|count| count == category.commits.len());
            assert!(is_whole || category.note.is_some(), "{place}");
        }
    }
}

#[test]
fn categories_by_rules_name_rules() {
    let known: BTreeSet<&str> = isobench_plan::lint::ids::ALL.iter().copied().collect();
    for category in reports().iter().flat_map(|report| &report.categories) {
        if let Some(Measure::Rules(rules)) = &category.measure {
            assert!(!rules.is_empty(), "{}", category.name);
            let unknown: Vec<&String> = rules.iter().filter(|rule| !known.contains(rule.as_str())).collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", category.name);
        }
    }
}
