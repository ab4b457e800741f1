//! What an engine leaves behind that undoes no measurement: floods of log, shared memory, entries in shared folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::outcome::evidence;

use crate::host::shared_folders::Snapshot;

/// Returns the incident of an engine that has written more log than its limit.
pub(super) fn log_flood(folder: &Path, limit: u64) -> Option<Failure> {
    let mut largest: Option<(u64, &str)> = None;
    for name in [evidence::SERVER_STDOUT, evidence::SERVER_STDERR] {
        let bytes = fs::metadata(folder.join(name)).map_or(0, |metadata| metadata.len());
        if bytes > limit && largest.is_none_or(|(most, _)| bytes > most) {
            largest = Some((bytes, name));
        }
    }
    let (bytes, name) = largest?;
    let message = format!("the engine wrote {bytes} bytes to `{name}`, over the limit of {limit}; all of it is kept");
    let lines = crate::log_evidence::telling_lines(&folder.join(name), name).into_iter().take(3);
    Some(Failure::new(FailureStage::Workload, FailureClass::LogFlood, message).with_evidence(lines))
}

/// Removes shared memory that the engine had mapped and left behind: it would fill the machine's memory.
pub(super) fn left_shared_memory(before: &Snapshot, mapped: &BTreeSet<PathBuf>) -> Option<Failure> {
    let left: Vec<&PathBuf> = mapped.iter().filter(|path| !before.held(path) && path.exists()).collect();
    if left.is_empty() {
        return None;
    }
    let line = |path: &&PathBuf| {
        let removed = fs::remove_file(path).map_or_else(|error| format!("not removed: {error}"), |()| "removed".into());
        EvidenceLine::new(path.display().to_string(), None, &format!("{}, {removed}", path.display()))
    };
    let message = format!("the engine left {} pieces of shared memory behind", left.len());
    let failure = Failure::new(FailureStage::Workload, FailureClass::SharedFolderWritten, message);
    Some(failure.with_evidence(left.iter().map(line)))
}

/// Returns the incident of entries that have appeared in folders which all launches share.
pub(super) fn shared_folders(before: &Snapshot) -> Option<Failure> {
    let appeared = before.appeared();
    if appeared.is_empty() {
        return None;
    }
    let message = "new entries stand in folders that all launches share; without isolation it isn't known whose they are, so \
                   that nothing is charged for them";
    let lines: Vec<EvidenceLine> = appeared.into_iter().take(20).collect();
    Some(Failure::new(FailureStage::Workload, FailureClass::SharedFolderWritten, message).with_evidence(lines))
}
