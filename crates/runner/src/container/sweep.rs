//! Ends containers that nobody watches over any more.

use std::time::Duration;

use super::labels::{self, now_s};
use super::{ContainerError, Daemon};
use crate::host::process_table;

/// How long the processes of a removed container may take to be gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A container that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Its id.
    pub id: String,
    /// Its first process, if it still ran.
    pub process: Option<u32>,
    /// Why it was nobody's.
    pub why: &'static str,
}

/// Removes every container of isobench that is nobody's: those of the run `own`, whose lock the caller holds, those past
/// their time, and those whose coordinator is gone.
///
/// # Errors
/// Returns an error if the daemon doesn't answer or one can't be removed.
pub async fn sweep(daemon: &Daemon, own: Option<&str>) -> Result<Vec<Swept>, ContainerError> {
    let mut swept = Vec::new();
    for (id, labels) in daemon.labelled(labels::RUN).await? {
        let Some(why) = labels::orphaned(&labels, own, now_s()) else { continue };
        // One that has gone meanwhile has no process.
        let process = daemon.look(&id).await.ok().and_then(|state| state.process);
        daemon.remove(&id).await?;
        if let Some(process) = process {
            gone(process).await;
        }
        swept.push(Swept { id, process, why: why.as_str() });
    }
    Ok(swept)
}

/// Waits until a process is gone: a daemon may answer before the kernel is done.
async fn gone(process: u32) {
    let look = async {
        while process_table::find(process).is_some_and(|found| !found.zombie) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // One that stays is found by its mark.
    let _ = tokio::time::timeout(PATIENCE, look).await;
}
