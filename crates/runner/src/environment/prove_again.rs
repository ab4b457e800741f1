//! Proving what the cache holds again: every file against the record that was written when it was made.

use std::path::Path;

use super::EnvironmentError;
use super::cache::read_record;
use super::manifest::{Manifest, scan};
use super::venv::VenvRecord;
use crate::cache_entries::EntryKind;

/// Returns what of an environment or a virtual environment isn't as its record says, if something isn't.
pub(crate) fn prove_record(kind: EntryKind, folder: &Path) -> Result<Option<String>, EnvironmentError> {
    if kind == EntryKind::Venv {
        let record = read_record::<VenvRecord>(folder);
        return Ok(match record {
            Some(record) if record.is_unchanged() => None,
            Some(_) => Some("files of the virtual environment were changed, added or removed".to_owned()),
            None => Some("its record can't be read".to_owned()),
        });
    }
    let Some(manifest) = read_record::<Manifest>(folder) else {
        return Ok(Some("its record can't be read".to_owned()));
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
