//! A git repository of an engine that is measured by its own benchmark scripts, with patches that misbehave.

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::{FakeRepositoryError, git, header, write};

/// Every file of the engine: its path in the repository, and its text.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("../fixtures/script-engine/README.md")),
    ("benchmarks/bar.py", include_str!("../fixtures/script-engine/benchmarks/bar.py")),
    ("benchmarks/benchmark_latency.py", include_str!("../fixtures/script-engine/benchmarks/benchmark_latency.py")),
    (
        "benchmarks/benchmark_throughput.py",
        include_str!("../fixtures/script-engine/benchmarks/benchmark_throughput.py"),
    ),
    ("vllm/__init__.py", include_str!("../fixtures/script-engine/vllm/__init__.py")),
    ("vllm/behaviour.py", BEHAVIOUR),
    ("vllm/benchmarks/__init__.py", include_str!("../fixtures/script-engine/vllm/benchmarks/__init__.py")),
    ("vllm/benchmarks/bar.py", include_str!("../fixtures/script-engine/vllm/benchmarks/bar.py")),
    ("vllm/benchmarks/latency.py", include_str!("../fixtures/script-engine/vllm/benchmarks/latency.py")),
    ("vllm/engine.py", include_str!("../fixtures/script-engine/vllm/engine.py")),
    ("vllm/entrypoints/__init__.py", include_str!("../fixtures/script-engine/vllm/entrypoints/__init__.py")),
    ("vllm/entrypoints/cli/__init__.py", include_str!("../fixtures/script-engine/vllm/entrypoints/cli/__init__.py")),
    ("vllm/entrypoints/cli/main.py", include_str!("../fixtures/script-engine/vllm/entrypoints/cli/main.py")),
];

/// How the baseline behaves: how much work a step is, and in which way it misbehaves, each on a line of its own.
const BEHAVIOUR: &str = include_str!("../fixtures/script-engine/vllm/behaviour.py");

/// The file that says how the engine behaves.
const BEHAVIOUR_FILE: &str = "vllm/behaviour.py";

/// A git repository whose tree holds an engine package `vllm` and its benchmark scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptRepository {
    /// Its folder.
    pub dir: PathBuf,
    /// The commit before the change; also the tag `baseline`.
    pub baseline: String,
    /// The commit that halves the work of a step; also the tag `human`.
    pub human: String,
}

impl ScriptRepository {
    /// Creates the repository in a folder that is empty or not there.
    ///
    /// # Errors
    /// Returns an error if git isn't there or the folder can't be written.
    pub fn create(dir: &Path) -> Result<Self, FakeRepositoryError> {
        let make = |path: &Path| {
            fs::create_dir_all(path).map_err(|source| FakeRepositoryError::Write { path: path.to_owned(), source })
        };
        make(dir)?;
        git(dir, &["init", "-q", "--initial-branch=main"])?;
        for (path, text) in FILES {
            let place = dir.join(path);
            make(place.parent().unwrap_or(dir))?;
            write(&place, text)?;
        }
        let commit = |name: &str| {
            git(dir, &["add", "-A"])?;
            git(dir, &["commit", "-q", "-m", name])?;
            git(dir, &["tag", name])?;
            git(dir, &["rev-parse", "HEAD"])
        };
        let baseline = commit("baseline")?;
        write(&dir.join(BEHAVIOUR_FILE), &BEHAVIOUR.replace("WORK = 240000", "WORK = 120000"))?;
        let human = commit("human")?;
        Ok(Self { dir: dir.to_owned(), baseline, human })
    }

    /// Writes a patch on the baseline after which the engine has this much work in a step and behaves in this way.
    ///
    /// # Errors
    /// Returns an error if `path` can't be written.
    pub fn write_patch(&self, path: &Path, work: u32, mode: &str) -> Result<(), FakeRepositoryError> {
        let removed = BEHAVIOUR.trim_end().replace('\n', "\n-");
        let text = format!("@@ -1,2 +1,2 @@\n-{removed}\n+WORK = {work}\n+MODE = \"{mode}\"\n");
        write(path, &(header(BEHAVIOUR_FILE) + &text))
    }

    /// Writes a patch on the baseline that puts a line before everything else in a file, such as a benchmark script.
    ///
    /// # Errors
    /// Returns an error if `path` can't be written.
    ///
    /// # Panics
    /// Panics if the engine has no such file.
    pub fn write_first_line_patch(&self, path: &Path, file: &str, line: &str) -> Result<(), FakeRepositoryError> {
        let known = FILES.iter().find(|(name, _)| *name == file);
        let first =
            known.and_then(|(_, text)| text.lines().next()).expect("the engine has the file, and it isn't empty");
        let hunk = format!("@@ -1,1 +1,2 @@\n+{line}\n {first}\n");
        write(path, &(header(file) + &hunk))
    }
}
