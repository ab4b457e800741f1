//! Whether a virtual environment is still what was installed: told from the file system, and for libraries from their bytes.
//!
//! An engine can give a file that it wrote its old size and its old time back, but not the time of its last change, which
//! the kernel alone sets. That time also moves when a tree gets or gives up a share in a library's bytes; then, and only
//! then, the library is read.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::ids::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::EnvironmentError;
use super::super::manifest::digest_file;
use super::super::overlay::is_native;
use super::super::safe_path::to_text;

/// A native library as it was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeFile {
    /// Its digest.
    pub sha256: Digest,
    /// When the kernel saw it change last, in seconds since 1970.
    pub changed_s: i64,
    /// The nanoseconds of that second.
    pub changed_ns: i64,
}

/// What the file system tells of a virtual environment.
pub(in super::super) struct Look {
    /// The digest over path, number, mode, size and times of each file; without the time of change for native libraries.
    pub(in super::super) stamp: Digest,
    /// The native libraries, and when each was changed last.
    native: Vec<(PathBuf, (i64, i64))>,
}

impl Look {
    /// Looks at every file in `place`, bytecode too: not every process can be kept from reading it.
    pub(in super::super) fn at(place: &Path) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut native = Vec::new();
        let mut folders = vec![place.to_owned()];
        while let Some(folder) = folders.pop() {
            let mut entries = std::fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let path = entry.path();
                let metadata = entry.metadata()?;
                hasher.update(path.as_os_str().as_bytes());
                hasher.update([0]);
                if metadata.is_dir() {
                    folders.push(path);
                    continue;
                }
                add(&mut hasher, &metadata);
                let changed = (metadata.ctime(), metadata.ctime_nsec());
                if metadata.is_file() && is_native(&path) {
                    native.push((path, changed));
                } else {
                    hasher.update(changed.0.to_le_bytes());
                    hasher.update(changed.1.to_le_bytes());
                }
            }
        }
        Ok(Self { stamp: Digest::finish(hasher), native })
    }

    /// Returns the native libraries with their digests.
    pub(in super::super) fn digests(&self, place: &Path) -> Result<BTreeMap<String, NativeFile>, EnvironmentError> {
        let mut digests = BTreeMap::new();
        for (path, (changed_s, changed_ns)) in &self.native {
            let (sha256, _, _) = digest_file(path)?;
            let file = NativeFile { sha256, changed_s: *changed_s, changed_ns: *changed_ns };
            digests.insert(name(path, place), file);
        }
        Ok(digests)
    }

    /// Returns whether the native libraries are these.
    pub(in super::super) fn holds(&self, known: &BTreeMap<String, NativeFile>, place: &Path) -> bool {
        let is_kept = |(path, changed): &(PathBuf, (i64, i64))| {
            let Some(file) = known.get(&name(path, place)) else { return false };
            let untouched = (file.changed_s, file.changed_ns) == *changed;
            untouched || digest_file(path).is_ok_and(|(sha256, _, _)| sha256 == file.sha256)
        };
        self.native.len() == known.len() && self.native.iter().all(is_kept)
    }
}

fn add(hasher: &mut Sha256, metadata: &Metadata) {
    hasher.update(metadata.ino().to_le_bytes());
    hasher.update(metadata.mode().to_le_bytes());
    hasher.update(metadata.size().to_le_bytes());
    hasher.update(metadata.mtime().to_le_bytes());
    hasher.update(metadata.mtime_nsec().to_le_bytes());
}

fn name(path: &Path, place: &Path) -> String {
    to_text(path.strip_prefix(place).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::super::fixture::rewrite_in_place;
    use super::*;

    const LIBRARY: &str = "engine/_C.so";

    fn check(name: &str, is_kept: bool, change: fn(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("venv");
        fs::create_dir_all(place.join("engine")).unwrap();
        for file in ["engine/__init__.py", LIBRARY, "engine/other.so.1"] {
            fs::write(place.join(file), "content").unwrap();
        }
        let before = Look::at(&place).unwrap();
        let native = before.digests(&place).unwrap();
        assert_eq!(native.keys().collect::<Vec<_>>(), [LIBRARY, "engine/other.so.1"]);
        change(&place);
        let after = Look::at(&place).unwrap();
        assert_eq!(after.stamp == before.stamp && after.holds(&native, &place), is_kept, "{name}");
    }

    #[test]
    fn each_change_of_a_virtual_environment_is_found() {
        check("nothing", true, |_| {});
        check("a tree shares a library", true, |place| {
            fs::hard_link(place.join(LIBRARY), place.with_file_name("tree")).unwrap();
        });
        check("a module is rewritten in place", false, |place| rewrite_in_place(&place.join("engine/__init__.py")));
        check("a library is rewritten in place", false, |place| rewrite_in_place(&place.join(LIBRARY)));
        check("a shared library is rewritten in place", false, |place| {
            fs::hard_link(place.join(LIBRARY), place.with_file_name("tree")).unwrap();
            rewrite_in_place(&place.with_file_name("tree"));
        });
        check("a library is replaced by its copy", false, |place| {
            fs::copy(place.join(LIBRARY), place.join("copy")).unwrap();
            fs::rename(place.join("copy"), place.join(LIBRARY)).unwrap();
        });
        check("a library is added", false, |place| fs::write(place.join("new.so"), "").unwrap());
        check("a library is removed", false, |place| fs::remove_file(place.join(LIBRARY)).unwrap());
        check("bytecode is added", false, |place| {
            fs::create_dir(place.join("engine/__pycache__")).unwrap();
            fs::write(place.join("engine/__pycache__/__init__.cpython-311.pyc"), "").unwrap();
        });
    }
}
