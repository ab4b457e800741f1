//! Room for images on the disk that the daemon keeps them on: what nobody uses is removed, first what no task that is left
//! needs.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::images::{ImagePart, room_for};

use super::record::{self, PulledImage};
use crate::cache_entries::{self, CachedEntry, EntryKind};
use crate::disk::free_bytes;
use crate::environment::cache::read_record;
use crate::environment::{EnvironmentError, ImageRecord};

/// The disk that a daemon keeps images on, with what is wanted on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageRoom<'a> {
    /// The cache.
    pub(super) cache: &'a Path,
    /// Where the daemon keeps images.
    pub(super) root: &'a Path,
    /// The floor.
    pub(super) floor_bytes: u64,
    /// The images that tasks need which are left.
    pub(super) later: &'a BTreeSet<String>,
    /// The layers of the image that is to come, if they are known.
    pub(super) layers: &'a [ImagePart],
}

impl ImageRoom<'_> {
    /// Returns the bytes of the layers that must be fetched: images share those that they begin with alike.
    pub(super) fn missing_bytes(&self) -> u64 {
        let there = record::there(self.cache);
        let shared = there.iter().map(|image| image.begins_with(self.layers)).max().unwrap_or(0);
        self.layers.iter().skip(shared).map(|layer| layer.bytes).sum()
    }

    /// Makes room for what must be fetched and is unpacked, above the floor.
    ///
    /// # Errors
    /// Returns [`EnvironmentError::NoRoom`] if there isn't enough, also without all that nobody uses.
    pub(super) fn make(&self) -> Result<(), EnvironmentError> {
        self.free_up(&|| room_for(self.missing_bytes()))
    }

    /// Keeps the floor free while an image comes. Returns whether it could.
    pub(super) fn keep_floor(&self) -> bool {
        match free_bytes(self.root) {
            Ok(free) if free >= self.floor_bytes => true,
            // A runtime may run on this thread, and what is removed asks the daemon in one of its own.
            Ok(_) => std::thread::scope(|scope| scope.spawn(|| self.free_up(&|| 0).is_ok()).join().unwrap_or(false)),
            Err(_) => true,
        }
    }

    fn free_up(&self, bytes: &dyn Fn() -> u64) -> Result<(), EnvironmentError> {
        let free = || free_bytes(self.root).map_err(EnvironmentError::read(self.root));
        let has_room = || Ok::<_, EnvironmentError>(free()? >= bytes().saturating_add(self.floor_bytes));
        if has_room()? {
            return Ok(());
        }
        for entry in self.candidates()? {
            if has_room()? {
                return Ok(());
            }
            cache_entries::remove(self.cache, &entry)?;
        }
        // What shares files with others frees nothing before those are gone, too.
        cache_entries::sweep(self.cache)?;
        if has_room()? {
            return Ok(());
        }
        let (needed, floor) = (bytes(), self.floor_bytes);
        Err(EnvironmentError::NoRoom { path: self.root.to_owned(), needed, free: free()?, floor })
    }

    /// Returns what can go from the disk, in this order: what nobody needs any more, then what shares nothing with the image
    /// that is to come; each the least recently used first.
    pub(super) fn candidates(&self) -> Result<Vec<CachedEntry>, EnvironmentError> {
        let mut entries = cache_entries::by_last_use(self.cache).map_err(EnvironmentError::read(self.cache))?;
        let device = |place: &Path| place.metadata().ok().map(|data| data.dev());
        let (here, cache) = (device(self.root), device(self.cache));
        let place = |entry: &CachedEntry| match entry.kind {
            EntryKind::Image => image(self.cache, entry).and_then(|image| device(&image.root?)),
            EntryKind::Environment
            | EntryKind::Venv
            | EntryKind::NativeBuild
            | EntryKind::ImagePackage
            | EntryKind::Input => cache,
        };
        entries.retain(|entry| here.is_some() && place(entry) == here);
        entries.sort_by_key(|entry| {
            let (id, shared) = match entry.kind {
                EntryKind::Image => image(self.cache, entry)
                    .map_or((None, 0), |image| (Some(image.id.clone()), image.begins_with(self.layers))),
                EntryKind::ImagePackage => {
                    (read_record::<ImageRecord>(&entry.folder(self.cache)).map(|record| record.image), 0)
                }
                EntryKind::Environment | EntryKind::Venv | EntryKind::NativeBuild | EntryKind::Input => (None, 0),
            };
            let is_later = id.is_some_and(|id| self.later.contains(&id));
            let is_other = !matches!(entry.kind, EntryKind::Image | EntryKind::ImagePackage);
            (is_later, shared > 0, is_other)
        });
        Ok(entries)
    }
}

fn image(cache: &Path, entry: &CachedEntry) -> Option<PulledImage> {
    let folder: PathBuf = entry.folder(cache);
    record::read(&folder)
}
