//! What the cache holds: environments, what they are made of, and inputs, with their sizes and last uses; and removing it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::ids::Digest;
use serde::Serialize;

use crate::cache_use::{self, LastUse};
use crate::container::ImageRemoved;
use crate::environment::cache::read_record;
use crate::environment::remove::discard;
use crate::environment::{
    EnvironmentError, ImageRecord, Manifest, VenvRecord, image_packages_folder, native_folder, native_words,
    prove_environment, prove_image_package, prove_native_build, prove_venv,
};
use crate::inputs::{InputRecord, inputs_folder, prove_input};
use crate::run_images::record::{PulledImage, prove_pulled, pulled_images_folder, remove_from_daemon};

/// How the name of the list ends that tells which blobs an input needs which is being fetched.
pub(crate) const NEEDS: &str = "needs";

/// How old a part of a file must be before it is taken for abandoned.
const ABANDONED_MS: u64 = 7 * 24 * 3600 * 1000;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// The files of an arm.
    Environment,
    /// A virtual environment, which environments share.
    Venv,
    /// The native files of a build, which environments share.
    NativeBuild,
    /// A package that was copied out of an image, and what the image's Python says of itself.
    ImagePackage,
    /// An image that isobench had the daemon of containers fetch; its files are the daemon's.
    Image,
    /// A model, a tokenizer or a dataset's file.
    Input,
}

impl EntryKind {
    /// Every kind, in the order in which they are listed.
    const ALL: [Self; 6] =
        [Self::Environment, Self::Venv, Self::NativeBuild, Self::ImagePackage, Self::Image, Self::Input];

    /// Returns its name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Venv => "venv",
            Self::NativeBuild => "native-build",
            Self::ImagePackage => "image-package",
            Self::Image => "image",
            Self::Input => "input",
        }
    }

    fn folder(self, cache: &Path) -> PathBuf {
        match self {
            Self::Environment => cache.join("environments"),
            Self::Venv => cache.join("venvs"),
            Self::NativeBuild => native_folder(cache),
            Self::ImagePackage => image_packages_folder(cache),
            Self::Image => pulled_images_folder(cache),
            Self::Input => inputs_folder(cache).join("sets"),
        }
    }
}

/// An entry of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CachedEntry {
    /// What it is.
    pub kind: EntryKind,
    /// Its name in the cache: a digest.
    pub id: String,
    /// What is in it, in a few words.
    pub what: String,
    /// The bytes that it takes on the disk. Entries share files, so that the sum is more than the cache takes.
    pub bytes: u64,
    /// Its last use, if one was noted.
    pub last_use: Option<LastUse>,
    /// When it was used last, or made, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether it was finished; else it is what a crash left.
    pub is_whole: bool,
    /// Whether somebody uses it now.
    pub is_used: bool,
}

impl CachedEntry {
    /// Returns its folder.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        self.kind.folder(cache).join(&self.id)
    }
}

/// Lists what the cache holds, by kind and name.
///
/// # Errors
/// Returns the operating system's error if a folder of it can't be listed.
pub fn list(cache: &Path) -> io::Result<Vec<CachedEntry>> {
    let mut entries = Vec::new();
    for kind in EntryKind::ALL {
        let folder = kind.folder(cache);
        let found = match fs::read_dir(&folder) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in found {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Locks and what is on its way out aren't named so.
            if entry.file_type()?.is_dir() && Digest::new(name.as_str()).is_ok() {
                entries.push(look(kind, name, &entry.path(), cache));
            }
        }
    }
    entries.sort_by(|one, other| (one.kind, &one.id).cmp(&(other.kind, &other.id)));
    Ok(entries)
}

/// Lists what nobody uses, the least recently used first.
pub(crate) fn by_last_use(cache: &Path) -> io::Result<Vec<CachedEntry>> {
    let mut entries = list(cache)?;
    entries.retain(|entry| !entry.is_used);
    entries.sort_by_key(|entry| (entry.is_whole, entry.at_ms));
    Ok(entries)
}

fn look(kind: EntryKind, id: String, folder: &Path, cache: &Path) -> CachedEntry {
    let short = |text: &str| text.chars().take(12).collect::<String>();
    let what = match kind {
        EntryKind::Environment => read_record::<Manifest>(folder).map(|manifest| {
            let files = manifest.files.len();
            format!("commit {}, {files} files", manifest.commit.short())
        }),
        EntryKind::Venv => read_record::<VenvRecord>(folder)
            .map(|record| format!("Python {}, {} packages", record.python_version, record.packages.len())),
        EntryKind::NativeBuild => native_words(folder),
        EntryKind::ImagePackage => read_record::<ImageRecord>(folder).map(|record| record.words()),
        EntryKind::Image => read_record::<PulledImage>(folder).map(|record| record.words()),
        EntryKind::Input => read_record::<InputRecord>(folder).map(|record| {
            let commit = record.commit.as_deref().map(|commit| format!("@{}", short(commit))).unwrap_or_default();
            format!("{} {}{commit}, {} files", record.source.kind, record.source.repository, record.files.len())
        }),
    };
    let last_use = cache_use::last_use(folder);
    let made_ms = fs::metadata(folder).ok().and_then(|data| u64::try_from(data.mtime().saturating_mul(1000)).ok());
    let bytes = match kind {
        EntryKind::Environment | EntryKind::Venv | EntryKind::NativeBuild | EntryKind::ImagePackage => {
            taken(&[folder.to_owned()])
        }
        EntryKind::Image => read_record::<PulledImage>(folder).map_or(0, |record| record.bytes),
        EntryKind::Input => taken(&blobs_of(folder, cache)),
    };
    CachedEntry {
        kind,
        id,
        is_whole: what.is_some(),
        what: what.unwrap_or_else(|| "unfinished".to_owned()),
        bytes,
        at_ms: last_use.as_ref().map(|last| last.at_ms).or(made_ms).unwrap_or(0),
        last_use,
        is_used: matches!(cache_use::unused(folder), Ok(None)),
    }
}

/// Returns the blobs of the cache that an input's links lead to.
fn blobs_of(folder: &Path, cache: &Path) -> Vec<PathBuf> {
    let blobs = inputs_folder(cache).join("blobs");
    let record = read_record::<InputRecord>(folder);
    let stamps = record.map(|record| record.stamps).unwrap_or_default();
    stamps.into_values().map(|stamp| stamp.place).filter(|place| place.starts_with(&blobs)).collect()
}

/// Returns the bytes that files and folders take on the disk, each file once however many names it has.
fn taken(roots: &[PathBuf]) -> u64 {
    let mut seen = BTreeSet::new();
    let mut bytes = 0_u64;
    let mut left = roots.to_vec();
    while let Some(path) = left.pop() {
        let Ok(data) = path.symlink_metadata() else { continue };
        if seen.insert((data.dev(), data.ino())) {
            bytes = bytes.saturating_add(data.blocks().saturating_mul(512));
        }
        if data.is_dir() {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}

/// What became of an entry that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Gone,
    /// Somebody uses it, or is making it.
    InUse,
}

/// Removes an entry, unless somebody uses it.
///
/// # Errors
/// Returns an error if its files are still in their place.
pub fn remove(cache: &Path, entry: &CachedEntry) -> Result<Removed, EnvironmentError> {
    let folder = entry.folder(cache);
    let failed = EnvironmentError::write(&folder);
    let making = OpenOptions::new().write(true).create(true).truncate(false).open(folder.with_extension("lock"));
    let making = making.map_err(&failed)?;
    if !is_free(&making).map_err(&failed)? {
        return Ok(Removed::InUse);
    }
    let Some(_unused) = cache_use::unused(&folder).map_err(&failed)? else { return Ok(Removed::InUse) };
    if entry.kind == EntryKind::Image && remove_from_daemon(&folder) == ImageRemoved::Used {
        return Ok(Removed::InUse);
    }
    discard(&folder)?;
    // Whoever waits for the lock has it open, and makes the entry anew.
    Ok(Removed::Gone)
}

fn is_free(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(fs::TryLockError::WouldBlock) => Ok(false),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Removes files of inputs that no entry needs: whole ones, and parts that are a week old.
///
/// # Errors
/// Returns an error if the folder can't be listed.
pub fn sweep(cache: &Path) -> Result<u64, EnvironmentError> {
    let folder = inputs_folder(cache);
    let blobs = folder.join("blobs");
    let sets = folder.join("sets");
    let mut needed = BTreeSet::new();
    for entry in fs::read_dir(&sets).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none() {
            needed.extend(blobs_of(&path, cache));
        }
        // An input that is being fetched needs blobs that no record names yet.
        if path.extension().is_some_and(|end| end == NEEDS) {
            let is_made = File::open(path.with_extension("lock")).is_ok_and(|file| file.try_lock_shared().is_err());
            if is_made {
                let names = fs::read_to_string(&path).map_err(EnvironmentError::read(&path))?;
                needed.extend(names.lines().map(|name| blobs.join(name)));
            } else {
                // Whoever wrote it was killed.
                let _ = fs::remove_file(&path);
            }
        }
    }
    let mut freed = 0_u64;
    for entry in fs::read_dir(&blobs).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(data) = path.symlink_metadata() else { continue };
        let end = path.extension().and_then(|end| end.to_str());
        let changed_ms = u64::try_from(data.mtime().saturating_mul(1000)).unwrap_or(0);
        let is_abandoned = cache_use::now_ms().saturating_sub(changed_ms) > ABANDONED_MS;
        let goes = match end {
            None => !needed.contains(&path),
            Some("part") => is_abandoned,
            Some(_) => false,
        };
        if goes && fs::remove_file(&path).is_ok() {
            freed = freed.saturating_add(data.blocks().saturating_mul(512));
        }
    }
    Ok(freed)
}

/// Proves an entry again: every file against its record. Returns what is wrong, if something is.
///
/// # Errors
/// Returns an error if its files can't be read.
pub fn prove(cache: &Path, entry: &CachedEntry) -> Result<Option<String>, EnvironmentError> {
    let folder = entry.folder(cache);
    if !entry.is_whole {
        return Ok(Some("it was never finished".to_owned()));
    }
    match entry.kind {
        EntryKind::Environment => prove_environment(&folder),
        EntryKind::Venv => Ok(prove_venv(&folder)),
        EntryKind::NativeBuild => Ok(prove_native_build(&folder)),
        EntryKind::ImagePackage => Ok(prove_image_package(&folder)),
        EntryKind::Image => Ok(prove_pulled(&folder)),
        EntryKind::Input => Ok(prove_input(&folder)),
    }
}
