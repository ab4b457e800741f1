//! What builds and installers leave running when isobench is killed: it would write into the folder of the next attempt.

use std::path::Path;
use std::time::{Duration, Instant};

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::Stop;
use crate::command::Environment;
use crate::host::process_table::{self, ProcessInfo};
use crate::host::reaper::names;

/// The variable by which such processes are known: it holds the folder that they write to.
const MARKER: &str = "ISOBENCH_WRITES";
/// How long the killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked meanwhile.
const STEP: Duration = Duration::from_millis(10);

/// Marks the processes that get these variables as writing to a folder.
pub(super) fn mark(environment: &mut Environment, folder: &Path) {
    environment.insert(MARKER.to_owned(), folder.into());
}

/// Ends the processes of a coordinator that was killed which write to a folder or below it. To be called by whoever holds the
/// folder's lock, before anything is made there.
pub(super) fn end_below(folder: &Path) -> Result<(), Stop> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = below(folder);
        let Some(first) = left.first() else { return Ok(()) };
        if Instant::now() > deadline {
            let message = format!("{} still writes to `{}`, and can't be ended", first.command, folder.display());
            let line = EvidenceLine::new("host", None, &names(&left).join(", "));
            let failure = Failure::new(FailureStage::Build, FailureClass::HostError, message);
            return Err(failure.with_evidence([line]).into());
        }
        for process in &left {
            process_table::kill(process);
        }
        std::thread::sleep(STEP);
    }
}

fn below(folder: &Path) -> Vec<ProcessInfo> {
    process_table::marked_by(MARKER, |value| Path::new(value).starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_writes_below_a_folder_is_ended_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let start =
            |place: &str| Command::new("sleep").arg("30").env(MARKER, folder.path().join(place)).spawn().unwrap();
        let (mut orphan, mut other) = (start("key/tree"), start("key2/tree"));
        end_below(&folder.path().join("key")).unwrap();
        assert!(!orphan.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "what is built elsewhere goes on");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
