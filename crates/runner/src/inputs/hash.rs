//! Hashes of files as a hub names them: SHA-256, or the id of a git blob.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use isobench_schema::ids::{CommitId, Digest};
use isobench_schema::input::FileHash;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// How much of a file is read at once.
const CHUNK: usize = 1 << 18;

/// Returns whether a file's bytes have the hash that is expected of them; none if it was cancelled.
///
/// # Errors
/// Returns the operating system's error if the file can't be read.
pub(super) fn has_hash(path: &Path, expected: &FileHash, cancel: &AtomicBool) -> io::Result<Option<bool>> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    match expected {
        FileHash::Sha256(digest) => {
            let mut hasher = Sha256::new();
            let all = feed(&mut file, cancel, |chunk| hasher.update(chunk))?;
            Ok(all.then(|| Digest::finish(hasher) == *digest))
        }
        FileHash::GitBlob(id) => {
            let mut hasher = blob_hasher(bytes);
            let all = feed(&mut file, cancel, |chunk| hasher.update(chunk))?;
            Ok(all.then(|| blob_id(hasher).as_ref() == Some(id)))
        }
    }
}

/// Feeds a file to a hasher, and returns whether it wasn't cancelled.
fn feed(file: &mut File, cancel: &AtomicBool, mut update: impl FnMut(&[u8])) -> io::Result<bool> {
    let mut chunk = vec![0_u8; CHUNK];
    loop {
        if cancel.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match file.read(&mut chunk)? {
            0 => return Ok(true),
            read => update(chunk.get(..read).unwrap_or_default()),
        }
    }
}

/// Returns a hasher that has taken the head of a git blob of so many bytes.
fn blob_hasher(bytes: u64) -> Sha1 {
    Sha1::new_with_prefix(format!("blob {bytes}\0"))
}

fn blob_id(hasher: Sha1) -> Option<CommitId> {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(40);
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    CommitId::new(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_has_the_id_that_git_gives_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "hello\n").unwrap();
        let cancel = AtomicBool::new(false);
        // `printf 'hello\n' | git hash-object --stdin`
        let blob = FileHash::parse("ce013625030ba8dba906f756967f9e9ca394464a").unwrap();
        let sha256 = FileHash::Sha256(Digest::of(b"hello\n"));
        for (hash, expected) in [(&blob, true), (&sha256, true)] {
            assert_eq!(has_hash(&path, hash, &cancel).unwrap(), Some(expected));
        }
        std::fs::write(&path, "other\n").unwrap();
        assert_eq!(has_hash(&path, &blob, &cancel).unwrap(), Some(false));
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(has_hash(&path, &blob, &cancel).unwrap(), None);
    }
}
