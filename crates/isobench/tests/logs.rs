//! `isobench parse` and `isobench classify`, as scripts and people use them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "all of it is test code")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/corpus").join(name)
}

fn isobench(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_isobench"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that doesn't read its standard input may end before it is written.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Runs a command that prints one object, and returns its exit code and the object.
fn object(arguments: &[&str], input: &[u8]) -> (i32, Value) {
    let output = isobench(arguments, input);
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code().unwrap(), value)
}

fn refuses(arguments: &[&str], said: &[&str]) {
    let output = isobench(arguments, b"");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in said {
        assert!(text.contains(part), "{part} isn't in {text}");
    }
}

#[test]
fn parse_prints_one_object_with_the_contracts_keys() {
    let file = corpus("formats/serving-v0.6.4-v0.9.1.txt");
    let (code, reading) = object(&["parse", "--json", file.to_str().unwrap()], b"");
    assert_eq!(code, 0);
    let keys: Vec<&str> = reading.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["format", "metrics", "problem", "tool", "versions"]);
    assert_eq!(reading["metrics"]["mean_ttft_ms"], 812.44);
    assert_eq!(reading["problem"], Value::Null);
}

#[test]
fn parse_says_why_nothing_was_measured() {
    for (file, kind) in [
        ("formats/serving-v0.10.2-deprecated-shim.txt", "nothing-measured"),
        ("formats/noresult-serving-initial-test-run-failed.txt", "tool-failed"),
        ("formats/bench-serve-v0.11.1-v0.12.0.txt", "some-failed"),
        ("real/expected.json", "not-a-result"),
    ] {
        let file = corpus(file);
        let (code, reading) = object(&["parse", "--json", file.to_str().unwrap()], b"");
        assert_eq!((code, reading["problem"]["kind"].as_str()), (100, Some(kind)), "{}", file.display());
        assert!(!reading["problem"]["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn parse_reads_standard_input_and_several_files() {
    let table = fs::read(corpus("formats/serving-v0.4.3.txt")).unwrap();
    let (code, reading) = object(&["parse", "--json", "-"], &table);
    assert_eq!((code, &reading["metrics"]["completed"]), (0, &Value::from(200.0)));
    let one = corpus("formats/serving-v0.4.3.txt");
    let other = corpus("formats/noresult-latency-profile.txt");
    let output = isobench(&["parse", "--json", one.to_str().unwrap(), other.to_str().unwrap()], b"");
    assert_eq!(output.status.code(), Some(100));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "one object a line");
}

#[test]
fn parse_is_bound_by_tool_version_and_number_of_requests() {
    let table = fs::read(corpus("formats/serving-v0.4.3.txt")).unwrap();
    let (code, other) = object(&["parse", "--json", "--tool", "sglang-serve", "-"], &table);
    assert_eq!((code, other["problem"]["kind"].as_str()), (100, Some("not-a-result")));
    assert_eq!(other["metrics"], serde_json::json!({}));
    let (code, _) = object(&["parse", "--json", "--tool", "vllm-serve", "--version", "0.4.3", "-"], &table);
    assert_eq!(code, 0);
    let (code, refused) = object(&["parse", "--json", "--tool", "vllm-serve", "--version", "0.11.0", "-"], &table);
    assert_eq!((code, refused["problem"].is_object()), (100, true), "v0.11.0 prints another table");
    let (code, fewer) = object(&["parse", "--json", "--asked", "1000", "-"], &table);
    assert_eq!((code, fewer["problem"]["kind"].as_str()), (100, Some("some-failed")));
    refuses(&["parse", "--tool", "vllm-serv", "-"], &["no tool is called `vllm-serv`", "did you mean `vllm-serve`?"]);
    refuses(&["parse", "--version", "new", "-"], &["`new` is no version"]);
    refuses(&["parse", "/nowhere/at/all"], &["cannot open `/nowhere/at/all`"]);
    refuses(&["parse", corpus("formats").to_str().unwrap()], &["is a folder"]);
}

#[test]
fn classify_prints_one_object_with_the_contracts_keys() {
    let file = corpus("signatures/B1.log");
    let (code, cause) = object(&["classify", "--json", file.to_str().unwrap()], b"");
    assert_eq!((code, cause["signature"].as_str()), (0, Some("B1")));
    for key in ["stage", "class", "signature", "cause", "evidence", "transient", "fix", "confidence"] {
        assert!(cause.get(key).is_some(), "{key}");
    }
    let line = &cause["evidence"][0];
    assert!(line["text"].as_str().unwrap().contains("aimv2"));
    let text = fs::read(&file).unwrap();
    let offset = usize::try_from(line["offset"].as_u64().unwrap()).unwrap();
    let before = text[..offset].split(|&byte| byte == b'\n').count() as u64;
    assert_eq!(line["line"].as_u64(), Some(before), "line and offset name one place");
}

#[test]
fn classify_says_that_it_does_not_know() {
    let (code, cause) = object(&["classify", "--json", "-"], b"RuntimeError: nobody has seen this before\n");
    assert_eq!((code, cause["class"].as_str(), cause["confidence"].as_str()), (100, Some("unknown"), Some("none")));
    assert_eq!(cause["signature"], Value::Null);
    assert!(cause["evidence"][0]["text"].as_str().unwrap().contains("nobody has seen"));
}

#[test]
fn classify_joins_the_logs_of_a_folder_and_takes_the_exit_status() {
    let folder = corpus("failures/vllm-0.32-port-taken");
    let (code, cause) = object(&["classify", "--json", folder.to_str().unwrap()], b"");
    assert_eq!((code, cause["signature"].as_str()), (0, Some("E1")));
    let (_, killed) = object(&["classify", "--json", "--exit-status", "-9", "-"], b"INFO loading weights\n");
    assert_eq!(killed["signature"], "D13", "a kill leaves no line");
    let empty = tempfile::tempdir().unwrap();
    refuses(&["classify", empty.path().to_str().unwrap()], &["holds neither a run nor a log"]);
}

#[test]
fn people_read_the_same() {
    let file = corpus("signatures/B1.log");
    let output = isobench(&["classify", file.to_str().unwrap()], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["cause", "aimv2", "signature B1", "recipe transformers-without-aimv2"] {
        assert!(text.contains(part), "{part} isn't in {text}");
    }
    let output = isobench(&["parse", corpus("formats/bench-serve-v0.11.1-v0.12.0.txt").to_str().unwrap()], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("no measurement: `failed` is 3") && text.contains("(some-failed"), "{text}");
}

#[test]
fn signatures_and_classes_are_explained() {
    let output = isobench(&["explain", "b1"], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("B1\n") && text.contains("dependency-too-new"), "{text}");
    let (code, class) = object(&["explain", "--json", "disk-full"], b"");
    assert_eq!((code, class["id"].as_str()), (0, Some("disk-full")));
    assert!(class["signatures"].as_array().unwrap().contains(&Value::from("F16")));
}

#[test]
fn what_cannot_be_read_is_named_with_the_next_step() {
    let folder = corpus("formats");
    let shown = folder.to_str().unwrap();
    refuses(&["parse", shown], &["is a folder", "hint: name files in it, as in `", "/*`"]);
    refuses(&["parse", "nosuch.log"], &["cannot open `nosuch.log`", "hint: "]);
    refuses(&["classify", "nosuch.log"], &["cannot open `nosuch.log`", "hint: "]);
    refuses(&["report", "nosuch"], &["there is no folder `nosuch`", "hint: name the folder of a run"]);
    let file = corpus("formats/serving-v0.4.3.txt");
    refuses(&["report", file.to_str().unwrap()], &["is a file, and the folder of a run is asked for", "hint: "]);
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/iso-bench/legacy/results");
    refuses(&["report", results.to_str().unwrap()], &["aren't imported yet", "hint: report on what `isobench import "]);
}

#[test]
fn a_run_among_other_logs_is_not_taken_for_logs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plan.json"), "{}").unwrap();
    let (run, log) = (folder.path().to_str().unwrap(), corpus("signatures/B1.log"));
    refuses(&["classify", run, log.to_str().unwrap()], &["the folder of a run", "hint: name the run alone"]);
}

#[test]
fn an_explained_signature_has_no_holes() {
    for id in ["F1", "C13", "D16", "C8"] {
        let text = String::from_utf8(isobench(&["explain", id, "--json"], b"").stdout).unwrap();
        let row: Value = serde_json::from_str(&text).unwrap();
        let cause = row["cause"].as_str().unwrap();
        assert!(!cause.ends_with(' ') && !cause.contains("  ") && !cause.contains(['{', '}']), "{cause}");
    }
    let text = String::from_utf8(isobench(&["explain", "A1"], b"").stdout).unwrap();
    assert!(text.contains("the client PROGRAM doesn't know the option `OPTION`"), "{text}");
}
