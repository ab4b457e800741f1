//! The guide to the 96 commits is what the program says of them, beside what reports of earlier runs said.
//!
//! `ISOBENCH_WRITE_DOCS=1 cargo test -p isobench --test guide` writes it anew; without the variable, the test compares.

#[path = "support/documents.rs"]
mod documents;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use isobench_report::guide::{Measure, Reported, ReportedCategory, guide};
use isobench_schema::format;
use isobench_schema::plan::Plan;
use serde::Deserialize;

/// The guide, as a path from the repository's root.
const GUIDE: &str = "docs/guides/the-96-commits.md";

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

fn reports() -> Vec<Reported> {
    let text = fs::read_to_string(documents::root().join(REPORTED)).expect("the reports' tables can be read");
    let reports: Reports = toml::from_str(&text).expect("the reports' tables are TOML");
    reports.report.into_iter().map(Reported::from).collect()
}

/// Returns the first eight digits of every commit of the dataset.
fn commits() -> BTreeSet<String> {
    let text = fs::read_to_string(documents::root().join(DATASET)).expect("the dataset can be read");
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

/// What stands above the guide.
const HEAD: &str = "\
<!-- Written by crates/isobench/tests/guide.rs from what the program says; don't edit. -->

The 96 vLLM commits of ISO-Bench's public runs, as [the dataset](../../examples/iso-bench/README.md) gives them, planned for
one H100 of 80 GB. Everything below is known before a device is used:

```sh
isobench plan examples/iso-bench/vllm-96.jsonl --device h100-sxm --devices 1
isobench plan examples/iso-bench/vllm-96.jsonl --device h100-sxm --devices 1 --explain 296f927f
isobench lint examples/iso-bench/vllm-96.jsonl --by rule
isobench explain option-refused
```

The same plan as a page with a table that sorts: add `--format html`.
";

/// Returns the plan of the dataset for the device of the public runs, as the command makes it on any machine.
fn plan() -> Plan {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_isobench"))
        .args(["plan", DATASET, "--device", "h100-sxm", "--devices", "1", "--dry-run", "--json", "--quiet", "--cache"])
        .arg(cache.path())
        .current_dir(documents::root())
        .output()
        .expect("the command runs");
    format::from_slice(&output.stdout).expect("the plan can be read")
}

#[test]
fn the_guide_is_what_the_program_says() {
    let expected = guide("The 96 commits", HEAD, &plan(), &reports());
    documents::hold(GUIDE, &expected, "guide");
}
