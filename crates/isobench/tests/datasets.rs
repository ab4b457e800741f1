//! `isobench import` and `isobench export`: the public datasets through the command, exit codes, and files that are there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/iso-bench").join(name)
}

fn isobench(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_isobench")).args(arguments).current_dir(folder).output();
    output.expect("the command runs")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a file of rows");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// Runs the command, checks its exit code, and returns what it said.
fn run(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = isobench(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", errors(&output));
    errors(&output)
}

#[test]
fn the_public_rows_go_through_import_and_export_as_they_were() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (here, source) = (folder.path(), example("vllm-96.jsonl"));
    let source = source.to_str().expect("a path");
    let said = run(here, &["import", source, "--out", "tasks.jsonl"], 0);
    assert!(said.contains("read 96 rows: 96 tasks, 0 problems"), "{said}");
    run(here, &["export", "tasks.jsonl", "--out", "rows.jsonl"], 0);
    assert_eq!(rows(&here.join("rows.jsonl")), rows(Path::new(source)));
    run(here, &["export", "tasks.jsonl", "--out", "rows.parquet"], 0);
    run(here, &["import", "rows.parquet", "--out", "again.jsonl"], 0);
    run(here, &["export", "again.jsonl", "--out", "again.parquet"], 0);
    let bytes = |name: &str| fs::read(here.join(name)).expect("a file");
    assert_eq!(bytes("again.parquet"), bytes("rows.parquet"));
    run(here, &["export", "again.parquet", "--out", "again-rows.jsonl", "--format", "published"], 0);
    assert_eq!(rows(&here.join("again-rows.jsonl")), rows(Path::new(source)));
    let published = example("tasks.jsonl");
    let output = isobench(here, &["export", published.to_str().expect("a path"), "--out", "54.parquet", "--json"]);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("a summary");
    assert_eq!((&summary["rows"], &summary["tasks"], &summary["written"]), (&54.into(), &54.into(), &54.into()));
    assert_eq!(summary["problems"], serde_json::json!([]));
}

#[test]
fn a_bad_row_is_said_and_the_exit_code_tells() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "{\"commit\":\"aaaaaaaa\",\"project\":\"vllm\"}\n{\"commit\":\"nothing\",\"project\":\"vllm\"}\n";
    fs::write(folder.path().join("rows.jsonl"), text).expect("a file");
    let output = isobench(folder.path(), &["import", "rows.jsonl"]);
    assert_eq!(output.status.code(), Some(100));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "a header and one task");
    let said = "rows.jsonl:2: the column `commit` is `nothing`, and a commit has 7 to 40 hexadecimal digits\n\
                read 2 rows: 1 task, 1 problem\n";
    assert_eq!(errors(&output), said);
}

#[test]
fn a_source_without_tasks_replaces_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    fs::write(here.join("bad.jsonl"), "{\"commit\":\"nothing\",\"project\":\"vllm\"}\n").expect("a file");
    fs::write(here.join("there.jsonl"), "mine").expect("a file");
    for command in ["import", "export"] {
        let said = run(here, &[command, "bad.jsonl", "--out", "there.jsonl", "--force"], 2);
        assert!(
            said.contains("`bad.jsonl` holds no task") && said.contains("bad.jsonl:1: the column `commit`"),
            "{said}"
        );
    }
    assert_eq!(fs::read_to_string(here.join("there.jsonl")).expect("a file"), "mine");
}

#[test]
fn a_link_that_leads_nowhere_is_not_replaced_unasked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    fs::write(here.join("rows.jsonl"), "{\"commit\":\"aaaaaaaa\",\"project\":\"vllm\"}\n").expect("a file");
    std::os::unix::fs::symlink("nowhere", here.join("link.jsonl")).expect("a link");
    for command in ["import", "export"] {
        let said = run(here, &[command, "rows.jsonl", "--out", "link.jsonl"], 2);
        assert!(said.contains("the file `link.jsonl` is there already"), "{said}");
    }
}

#[test]
fn wrong_usage_writes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    fs::write(here.join("rows.jsonl"), "{\"commit\":\"aaaaaaaa\",\"project\":\"vllm\"}\n").expect("a file");
    fs::write(
        here.join("mixed.jsonl"),
        concat!(
            "{\"commit\":\"aaaaaaaa\",\"project\":\"vllm\",\"x\":1}\n",
            "{\"commit\":\"bbbbbbbb\",\"project\":\"vllm\",\"x\":\"y\"}\n",
        ),
    )
    .expect("a file");
    fs::write(here.join("broken.parquet"), "PAR1").expect("a file");
    fs::write(here.join("there.jsonl"), "mine").expect("a file");
    for (arguments, expected) in [
        (&["import", "none.jsonl"][..], "none.jsonl"),
        (&["import", "broken.parquet"], "it is no Parquet file that can be read"),
        (&["import", "rows.jsonl", "--json"], "give `--out FILE.jsonl`"),
        (&["import", "rows.jsonl", "--out", "there.jsonl"], "the file `there.jsonl` is there already"),
        (&["export", "rows.jsonl", "--out", "there.jsonl"], "or `--force` to replace it"),
        (&["export", "rows.jsonl", "--out", "x.csv"], "`x.csv` ends neither with `.jsonl` nor with `.parquet`"),
        (
            &["export", "mixed.jsonl", "--out", "x.parquet"],
            "the column `x` can't be written as Parquet: it holds texts and whole numbers",
        ),
        (&["export", "rows.jsonl"], "--out"),
    ] {
        let said = run(here, arguments, 2);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_to_string(here.join("there.jsonl")).expect("a file"), "mine");
    assert!(!here.join("x.parquet").exists());
    run(here, &["export", "rows.jsonl", "--out", "there.jsonl", "--force"], 0);
    assert_eq!(rows(&here.join("there.jsonl")).len(), 1);
}
