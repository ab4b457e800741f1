//! The lock of a folder: one process writes, and the others learn which.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::atomic::{StoreError, open_plain};
use crate::layout;

/// How long to wait for a lock: a process that was just killed holds it until its last system call has ended.
const PATIENCE: Duration = Duration::from_millis(300);
/// How often to look in that time.
const PAUSE: Duration = Duration::from_millis(10);

/// Who holds a lock, as written in the lock's file. For people: the lock itself decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The process.
    pub process: u32,
    /// The host that it runs on.
    pub host: String,
}

/// Why a folder can't be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("`{dir}` is in use by {}", describe(.holder.as_ref()))]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// Who has it, if that can be read.
        holder: Option<LockHolder>,
    },
    /// The lock's file can't be used.
    #[error(transparent)]
    Storage(#[from] StoreError),
}

fn describe(holder: Option<&LockHolder>) -> String {
    match holder {
        Some(LockHolder { process, host }) => format!("process {process} on `{host}`"),
        None => "another process".to_owned(),
    }
}

/// A lock that is held until this is dropped, or until the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The open file: closing it lets the lock go. The file itself stays, so that nobody locks a name that is gone.
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder.
    pub(crate) fn take(dir: &Path) -> Result<Self, LockError> {
        Self::take_file(&dir.join(layout::LOCK), dir, PATIENCE)
    }

    /// Takes the lock whose file is `path`, of what is called `of` in errors, and waits for it so long.
    pub(crate) fn take_file(path: &Path, of: &Path, patience: Duration) -> Result<Self, LockError> {
        let mut file = open(path)?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Locked { dir: of.to_owned(), holder: read(&mut file) });
                }
                Err(TryLockError::Error(source)) => return Err(StoreError::new("lock", path, source).into()),
            }
        }
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        write(&mut file, &LockHolder { process: std::process::id(), host }).map_err(StoreError::on("write", path))?;
        Ok(Self { _file: file })
    }
}

/// Returns whether a process writes in a folder at the moment. A folder without a lock's file isn't locked.
///
/// # Errors
/// Returns an error if the lock's file can't be used.
pub fn is_locked(dir: &Path) -> Result<bool, StoreError> {
    let path = dir.join(layout::LOCK);
    let file = match open_plain(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(StoreError::on("read", &path))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(StoreError::new("lock", path, source)),
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).open(path).map_err(StoreError::on("open", path))
}

fn read(file: &mut File) -> Option<LockHolder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(1000).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn write(file: &mut File, holder: &LockHolder) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all((serde_json::to_string(holder)? + "\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_opener_learns_who_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_locked(dir.path()).unwrap());
        let lock = Lock::take(dir.path()).unwrap();
        let error = Lock::take(dir.path()).unwrap_err();
        let expected = format!("in use by process {} on `", std::process::id());
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(is_locked(dir.path()).unwrap());
        drop(lock);
        assert!(!is_locked(dir.path()).unwrap());
        Lock::take(dir.path()).unwrap();
    }

    #[test]
    fn a_holder_that_cannot_be_read_is_another_process() {
        let error = LockError::Locked { dir: "run".into(), holder: None };
        assert_eq!(error.to_string(), "`run` is in use by another process");
    }
}
