//! Inputs in the content-addressed cache: a folder of links to verified files, held as long as it is used.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use isobench_schema::failure::Failure;
use isobench_schema::format::Stored;
use isobench_schema::ids::Digest;
use isobench_schema::input::{HubReference, InputFile, PlannedInput};
use isobench_schema::units::size_text;
use serde::{Deserialize, Serialize};

use super::fetch::{self, Fetch};
use super::here;
use super::hub::Hub;
use crate::cache_entries::NEEDS;
use crate::cache_use::UseLock;
use crate::disk::Room;
use crate::environment::cache::{read_record, write_record};
use crate::environment::lock::FolderLock;
use crate::environment::remove::discard;
use crate::environment::{EnvironmentError, PrepareContext, Stop, split};

/// An input on this machine. While it lives, no prune takes it.
#[derive(Debug, Clone)]
pub struct Held {
    /// The folder that holds its files.
    pub folder: PathBuf,
    used: UseLock,
}

/// The record of an input in the cache: it is written last, so that a folder without it is what a crash left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputRecord {
    /// The repository that was asked for first.
    pub source: HubReference,
    /// The commit, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its files.
    pub files: Vec<InputFile>,
    /// Where each file is and what the file system told of it when its hash was found to be right, by path.
    pub stamps: BTreeMap<String, Stamp>,
}

impl Stored for InputRecord {
    const NAME: &'static str = "input";
    const VERSION: u32 = 1;
}

/// What the file system tells of a file that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    /// Where it is.
    pub place: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Its number in the file system.
    pub inode: u64,
}

impl Stamp {
    fn of(place: &Path) -> std::io::Result<Self> {
        let data = place.metadata()?;
        let modified_ns = data.mtime().saturating_mul(1_000_000_000).saturating_add(data.mtime_nsec());
        Ok(Self { place: place.to_owned(), bytes: data.len(), modified_ns, inode: data.ino() })
    }

    fn holds(&self) -> bool {
        Self::of(&self.place).is_ok_and(|now| now == *self)
    }
}

/// Tells how far an input has come: a sentence about it.
pub type Told<'a> = dyn FnMut(&str) + 'a;

/// Returns the folder of inputs in a cache.
pub(crate) fn inputs_folder(cache: &Path) -> PathBuf {
    cache.join("inputs")
}

impl Held {
    /// Notes that a run uses it.
    pub(crate) fn note_use(&self, run: &str) {
        self.used.note(run);
    }
}

impl Hub {
    /// Puts a planned input into the cache, or takes it from there, and holds it until this hub is dropped.
    ///
    /// # Errors
    /// The outer error is this machine's, such as a full disk; the inner failure says why the input can't be had. It isn't
    /// tried again by the same hub.
    pub fn ensure(
        &self,
        input: &PlannedInput,
        context: &PrepareContext<'_>,
        told: &mut Told<'_>,
    ) -> Result<Result<Held, Failure>, EnvironmentError> {
        if let Some(held) = self.held.lock().unwrap_or_else(PoisonError::into_inner).get(&input.digest) {
            return Ok(Ok(held.clone()));
        }
        if let Some(failure) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).get(&input.digest) {
            return Ok(Err(failure.clone()));
        }
        let result = split(self.try_ensure(input, context, told))?;
        match &result {
            Ok(held) => {
                self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(input.digest.clone(), held.clone());
            }
            Err(failure) => {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.insert(input.digest.clone(), failure.clone());
            }
        }
        Ok(result)
    }

    /// Returns how many bytes of an input aren't in the cache yet.
    pub fn missing_bytes(&self, input: &PlannedInput, cache: &Path) -> u64 {
        let folder = inputs_folder(cache);
        if read_record::<InputRecord>(&entry(&folder, &input.digest)).is_some() {
            return 0;
        }
        let is_here = |file: &&InputFile| {
            let mut places = self.places(input, file);
            places.push(folder.join("blobs").join(file.hash.as_str()));
            places.iter().any(|place| place.metadata().is_ok_and(|data| data.len() == file.bytes))
        };
        input.files.iter().filter(|file| !is_here(file)).fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Returns where a file may be on this machine, besides the cache.
    fn places(&self, input: &PlannedInput, file: &InputFile) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = input.folder.iter().map(|folder| Path::new(folder).join(&file.path)).collect();
        if let (Some(cache), Some(commit)) = (&self.settings.hub_cache, &input.commit) {
            places.extend(here::places(cache, &input.source, commit, file));
        }
        places
    }

    fn try_ensure(
        &self,
        input: &PlannedInput,
        context: &PrepareContext<'_>,
        told: &mut Told<'_>,
    ) -> Result<Held, Stop> {
        if let Some(file) = input.files.iter().find(|file| !isobench_schema::input::is_inside(&file.path)) {
            return Err(unsafe_path(input, &file.path).into());
        }
        let folder = inputs_folder(context.cache);
        let place = entry(&folder, &input.digest);
        let _lock = FolderLock::take(&place.with_extension("lock"), context)?;
        let used = UseLock::take(&place).map_err(EnvironmentError::write(&place))?;
        let known = read_record::<InputRecord>(&place);
        let is_known = known.as_ref().is_some_and(|record| record.files == input.files);
        let known = known.filter(|_| is_known).map(|record| record.stamps).unwrap_or_default();
        let files = place.join("files");
        let links_to = |file: &InputFile, stamp: &Stamp| {
            fs::read_link(files.join(&file.path)).is_ok_and(|target| target == stamp.place)
        };
        let is_whole =
            |file: &InputFile| known.get(&file.path).is_some_and(|stamp| stamp.holds() && links_to(file, stamp));
        if is_known && input.files.iter().all(is_whole) {
            return Ok(Held { folder: files, used });
        }
        let blobs = folder.join("blobs");
        fs::create_dir_all(&blobs).map_err(EnvironmentError::write(&blobs))?;
        let needs = place.with_extension(NEEDS);
        let names: Vec<&str> = input.files.iter().map(|file| file.hash.as_str()).collect();
        fs::write(&needs, names.join("\n")).map_err(EnvironmentError::write(&needs))?;
        let mut stamps = BTreeMap::new();
        let mut done = 0_u64;
        for file in &input.files {
            let stamp = match known.get(&file.path).filter(|stamp| stamp.holds()) {
                Some(stamp) => stamp.clone(),
                None => self.place(input, file, (&blobs, done), context, told)?,
            };
            stamps.insert(file.path.clone(), stamp);
            done = done.saturating_add(file.bytes);
        }
        discard(&place)?;
        lay(&files, &stamps).map_err(EnvironmentError::write(&files))?;
        let commit = input.commit.as_ref().map(ToString::to_string);
        let record = InputRecord { source: input.source.clone(), commit, files: input.files.clone(), stamps };
        write_record(&place, &record)?;
        // A list that stays is no harm: without its lock it says nothing.
        let _ = fs::remove_file(&needs);
        Ok(Held { folder: files, used })
    }

    /// Finds a file on this machine or fetches it, and verifies it.
    fn place(
        &self,
        input: &PlannedInput,
        file: &InputFile,
        (blobs, done): (&Path, u64),
        context: &PrepareContext<'_>,
        told: &mut Told<'_>,
    ) -> Result<Stamp, Stop> {
        let stamped = |place: &Path| Stamp::of(place).map_err(EnvironmentError::read(place)).map_err(Stop::from);
        let mut places = vec![blobs.join(file.hash.as_str())];
        places.extend(self.places(input, file));
        for place in places {
            match here::is_it(&place, file, context.cancel) {
                Some(true) => {
                    return stamped(&place.canonicalize().map_err(EnvironmentError::read(&place))?);
                }
                Some(false) => {}
                None => context.check_cancelled()?,
            }
        }
        let http = self.http()?;
        let Some(commit) = &input.commit else {
            return Err(gone(input, &file.path).into());
        };
        let name = format!("{} {}: `{}`", input.role, input.source.repository, file.path);
        told(&format!("fetching {name}, {}", size_text(file.bytes)));
        let room = Room { cache: context.cache, floor_bytes: self.settings.floor_bytes };
        let fetch = Fetch { http: &http, reference: &input.source, commit, file, room };
        let mut last = 0;
        let place = fetch::blob(&fetch, blobs, context, &mut |bytes| {
            if bytes > last && bytes < file.bytes {
                last = bytes;
                let (have, all) = (size_text(done.saturating_add(bytes)), size_text(input.bytes));
                told(&format!("fetching {name}: {have} of {all}"));
            }
        })?;
        stamped(&place)
    }
}

fn entry(folder: &Path, digest: &Digest) -> PathBuf {
    folder.join("sets").join(digest.as_str())
}

/// Lays a folder of links to files.
fn lay(files: &Path, stamps: &BTreeMap<String, Stamp>) -> std::io::Result<()> {
    fs::create_dir_all(files)?;
    for (path, stamp) in stamps {
        let link = files.join(path);
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        symlink(&stamp.place, &link)?;
    }
    Ok(())
}

fn unsafe_path(input: &PlannedInput, path: &str) -> Failure {
    use isobench_schema::failure::{FailureClass, FailureStage};
    let message = format!("the path `{}` leads out of the {}", path.escape_debug(), input.source);
    Failure::new(FailureStage::Acquire, FailureClass::InputDamaged, message)
}

fn gone(input: &PlannedInput, path: &str) -> Failure {
    use isobench_schema::failure::{FailureClass, FailureStage};
    let folder = input.folder.as_deref().unwrap_or_default();
    let message = format!("`{path}` in `{folder}` isn't what it was when the plan was made; make the plan again");
    Failure::new(FailureStage::Acquire, FailureClass::InputDamaged, message)
}

/// Returns what of an input isn't as its record says, if something isn't: every file is hashed again.
pub(crate) fn prove_input(folder: &Path) -> Option<String> {
    let Some(record) = read_record::<InputRecord>(folder) else {
        return Some("its record can't be read".to_owned());
    };
    let never = std::sync::atomic::AtomicBool::new(false);
    for file in &record.files {
        let place = folder.join("files").join(&file.path);
        if here::is_it(&place, file, &never) != Some(true) {
            return Some(format!("`{}` isn't what its hash says", file.path));
        }
    }
    None
}
