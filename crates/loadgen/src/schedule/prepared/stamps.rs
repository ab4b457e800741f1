//! Digests of large files that were taken before, so that files that nobody touched since aren't read again.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use isobench_schema::ids::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The file that holds them.
const FILE: &str = "stamps.json";

/// How much older than its digest a file's last change must be, in nanoseconds: a change within the same tick of the file
/// system's clock can't be seen.
const SETTLED_NS: i128 = 2_000_000_000;

/// Digests by path.
#[derive(Debug)]
pub(super) struct Stamps {
    folder: PathBuf,
    known: BTreeMap<PathBuf, Stamp>,
    has_changed: bool,
}

/// A file as it was when its digest was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified_ns: i128,
    changed_ns: i128,
    digest: Digest,
}

impl Stamps {
    /// Returns those that a folder keeps; none if what it keeps can't be read.
    pub(super) fn open(folder: &Path) -> Self {
        let known = fs::read(folder.join(FILE)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { folder: folder.to_owned(), known: known.unwrap_or_default(), has_changed: false }
    }

    /// Returns the digest of a file.
    pub(super) fn digest(&mut self, path: &Path) -> io::Result<Digest> {
        let path = fs::canonicalize(path)?;
        let mut file = File::open(&path)?;
        let about = file.metadata()?;
        if let Some(stamp) = self.known.get(&path)
            && stamp.is_of(&about)
        {
            return Ok(stamp.digest.clone());
        }
        let began_ns = now_ns();
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(buffer.get(..read).unwrap_or_default());
        }
        let digest = Digest::finish(hasher);
        let stamp = Stamp::new(&about, digest.clone());
        if began_ns - stamp.modified_ns.max(stamp.changed_ns) > SETTLED_NS {
            self.known.insert(path, stamp);
            self.has_changed = true;
        }
        Ok(digest)
    }

    /// Keeps what is new. That it can't be kept costs time only.
    pub(super) fn keep(&self) {
        if self.has_changed {
            let _costs_time = self.write();
        }
    }

    fn write(&self) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&serde_json::to_vec(&self.known)?)?;
        file.persist(self.folder.join(FILE)).map_err(|failed| failed.error)?;
        Ok(())
    }
}

impl Stamp {
    fn new(about: &Metadata, digest: Digest) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            length: about.len(),
            modified_ns: i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec()),
            changed_ns: i128::from(about.ctime()) * 1_000_000_000 + i128::from(about.ctime_nsec()),
            digest,
        }
    }

    fn is_of(&self, about: &Metadata) -> bool {
        *self == Self::new(about, self.digest.clone())
    }
}

fn now_ns() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::from(now.as_secs()) * 1_000_000_000 + i128::from(now.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;

    use super::*;

    #[test]
    fn a_file_that_is_as_it_was_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        fs::write(&path, "one").unwrap();
        let mut stamps = Stamps::open(folder.path());
        assert_eq!(stamps.digest(&path).unwrap(), Digest::of(b"one"));
        // It has just changed, so that a second change might not be seen.
        assert!(stamps.known.is_empty());
        let about = fs::metadata(&path).unwrap();
        let mut stamp = Stamp::new(&about, Digest::of(b"claimed"));
        let canonical = fs::canonicalize(&path).unwrap();
        stamps.known.insert(canonical.clone(), stamp.clone());
        stamps.has_changed = true;
        stamps.keep();
        let mut again = Stamps::open(folder.path());
        assert_eq!(again.digest(&path).unwrap(), Digest::of(b"claimed"));
        // Another length, another time of its change: it is read.
        stamp.length += 1;
        again.known.insert(canonical.clone(), stamp);
        assert_eq!(again.digest(&path).unwrap(), Digest::of(b"one"));
        again.known.insert(canonical, Stamp::new(&about, Digest::of(b"claimed")));
        File::options().write(true).open(&path).unwrap().set_times(FileTimes::new().set_modified(UNIX_EPOCH)).unwrap();
        assert_eq!(again.digest(&path).unwrap(), Digest::of(b"one"));
    }

    #[test]
    fn stamps_that_cannot_be_read_are_none() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b"{"[..], b"[]", b"\0", b"{\"a\": {}}"] {
            fs::write(folder.path().join(FILE), bytes).unwrap();
            assert!(Stamps::open(folder.path()).known.is_empty());
        }
        assert!(Stamps::open(folder.path()).digest(Path::new("/nowhere")).is_err());
    }
}
