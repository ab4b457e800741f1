//! The store as the sink of a block.

use std::path::Path;

use isobench_runner::sink::{Sink, SinkError};
use isobench_schema::event::{EventKind, LaunchStage};
use isobench_schema::ids::LaunchId;
use isobench_schema::outcome::{Artifact, LaunchRecord};
use isobench_store::RunStore;

use super::recovery;
use crate::progress::Watch;

/// Writes what a block produces into its run.
pub(super) struct StoreSink<'a> {
    pub(super) store: &'a mut RunStore,
    pub(super) watch: &'a mut dyn Watch,
    pub(super) work: &'a Path,
}

fn failed<E: std::error::Error + Send + Sync + 'static>(what: String) -> impl FnOnce(E) -> SinkError {
    move |error| {
        let disk_full = isobench_store::is_disk_full(&error);
        SinkError { what, disk_full, source: Box::new(error) }
    }
}

impl Sink for StoreSink<'_> {
    fn stage(&mut self, launch: &LaunchId, stage: LaunchStage) -> Result<(), SinkError> {
        let kind = EventKind::LaunchStage { launch: launch.clone(), stage };
        let event = self.store.append(kind).map_err(failed(format!("the stage of `{launch}`")))?;
        self.watch.event(&event);
        Ok(())
    }

    fn keep(&mut self, path: &Path) -> Result<Artifact, SinkError> {
        self.store.put_file(path).map_err(failed(format!("`{}`", path.display())))
    }

    fn launched(&mut self, record: &LaunchRecord) -> Result<(), SinkError> {
        let what = format!("the record of `{}`", record.launch);
        recovery::keep_record(self.work, record).map_err(failed(what))
    }

    fn note(&mut self, text: &str) {
        self.watch.note(text);
    }
}
