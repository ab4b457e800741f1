//! Inputs: models, tokenizers and dataset files, on this machine or on a hub, and their digests.
//!
//! A repository of a hub at a revision is looked up when a plan is made ([`Hub::find`]): in folders that were named, on the
//! hub, in the hub's cache on this machine, or in what the hub said before. When a block is about to run its files are put
//! into the content-addressed cache ([`Hub::ensure`]), each verified by its hash.

mod address;
#[cfg(test)]
mod disk_tests;
mod fetch;
mod hash;
mod held;
mod here;
mod http;
mod hub;
#[cfg(test)]
mod tests;
mod token;

pub use held::{Held, InputRecord, Told};
pub(crate) use held::{inputs_folder, prove_input};
pub use http::Patience;
pub use hub::{AskHub, Hub, HubSettings, Wanted};
pub use token::TokenReference;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use isobench_schema::ids::Digest;
use sha2::{Digest as _, Sha256};

/// Returns the digest of a file's bytes, or of the sorted names and digests of every file in a folder; `None` if nothing
/// is there. Links are followed, as the engine would.
///
/// # Errors
/// Returns the operating system's error if a file is there but can't be read.
pub fn digest(path: &Path) -> io::Result<Option<Digest>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => {
            let mut files = Vec::new();
            list(path, &mut files)?;
            files.sort();
            let mut hasher = Sha256::new();
            for file in files {
                let name = file.strip_prefix(path).unwrap_or(&file).as_os_str().as_encoded_bytes();
                hasher.update(name);
                hasher.update([0]);
                hasher.update(of_file(&file)?.as_str());
                hasher.update([b'\n']);
            }
            Ok(Some(Digest::finish(hasher)))
        }
        Ok(_) => of_file(path).map(Some),
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if fs::symlink_metadata(&path)?.is_dir() {
            list(&path, files)?;
        } else if fs::metadata(&path)?.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the digest of a file's bytes, read in constant memory.
pub(crate) fn of_file(path: &Path) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?;
    let mut chunk = vec![0_u8; 1 << 18];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(Digest::finish(hasher));
        }
        hasher.update(chunk.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
mod digest_tests {
    use super::*;

    #[test]
    fn a_folder_is_known_by_its_files_and_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let of = || digest(folder.path()).unwrap().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/a"), "1").unwrap();
        let first = of();
        fs::rename(folder.path().join("sub/a"), folder.path().join("sub/b")).unwrap();
        let renamed = of();
        fs::write(folder.path().join("sub/b"), "2").unwrap();
        assert_ne!(first, renamed);
        assert_ne!(renamed, of());
        assert_eq!(digest(&folder.path().join("absent")).unwrap(), None);
    }
}
