//! Documents that are what the program itself says: compared, or written anew.

use std::fs;
use std::path::{Path, PathBuf};

/// The variable that makes tests of documents write what they would compare.
pub(crate) const WRITE: &str = "ISOBENCH_WRITE_DOCS";

/// Returns the repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is two folders up")
}

/// Compares a document with what it must be, or writes it. `test` is the test that does so.
pub(crate) fn hold(name: &str, expected: &str, test: &str) {
    let path = root().join(name);
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, expected).expect("a document can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_else(|error| format!("({name} can't be read: {error})"));
    let differs = found.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    let line = differs.unwrap_or_else(|| found.lines().count().min(expected.lines().count())) + 1;
    assert!(
        found == expected,
        "{name} isn't what the program says, from line {line} on; write it anew with\n  \
         {WRITE}=1 cargo test -p isobench --test {test}"
    );
}
