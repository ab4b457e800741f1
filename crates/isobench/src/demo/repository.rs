//! Making a small git repository, the same to the byte on every machine.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a git command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// git can't be started.
    #[error("git can't be started")]
    Start(#[source] io::Error),
    /// git says no.
    #[error("`git {command}` failed: {output}")]
    Failed {
        /// Its arguments.
        command: String,
        /// The end of what it said.
        output: String,
    },
}

/// Makes an empty repository.
///
/// # Errors
/// Returns an error if git isn't there or refuses.
pub(crate) fn init(folder: &Path) -> Result<(), CommitError> {
    git(folder, &["init", "--quiet", "--initial-branch=main", "--template="])
}

/// Commits everything in the folder, and tags the commit.
///
/// # Errors
/// Returns an error if git isn't there or refuses.
pub(crate) fn commit(folder: &Path, tag: &str, message: &str) -> Result<(), CommitError> {
    git(folder, &["add", "--all", "--force"])?;
    git(folder, &["commit", "--quiet", "--no-verify", "--message", message])?;
    git(folder, &["tag", tag])
}

fn git(folder: &Path, arguments: &[&str]) -> Result<(), CommitError> {
    let name = "isobench demo";
    let output = Command::new("git")
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "commit.gpgSign=false"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0")])
        .envs([("GIT_AUTHOR_NAME", name), ("GIT_COMMITTER_NAME", name)])
        .envs([("GIT_AUTHOR_EMAIL", "demo@invalid"), ("GIT_COMMITTER_EMAIL", "demo@invalid")])
        .envs([("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z"), ("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z")])
        .env("GIT_DIR", folder.join(".git"))
        .env("GIT_WORK_TREE", folder)
        .stdin(Stdio::null())
        .output()
        .map_err(CommitError::Start)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let output = said.trim().chars().take(500).collect();
    Err(CommitError::Failed { command: arguments.join(" "), output })
}
