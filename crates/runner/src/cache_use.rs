//! Who uses an entry of the cache: a shared lock as long as it is used, and a note of the last use.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The longest note that is read.
const LONGEST_NOTE: u64 = 4096;

/// When an entry was used last, and by which run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastUse {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The run's name.
    pub run: String,
}

/// Holds an entry: as long as one of its clones lives, no prune takes it. The kernel frees it with its process.
#[derive(Debug, Clone)]
pub struct UseLock(Arc<File>);

impl UseLock {
    /// Holds the entry at `entry`, whose folder needn't be there yet. It waits only for a prune that is removing it.
    ///
    /// # Errors
    /// Returns an error if the lock file can't be made.
    pub(crate) fn take(entry: &Path) -> io::Result<Self> {
        let file = open(&path(entry))?;
        file.lock_shared()?;
        Ok(Self(Arc::new(file)))
    }

    /// Notes that a run uses the entry now. That it can't be noted is no reason not to run.
    pub(crate) fn note(&self, run: &str) {
        let note = LastUse { at_ms: now_ms(), run: run.to_owned() };
        let write = |mut file: &File| -> io::Result<()> {
            let text = serde_json::to_vec(&note)?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        };
        let _ = write(&self.0);
    }
}

/// An entry that nobody uses, and nobody can begin to use as long as this lives.
#[derive(Debug)]
pub(crate) struct Unused(#[expect(dead_code, reason = "the lock is held as long as the file is open")] File);

/// Takes an entry that nobody uses, or returns `None` if somebody does.
pub(crate) fn unused(entry: &Path) -> io::Result<Option<Unused>> {
    if let Some(folder) = entry.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = open(&path(entry))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Unused(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the last use of an entry, if one was noted.
pub(crate) fn last_use(entry: &Path) -> Option<LastUse> {
    let mut text = Vec::new();
    File::open(path(entry)).ok()?.take(LONGEST_NOTE).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the lock file of an entry.
pub(crate) fn path(entry: &Path) -> PathBuf {
    entry.with_extension("use")
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Returns the time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_not_taken_and_its_last_use_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let entry = folder.path().join("inner/entry");
        let [one, two] = [UseLock::take(&entry).unwrap(), UseLock::take(&entry).unwrap()];
        one.note("first-run");
        two.note("run");
        assert!(unused(&entry).unwrap().is_none());
        drop(one);
        assert!(unused(&entry).unwrap().is_none());
        drop(two);
        assert!(unused(&entry).unwrap().is_some());
        assert_eq!(last_use(&entry).unwrap().run, "run");
        assert!(last_use(&folder.path().join("other")).is_none());
    }
}
