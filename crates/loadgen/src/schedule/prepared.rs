//! Prepared requests, kept on disk, so that a load that is repeated begins at once and without a tokenizer.
//!
//! A file holds the schedules of one workload, seed, tokenizer and dataset, under the digest of all of these. It is written
//! whole or not at all. Its index is checked against a digest and its length against the one that it names; a file that
//! fails is made anew. What its requests say is read when it is sent.

mod stamps;
mod stored;

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use isobench_schema::ids::Digest;
use isobench_schema::workload::{Prompts, TokenCounter, Workload};
use serde_json::json;

use super::{Resources, ScheduleError, Schedules};
use crate::datasets;
use stamps::Stamps;

/// The version of what is drawn and of how it is stored. A change of either makes every file useless, and needs another.
const FORMAT: u32 = 2;

/// How a file's name ends.
const ENDING: &str = "prepared";

/// How many bytes the files may have together: those that weren't used for longest are removed.
const MOST_BYTES: u64 = 8 << 30;

/// Why the folder can't be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to use `{folder}` for prepared requests")]
pub struct CacheError {
    /// The folder.
    pub folder: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

/// A folder of prepared requests.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// Where schedules come from.
#[derive(Debug)]
pub enum Origin {
    /// From a file of the folder.
    Loaded,
    /// They were made, and are kept now.
    Made,
    /// They were made, but can't be kept, for this reason. They can be sent all the same.
    NotKept(io::Error),
}

/// Schedules, and where they come from.
#[derive(Debug)]
pub struct Prepared {
    /// The schedules.
    pub schedules: Schedules,
    /// Where they come from.
    pub origin: Origin,
}

impl Cache {
    /// Opens a folder, which is made if it isn't there.
    ///
    /// # Errors
    /// Returns an error if it can't be made.
    pub fn open(folder: &Path) -> Result<Self, CacheError> {
        let failed = |source| CacheError { folder: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Returns the schedules of every phase, as [`Schedules::new`] does, from the folder if they are there.
    ///
    /// # Errors
    /// Returns what in the workload can't be sent, or can't be sent with these resources.
    pub fn schedules(&self, workload: &Workload, seed: u64, resources: &Resources) -> Result<Prepared, ScheduleError> {
        let key = self.key(workload, seed, resources);
        if let Ok(key) = &key
            && let Ok(schedules) = self.load(key)
        {
            return Ok(Prepared { schedules, origin: Origin::Loaded });
        }
        let schedules = Schedules::new(workload, seed, resources)?;
        let origin = match key.and_then(|key| self.keep(&key, &schedules)) {
            Ok(()) => Origin::Made,
            Err(error) => Origin::NotKept(error),
        };
        Ok(Prepared { schedules, origin })
    }

    /// Returns the digest of everything that schedules depend on.
    fn key(&self, workload: &Workload, seed: u64, resources: &Resources) -> io::Result<Digest> {
        let mut stamps = Stamps::open(&self.folder);
        let file = datasets::file(&workload.prompts, resources);
        let file = file.map(|path| stamps.digest(&path)).transpose()?;
        let is_dataset = matches!(workload.prompts, Prompts::Dataset { .. });
        let tokenizer = match &resources.tokenizer {
            Some(tokenizer) if is_dataset || workload.counter == TokenCounter::Tokenizer => {
                Some(stamps.digest(tokenizer.path())?)
            }
            Some(_) | None => None,
        };
        stamps.keep();
        let version = env!("CARGO_PKG_VERSION");
        let key = json!({
            "format": FORMAT, "version": version, "workload": workload, "seed": seed, "tokenizer": tokenizer, "file": file,
        });
        Ok(Digest::of_json(&key)?)
    }

    fn path(&self, key: &Digest) -> PathBuf {
        self.folder.join(key.as_str()).with_extension(ENDING)
    }

    fn load(&self, key: &Digest) -> io::Result<Schedules> {
        let file = File::open(self.path(key))?;
        // A file that is used stays; one that can't be marked is only removed sooner.
        let _unmarked = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        stored::read(file)
    }

    fn keep(&self, key: &Digest, schedules: &Schedules) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".").suffix(ENDING).tempfile_in(&self.folder)?;
        stored::write(schedules, file.as_file_mut())?;
        file.as_file().sync_data()?;
        file.persist(self.path(key)).map_err(|failed| failed.error)?;
        self.make_room(MOST_BYTES)
    }

    /// Removes the files that weren't used for longest, until the others have at most so many bytes.
    fn make_room(&self, most_bytes: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Another process may remove it first.
            let (true, Ok(about)) = (entry.file_name().to_string_lossy().ends_with(ENDING), entry.metadata()) else {
                continue;
            };
            files.push((about.modified()?, about.len(), entry.path()));
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in files {
            if bytes <= most_bytes {
                break;
            }
            match fs::remove_file(&path) {
                Ok(()) => bytes -= length,
                Err(error) if error.kind() == io::ErrorKind::NotFound => bytes -= length,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
