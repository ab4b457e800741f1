//! What a run's folder and a block's folder have in common: a lock, a log and artifacts.

use std::path::{Path, PathBuf};

use isobench_schema::event::{Event, EventKind, EventLogHeader};
use isobench_schema::ids::RunId;
use isobench_schema::units::Millis;

use crate::artifacts::{self, Artifacts};
use crate::atomic::{self, StoreError};
use crate::events::{AppendError, EventLog, Events, ReadEventsError};
use crate::layout;
use crate::lock::Lock;

/// A folder that is open for writing.
#[derive(Debug)]
pub(crate) struct Record {
    dir: PathBuf,
    log: EventLog,
    artifacts: Artifacts,
    _lock: Lock,
}

impl Record {
    /// Lays down the artifacts' folder and the log. The log comes last: a folder that has one has everything.
    pub(crate) fn create(dir: &Path, run: &RunId) -> Result<(), StoreError> {
        artifacts::create(&dir.join(layout::ARTIFACTS))?;
        EventLog::create(&dir.join(layout::EVENTS), &EventLogHeader { run: run.clone() })
    }

    /// Opens a folder that `lock` is the lock of, mends what a killed process left, and shows `see` every event.
    pub(crate) fn open(dir: &Path, lock: Lock, see: impl FnMut(&Event)) -> Result<Self, ReadEventsError> {
        for folder in layout::swept(dir) {
            atomic::sweep(&folder)?;
        }
        let log = EventLog::open(&dir.join(layout::EVENTS), see)?;
        let artifacts = Artifacts::new(dir.join(layout::ARTIFACTS));
        Ok(Self { dir: dir.to_owned(), log, artifacts, _lock: lock })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn log(&self) -> &EventLog {
        &self.log
    }

    pub(crate) fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    pub(crate) fn append(&mut self, kind: EventKind, at_ms: Millis) -> Result<Event, AppendError> {
        self.log.append(kind, at_ms)
    }

    pub(crate) fn events(&self) -> Result<Events, ReadEventsError> {
        Events::open(&self.dir.join(layout::EVENTS))
    }

    /// Returns a folder inside, made if it isn't there.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.dir.join(name);
        atomic::create_folder(&path)?;
        Ok(path)
    }
}

/// Returns the name of something in the folder that isobench wouldn't have put there, if there is anything.
pub(crate) fn foreign_name(dir: &Path) -> Result<Option<String>, StoreError> {
    let names = atomic::names(dir)?;
    let names = names.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy()));
    Ok(names.into_iter().find(|name| !layout::is_known(name)).map(std::borrow::Cow::into_owned))
}
