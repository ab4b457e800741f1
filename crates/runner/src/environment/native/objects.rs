//! What compilers have made in earlier native builds, so that a build of a few changed files compiles these alone.
//!
//! A build works on a copy of what an earlier one has left, in a folder of its own. What is left is kept beside its files if
//! nothing of a patch was in the tree: a stranger's build may read what a revision's has made, and nobody reads what a stranger's
//! has.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::cache::read_record;
use super::super::remove::remove_tree;
use super::super::{EnvironmentError, PrepareContext, Stop};
use super::{NativeRecord, native_folder};
use crate::cache_use::UseLock;

/// The folder of objects beside a build's files.
const OBJECTS: &str = "objects";
/// The most that they may take. The compilers' caches keep to it themselves.
const MOST: &str = "4G";

/// Whose native tree is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Author {
    /// The revision's own, with nothing of a patch in it.
    Revision,
    /// One that a patch has changed.
    Patch,
}

/// The objects of a build.
#[derive(Debug)]
pub(super) struct Objects {
    folder: PathBuf,
}

impl Objects {
    /// Makes the folder of objects for the build in `build`, with a copy of what the latest build of this cache has kept.
    pub(super) fn begin(build: &Path, context: &PrepareContext<'_>) -> Result<Self, Stop> {
        let folder = build.join(OBJECTS);
        fs::create_dir_all(&folder).map_err(EnvironmentError::write(&folder))?;
        if let Some((kept, _used)) = latest(context.cache)? {
            // Never a second name of the same bytes: what builds here may write into them.
            copy(&kept, &folder, context)?;
        }
        Ok(Self { folder })
    }

    /// Returns the folder, which the build may write.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the variables by which `ccache` and `sccache` find it; both are used by build commands that ask for them, as
    /// vLLM's do where they are installed.
    pub(super) fn variables(&self, tree: &Path) -> BTreeMap<String, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        [
            ("CCACHE_DIR", text(&self.folder.join("ccache"))),
            ("CCACHE_MAXSIZE", MOST.to_owned()),
            // Each build has a tree at a place of its own.
            ("CCACHE_BASEDIR", text(tree)),
            ("CCACHE_NOHASHDIR", "1".to_owned()),
            ("SCCACHE_DIR", text(&self.folder.join("sccache"))),
            ("SCCACHE_CACHE_SIZE", MOST.to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// Keeps the objects for later builds, or removes them.
    pub(super) fn end(self, author: Author) -> Result<(), EnvironmentError> {
        let is_empty = fs::read_dir(&self.folder).map_err(EnvironmentError::read(&self.folder))?.next().is_none();
        if author == Author::Patch || is_empty {
            remove_tree(&self.folder).map_err(EnvironmentError::write(&self.folder))?;
        }
        Ok(())
    }
}

/// Finds the objects of the latest finished build that has kept some, held so that no prune takes them.
fn latest(cache: &Path) -> Result<Option<(PathBuf, UseLock)>, EnvironmentError> {
    let mut found: Option<(SystemTime, PathBuf)> = None;
    for entry in fs::read_dir(native_folder(cache)).into_iter().flatten().flatten() {
        let Ok(changed) = fs::symlink_metadata(entry.path().join(OBJECTS)).and_then(|found| found.modified()) else {
            continue;
        };
        if found.as_ref().is_none_or(|(latest, _)| changed > *latest)
            && read_record::<NativeRecord>(&entry.path()).is_some()
        {
            found = Some((changed, entry.path()));
        }
    }
    let Some((_, build)) = found else { return Ok(None) };
    let used = UseLock::take(&build).map_err(EnvironmentError::write(&build))?;
    let objects = build.join(OBJECTS);
    let is_there = fs::symlink_metadata(&objects).is_ok_and(|found| found.is_dir());
    Ok(is_there.then_some((objects, used)))
}

/// Copies files and folders, and nothing else.
fn copy(from: &Path, to: &Path, context: &PrepareContext<'_>) -> Result<(), Stop> {
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        context.check_cancelled()?;
        fs::create_dir_all(&to).map_err(EnvironmentError::write(&to))?;
        for entry in fs::read_dir(&from).map_err(EnvironmentError::read(&from))? {
            let entry = entry.map_err(EnvironmentError::read(&from))?;
            let (kind, target) =
                (entry.file_type().map_err(EnvironmentError::read(&from))?, to.join(entry.file_name()));
            if kind.is_dir() {
                folders.push((entry.path(), target));
            } else if kind.is_file() {
                copy_file(&entry.path(), &target).map_err(EnvironmentError::write(&target))?;
            }
        }
    }
    Ok(())
}

/// Copies a file with the time of its change, by which the oldest objects go first.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let modified = fs::metadata(from)?.modified()?;
    fs::File::options().write(true).open(to)?.set_modified(modified)
}
