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

use isobench_schema::ids::Digest;

use super::super::cache::{environments_folder, read_record};
use super::super::manifest::Manifest;
use super::super::remove::remove_tree;
use super::super::{EnvironmentError, PrepareContext, Stop};
use super::{NativeRecord, native_folder};
use crate::cache_use::UseLock;

/// The folder of objects beside a build's files.
const OBJECTS: &str = "objects";
/// The file in it that names the commands which made them.
const COMMANDS: &str = "commands";
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
pub(in super::super) struct Objects {
    folder: PathBuf,
}

impl Objects {
    /// Makes the folder of objects for the build in `build`, with a copy of what the latest build of this cache by the same
    /// commands has kept.
    pub(in super::super) fn begin(
        build: &Path,
        commands: &[Vec<String>],
        context: &PrepareContext<'_>,
    ) -> Result<Self, Stop> {
        let folder = build.join(OBJECTS);
        fs::create_dir_all(&folder).map_err(EnvironmentError::write(&folder))?;
        let commands = Digest::of_json(&commands)?;
        if let Some((kept, _used)) = latest(context.cache, &commands)? {
            // Never a second name of the same bytes: what builds here may write into them.
            copy(&kept, &folder, context)?;
        }
        let named = folder.join(COMMANDS);
        fs::write(&named, commands.as_str()).map_err(EnvironmentError::write(&named))?;
        Ok(Self { folder })
    }

    /// Returns the folder, which the build may write.
    pub(in super::super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the variables by which `ccache` and `sccache` find it; both are used by build commands that ask for them, as
    /// vLLM's do where they are installed.
    pub(in super::super) fn variables(&self, tree: &Path) -> BTreeMap<String, String> {
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
    pub(in super::super) fn end(self, author: Author) -> Result<(), EnvironmentError> {
        let held = fs::read_dir(&self.folder).map_err(EnvironmentError::read(&self.folder))?;
        let is_empty = held.flatten().all(|entry| entry.file_name() == COMMANDS);
        if author == Author::Patch || is_empty {
            remove_tree(&self.folder).map_err(EnvironmentError::write(&self.folder))?;
        }
        Ok(())
    }
}

/// Finds the objects of the latest finished build by these commands that has kept some, held so that no prune takes them.
fn latest(cache: &Path, commands: &Digest) -> Result<Option<(PathBuf, UseLock)>, EnvironmentError> {
    let is_native = |build: &Path| read_record::<NativeRecord>(build).is_some();
    let is_tree = |build: &Path| read_record::<Manifest>(build).is_some();
    let natives = finished(&native_folder(cache), commands, &is_native);
    let trees = finished(&environments_folder(cache), commands, &is_tree);
    let latest = natives.into_iter().chain(trees).max_by_key(|(changed, _)| *changed);
    let Some((_, build)) = latest else { return Ok(None) };
    let used = UseLock::take(&build).map_err(EnvironmentError::write(&build))?;
    let objects = build.join(OBJECTS);
    let is_there = fs::symlink_metadata(&objects).is_ok_and(|found| found.is_dir());
    Ok(is_there.then_some((objects, used)))
}

/// Returns the finished builds of a folder whose commands have left objects, with when that was.
fn finished(folder: &Path, commands: &Digest, is_finished: &dyn Fn(&Path) -> bool) -> Vec<(SystemTime, PathBuf)> {
    let changed = |build: &Path| {
        let named = build.join(OBJECTS).join(COMMANDS);
        let is_of = fs::read_to_string(&named).is_ok_and(|text| text == commands.as_str());
        fs::metadata(&named).ok().filter(|_| is_of)?.modified().ok()
    };
    let builds = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    builds.filter(|build| is_finished(build)).filter_map(|build| Some((changed(&build)?, build))).collect()
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
