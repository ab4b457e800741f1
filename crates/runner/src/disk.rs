//! Room on the disk: how much is free, and the floor below which a run never takes it.

use std::io;
use std::path::Path;

use crate::cache_entries;
use crate::environment::{EnvironmentError, PrepareContext, Stop};

/// The room that a run leaves on the disk where nothing else is said: 1 GiB.
pub const DEFAULT_FLOOR_BYTES: u64 = 1 << 30;

/// Returns how many bytes are free for this user where a folder is.
///
/// # Errors
/// Returns the operating system's error.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns how many bytes the file system takes in all that a folder is on.
///
/// # Errors
/// Returns the operating system's error.
pub fn whole_bytes(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}

/// The disk of a cache, with the room that is always left on it.
#[derive(Debug, Clone, Copy)]
pub struct Room<'a> {
    /// The cache.
    pub cache: &'a Path,
    /// The floor.
    pub floor_bytes: u64,
}

impl Room<'_> {
    /// Makes room for so many bytes above the floor: by removing what nobody uses from the cache, the least recently used
    /// first.
    ///
    /// # Errors
    /// Returns [`EnvironmentError::NoRoom`] if there isn't enough, also without all that, and what was cancelled.
    pub(crate) fn make(&self, bytes: u64, context: &PrepareContext<'_>) -> Result<(), Stop> {
        let free = || free_bytes(self.cache).map_err(EnvironmentError::read(self.cache));
        let needed = bytes.saturating_add(self.floor_bytes);
        if free()? >= needed {
            return Ok(());
        }
        cache_entries::sweep(self.cache)?;
        for entry in cache_entries::by_last_use(self.cache).map_err(EnvironmentError::read(self.cache))? {
            if free()? >= needed {
                return Ok(());
            }
            context.check_cancelled()?;
            cache_entries::remove(self.cache, &entry)?;
            cache_entries::sweep(self.cache)?;
        }
        let free = free()?;
        if free >= needed {
            return Ok(());
        }
        let (path, floor) = (self.cache.to_owned(), self.floor_bytes);
        Err(EnvironmentError::NoRoom { path, needed: bytes, free, floor }.into())
    }

    /// As [`Self::make`], for whoever isn't part of a preparation.
    ///
    /// # Errors
    /// Returns [`EnvironmentError::NoRoom`] if there isn't enough.
    pub(crate) fn ensure(&self, bytes: u64, context: &PrepareContext<'_>) -> Result<(), EnvironmentError> {
        match self.make(bytes, context) {
            // What is cancelled ends by itself a little later.
            Ok(()) | Err(Stop::Failed(_)) => Ok(()),
            Err(Stop::Error(error)) => Err(error),
        }
    }
}
