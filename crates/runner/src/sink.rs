//! Where a block's events and evidence go. The runner knows no store; it is given one of these.

use std::path::Path;

use isobench_schema::event::LaunchStage;
use isobench_schema::ids::LaunchId;
use isobench_schema::outcome::{Artifact, LaunchRecord};

/// A record that can't be written. It stops the run.
#[derive(Debug, thiserror::Error)]
#[error("failed to store {what}")]
pub struct SinkError {
    /// What couldn't be stored.
    pub what: String,
    /// Whether the disk is full, so that the run can go on once there is room.
    pub disk_full: bool,
    /// Why.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Takes what a block produces.
pub trait Sink: Send {
    /// Takes note that a launch has come to a stage.
    ///
    /// # Errors
    /// Returns an error if the record can't be written.
    fn stage(&mut self, launch: &LaunchId, stage: LaunchStage) -> Result<(), SinkError>;

    /// Stores a file whole, and returns its name in the store.
    ///
    /// # Errors
    /// Returns an error if the file can't be stored.
    fn keep(&mut self, path: &Path) -> Result<Artifact, SinkError>;

    /// Keeps the record of a finished launch until its block has ended, in case this process dies before.
    ///
    /// # Errors
    /// Returns an error if the record can't be written.
    fn launched(&mut self, record: &LaunchRecord) -> Result<(), SinkError>;

    /// Shows a line to whoever watches. Nothing is stored.
    fn note(&mut self, text: &str);
}
