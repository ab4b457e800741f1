//! Results of earlier systems through the command: import, report, export, and the guide to the old tables.
//!
//! `ISOBENCH_WRITE_DOCS=1 cargo test -p isobench --test legacy` writes the guide anew; without the variable, the test compares.

#[path = "support/documents.rs"]
mod documents;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The guide, as a path from the repository's root.
const GUIDE: &str = "docs/guides/the-old-tables.md";

/// The published results, as a path from the repository's root.
const LEGACY: &str = "examples/iso-bench/legacy";

/// What stands below the guide's title.
const HEAD: &str = "\
<!-- Written by crates/isobench/tests/legacy.rs from what the program says; don't edit. -->

```sh
isobench report examples/iso-bench/legacy --format markdown
```
";

fn isobench(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_isobench")).args(arguments).current_dir(documents::root()).output();
    output.expect("the command runs")
}

/// Runs the command, checks its exit code, and returns what it printed and what it said.
fn run(arguments: &[&str], code: i32) -> (String, String) {
    let output = isobench(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// A temporary folder, and a path in it as text.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a path is UTF-8").to_owned()
    }
}

#[test]
fn the_guide_to_the_old_tables_is_what_the_program_says() {
    let (page, _) = run(&["report", LEGACY, "--format", "markdown"], 0);
    let expected = page.replacen("\n\n", &format!("\n\n{HEAD}\n"), 1);
    documents::hold(GUIDE, &expected, "legacy");
}

#[test]
fn the_old_tables_as_a_terminal_page_and_as_json() {
    let (page, _) = run(&["report", LEGACY], 0);
    insta::assert_snapshot!("old_tables", page);
    let (json, _) = run(&["report", LEGACY, "--json"], 0);
    let value: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["format"], "isobench.old-tables/1");
    assert_eq!(value["differences"].as_array().map(Vec::len), Some(6));
}

#[test]
fn the_94_records_are_imported_and_reported_on() {
    let folder = Folder::new();
    let out = folder.path("evidence.jsonl");
    let source = format!("{LEGACY}/errors-94.jsonl");
    let (page, _) = run(&["import", &source, "--out", &out], 0);
    insta::assert_snapshot!("import_94", page);
    let (page, _) = run(&["report", &out], 0);
    insta::assert_snapshot!("report_94", page);
    let (page, _) = run(&["report", &out, "--format", "markdown"], 0);
    insta::assert_snapshot!("report_94_markdown", page);
    let (json, _) = run(&["report", &out, "--json"], 0);
    let value: Value = serde_json::from_str(&json).expect("JSON");
    let counts = value["taxonomy"]["counts"].as_array().expect("counts").iter();
    let counts: Vec<u64> = counts.filter_map(|count| count["count"].as_u64()).collect();
    assert_eq!(counts, [24, 24, 17, 10, 6, 5, 2, 5, 1]);
    run(&["report", &out, "--format", "html"], 2);
}

#[test]
fn a_folder_of_results_is_recognised_and_what_cannot_be_read_is_named() {
    let folder = Folder::new();
    let out = folder.path("evidence.jsonl");
    let source = format!("{LEGACY}/results");
    let (page, said) = run(&["import", &source, "--out", &out], 0);
    insta::assert_snapshot!("import_results", page);
    assert!(said.starts_with("wrote "), "{said}");
    let (page, _) = run(&["report", &out], 0);
    insta::assert_snapshot!("report_results", page);

    let bad = folder.path("bad");
    fs::create_dir(&bad).expect("a folder");
    let whole = documents::root().join(&source).join("native/3b61cb45_baseline_result.json");
    let whole = fs::read(whole).expect("a result");
    for (name, bytes) in [
        ("whole_baseline_result.json", whole.as_slice()),
        ("cut_human_result.json", whole.get(..100).expect("a beginning")),
        ("empty_agent_result.json", b""),
        ("other.json", b"{\"a\": 1}"),
    ] {
        fs::write(Path::new(&bad).join(name), bytes).expect("a file");
    }
    let huge = fs::File::create(Path::new(&bad).join("huge_human_result.json")).expect("a file");
    huge.set_len(1 << 40).expect("a file with a hole");
    let (_, said) = run(&["import", &bad, "--out", &folder.path("some.jsonl"), "--quiet"], 100);
    assert_eq!(said, "");
    let (json, said) = run(&["import", &bad, "--out", &folder.path("more.jsonl"), "--json"], 100);
    for part in [
        "cut_human_result.json: is not JSON at line",
        "empty_agent_result.json: is empty",
        "the nearest is",
        "it has 1099511627776 bytes",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let value: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&value["files"], &value["records"]), (&5.into(), &1.into()));
    assert_eq!(value["problems"].as_array().map(Vec::len), Some(4));
}

#[test]
fn rows_of_tasks_stay_rows_of_tasks_unless_results_are_asked_for() {
    let folder = Folder::new();
    let (out, rows) = (folder.path("tasks.jsonl"), format!("{LEGACY}/results/hf-rows.jsonl"));
    let (_, said) = run(&["import", &rows, "--out", &out], 0);
    assert!(said.contains("read 1 row: 1 task, 0 problems"), "{said}");
    let (page, _) = run(&["import", &rows, "--as", "legacy", "--out", &folder.path("evidence.jsonl")], 0);
    assert!(page.contains("3 records from 1 file"), "{page}");
    let (_, said) = run(&["import", "examples/iso-bench/vllm-96.jsonl", "--as", "legacy"], 2);
    assert!(said.contains("holds no result that can be read"), "{said}");
}

#[test]
fn cut_evidence_is_refused_by_name() {
    let folder = Folder::new();
    let out = folder.path("evidence.jsonl");
    run(&["import", &format!("{LEGACY}/errors-94.jsonl"), "--out", &out], 0);
    let text = fs::read_to_string(&out).expect("the evidence");
    let lines: Vec<&str> = text.lines().take(50).collect();
    fs::write(&out, lines.join("\n")).expect("a file");
    let (_, said) = run(&["report", &out], 2);
    assert!(said.contains("holds 49 records, and its head says 94: it was cut"), "{said}");
    fs::write(&out, format!("{}\n{{\"file\":", lines.join("\n"))).expect("a file");
    let (_, said) = run(&["report", &out], 2);
    assert!(said.contains("line 51 of") && said.contains("is no record of legacy evidence"), "{said}");
}

#[test]
fn a_pipe_among_the_results_is_named_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = Command::new("mkfifo").arg(at("pipe_human_result.json")).status().unwrap();
    assert!(made.success());
    fs::write(at("015069b0_human_result.json"), r#"{"human_commit": "015069b0", "status": "success", "metrics": {}}"#)
        .unwrap();
    let (source, out) = (at(""), at("evidence.jsonl"));
    let (_, said) = run(&["import", &source, "--out", &out], 100);
    assert!(said.contains("pipe_human_result.json: cannot be read: it is not a regular file"), "{said}");
    run(&["report", &at("pipe_human_result.json")], 2);
    let evidence = fs::read_to_string(&out).unwrap();
    fs::write(&out, format!("{evidence}{}\n", evidence.lines().nth(1).unwrap())).unwrap();
    let (_, said) = run(&["report", &out], 2);
    assert!(said.contains("holds 2 records, and its head says 1: it was added to"), "{said}");
}
