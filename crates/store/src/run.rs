//! A run's folder, open for writing.

use std::path::{Path, PathBuf};

use isobench_schema::event::{Event, EventKind};
use isobench_schema::facts::Facts;
use isobench_schema::format;
use isobench_schema::ids::{ArmId, BlockId, Digest, RunId};
use isobench_schema::outcome::Artifact;
use isobench_schema::plan::Plan;
use isobench_schema::units::Millis;

use crate::artifacts::Artifacts;
use crate::atomic::{self, StoreError, write_atomically};
use crate::events::{AppendError, Events, ReadEventsError, now_ms};
use crate::layout;
use crate::lock::{Lock, LockError};
use crate::reader::{Documents, ReadRunError, plan_begun};
use crate::record::{Record, foreign_name};

/// Why a run's folder can't be created or opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenRunError {
    /// A file can't be written.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// Another process writes in it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What is in it can't be read.
    #[error(transparent)]
    Read(#[from] ReadRunError),
    /// It holds something else than a run.
    #[error("`{dir}` isn't empty and holds no run: there is `{name}` in it")]
    Foreign {
        /// The folder.
        dir: PathBuf,
        /// Something that no run has.
        name: String,
    },
    /// It holds another run.
    #[error("`{dir}` holds the run `{found}`, not `{run}`")]
    OtherRun {
        /// The folder.
        dir: PathBuf,
        /// The run that was to be created.
        run: RunId,
        /// The run that is there.
        found: RunId,
    },
    /// It holds a run of another plan.
    #[error("`{dir}` holds the plan {found}, not {plan}")]
    OtherPlan {
        /// The folder.
        dir: PathBuf,
        /// The digest of the plan that was to be run.
        plan: Digest,
        /// The digest of the plan that is there.
        found: Digest,
    },
    /// The plan or the facts can't be written as JSON.
    #[error("`{path}` can't be written as JSON")]
    Serialise {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
}

impl From<ReadEventsError> for OpenRunError {
    fn from(error: ReadEventsError) -> Self {
        Self::Read(error.into())
    }
}

/// A run's folder, open for writing by this process alone until it is dropped.
#[derive(Debug)]
pub struct RunStore {
    record: Record,
    documents: Documents,
}

impl RunStore {
    /// Creates a run's folder, or opens it if it holds this very run with this very plan.
    ///
    /// A process that was killed while it did this leaves a folder that can be created again.
    ///
    /// # Errors
    /// Returns an error if the folder holds anything else, if another process writes in it, or if it can't be written.
    pub fn create(dir: &Path, run: &RunId, plan: &Plan, facts: &Facts) -> Result<Self, OpenRunError> {
        let bytes_of = |name: &str, text: Result<String, serde_json::Error>| {
            text.map(String::into_bytes).map_err(|source| OpenRunError::Serialise { path: dir.join(name), source })
        };
        let plan = bytes_of(layout::PLAN, format::to_pretty(plan))?;
        let facts = bytes_of(layout::FACTS, format::to_pretty(facts))?;
        if !dir.join(layout::EVENTS).exists()
            && let Some(name) = foreign_name(dir)?
        {
            return Err(OpenRunError::Foreign { dir: dir.to_owned(), name });
        }
        atomic::create_folder(dir)?;
        let lock = Lock::take(dir)?;
        let path = dir.join(layout::PLAN);
        let digest = Digest::of(&plan);
        let found = atomic::read_if_there(&path)?.map(|bytes| Digest::of(&bytes));
        if dir.join(layout::EVENTS).exists() {
            let found = Events::open(&dir.join(layout::EVENTS))?.header().run.clone();
            if found != *run {
                return Err(OpenRunError::OtherRun { dir: dir.to_owned(), run: run.clone(), found });
            }
        }
        if let Some(found) = found
            && found != digest
        {
            return Err(OpenRunError::OtherPlan { dir: dir.to_owned(), plan: digest, found });
        }
        if !dir.join(layout::EVENTS).exists() {
            write_atomically(&path, &plan)?;
            write_atomically(&dir.join(layout::FACTS), &facts)?;
            Record::create(dir, run)?;
        }
        Self::open_locked(dir, lock)
    }

    /// Opens a run's folder, cuts off an event that was only half written, and removes unfinished files.
    ///
    /// # Errors
    /// Returns an error if the folder holds no run, if another process writes in it, or if what it holds is damaged.
    pub fn open(dir: &Path) -> Result<Self, OpenRunError> {
        // Before the lock, so that a folder which isn't a run gets no lock's file.
        Documents::read(dir)?;
        Self::open_locked(dir, Lock::take(dir)?)
    }

    fn open_locked(dir: &Path, lock: Lock) -> Result<Self, OpenRunError> {
        let documents = Documents::read(dir)?;
        let mut begun = None;
        let record = Record::open(dir, lock, |event| {
            if begun.is_none() {
                begun = plan_begun(event).cloned();
            }
        })?;
        documents.check(dir, begun.as_ref())?;
        Ok(Self { record, documents })
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        self.record.dir()
    }

    /// Returns the run's name.
    pub fn run(&self) -> &RunId {
        &self.record.log().header().run
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.documents.plan
    }

    /// Returns the digest of the plan's stored bytes.
    pub fn plan_digest(&self) -> &Digest {
        &self.documents.plan_digest
    }

    /// Returns what was known of the world when the plan was made.
    pub fn facts(&self) -> &Facts {
        &self.documents.facts
    }

    /// Returns how many bytes of a half-written event were cut off when the folder was opened; mostly 0.
    pub fn torn_bytes(&self) -> u64 {
        self.record.log().torn_bytes()
    }

    /// Appends an event at the present time, and returns it once it has reached the disk (a
    /// [`EventKind::LaunchStage`]: the operating system).
    ///
    /// # Errors
    /// Returns an error if the event contradicts those before it, or if it can't be written; then the log is as it was.
    pub fn append(&mut self, kind: EventKind) -> Result<Event, AppendError> {
        self.append_at(kind, now_ms())
    }

    /// Appends an event that happened at the given time, as [`RunStore::append`] does.
    ///
    /// # Errors
    /// As [`RunStore::append`].
    pub fn append_at(&mut self, kind: EventKind, at_ms: Millis) -> Result<Event, AppendError> {
        self.record.append(kind, at_ms)
    }

    /// Returns the events from the first one on, read from the file as they are asked for.
    ///
    /// # Errors
    /// Returns an error if the log's first line can't be read; every event is a result of its own.
    pub fn events(&self) -> Result<Events, ReadEventsError> {
        self.record.events()
    }

    /// Returns whether an attempt at a block has begun.
    pub fn has_begun(&self, id: &BlockId) -> bool {
        self.record.log().attempts().has_begun(id)
    }

    /// Returns whether an attempt at a block has ended.
    pub fn has_ended(&self, id: &BlockId) -> bool {
        self.record.log().attempts().has_ended(id)
    }

    /// Returns the attempts that have begun and not ended, with their arms in the order of their launches. Right after
    /// opening these are the ones that a dead process left.
    pub fn open_attempts(&self) -> Vec<(BlockId, Vec<ArmId>)> {
        self.record.log().attempts().open().map(|(id, order)| (id.clone(), order.to_vec())).collect()
    }

    /// Returns the evidence. Its clones can store from other threads.
    pub fn artifacts(&self) -> &Artifacts {
        self.record.artifacts()
    }

    /// Stores a file's bytes as evidence, in constant memory.
    ///
    /// # Errors
    /// As [`Artifacts::put_file`].
    pub fn put_file(&self, path: &Path) -> Result<Artifact, StoreError> {
        self.artifacts().put_file(path)
    }

    /// Stores bytes as evidence.
    ///
    /// # Errors
    /// As [`Artifacts::put_bytes`].
    pub fn put_bytes(&self, bytes: &[u8]) -> Result<Artifact, StoreError> {
        self.artifacts().put_bytes(bytes)
    }

    /// Returns the folder for the scratch of launches, made if it isn't there. What is in it belongs to the caller.
    ///
    /// # Errors
    /// Returns an error if it can't be made.
    pub fn work(&self) -> Result<PathBuf, StoreError> {
        self.record.folder(layout::WORK)
    }

    /// Returns the folder for what is computed from the rest, made if it isn't there.
    ///
    /// # Errors
    /// Returns an error if it can't be made.
    pub fn derived(&self) -> Result<PathBuf, StoreError> {
        self.record.folder(layout::DERIVED)
    }
}
