//! Which crate may use which, what the pure crates must not touch, and what every file looks like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Our crates and those of them that each may use; for tests alone each may also use [`FOR_TESTS`].
const LAYERS: &[(&str, &[&str])] = &[
    ("isobench-schema", &[]),
    ("isobench-plan", &["isobench-schema"]),
    ("isobench-analysis", &["isobench-schema"]),
    ("isobench-loadgen", &["isobench-schema"]),
    ("isobench-runner", &["isobench-schema", "isobench-loadgen", "isobench-analysis"]),
    ("isobench-store", &["isobench-schema"]),
    ("isobench-report", &["isobench-schema"]),
    ("isobench-testkit", &["isobench-schema"]),
    (
        "isobench",
        &[
            "isobench-schema",
            "isobench-plan",
            "isobench-analysis",
            "isobench-loadgen",
            "isobench-runner",
            "isobench-store",
            "isobench-report",
        ],
    ),
];

/// The crate that only tests use.
const FOR_TESTS: &str = "isobench-testkit";

/// The crates without files, clock, network, processes or randomness of their own.
const PURE: &[&str] = &["schema", "plan", "analysis"];

/// What others' crates the pure ones may use: none of them does anything but compute.
const PURE_DEPENDENCIES: &[&str] = &[
    "aho-corasick",
    "base64",
    "memchr",
    "rand_chacha",
    "regex",
    "serde",
    "serde_json",
    "sha2",
    "statrs",
    "strsim",
    "thiserror",
    "toml",
];

/// What the sources of the pure crates must not name.
const IMPURE: &[&str] =
    &["std::env", "std::fs", "std::net", "std::process", "std::thread", "std::time::Instant", "std::time::SystemTime"];

/// The longest file, in lines.
const LONGEST: usize = 500;

/// Files that are longer, each with its reason.
const LONGER: &[(&str, &str)] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is two folders up")
}

/// Returns the packages of the workspace as `cargo metadata` describes them, by name.
fn packages() -> BTreeMap<String, Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata.get("packages").and_then(Value::as_array).expect("cargo lists packages");
    packages.iter().map(|package| (text(package, "name").to_owned(), package.clone())).collect()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a package's dependencies of one kind: `normal`, `dev` or `build`.
fn dependencies<'p>(package: &'p Value, kind: &str) -> BTreeSet<&'p str> {
    let all = package.get("dependencies").and_then(Value::as_array).expect("cargo lists dependencies");
    let is_kind = |dependency: &&Value| match dependency.get("kind").and_then(Value::as_str) {
        None => kind == "normal",
        Some(found) => kind == found,
    };
    all.iter().filter(is_kind).map(|dependency| text(dependency, "name")).collect()
}

/// Returns every file below a folder whose name ends so, sorted; build output and what git holds are left out.
fn files(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace can be listed") {
            let path = entry.expect("an entry of the workspace can be read").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !matches!(name, "target" | ".git" | "__pycache__") {
                    folders.push(path);
                }
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a source file is UTF-8")
}

fn named(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// Returns the lines of a source file up to its tests, without comments.
fn shipped(source: &str) -> String {
    let before_tests = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = before_tests.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// Returns every path that a `use` tree names, for example `std::fs` of `std::{fs, io}`.
fn use_paths(prefix: &str, tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim().trim_end_matches("::self");
        return vec![format!("{prefix}{path}")];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let prefix = format!("{prefix}{}", head.trim());
    let (mut depth, mut start, mut paths) = (0_i32, 0, Vec::new());
    for (at, sign) in inner.char_indices().chain([(inner.len(), ',')]) {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner.get(start..at).unwrap_or_default().trim();
                if !part.is_empty() {
                    paths.extend(use_paths(&prefix, part));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// Returns what of [`IMPURE`] a source names, by a path in the code or by a `use`.
fn impure(source: &str) -> Vec<&'static str> {
    let code = shipped(source);
    let uses = code.split(';').filter_map(|statement| statement.rsplit_once("use ").map(|(_, tree)| tree));
    let imported: Vec<String> = uses.flat_map(|tree| use_paths("", tree)).collect();
    let is_imported = |name: &str| {
        imported.iter().any(|path| path == name || path.starts_with(&format!("{name}::")) || path == "std::time")
    };
    let named = |name: &&str| code.contains(&format!("{name}::")) || is_imported(name);
    IMPURE.iter().copied().filter(named).collect()
}

#[test]
fn crates_use_only_the_crates_below_them() {
    let packages = packages();
    let known: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let expected: Vec<&str> = known.keys().copied().collect();
    assert_eq!(packages.keys().map(String::as_str).collect::<Vec<_>>(), expected, "the table lists every crate");
    let ours = |name: &&str| known.contains_key(name);
    let mut wrong = Vec::new();
    for (name, package) in &packages {
        let allowed = known.get(name.as_str()).copied().unwrap_or_default();
        for used in dependencies(package, "normal").into_iter().filter(ours).filter(|used| !allowed.contains(used)) {
            wrong.push(format!("{name} uses {used}"));
        }
        let in_tests = dependencies(package, "dev").into_iter().chain(dependencies(package, "build")).filter(ours);
        for used in in_tests.filter(|used| *used != FOR_TESTS && !allowed.contains(used)) {
            wrong.push(format!("{name} uses {used} in its tests or build"));
        }
    }
    none("dependencies that the layers don't allow", &wrong);
}

#[test]
fn pure_crates_only_compute() {
    let packages = packages();
    let mut wrong = Vec::new();
    for krate in PURE {
        let package = packages.get(&format!("isobench-{krate}")).expect("a pure crate is a package");
        let others = dependencies(package, "normal").into_iter().filter(|name| !name.starts_with("isobench-"));
        wrong
            .extend(others.filter(|name| !PURE_DEPENDENCIES.contains(name)).map(|name| format!("{krate} uses {name}")));
        for path in files(&root().join("crates").join(krate).join("src"), &[".rs"]) {
            if path.ends_with("tests.rs") {
                continue;
            }
            wrong.extend(impure(&read(&path)).into_iter().map(|name| format!("{} names {name}", named(&path))));
        }
    }
    none("what the pure crates must not have", &wrong);
}

#[test]
fn impure_names_are_seen_in_every_way_of_writing_them() {
    for (source, expected) in [
        ("use std::fs;", vec!["std::fs"]),
        ("use std::{io, fs::File};", vec!["std::fs"]),
        ("use std::{collections::{BTreeMap, BTreeSet}, net};", vec!["std::net"]),
        ("use std::process::{self, Command};", vec!["std::process"]),
        ("fn f() { std::env::var(\"X\"); }", vec!["std::env"]),
        ("use std::time::{Duration, Instant};", vec!["std::time::Instant"]),
        ("use std::time::Duration;\nuse std::fmt;", vec![]),
        ("// std::fs::read\nconst A: &str = env!(\"X\");", vec![]),
        ("use std::fmt;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}", vec![]),
    ] {
        assert_eq!(impure(source), expected, "{source}");
    }
    assert_eq!(impure("use std::time;").len(), IMPURE.len(), "the module as a whole hides what is used of it");
}

#[test]
fn crates_share_versions_and_lints() {
    let root = root();
    let mut wrong = Vec::new();
    for manifest in files(&root.join("crates"), &["Cargo.toml"]) {
        let text = read(&manifest);
        if !text.contains("[lints]\nworkspace = true") {
            wrong.push(format!("{} doesn't take the workspace's lints", named(&manifest)));
        }
        let mut in_dependencies = false;
        for line in text.lines() {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
            } else if in_dependencies && !line.is_empty() && !line.contains("workspace = true") {
                wrong.push(format!("{} has a version of its own: {line}", named(&manifest)));
            }
        }
    }
    let text = read(&root.join("Cargo.toml"));
    let table = text.split("[workspace.dependencies]\n").nth(1).unwrap_or_default();
    let table = table.split("\n[").next().unwrap_or_default();
    let mut before = "";
    for line in table.lines() {
        if line.contains(" = ") && !line.starts_with("isobench-") && !before.starts_with('#') {
            wrong.push(format!("Cargo.toml gives no reason for the dependency: {line}"));
        }
        before = line;
    }
    none("manifests", &wrong);
}

#[test]
fn every_file_says_first_what_it_is_about_and_fits_on_a_few_screens() {
    let mut wrong = Vec::new();
    for path in files(&root().join("crates"), &[".rs"]) {
        let (source, name) = (read(&path), named(&path));
        if !source.starts_with("//! ") {
            wrong.push(format!("{name} doesn't start with `//! ` and what it is about"));
        }
        let lines = source.lines().count();
        let is_listed = LONGER.iter().any(|(long, _)| *long == name);
        if lines > LONGEST && !is_listed {
            wrong.push(format!("{name} has {lines} lines, more than {LONGEST}: split it, or list it with a reason"));
        }
        if lines <= LONGEST && is_listed {
            wrong.push(format!("{name} needs no place in the list of longer files any more"));
        }
    }
    none("files", &wrong);
}

#[test]
fn nothing_is_left_for_later() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[igno", "re"), concat!("unimplemen", "ted!")];
    let mut wrong = Vec::new();
    for folder in ["crates", "docs", "examples", "knowledge", ".ci"] {
        let ends = [".rs", ".md", ".toml", ".py", ".sh", "run"];
        for path in files(&root().join(folder), &ends) {
            for (number, line) in (1..).zip(read(&path).lines()) {
                if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                    wrong.push(format!("{}:{number} has `{word}`", named(&path)));
                }
            }
        }
    }
    none("unfinished work", &wrong);
}
