//! The folder of one block that runs by itself, anywhere.

use std::path::{Path, PathBuf};

use isobench_schema::block::{BlockComplete, BlockSpec};
use isobench_schema::event::{Event, EventKind};
use isobench_schema::format::{self, ReadFormatError, Stored};
use isobench_schema::ids::{ArmId, Digest, InvalidIdError, RunId};
use isobench_schema::outcome::Artifact;
use isobench_schema::units::Millis;

use crate::artifacts::Artifacts;
use crate::atomic::{self, StoreError, write_atomically};
use crate::attempts::AttemptError;
use crate::events::{AppendError, Events, ReadEventsError, now_ms};
use crate::layout;
use crate::lock::{Lock, LockError};
use crate::record::{Record, foreign_name};

/// Why a block's folder can't be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenBlockError {
    /// A file can't be read or written.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// Another process writes in it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Its events can't be read.
    #[error(transparent)]
    Events(#[from] ReadEventsError),
    /// It holds no block.
    #[error("`{dir}` holds no block: there is no `{missing}` in it")]
    NotABlock {
        /// The folder.
        dir: PathBuf,
        /// The file that isn't there.
        missing: &'static str,
    },
    /// It holds something else than a block.
    #[error("`{dir}` isn't empty and holds no block: there is `{name}` in it")]
    Foreign {
        /// The folder.
        dir: PathBuf,
        /// Something that no block has.
        name: String,
    },
    /// It holds another block.
    #[error("`{dir}` holds another block than the one asked for")]
    OtherBlock {
        /// The folder.
        dir: PathBuf,
    },
    /// The specification or the end can't be read.
    #[error("`{path}` can't be read")]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: ReadFormatError,
    },
    /// The specification can't be written as JSON.
    #[error("`{path}` can't be written as JSON")]
    Serialise {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// The run's name isn't one.
    #[error("the block's specification names no valid run")]
    Run(#[from] InvalidIdError),
}

/// A block's folder, open for writing by this process alone until it is dropped.
#[derive(Debug)]
pub struct BlockStore {
    record: Record,
    spec: BlockSpec,
}

impl BlockStore {
    /// Creates a block's folder, or opens it if it holds this very block.
    ///
    /// # Errors
    /// Returns an error if the folder holds anything else, if another process writes in it, or if it can't be written.
    pub fn create(dir: &Path, spec: &BlockSpec) -> Result<Self, OpenBlockError> {
        let run = RunId::new(spec.run.clone())?;
        let path = dir.join(layout::SPEC);
        let text =
            format::to_pretty(spec).map_err(|source| OpenBlockError::Serialise { path: path.clone(), source })?;
        if !dir.join(layout::EVENTS).exists()
            && let Some(name) = foreign_name(dir)?
        {
            return Err(OpenBlockError::Foreign { dir: dir.to_owned(), name });
        }
        atomic::create_folder(dir)?;
        let lock = Lock::take(dir)?;
        match atomic::read_if_there(&path)? {
            Some(found) if Digest::of(&found) != Digest::of(text.as_bytes()) => {
                return Err(OpenBlockError::OtherBlock { dir: dir.to_owned() });
            }
            Some(_) => {}
            None if dir.join(layout::EVENTS).exists() => {
                return Err(OpenBlockError::OtherBlock { dir: dir.to_owned() });
            }
            None => write_atomically(&path, text.as_bytes())?,
        }
        if !dir.join(layout::EVENTS).exists() {
            Record::create(dir, &run)?;
        }
        Self::open_locked(dir, lock)
    }

    /// Opens a block's folder, cuts off an event that was only half written, and removes unfinished files.
    ///
    /// # Errors
    /// Returns an error if the folder holds no block, if another process writes in it, or if what it holds is damaged.
    pub fn open(dir: &Path) -> Result<Self, OpenBlockError> {
        read_spec(dir)?;
        Self::open_locked(dir, Lock::take(dir)?)
    }

    fn open_locked(dir: &Path, lock: Lock) -> Result<Self, OpenBlockError> {
        let spec = read_spec(dir)?;
        let record = Record::open(dir, lock, |_| ())?;
        Ok(Self { record, spec })
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        self.record.dir()
    }

    /// Returns the specification.
    pub fn spec(&self) -> &BlockSpec {
        &self.spec
    }

    /// Returns how the block ended, if it has.
    ///
    /// # Errors
    /// Returns an error if that can't be read.
    pub fn complete(&self) -> Result<Option<BlockComplete>, OpenBlockError> {
        read_complete(self.dir())
    }

    /// Returns whether the attempt has begun.
    pub fn has_begun(&self) -> bool {
        self.record.log().attempts().has_begun(&self.spec.id)
    }

    /// Appends an event at the present time, as [`crate::RunStore::append`] does. The block's end is for
    /// [`BlockStore::finish`].
    ///
    /// # Errors
    /// Returns an error if the event contradicts those before it, or if it can't be written; then the log is as it was.
    pub fn append(&mut self, kind: EventKind) -> Result<Event, AppendError> {
        self.append_at(kind, now_ms())
    }

    /// Appends an event that happened at the given time.
    ///
    /// # Errors
    /// As [`BlockStore::append`].
    pub fn append_at(&mut self, kind: EventKind, at_ms: Millis) -> Result<Event, AppendError> {
        self.record.append(kind, at_ms)
    }

    /// Ends the block: appends its end if that isn't there, then writes the file that makes the folder complete.
    ///
    /// # Errors
    /// Returns an error if the records aren't those of the block's launches, or if nothing can be written.
    pub fn finish(&mut self, complete: &BlockComplete) -> Result<(), AppendError> {
        let log = self.record.log();
        if complete.id != self.spec.id || !log.attempts().has_begun(&complete.id) {
            return Err(AttemptError::NeverBegan { id: complete.id.clone() }.into());
        }
        if !log.attempts().has_ended(&complete.id) {
            self.append(complete.clone().into())?;
        }
        let text = format::to_pretty(complete).map_err(AppendError::Serialise)?;
        Ok(write_atomically(&self.dir().join(layout::COMPLETE), text.as_bytes())?)
    }

    /// Returns the events from the first one on, read from the file as they are asked for.
    ///
    /// # Errors
    /// Returns an error if the log's first line can't be read; every event is a result of its own.
    pub fn events(&self) -> Result<Events, ReadEventsError> {
        self.record.events()
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

    /// Returns the folder for the scratch of launches, made if it isn't there.
    ///
    /// # Errors
    /// Returns an error if it can't be made.
    pub fn work(&self) -> Result<PathBuf, StoreError> {
        self.record.folder(layout::WORK)
    }
}

/// Returns the arms of a block in the order of their launches.
pub(crate) fn order(spec: &BlockSpec) -> Vec<ArmId> {
    spec.launches.iter().map(|launch| launch.arm.clone()).collect()
}

/// Returns a block folder's specification.
pub(crate) fn read_spec(dir: &Path) -> Result<BlockSpec, OpenBlockError> {
    document(dir, layout::SPEC)?.ok_or_else(|| OpenBlockError::NotABlock { dir: dir.to_owned(), missing: layout::SPEC })
}

/// Returns how a folder's block ended, if it has.
pub(crate) fn read_complete(dir: &Path) -> Result<Option<BlockComplete>, OpenBlockError> {
    document(dir, layout::COMPLETE)
}

fn document<T: Stored>(dir: &Path, name: &str) -> Result<Option<T>, OpenBlockError> {
    let path = dir.join(name);
    let Some(bytes) = atomic::read_if_there(&path)? else { return Ok(None) };
    format::from_slice(&bytes).map(Some).map_err(|source| OpenBlockError::Document { path, source })
}
