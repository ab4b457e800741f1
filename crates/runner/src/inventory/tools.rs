//! Programs that isobench uses or that engines need, and their versions.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::PATIENCE;
use crate::command::{Invocation, Watch, clean_environment, find_program, run_into};

/// Each tool, and the arguments that make it print its version.
const TOOLS: &[(&str, &[&str])] = &[
    ("docker", &["--version"]),
    ("git", &["--version"]),
    ("node", &["--version"]),
    ("podman", &["--version"]),
    ("python3", &["-I", "--version"]),
    ("uv", &["--version"]),
];

/// Returns the version of each tool that is installed and answers.
pub(super) fn versions() -> BTreeMap<String, String> {
    let found = TOOLS.iter().filter_map(|(name, arguments)| {
        let version = version_in(&ask(name, arguments)?)?;
        Some(((*name).to_owned(), version))
    });
    found.collect()
}

/// Returns the first word with a number and a dot, such as `2.47.3` in `git version 2.47.3`.
fn version_in(output: &str) -> Option<String> {
    let words = output.lines().next()?.split([' ', ',']);
    let bare = words.map(|word| word.strip_prefix('v').unwrap_or(word));
    let mut versions = bare.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    versions.next().map(str::to_owned)
}

/// Returns what a program prints, if it is installed, succeeds, and answers in time.
pub(super) fn ask(name: &str, arguments: &[&str]) -> Option<String> {
    let program = find_program(name)?;
    let folder = tempfile::tempdir().ok()?;
    let log = folder.path().join("log");
    let environment = clean_environment(folder.path(), folder.path());
    let invocation = Invocation::new(program, folder.path(), environment).with(arguments.iter().copied());
    let watch = Watch { log: &log, deadline: Instant::now() + PATIENCE, cancel: &AtomicBool::new(false) };
    let mut output = Vec::new();
    let finished = run_into(&invocation, &watch, &mut output).ok()?;
    finished.ending.is_success().then(|| String::from_utf8_lossy(&output).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_print() {
        for (output, expected) in [
            ("git version 2.47.3\n", Some("2.47.3")),
            ("Docker version 28.2.2, build e6534b4\n", Some("28.2.2")),
            ("Python 3.11.7\n", Some("3.11.7")),
            ("v22.1.0\n", Some("22.1.0")),
            ("uv 0.11.2 (abc 2026-01-01)\n", Some("0.11.2")),
            ("command not found\n", None),
            ("", None),
        ] {
            assert_eq!(version_in(output).as_deref(), expected, "{output}");
        }
    }
}
