//! What an environment holds: every file with its digest, looked at from outside.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::format::Stored;
use isobench_schema::ids::{CommitId, Digest, EnvironmentId};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::EnvironmentError;
use super::image::ImageRecord;
use super::native::NativeNote;
use super::safe_path::to_text;
use super::venv::VenvRecord;

/// The first bytes of every native program and library of Linux.
const ELF_MAGIC: &[u8] = b"\x7fELF";
/// How much of a file is read at once, in bytes.
const READ_BYTES: usize = 256 * 1024;

/// What stands at a path of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A regular file.
    File {
        /// Its permissions, such as 0o644.
        mode: u32,
        /// Its size in bytes.
        size: u64,
        /// Its digest.
        sha256: Digest,
        /// Whether it is a native program or library.
        native: bool,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as written in it.
        target: String,
    },
    /// A folder.
    Folder,
    /// Anything else: a socket, a pipe, a device, or what can't be read.
    Other,
}

/// How an overlay was laid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverlayNote {
    /// The installed package.
    pub package: String,
    /// Its version, as its installer recorded it; absent if no installer did.
    pub version: Option<String>,
    /// Number of the revision's files that were laid over it.
    pub from_revision: u64,
    /// Python files that only the installed package has, as a build makes them: path and reason.
    pub generated: BTreeMap<String, String>,
    /// Python files of the installed package that the revision doesn't have, which were left out.
    pub left_out: Vec<String>,
}

/// Everything that is known of a prepared environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The environment.
    pub id: EnvironmentId,
    /// The exported commit.
    pub commit: CommitId,
    /// The digest over [`Manifest::files`].
    pub tree: Digest,
    /// What stands in the tree, by path.
    pub files: BTreeMap<String, Entry>,
    /// The digest of each file that the patch changes, as the patch left it; an absent digest is a removed file.
    pub changed: BTreeMap<String, Option<Digest>>,
    /// Submodules, which are left as empty folders.
    pub submodules: Vec<String>,
    /// The overlay, if there is one.
    pub overlay: Option<OverlayNote>,
    /// The native build that gave the tree its native files, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_build: Option<NativeNote>,
    /// The virtual environment, if there is one.
    pub venv: Option<VenvRecord>,
    /// The image's Python, if it is on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRecord>,
}

impl Stored for Manifest {
    const NAME: &'static str = "environment";
    const VERSION: u32 = 1;
}

impl Manifest {
    /// Returns the digest of each native library or program in the tree, by path.
    pub fn native(&self) -> BTreeMap<String, Digest> {
        let native = self.files.iter().filter_map(|(path, entry)| match entry {
            Entry::File { sha256, native: true, .. } => Some((path.clone(), sha256.clone())),
            Entry::File { .. } | Entry::Link { .. } | Entry::Folder | Entry::Other => None,
        });
        native.collect()
    }

    /// Returns the number of regular files and links in the tree.
    pub fn file_count(&self) -> u64 {
        self.files.values().map(|entry| u64::from(!matches!(entry, Entry::Folder))).sum()
    }
}

/// Looks at everything in the tree at `root`. Links aren't followed.
///
/// Measured code decides what stands there. What can't be looked at is [`Entry::Other`], not an error.
///
/// # Errors
/// Returns an error only if this process or machine has run out of something.
pub(crate) fn scan(root: &Path) -> Result<BTreeMap<String, Entry>, EnvironmentError> {
    scan_against(root, None)
}

/// Looks at the tree again. A file that `expected` doesn't have, or has in another size, is [`Entry::Other`] without being
/// read: it differs in any case, and may be endless.
///
/// # Errors
/// As [`scan`].
pub(crate) fn scan_again(
    root: &Path,
    expected: &BTreeMap<String, Entry>,
) -> Result<BTreeMap<String, Entry>, EnvironmentError> {
    scan_against(root, Some(expected))
}

fn scan_against(
    root: &Path,
    expected: Option<&BTreeMap<String, Entry>>,
) -> Result<BTreeMap<String, Entry>, EnvironmentError> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        // `join` with nothing would end in a slash, through which a link in the place of the root would be followed.
        let here = if folder.as_os_str().is_empty() { root.to_owned() } else { root.join(&folder) };
        let names = match list(&here) {
            Ok(names) => names,
            Err(error) => {
                files.insert(to_text(&folder), unseen(&here, error)?);
                continue;
            }
        };
        for name in names {
            let path = folder.join(name);
            let text = to_text(&path);
            let place = root.join(&path);
            let found = scan_entry(&place, &|size| may_match(expected, &text, size)).or_else(|e| unseen(&place, e))?;
            if found == Entry::Folder {
                folders.push(path);
            }
            files.insert(text, found);
        }
    }
    Ok(files)
}

/// Looks at one place, as [`scan`] does at all of a tree.
pub(super) fn look_at(path: &Path) -> Result<Entry, EnvironmentError> {
    scan_entry(path, &|_| true).or_else(|error| unseen(path, error))
}

/// Returns the names in a folder. A link to a folder isn't one.
fn list(folder: &Path) -> io::Result<Vec<OsString>> {
    if !folder.symlink_metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Returns whether a file of this size may be what is expected at `path`.
fn may_match(expected: Option<&BTreeMap<String, Entry>>, path: &str, size: u64) -> bool {
    let Some(expected) = expected else { return true };
    match expected.get(path) {
        Some(Entry::File { size: expected, .. }) => *expected == size,
        Some(Entry::Link { .. } | Entry::Folder | Entry::Other) | None => false,
    }
}

fn scan_entry(path: &Path, may_match: &dyn Fn(u64) -> bool) -> io::Result<Entry> {
    let metadata = path.symlink_metadata()?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return Ok(Entry::Link { target: to_text(&path.read_link()?) });
    }
    if kind.is_dir() {
        return Ok(Entry::Folder);
    }
    if !kind.is_file() || !may_match(metadata.len()) {
        return Ok(Entry::Other);
    }
    let (sha256, size, native) = read_whole(path)?;
    Ok(Entry::File { mode: metadata.permissions().mode() & 0o7777, size, sha256, native })
}

/// Returns the entry for what can't be looked at, if that isn't because this process or machine has run out of something.
fn unseen(path: &Path, error: io::Error) -> Result<Entry, EnvironmentError> {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    let ran_out = matches!(code, Some(Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE | Errno::NOMEM));
    if ran_out { Err(EnvironmentError::read(path)(error)) } else { Ok(Entry::Other) }
}

/// Returns the digest of a file's bytes, their number, and whether it is a native program or library.
pub(crate) fn digest_file(path: &Path) -> Result<(Digest, u64, bool), EnvironmentError> {
    read_whole(path).map_err(EnvironmentError::read(path))
}

fn read_whole(path: &Path) -> io::Result<(Digest, u64, bool)> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut hasher, mut size, mut native) = (Sha256::new(), 0_u64, false);
    loop {
        let length = file.read(&mut buffer)?;
        let bytes = buffer.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            return Ok((Digest::finish(hasher), size, native));
        }
        native |= size == 0 && bytes.starts_with(ELF_MAGIC);
        size += bytes.len() as u64;
        hasher.update(bytes);
    }
}

/// Returns how two looks at a tree differ, one line each, in the order of the paths.
pub(crate) fn differences(before: &BTreeMap<String, Entry>, after: &BTreeMap<String, Entry>) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, entry) in before {
        match after.get(path) {
            None => lines.push(format!("removed: {path}")),
            Some(found) if found != entry => lines.push(format!("changed: {path}")),
            Some(_) => {}
        }
    }
    lines.extend(after.keys().filter(|path| !before.contains_key(*path)).map(|path| format!("added: {path}")));
    lines
}
