//! The content-addressed cache of environments, shared by runs and processes.
//!
//! An entry is `environments/ID/` with `tree/` and, written last and at once, `manifest.json`: a folder without one is what a
//! crash left and is never taken for an environment. Entries are made in their final place, because builds write
//! absolute paths into what they make, and under a lock per entry.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use isobench_schema::format::{Stored, from_slice, to_pretty};
use isobench_schema::ids::EnvironmentId;

use super::lock::FolderLock;
use super::manifest::Manifest;
use super::native;
use super::orphans;
use super::remove::discard;
use super::{EnvironmentError, PrepareContext, Prepared, Stop};

/// The file that makes an entry whole.
const RECORD: &str = "manifest.json";

/// An entry of the cache, locked.
#[derive(Debug)]
pub(super) struct CacheEntry {
    pub(super) folder: PathBuf,
    _lock: FolderLock,
}

impl CacheEntry {
    /// Locks the entry of an environment, waiting while another thread or process has it.
    pub(super) fn lock(id: &EnvironmentId, context: &PrepareContext<'_>) -> Result<Self, Stop> {
        let folder = entry_folder(context.cache, id);
        Ok(Self { _lock: FolderLock::take(&folder.with_extension("lock"), context)?, folder })
    }

    /// Returns the manifest if the entry is whole.
    pub(super) fn manifest(&self, id: &EnvironmentId) -> Option<Manifest> {
        read_record::<Manifest>(&self.folder).filter(|manifest| manifest.id == *id)
    }

    /// Returns the entry's folder, emptied of what a crash may have left.
    pub(super) fn start_anew(&self) -> Result<(), Stop> {
        orphans::end_below(&self.folder)?;
        discard(&self.folder)?;
        std::fs::create_dir_all(&self.folder).map_err(EnvironmentError::write(&self.folder))?;
        Ok(())
    }

    /// Makes the entry whole.
    pub(super) fn finish(&self, manifest: &Manifest) -> Result<(), EnvironmentError> {
        write_record(&self.folder, manifest)
    }
}

fn entry_folder(cache: &Path, id: &EnvironmentId) -> PathBuf {
    environments_folder(cache).join(id.as_str())
}

/// Returns the folder of the cache that holds arms' trees, by the ids of their environments.
pub(super) fn environments_folder(cache: &Path) -> PathBuf {
    cache.join("environments")
}

/// Reads the record that makes `folder` whole. What can't be read doesn't count: it is made again.
pub(crate) fn read_record<T: Stored>(folder: &Path) -> Option<T> {
    from_slice(&std::fs::read(folder.join(RECORD)).ok()?).ok()
}

/// Writes the record that makes `folder` whole, at once and durably.
pub(crate) fn write_record<T: Stored>(folder: &Path, record: &T) -> Result<(), EnvironmentError> {
    let place = folder.join(RECORD);
    let unfinished = folder.join("manifest.unfinished");
    let write = |text: &str| {
        let mut file = File::create(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&unfinished, &place)?;
        File::open(folder)?.sync_all()
    };
    write(&to_pretty(record)?).map_err(EnvironmentError::write(&place))
}

/// Removes an environment that can no longer be trusted from the cache; the next one to ask for it makes it again. If its
/// virtual environment or its native build was changed too, that one goes as well, and with it every environment that was made
/// from it.
///
/// # Errors
/// Returns an error if the files are still in their place. What can be moved away but not removed is no error: measured
/// code decides what it holds.
pub fn evict(prepared: &Prepared) -> Result<(), EnvironmentError> {
    if let Some(venv) = prepared.manifest.venv.as_ref().filter(|venv| !venv.is_unchanged()) {
        discard(&venv.folder)?;
    }
    if let Some(image) = prepared.manifest.image.as_ref().filter(|image| !image.is_unchanged()) {
        discard(&image.folder)?;
    }
    if let Some(native) = &prepared.manifest.native_build {
        native::evict_if_changed(native)?;
    }
    discard(&prepared.folder)
}
