//! True logs of failed programs: each shows the signature that its `expected.json` names.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail so")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isobench_analysis::classify::{Classifier, Exit, Seen, signatures};
use isobench_schema::cause::Cause;
use serde::Deserialize;

/// What a folder of logs is expected to show, and what was done to get them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// What was provoked.
    what: String,
    /// The program.
    tool: String,
    /// The signature; `null` if none is known.
    signature: Option<String>,
    /// The class.
    class: String,
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/failures");
    let mut folders: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn cause(folder: &Path) -> Cause {
    let (mut files, mut exit) = (Vec::new(), None);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&path).unwrap();
        match name.as_str() {
            "expected.json" => {}
            "exit" => exit = Some(Exit::Status(String::from_utf8(bytes).unwrap().trim().parse().unwrap())),
            _ => {
                let mut reader = Classifier::new().log(name);
                reader.feed(&bytes);
                files.push(reader.finish());
            }
        }
    }
    Classifier::new().classify(&files, exit)
}

#[test]
fn true_logs_show_what_was_provoked() {
    let mut wrong = Vec::new();
    for folder in folders() {
        let text = fs::read_to_string(folder.join("expected.json")).unwrap();
        let expected: Expected = serde_json::from_str(&text).unwrap();
        let cause = cause(&folder);
        if cause.signature != expected.signature || cause.class != expected.class {
            let (what, tool) = (expected.what, expected.tool);
            wrong.push(format!("{} ({tool}: {what}): {:?} {}", folder.display(), cause.signature, cause.cause));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn signatures_are_called_real_if_a_true_log_shows_them() {
    let mut shown = BTreeSet::new();
    for folder in folders() {
        let cause = cause(&folder);
        shown.extend(cause.signature);
        shown.extend(cause.consequences);
    }
    for row in signatures() {
        assert_eq!(
            row.seen == Seen::Real,
            shown.contains(&row.id),
            "{}: what `seen` says, and a true log shows it",
            row.id
        );
    }
}
