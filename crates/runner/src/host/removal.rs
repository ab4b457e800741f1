//! Folders in which strangers' programs have worked: removed, or out of the way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::environment::remove::remove_tree;

/// What the name of a folder begins with that couldn't be removed.
pub const EVICTED: &str = "evicted-";

/// A folder that couldn't be removed.
#[derive(Debug)]
pub struct Evicted {
    /// Where it is now.
    pub path: PathBuf,
    /// Why it couldn't be removed.
    pub source: io::Error,
}

/// Removes a folder, whatever was made in it. One that isn't there is no error.
///
/// # Errors
/// Returns the operating system's error.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    match remove_tree(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Removes a folder, or renames it to a fresh `evicted-…` in `place`, so that its name is free in any case.
///
/// # Errors
/// Returns the operating system's error if it can be neither removed nor renamed.
pub fn remove_or_evict(folder: &Path, place: &Path) -> io::Result<Option<Evicted>> {
    let Err(source) = remove_folder(folder) else { return Ok(None) };
    Ok(Some(Evicted { path: evict(folder, place)?, source }))
}

fn evict(folder: &Path, place: &Path) -> io::Result<PathBuf> {
    let aside = tempfile::Builder::new().prefix(EVICTED).tempdir_in(place)?;
    // An empty folder gives way to the renamed one.
    fs::rename(folder, aside.path())?;
    Ok(aside.keep())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_and_else_it_is_out_of_the_way() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir_all(folder.join("inner")).unwrap();
        assert!(remove_or_evict(&folder, place.path()).unwrap().is_none());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        assert!(remove_or_evict(&folder, place.path()).unwrap().is_none(), "one that isn't there is fine");
        // Nothing can be removed below a file that stands for a folder.
        fs::write(&folder, "").unwrap();
        let error = remove_or_evict(&folder.join("inner"), place.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "no empty folder is left for nothing");
    }

    #[test]
    fn an_evicted_folder_is_whole_and_its_name_is_free() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        for _ in 0..2 {
            fs::create_dir_all(folder.join("inner")).unwrap();
            let aside = evict(&folder, place.path()).unwrap();
            assert!(aside.join("inner").is_dir() && !folder.exists());
            assert!(aside.file_name().unwrap().to_string_lossy().starts_with(EVICTED));
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }
}
