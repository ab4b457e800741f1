//! Inputs that are on this machine: in folders of models, and in the cache of the hub's own library.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use isobench_schema::ids::{CommitId, Digest};
use isobench_schema::input::{FileHash, FoundInput, HubKind, HubReference, InputFile, InputOrigin, is_inside};

use super::hash;
use crate::environment::{EnvironmentError, PrepareContext, Stop};

/// The longest name of a revision in the cache.
const LONGEST_NAME: u64 = 200;
/// The file that lists the parts of large weights.
const INDEX: &str = "model.safetensors.index.json";
/// The largest such file that is read.
const LARGEST_INDEX: u64 = 64 << 20;

/// Finds a model in a folder that holds models as `OWNER/NAME`, if what is there is enough.
pub(super) fn in_folders(
    folders: &[PathBuf],
    reference: &HubReference,
    is_enough: &dyn Fn(&[InputFile]) -> bool,
    context: &PrepareContext<'_>,
) -> Result<Option<FoundInput>, Stop> {
    for folder in folders {
        let place = folder.join(reference.repository.as_str());
        if !place.is_dir() {
            continue;
        }
        let place = place.canonicalize().map_err(EnvironmentError::read(&place))?;
        // Their names tell whether they are enough, before gigabytes are hashed.
        let unknown = FileHash::Sha256(Digest::of(b""));
        let named = names(&place).map_err(EnvironmentError::read(&place))?.into_iter();
        let named = named.filter(|path| place.join(path).is_file());
        let mut files: Vec<InputFile> = named.map(|path| InputFile { path, bytes: 0, hash: unknown.clone() }).collect();
        if !is_enough(&files) || !is_whole(&place, &files) {
            continue;
        }
        for file in &mut files {
            context.check_cancelled()?;
            let path = place.join(&file.path);
            file.bytes = path.metadata().map_err(EnvironmentError::read(&path))?.len();
            file.hash = FileHash::Sha256(super::of_file(&path).map_err(EnvironmentError::read(&path))?);
        }
        files.sort();
        let folder = Some(place.to_string_lossy().into_owned());
        return Ok(Some(FoundInput::Found { commit: None, origin: InputOrigin::Folder, folder, files }));
    }
    Ok(None)
}

/// Finds a repository in the cache of the hub's library: the snapshot of a commit, or that which a branch points at.
///
/// The names of blobs there are the hub's hashes. They are taken at their word here, and verified before they are used.
pub(super) fn in_hub_cache(
    cache: &Path,
    reference: &HubReference,
    is_enough: &dyn Fn(&[InputFile]) -> bool,
    cancel: &AtomicBool,
) -> Result<Option<FoundInput>, EnvironmentError> {
    let folder = repository_folder(cache, reference);
    let revision = reference.revision.as_str();
    let commit = CommitId::new(revision).ok().or_else(|| branch(&folder, revision));
    let Some(commit) = commit else { return Ok(None) };
    let snapshot = folder.join("snapshots").join(commit.as_str());
    let Ok(found) = names(&snapshot) else { return Ok(None) };
    let mut files = Vec::new();
    for path in found {
        let file = snapshot.join(&path);
        // A link whose blob is gone, or that leads out of the cache, is no file of the snapshot.
        let Ok(place) = file.canonicalize() else { return Ok(None) };
        let bytes = place.metadata().map_err(EnvironmentError::read(&place))?.len();
        let name = place.file_name().and_then(|name| name.to_str()).and_then(FileHash::parse);
        let is_blob = place.parent().is_some_and(|parent| parent.ends_with("blobs"));
        let hash = match name.filter(|_| is_blob) {
            Some(hash) => hash,
            // Where the file system has no links, snapshots hold the files themselves.
            None => FileHash::Sha256(super::of_file(&place).map_err(EnvironmentError::read(&place))?),
        };
        if cancel.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(None);
        }
        files.push(InputFile { path, bytes, hash });
    }
    files.sort();
    let enough = is_enough(&files) && is_whole(&snapshot, &files);
    Ok(enough.then_some(FoundInput::Found { commit: Some(commit), origin: InputOrigin::HubCache, folder: None, files }))
}

/// Returns where the hub's cache may have a file of a commit.
pub(super) fn places(cache: &Path, reference: &HubReference, commit: &CommitId, file: &InputFile) -> [PathBuf; 2] {
    let folder = repository_folder(cache, reference);
    [folder.join("blobs").join(file.hash.as_str()), folder.join("snapshots").join(commit.as_str()).join(&file.path)]
}

/// Returns whether a file has its hash; what isn't there or can't be read has not. None if it was cancelled.
pub(super) fn is_it(path: &Path, file: &InputFile, cancel: &AtomicBool) -> Option<bool> {
    if !path.metadata().is_ok_and(|data| data.is_file() && data.len() == file.bytes) {
        return Some(false);
    }
    hash::has_hash(path, &file.hash, cancel).unwrap_or(Some(false))
}

fn repository_folder(cache: &Path, reference: &HubReference) -> PathBuf {
    let kinds = match reference.kind {
        HubKind::Model => "models",
        HubKind::Dataset => "datasets",
    };
    cache.join(format!("{kinds}--{}", reference.repository.as_str().replace('/', "--")))
}

/// Returns the commit that a branch or tag pointed at when it was fetched.
fn branch(folder: &Path, revision: &str) -> Option<CommitId> {
    let mut text = String::new();
    let file = File::open(folder.join("refs").join(revision)).ok()?;
    file.take(LONGEST_NAME).read_to_string(&mut text).ok()?;
    CommitId::new(text.trim()).ok()
}

/// Returns the paths of a folder's files, links followed; what isn't named as in a repository is left out.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner))? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let path = if inner.is_empty() { name.clone() } else { format!("{inner}/{name}") };
            // The hub's library keeps notes of its own in such folders.
            if !is_inside(&path) || name == ".cache" || name == ".git" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if !entry.path().is_dir() {
                // A link that leads nowhere is told too: what it stood for is missing.
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns whether every part that an index of weights names is there.
fn is_whole(folder: &Path, files: &[InputFile]) -> bool {
    let Ok(file) = File::open(folder.join(INDEX)) else { return true };
    let mut bytes = Vec::new();
    if file.take(LARGEST_INDEX).read_to_end(&mut bytes).is_err() {
        return false;
    }
    let Ok(index) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return false };
    let parts = index.get("weight_map").and_then(serde_json::Value::as_object);
    let parts: BTreeSet<&str> = parts.into_iter().flatten().filter_map(|(_, part)| part.as_str()).collect();
    parts.iter().all(|part| files.iter().any(|file| file.path == *part))
}
