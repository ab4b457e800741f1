//! Room on the disk that a daemon keeps images on.

use std::path::PathBuf;

use isobench_schema::units::size_text;

use super::{ContainerError, Daemon};
use crate::disk::free_bytes;

/// A daemon's disk has too little room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the disk of the daemon's folder `{}` has {} left, and {} are to stay free{}",
    .path.display(), size_text(*.free), size_text(*.floor), more(*.needed)
)]
pub struct NoRoom {
    /// The folder.
    pub path: PathBuf,
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that are needed above the floor.
    pub needed: u64,
    /// Bytes that must stay free.
    pub floor: u64,
}

fn more(needed: u64) -> String {
    if needed == 0 { String::new() } else { format!(" when {} more are taken", size_text(needed)) }
}

/// The disk that a daemon keeps images on, if this process can see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonDisk {
    root: Option<PathBuf>,
}

impl Daemon {
    /// Returns the disk that the daemon keeps images on.
    ///
    /// # Errors
    /// Returns an error if the daemon doesn't answer.
    pub async fn disk(&self) -> Result<DaemonDisk, ContainerError> {
        let root = self.facts().await?.root.map(PathBuf::from);
        Ok(DaemonDisk { root: root.filter(|root| root.is_dir()) })
    }
}

impl DaemonDisk {
    /// Returns how many bytes are free on it; none if that can't be told.
    pub fn free(&self) -> Option<u64> {
        free_bytes(self.root.as_deref()?).ok()
    }

    /// Checks that there is so much room above the floor. A disk that can't be seen is taken to have it.
    ///
    /// # Errors
    /// Returns what is there, if it is too little.
    pub fn check(&self, needed: u64, floor: u64) -> Result<(), NoRoom> {
        let (Some(path), Some(free)) = (&self.root, self.free()) else { return Ok(()) };
        if free >= needed.saturating_add(floor) {
            return Ok(());
        }
        Err(NoRoom { path: path.clone(), free, needed, floor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_held_against_what_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DaemonDisk { root: Some(folder.path().to_owned()) };
        assert_eq!(disk.check(0, 0), Ok(()));
        let error = disk.check(1 << 30, u64::MAX).unwrap_err().to_string();
        assert!(error.contains(folder.path().to_str().unwrap()) && error.contains("more are taken"), "{error}");
        let unseen = DaemonDisk { root: None };
        assert_eq!((unseen.free(), unseen.check(0, u64::MAX)), (None, Ok(())));
    }
}
