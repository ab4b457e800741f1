//! Native builds: the files of a revision that are compiled, made once for each native tree and laid into the trees of all
//! arms whose native tree is equal.
//!
//! A build sees the native tree and nothing else of the revision, so that equal native trees can't be built differently.
//! It lies in the cache under a key of everything that decides what it makes, as `native/KEY/` with `files/`, `build.log`
//! and, written last and at once, `manifest.json`: a folder without one is what a crash left, and is made anew.

mod elf;
mod objects;
mod produced;
pub(crate) mod tools;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use isobench_schema::check::Check;
use isobench_schema::environment::{NativeBuild, Toolkit};
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::format::Stored;
use isobench_schema::ids::Digest;
use serde::{Deserialize, Serialize};

use super::build::{self, Commands};
use super::cache::{read_record, write_record};
use super::lock::FolderLock;
use super::manifest::{Entry, scan, scan_again};
use super::orphans;
use super::overlay::is_compiled;
use super::remove::{discard, remove_tree};
use super::safe_path::to_text;
use super::venv::{Interpreter, VenvRecord};
use super::{EnvironmentError, PrepareContext, Stop, share, sync};
use crate::cache_use::UseLock;
pub(super) use objects::{Author, Objects};
use tree::NativeTree;

/// The files that a build made, in its folder.
const FILES: &str = "files";
/// The name that an image of tools has among tools.
const TOOLKIT: &str = "image";
/// What its commands printed, in its folder.
const LOG: &str = "build.log";

/// What a manifest says of the native build that its tree was laid from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeNote {
    /// The key of the build.
    pub key: Digest,
    /// The digest of the native tree that was built.
    pub tree: Digest,
    /// The build tools that were there.
    pub tools: BTreeMap<String, String>,
    /// The build's folder in the cache.
    pub folder: PathBuf,
    /// The digest of each file that came of it, by path.
    pub files: BTreeMap<String, Digest>,
}

impl NativeNote {
    /// Returns whether a build today would be made with the same tools.
    pub(super) fn is_of_these_tools(&self, toolkit: Option<&Toolkit>) -> bool {
        self.tools == tools_of(toolkit)
    }
}

/// Returns what a native build is made with: the tools of this machine, or the image that holds others.
fn tools_of(toolkit: Option<&Toolkit>) -> BTreeMap<String, String> {
    let Some(toolkit) = toolkit else { return tools::present() };
    let network = if toolkit.network { ", with a network" } else { "" };
    BTreeMap::from([(TOOLKIT.to_owned(), format!("{}{network}", toolkit.image.id))])
}

/// A native build in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NativeRecord {
    key: Digest,
    tree: Digest,
    tools: BTreeMap<String, String>,
    jobs: u32,
    seconds: u64,
    files: BTreeMap<String, Entry>,
}

impl Stored for NativeRecord {
    const NAME: &'static str = "native-build";
    const VERSION: u32 = 1;
}

/// A whole native build, which stays as it is while this is held.
#[derive(Debug)]
pub(super) struct Native {
    folder: PathBuf,
    record: NativeRecord,
    _lock: FolderLock,
    _used: UseLock,
}

/// A patch of a file that is compiled but belongs to no native tree would have no effect, which must never pass in silence.
pub(super) fn check_patch(native: &NativeBuild, patched: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let without_effect = |path: &&PathBuf| is_compiled(path) && !tree::holds(&native.paths, path);
    let lost: Vec<String> = patched.iter().filter(without_effect).map(|path| to_text(path)).collect();
    let Some(first) = lost.first() else { return Ok(()) };
    let message = format!(
        "the patch changes `{first}`, which must be compiled and isn't in the native tree; add it to \
         `environment.native.paths`"
    );
    let lines = lost.iter().map(|path| EvidenceLine::new("patch", None, path));
    let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message);
    Err(failure.breaking(Check::StaticProof).with_evidence(lines))
}

/// Returns whose native tree an arm's is.
pub(super) fn author(native: &NativeBuild, patched: &BTreeSet<PathBuf>) -> Author {
    let is_changed = patched.iter().any(|path| tree::holds(&native.paths, path));
    if is_changed { Author::Patch } else { Author::Revision }
}

/// Takes the build of the native tree that `source` holds from the cache, or makes it there.
pub(super) fn ensure(
    (native, toolkit): (&NativeBuild, Option<&Toolkit>),
    (source, author): (&Path, Author),
    with: (Option<&Interpreter>, Option<&VenvRecord>),
    context: &PrepareContext<'_>,
) -> Result<Native, Stop> {
    let tree = NativeTree::read(source, &native.paths)?;
    let (tools, digest) = (tools_of(toolkit), tree.digest()?);
    let (python, venv) = with;
    let key = Digest::of_json(&serde_json::json!({
        "tree": digest,
        "commands": native.commands,
        "environment": native.environment,
        "outputs": native.outputs,
        "tools": tools,
        "python": python.map(|python| (&python.program, &python.version)),
        "packages": venv.map(|venv| &venv.packages),
    }))?;
    let timeout = native.timeout_s.map_or(context.timeout, |seconds| Duration::from_secs(seconds.into()));
    let context = &PrepareContext { timeout, ..*context };
    let folder = native_folder(context.cache).join(key.as_str());
    // Held before it is looked at, so that no prune takes it in between.
    let used = UseLock::take(&folder).map_err(EnvironmentError::write(&folder))?;
    let lock = FolderLock::take(&folder.with_extension("lock"), context)?;
    let known = read_record::<NativeRecord>(&folder).filter(|record| record.key == key && is_whole(&folder, record));
    let record = if let Some(record) = known {
        note(&folder, &record, context)?;
        record
    } else {
        orphans::end_below(&folder)?;
        discard(&folder)?;
        let record = NativeRecord { key, tree: digest, tools, jobs: 0, seconds: 0, files: BTreeMap::new() };
        let making = Making { native, toolkit, source, author, tree: &tree, folder: &folder, with };
        let made = making.make(record, context);
        if made.is_err() {
            discard(&folder)?;
        }
        made?
    };
    Ok(Native { folder, record, _lock: lock, _used: used })
}

/// Returns the folder of the cache that holds native builds, by key.
pub(crate) fn native_folder(cache: &Path) -> PathBuf {
    cache.join("native")
}

/// Returns what a native build of the cache is, in a few words, if it was finished.
pub(crate) fn native_words(folder: &Path) -> Option<String> {
    let record = read_record::<NativeRecord>(folder)?;
    let files = record.files.values().filter(|entry| !matches!(entry, Entry::Folder)).count();
    Some(format!("native tree {}, {files} files, built in {} s", record.tree.short(), record.seconds))
}

/// Returns whether a native build of the cache is as it was made; `None` if its record can't be read.
pub(super) fn is_unchanged(folder: &Path) -> Option<bool> {
    read_record::<NativeRecord>(folder).map(|record| is_whole(folder, &record))
}

fn is_whole(folder: &Path, record: &NativeRecord) -> bool {
    scan_again(&folder.join(FILES), &record.files).is_ok_and(|files| files == record.files)
}

/// Says in the log of an arm that shares a build where that comes from.
fn note(folder: &Path, record: &NativeRecord, context: &PrepareContext<'_>) -> Result<(), EnvironmentError> {
    let line = format!(
        "the native files are those of the build {}, made in {} s with {} jobs; its log is `{}`\n",
        record.key.short(),
        record.seconds,
        record.jobs,
        folder.join(LOG).display()
    );
    let append = |log: &Path| fs::OpenOptions::new().create(true).append(true).open(log)?.write_all(line.as_bytes());
    append(context.log).map_err(EnvironmentError::write(context.log))
}

/// A build that is to be made.
struct Making<'a> {
    native: &'a NativeBuild,
    toolkit: Option<&'a Toolkit>,
    source: &'a Path,
    author: Author,
    tree: &'a NativeTree,
    folder: &'a Path,
    with: (Option<&'a Interpreter>, Option<&'a VenvRecord>),
}

impl Making<'_> {
    fn make(&self, mut record: NativeRecord, context: &PrepareContext<'_>) -> Result<NativeRecord, Stop> {
        let Self { native, folder, .. } = self;
        let (place, files) = (folder.join("tree"), folder.join(FILES));
        fs::create_dir_all(&place).map_err(EnvironmentError::write(&place))?;
        self.tree.copy(self.source, &place)?;
        produced::check_absent(&place, &native.outputs)?;
        if let Some(steps) = context.steps {
            steps.native_build_begins().map_err(EnvironmentError::Told)?;
        }
        let objects = Objects::begin(folder, &native.commands, context)?;
        let mut variables = objects.variables(&place);
        variables.extend(native.environment.clone());
        record.jobs = tools::jobs(native.memory_per_job_mib);
        let logged = fs::metadata(context.log).map_or(0, |metadata| metadata.len());
        let (started, begun) = (SystemTime::now(), Instant::now());
        let commands = Commands {
            lists: &native.commands,
            variables: &variables,
            tree: &place,
            objects: Some(objects.folder()),
            memory_per_job_mib: native.memory_per_job_mib,
            jobs: record.jobs,
            toolkit: self.toolkit,
        };
        build::run_all(&commands, self.with, context)?;
        let made = produced::prove(&place, &native.outputs, started)?;
        record.seconds = begun.elapsed().as_secs();
        for path in made {
            let (from, to) = (place.join(&path), files.join(&path));
            let parent = to.parent().unwrap_or(&files);
            fs::create_dir_all(parent).map_err(EnvironmentError::write(parent))?;
            fs::rename(&from, &to).map_err(EnvironmentError::write(&to))?;
        }
        // What a build leaves beside its files is large, and what needs it at run time has named too few outputs.
        remove_tree(&place).map_err(EnvironmentError::write(&place))?;
        objects.end(self.author)?;
        let log = folder.join(LOG);
        copy_from(context.log, logged, &log).map_err(EnvironmentError::write(&log))?;
        record.files = scan(&files)?;
        sync(folder).map_err(EnvironmentError::write(folder))?;
        write_record(folder, &record)?;
        Ok(record)
    }
}

/// Copies what was written to a log since it had this length.
fn copy_from(log: &Path, since: u64, to: &Path) -> io::Result<()> {
    let mut from = match fs::File::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    from.seek(io::SeekFrom::Start(since))?;
    let length = from.metadata()?.len().saturating_sub(since);
    io::copy(&mut from.take(length), &mut fs::File::create(to)?).map(|_| ())
}

impl Native {
    /// Returns what a manifest says of it.
    pub(super) fn note(&self) -> NativeNote {
        let file = |(path, entry): (&String, &Entry)| match entry {
            Entry::File { sha256, .. } => Some((path.clone(), sha256.clone())),
            Entry::Folder | Entry::Link { .. } | Entry::Other => None,
        };
        NativeNote {
            key: self.record.key.clone(),
            tree: self.record.tree.clone(),
            tools: self.record.tools.clone(),
            folder: self.folder.clone(),
            files: self.record.files.iter().filter_map(file).collect(),
        }
    }

    /// Lays its files into an arm's tree, where none of them may stand yet.
    pub(super) fn lay(&self, tree: &Path) -> Result<(), Stop> {
        let files = self.folder.join(FILES);
        let root = tree.canonicalize().map_err(EnvironmentError::read(tree))?;
        for path in self.note().files.keys() {
            let (from, to) = (files.join(path), tree.join(path));
            let parent = to.parent().unwrap_or(tree);
            fs::create_dir_all(parent).map_err(EnvironmentError::write(parent))?;
            let stands = to.symlink_metadata().is_ok();
            let leaves = !parent.canonicalize().map_err(EnvironmentError::read(parent))?.starts_with(&root);
            if stands || leaves {
                let why =
                    if stands { "the revision holds" } else { "a link of the revision leads away from the place of" };
                let message = format!("{why} `{path}`, which its native build makes");
                return Err(Failure::new(FailureStage::Build, FailureClass::BuildFailed, message).into());
            }
            share::share(&from, &to).map_err(EnvironmentError::write(&to))?;
        }
        Ok(())
    }

    /// Checks that the files stand in an arm's tree as they were built: its other build commands may have changed them.
    pub(super) fn check_laid(&self, files: &BTreeMap<String, Entry>) -> Result<(), Failure> {
        let is_kept = |(path, built): &(&String, &Entry)| files.get(*path) == Some(*built);
        let lost: Vec<&String> = self.record.files.iter().filter(|file| !is_kept(file)).map(|(path, _)| path).collect();
        let Some(first) = lost.first() else { return Ok(()) };
        let message = format!("`{first}` isn't as the native build made it");
        let lines = lost.iter().map(|path| EvidenceLine::new("tree", None, path));
        let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message);
        Err(failure.breaking(Check::StaticProof).with_evidence(lines))
    }
}

/// Removes a native build from the cache if its files were changed since: trees may share their bytes.
pub(super) fn evict_if_changed(note: &NativeNote) -> Result<(), EnvironmentError> {
    if is_unchanged(&note.folder) == Some(true) { Ok(()) } else { discard(&note.folder) }
}
