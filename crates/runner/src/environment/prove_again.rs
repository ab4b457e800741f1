//! Proving what the cache holds again: every file against the record that was written when it was made. Each function returns
//! what isn't as its record says, if something isn't.

use std::path::Path;

use super::EnvironmentError;
use super::cache::read_record;
use super::image::ImageRecord;
use super::manifest::{Manifest, scan};
use super::native;
use super::venv::VenvRecord;

/// What is said of an entry whose record is damaged.
const UNREADABLE: &str = "its record can't be read";

/// Proves a virtual environment.
pub(crate) fn prove_venv(folder: &Path) -> Option<String> {
    let is_unchanged = read_record::<VenvRecord>(folder).map(|record| record.is_unchanged());
    changed(is_unchanged, "files of the virtual environment were changed, added or removed")
}

/// Proves a native build.
pub(crate) fn prove_native_build(folder: &Path) -> Option<String> {
    changed(native::is_unchanged(folder), "files that the build made were changed, added or removed")
}

/// Proves a package that was copied out of an image.
pub(crate) fn prove_image_package(folder: &Path) -> Option<String> {
    let is_unchanged = read_record::<ImageRecord>(folder).map(|record| record.is_unchanged());
    changed(is_unchanged, "files of the image's package were changed, added or removed")
}

fn changed(is_unchanged: Option<bool>, what: &str) -> Option<String> {
    match is_unchanged {
        Some(true) => None,
        Some(false) => Some(what.to_owned()),
        None => Some(UNREADABLE.to_owned()),
    }
}

/// Proves an environment.
pub(crate) fn prove_environment(folder: &Path) -> Result<Option<String>, EnvironmentError> {
    let Some(manifest) = read_record::<Manifest>(folder) else {
        return Ok(Some(UNREADABLE.to_owned()));
    };
    let tree = folder.join("tree");
    let found = scan(&tree)?;
    if found == manifest.files {
        return Ok(None);
    }
    let differs = |path: &&String| found.get(*path) != manifest.files.get(*path);
    let first = manifest.files.keys().chain(found.keys()).find(differs).cloned().unwrap_or_default();
    let count = manifest.files.keys().filter(differs).count()
        + found.keys().filter(|path| !manifest.files.contains_key(*path)).count();
    Ok(Some(format!("{count} files aren't what its manifest says, the first is `{first}`")))
}
