//! The owner of last resort: ends what is left of the processes that a run has started, whoever else should have.
//!
//! This process is the reaper of its descendants: what loses its parent becomes its child, also if it has left its
//! session and thrown its environment away, or has killed its guard.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, set_child_subreaper, waitpid};

use super::process_table::{self, ProcessInfo};

/// How long the killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the process table is looked at meanwhile.
const STEP: Duration = Duration::from_millis(5);
/// How many looks in a row must find nothing: a process that forks while the table is read may be missed by one.
const LOOKS: u32 = 2;

/// The reaper of a run's processes.
#[derive(Debug)]
pub struct Reaper {
    marker: String,
    /// Processes that were there before, by id and start.
    before: BTreeSet<(u32, u64)>,
}

/// Processes can't be ended.
#[derive(Debug, thiserror::Error)]
#[error("processes of the run can't be ended: {}", names(.left).join(", "))]
pub struct UnkillableError {
    /// The processes.
    pub left: Vec<ProcessInfo>,
}

/// Returns processes as `name (id)`.
pub fn names(processes: &[ProcessInfo]) -> Vec<String> {
    processes.iter().map(|process| format!("{} ({})", process.command, process.pid)).collect()
}

impl Reaper {
    /// Makes this process the reaper of the processes of the run that is marked with `marker`. Those that it has now
    /// are none of the run's.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn new(marker: &str) -> io::Result<Self> {
        set_child_subreaper(Some(rustix::process::getpid()))?;
        let before = process_table::descendants(std::process::id());
        let before = before.into_iter().map(|process| (process.pid, process.started)).collect();
        Ok(Self { marker: marker.to_owned(), before })
    }

    /// Returns what every process of the run is marked with.
    pub fn marker(&self) -> &str {
        &self.marker
    }

    /// Ends every process of the run, and returns those that were still there. To be called only when none should be.
    ///
    /// # Errors
    /// Returns the processes that can't be ended.
    pub fn end_strays(&self) -> Result<Vec<ProcessInfo>, UnkillableError> {
        let mut ended = BTreeMap::new();
        let deadline = Instant::now() + PATIENCE;
        let mut quiet = 0;
        while quiet < LOOKS {
            let strays = self.strays();
            if strays.is_empty() {
                quiet += 1;
                continue;
            }
            if Instant::now() > deadline {
                return Err(UnkillableError { left: strays });
            }
            quiet = 0;
            for stray in strays {
                process_table::kill(&stray);
                ended.insert((stray.pid, stray.started), stray);
            }
            thread::sleep(STEP);
            self.reap();
        }
        self.reap();
        Ok(ended.into_values().collect())
    }

    fn strays(&self) -> Vec<ProcessInfo> {
        let marked = process_table::marked(&self.marker);
        let below = |process: &ProcessInfo| process_table::descendants(process.pid);
        let mut strays = process_table::descendants(std::process::id());
        strays.extend(marked.iter().flat_map(below));
        strays.extend(marked);
        strays.retain(|process| self.is_ours(process));
        strays
    }

    /// Takes away what has ended and was left to this process.
    fn reap(&self) {
        let this = std::process::id();
        let dead = |process: &ProcessInfo| process.zombie && process.parent == this && self.is_ours(process);
        for process in process_table::processes().iter().filter(|process| dead(process)) {
            if let Some(pid) = process_table::pid(process.pid) {
                // One that is reaped already is no error.
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }

    fn is_ours(&self, process: &ProcessInfo) -> bool {
        process.pid != std::process::id() && !self.before.contains(&(process.pid, process.started))
    }
}
