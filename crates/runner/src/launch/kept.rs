//! What is kept of a launch as evidence, and what an engine may have made of it.

#[cfg(test)]
mod tests;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::check::Check;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::outcome::{Artifact, evidence};

use crate::block::RunBlockError;

/// The evidence that is kept if it was written.
const EVIDENCE: &[&str] = &[
    evidence::LAUNCH,
    evidence::ENVIRONMENT_LOG,
    evidence::STATIC_PROOF,
    evidence::LIVE_PROOF,
    evidence::SERVER_STDOUT,
    evidence::SERVER_STDERR,
    evidence::REQUESTS,
    evidence::SCRIPT_RESULT,
    evidence::SCRIPT_SEEN,
];

/// Returns the pieces of evidence that stand in a launch's folder, by name. What the engine put in the place of one, such
/// as a link, is none.
pub(crate) fn evidence_in(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let path = |name: &&'static str| (*name, folder.join(name));
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|data| data.is_file());
    EVIDENCE.iter().map(path).filter(|(_, path)| is_file(path)).collect()
}

/// Opens to this user what the engine, which is the same user, may have closed. If that fails, reading it says so.
pub(super) fn reopen(path: &Path, mode: u32) {
    let _ = fs::set_permissions(path, Permissions::from_mode(mode));
}

/// Returns the failure of an engine that changed or removed the request records of its own launch.
pub(super) fn altered(written: Option<&Artifact>, kept: Option<&Artifact>) -> Option<Failure> {
    if written == kept {
        return None;
    }
    let line = |what: &str, artifact: Option<&Artifact>| {
        let nothing = || "nothing".to_owned();
        let text = artifact.map_or_else(nothing, |found| format!("{} bytes, SHA-256 {}", found.bytes, found.digest));
        EvidenceLine::new(evidence::REQUESTS, None, &format!("{what}: {text}"))
    };
    let message = format!("`{}` isn't what was written to it: the engine changed or removed it", evidence::REQUESTS);
    let failure = Failure::new(FailureStage::Validity, FailureClass::EvidenceAltered, message);
    Some(failure.breaking(Check::EvidenceIntact).with_evidence([line("written", written), line("found", kept)]))
}

/// Returns the failure of an engine that took away, or put something in the place of, a file that its launch writes.
///
/// # Errors
/// Returns the error if it has another cause.
pub(super) fn taken_away(error: RunBlockError) -> Result<Failure, RunBlockError> {
    use io::ErrorKind::{AlreadyExists, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let RunBlockError::Scratch { path, source } = &error else { return Err(error) };
    if !matches!(source.kind(), AlreadyExists | IsADirectory | NotADirectory | NotFound | PermissionDenied) {
        return Err(error);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let message = format!("`{name}` can't be written: the engine took its place or its folder away");
    let line = EvidenceLine::new(name, None, &source.to_string());
    let failure = Failure::new(FailureStage::Validity, FailureClass::EvidenceAltered, message);
    Ok(failure.breaking(Check::EvidenceIntact).with_evidence([line]))
}
