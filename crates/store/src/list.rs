//! The runs in a folder.

use std::path::{Path, PathBuf};

use isobench_schema::event::{BlockEnd, Event, EventKind, RunEnd};
use isobench_schema::ids::{Digest, RunId};
use isobench_schema::outcome::Outcome;
use isobench_schema::units::Millis;

use crate::atomic::{self, StoreError};
use crate::layout;
use crate::lock::is_locked;
use crate::reader::{ReadRunError, RunReader};

/// What one run has come to.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// The run's name.
    pub run: RunId,
    /// The name of the dataset that was planned.
    pub dataset: String,
    /// The plan's digest.
    pub plan: Digest,
    /// When it was first started, in milliseconds since 1970-01-01 UTC.
    pub started_at_ms: Option<Millis>,
    /// When its last event was.
    pub last_at_ms: Option<Millis>,
    /// Tasks in the plan.
    pub tasks: usize,
    /// Blocks in the plan, replacements not counted.
    pub blocks_planned: u64,
    /// Blocks that have a complete attempt.
    pub blocks_complete: u64,
    /// Launches of complete attempts that ran to the end of their workload.
    pub launches_measured: u64,
    /// Launches of complete attempts that failed.
    pub launches_failed: u64,
    /// Why it stopped last; absent if it is under way or was killed.
    pub end: Option<RunEnd>,
    /// Whether a process writes in it at the moment.
    pub live: bool,
}

/// A folder that holds a run, and what is known of it.
#[derive(Debug)]
pub struct RunEntry {
    /// The folder.
    pub dir: PathBuf,
    /// What it has come to, or why it can't be read.
    pub summary: Result<RunSummary, ReadRunError>,
}

/// Returns the runs that lie directly in a folder, by the names of their folders. A run that can't be read is among them
/// with the reason; a folder that isn't there holds none.
///
/// # Errors
/// Returns an error if the folder itself can't be read.
pub fn list(runs: &Path) -> Result<Vec<RunEntry>, StoreError> {
    let dirs = atomic::names(runs)?.into_iter();
    let dirs = dirs.filter(|dir| dir.join(layout::PLAN).is_file() && dir.join(layout::EVENTS).is_file());
    Ok(dirs.map(|dir| RunEntry { summary: summarise(&dir), dir }).collect())
}

fn summarise(dir: &Path) -> Result<RunSummary, ReadRunError> {
    let reader = RunReader::open(dir)?;
    let plan = reader.plan();
    let mut summary = RunSummary {
        run: reader.run().clone(),
        dataset: plan.dataset.clone(),
        plan: reader.plan_digest().clone(),
        started_at_ms: None,
        last_at_ms: None,
        tasks: plan.tasks.len(),
        blocks_planned: plan.tasks.iter().map(|task| u64::from(task.design.blocks())).sum(),
        blocks_complete: 0,
        launches_measured: 0,
        launches_failed: 0,
        end: None,
        live: is_locked(dir)?,
    };
    for event in reader.events()? {
        summary.add(&event?);
    }
    Ok(summary)
}

impl RunSummary {
    fn add(&mut self, event: &Event) {
        self.started_at_ms.get_or_insert(event.at_ms);
        self.last_at_ms = Some(event.at_ms);
        match &event.kind {
            EventKind::RunStarted { .. } => self.end = None,
            EventKind::RunEnded { end, .. } => self.end = Some(*end),
            EventKind::BlockEnded { end: BlockEnd::Complete, launches, .. } => {
                self.blocks_complete += 1;
                for record in launches {
                    match record.outcome {
                        Outcome::Measured => self.launches_measured += 1,
                        Outcome::Failed { .. } => self.launches_failed += 1,
                        Outcome::Interrupted => {}
                    }
                }
            }
            EventKind::BlockEnded { end: BlockEnd::Interrupted | BlockEnd::Spoilt { .. }, .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::LookTaken { .. }
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. }
            | EventKind::LaunchStage { .. } => {}
        }
    }
}
