//! Locks between processes that share a cache: held by an open file, gone when its holder is, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use isobench_schema::failure::{Failure, FailureClass, FailureStage};

use super::{EnvironmentError, PrepareContext, Stop};

/// How long another process may hold a lock for each command it runs under it, as a multiple of a command's deadline.
const PATIENCE: u32 = 8;
/// How often a taken lock is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock(#[expect(dead_code, reason = "the lock is held as long as the file is open")] File);

impl FolderLock {
    /// Takes the lock file at `path`, waiting while another process or thread has it.
    pub(crate) fn take(path: &Path, context: &PrepareContext<'_>) -> Result<Self, Stop> {
        let io_error = |source| EnvironmentError::Write { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io_error)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(io_error)?;
        let deadline = Instant::now() + context.timeout.saturating_mul(PATIENCE);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(io_error(source).into()),
            }
            context.check_cancelled()?;
            if Instant::now() >= deadline {
                let message = format!("another process still holds the lock `{}`", path.display());
                let failure = Failure::new(FailureStage::Acquire, FailureClass::HostError, message);
                return Err(failure.transient().into());
            }
            std::thread::sleep(RETRY);
        }
    }
}
