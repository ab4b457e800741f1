//! A git repository of the fake engine: a baseline, a faster human commit, and patches that misbehave.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::Fault;
use crate::speed::Speed;

/// What `faults.txt` holds in both commits.
const NO_FAULTS: &str = "# Faults of the fake engine, one on each line.\n";
/// The first line of `speed.txt`.
const SPEED_HEAD: &str = "# How fast the fake engine answers.";

/// Why the repository or a patch can't be written.
#[derive(Debug, thiserror::Error)]
pub enum FakeRepositoryError {
    /// A file can't be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// git can't be started.
    #[error("failed to start git")]
    Start(#[source] io::Error),
    /// git failed.
    #[error("`git {command}` failed: {stderr}")]
    Git {
        /// Its arguments.
        command: String,
        /// What it said.
        stderr: String,
    },
}

/// A git repository whose tree holds `faults.txt` and `speed.txt` for the fake engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeRepository {
    /// Its folder.
    pub dir: PathBuf,
    /// The commit before the change; also the tag `baseline`.
    pub baseline: String,
    /// The commit that makes the engine faster; also the tag `human`.
    pub human: String,
    baseline_speed: Speed,
}

impl FakeRepository {
    /// Creates the repository in a folder that is empty or not there. The same speeds give the same commit ids.
    ///
    /// # Errors
    /// Returns an error if git isn't there or the folder can't be written.
    pub fn create(dir: &Path, baseline: Speed, human: Speed) -> Result<Self, FakeRepositoryError> {
        fs::create_dir_all(dir).map_err(|source| FakeRepositoryError::Write { path: dir.to_owned(), source })?;
        git(dir, &["init", "-q", "--initial-branch=main"])?;
        write(&dir.join("faults.txt"), NO_FAULTS)?;
        let commit = |speed: Speed, name: &str| {
            let [ttft, itl] = speed.lines();
            write(&dir.join("speed.txt"), &format!("{SPEED_HEAD}\n{ttft}\n{itl}\n"))?;
            git(dir, &["add", "-A"])?;
            git(dir, &["commit", "-q", "--allow-empty", "-m", name])?;
            git(dir, &["tag", name])?;
            git(dir, &["rev-parse", "HEAD"])
        };
        let before = commit(baseline, "baseline")?;
        let after = commit(human, "human")?;
        Ok(Self { dir: dir.to_owned(), baseline: before, human: after, baseline_speed: baseline })
    }

    /// Writes a patch on the baseline that gives the engine these faults.
    ///
    /// # Errors
    /// Returns an error if `path` can't be written.
    pub fn write_patch(&self, path: &Path, faults: &[Fault]) -> Result<(), FakeRepositoryError> {
        let mut lines = vec![format!("@@ -1 +1,{} @@\n {NO_FAULTS}", faults.len() + 1)];
        lines.extend(faults.iter().map(|fault| format!("+{fault}\n")));
        let patch = header("faults.txt") + &lines.concat();
        write(path, &patch)
    }

    /// Writes a patch on the baseline that gives the engine another speed. Both numbers must differ from the baseline's.
    ///
    /// # Errors
    /// Returns an error if `path` can't be written.
    pub fn write_speed_patch(&self, path: &Path, speed: Speed) -> Result<(), FakeRepositoryError> {
        let [old_ttft, old_itl] = self.baseline_speed.lines();
        let [ttft, itl] = speed.lines();
        let hunk = format!("@@ -1,3 +1,3 @@\n {SPEED_HEAD}\n-{old_ttft}\n-{old_itl}\n+{ttft}\n+{itl}\n");
        write(path, &(header("speed.txt") + &hunk))
    }
}

pub(crate) fn header(file: &str) -> String {
    format!("diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n")
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), FakeRepositoryError> {
    fs::write(path, text).map_err(|source| FakeRepositoryError::Write { path: path.to_owned(), source })
}

/// Runs git without any configuration of the machine or the person, and returns what it prints.
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> Result<String, FakeRepositoryError> {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]).args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    let settings = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_TERMINAL_PROMPT", "0")];
    command.envs(settings);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_EMAIL"), "test@example.invalid");
        command.env(format!("GIT_{role}_DATE"), "2024-01-01T00:00:00Z");
    }
    let output = command.output().map_err(FakeRepositoryError::Start)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(FakeRepositoryError::Git { command: arguments.join(" "), stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Speed = Speed { ttft_us: 2000, itl_us: 400 };
    const FAST: Speed = Speed { ttft_us: 1000, itl_us: 200 };

    fn apply(repository: &FakeRepository, patch: &Path) -> [String; 2] {
        let dir = &repository.dir;
        git(dir, &["checkout", "-q", "-f", "baseline"]).unwrap();
        git(dir, &["apply", "--whitespace=error-all", patch.to_str().unwrap()]).unwrap();
        ["faults.txt", "speed.txt"].map(|file| fs::read_to_string(dir.join(file)).unwrap())
    }

    #[test]
    fn patches_apply_and_say_what_was_asked() {
        let dir = tempfile::tempdir().unwrap();
        let repository = FakeRepository::create(&dir.path().join("repository"), SLOW, FAST).unwrap();
        let patch = dir.path().join("x.patch");
        let asked = [Fault::Stall(3), Fault::Short];
        repository.write_patch(&patch, &asked).unwrap();
        let [faults, speed] = apply(&repository, &patch);
        assert_eq!(Fault::parse_lines(&faults).unwrap(), asked);
        assert_eq!(FAST.with_lines(&speed).unwrap(), SLOW);
        repository.write_speed_patch(&patch, FAST).unwrap();
        let [faults, speed] = apply(&repository, &patch);
        assert_eq!(Fault::parse_lines(&faults).unwrap(), []);
        assert_eq!(SLOW.with_lines(&speed).unwrap(), FAST);
    }

    #[test]
    fn the_same_speeds_give_the_same_commits() {
        let dir = tempfile::tempdir().unwrap();
        let create = |name| FakeRepository::create(&dir.path().join(name), SLOW, FAST).unwrap();
        let (one, two) = (create("one"), create("two"));
        assert_eq!((&one.baseline, &one.human), (&two.baseline, &two.human));
        assert_ne!(one.baseline, one.human);
    }
}
