//! Environments: from a specification to files on disk that are proven to be what it says.
//!
//! The way is export → patch → virtual environment → overlay or native build → build → manifest, kept in a content-addressed
//! cache; then the static proof before each launch, and the second look at every file after it.

pub mod patch;
pub mod proof;

mod build;
pub(crate) mod cache;
#[cfg(test)]
pub(crate) mod fixture;
mod full;
mod image;
mod image_copy;
mod known;
pub(crate) mod lock;
mod manifest;
pub(crate) mod native;
mod orphans;
mod overlay;
mod prepare;
mod prove_again;
pub(crate) mod recipes;
pub(crate) mod remove;
pub(crate) mod safe_path;
mod share;
#[cfg(test)]
mod tests;
mod venv;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isobench_schema::failure::{Failure, FailureClass, FailureStage};

use crate::command::{Environment, RunCommandError, clean_environment};
use crate::host::process_table;
use crate::host::reaper::{Reaper, UnkillableError};
use crate::sink::SinkError;

pub use cache::evict;
pub(crate) use image::image_packages_folder;
pub use image::{CopiedPackage, ImageRecord};
pub use known::{KnownTrees, prepare_known};
pub use manifest::{Entry, Manifest, OverlayNote};
pub(crate) use manifest::{differences, scan, scan_again};
pub use native::NativeNote;
pub(crate) use native::{native_folder, native_words};
pub use prepare::{Prepared, prepare};
pub(crate) use prove_again::{prove_environment, prove_image_package, prove_native_build, prove_venv};
pub use venv::VenvRecord;

/// Where and how long an environment may be prepared.
#[derive(Debug, Clone, Copy)]
pub struct PrepareContext<'a> {
    /// The cache that runs share. It is made if it is missing.
    pub cache: &'a Path,
    /// A private, existing folder for temporary files.
    pub scratch: &'a Path,
    /// The file that every command line and all output are appended to.
    pub log: &'a Path,
    /// The deadline of each single command.
    pub timeout: Duration,
    /// Set from elsewhere to give up.
    pub cancel: &'a AtomicBool,
    /// The owner of the run's processes. Without one, what a command leaves running is nobody's.
    pub reaper: Option<&'a Reaper>,
    /// Who is told of steps that take long.
    pub steps: Option<&'a dyn Steps>,
}

/// Is told of the steps of a preparation that take long, before each begins.
pub trait Steps: fmt::Debug + Sync {
    /// Native files are about to be built, because the cache doesn't have those of this native tree.
    ///
    /// # Errors
    /// Returns an error if the record can't be written; then nothing is built.
    fn native_build_begins(&self) -> Result<(), SinkError>;
}

impl PrepareContext<'_> {
    /// Returns the environment that every command starts from: clean, and with the run's mark, so that the command is
    /// found and ended when the run is killed.
    pub(crate) fn environment(&self, home: &Path, tmp: &Path) -> Environment {
        let mut environment = clean_environment(home, tmp);
        if let Some(reaper) = self.reaper {
            environment.insert(process_table::RUN_MARKER.to_owned(), reaper.marker().into());
        }
        environment
    }

    /// Returns [`Self::environment`] with the context's own folders.
    pub(crate) fn own_environment(&self) -> Environment {
        self.environment(&self.scratch.join("home"), self.scratch)
    }

    /// Ends what a stranger's command has left running. Nothing else of the run must run.
    pub(crate) fn end_strays(&self) -> Result<(), EnvironmentError> {
        if let Some(reaper) = self.reaper {
            reaper.end_strays()?;
        }
        Ok(())
    }

    /// Returns the name under which evidence lines quote the log.
    pub(crate) fn log_name(&self) -> String {
        self.log.file_name().map_or_else(|| "log".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), Stop> {
        if self.cancel.load(Ordering::Relaxed) {
            let message = "the preparation was interrupted";
            return Err(Failure::new(FailureStage::Acquire, FailureClass::Interrupted, message).transient().into());
        }
        Ok(())
    }
}

/// Why isobench itself couldn't do its part of preparing or proving an environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A command couldn't be run to its end.
    #[error(transparent)]
    Command(#[from] RunCommandError),
    /// A file or folder can't be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file or folder can't be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What a command has left running can't be ended.
    #[error(transparent)]
    Unkillable(#[from] UnkillableError),
    /// A step can't be recorded.
    #[error(transparent)]
    Told(SinkError),
    /// A record can't be written as JSON.
    #[error("failed to write the record of an environment")]
    Json(#[from] serde_json::Error),
    /// The disk has too little room.
    #[error(
        "the disk of `{path}` has {free} bytes left, and {needed} more are needed above the floor of {floor} bytes, also without all that no run uses"
    )]
    NoRoom {
        /// The cache.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes that must stay free.
        floor: u64,
    },
}

impl EnvironmentError {
    /// Returns a function that turns an error of writing `path` into this error.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path: path.clone(), source }
    }

    /// Returns a function that turns an error of reading `path` into this error.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Read { path: path.clone(), source }
    }

    /// Returns whether the disk is full, which stops a run.
    pub fn is_disk_full(&self) -> bool {
        let source = match self {
            Self::Write { source, .. }
            | Self::Read { source, .. }
            | Self::Command(
                RunCommandError::Start { source, .. }
                | RunCommandError::Log { source, .. }
                | RunCommandError::Sink { source, .. }
                | RunCommandError::Watch { source, .. },
            ) => source,
            Self::Told(error) => return error.disk_full,
            Self::Json(_) | Self::Unkillable(_) => return false,
            Self::NoRoom { .. } => return true,
        };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Why a step of the preparation ended early: the arm's failure or the tool's error.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Box<Failure>),
    Error(EnvironmentError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<EnvironmentError> for Stop {
    fn from(error: EnvironmentError) -> Self {
        Self::Error(error)
    }
}

impl From<RunCommandError> for Stop {
    fn from(error: RunCommandError) -> Self {
        Self::Error(error.into())
    }
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        Self::Error(error.into())
    }
}

/// Tells failures, which are data, from errors.
pub(crate) fn split<T>(result: Result<T, Stop>) -> Result<Result<T, Failure>, EnvironmentError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Failed(failure)) => Ok(Err(*failure)),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// Waits until every file of `folder` is on the disk, along with all else on its file system.
///
/// What later runs trust, such as sizes and times, a file may have before its bytes are safe. And gigabytes that are still
/// to be written would disturb the first launch.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(std::fs::File::open(folder)?)?)
}
