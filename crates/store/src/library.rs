//! The library of spreads: one file of JSON lines, to which lines are only added.
//!
//! Writers take turns by a lock beside the file, and each writes the old bytes and its new lines to another file that then
//! takes the name: whoever reads sees the old library or the new one. A line that can't be read is named and stays where it
//! is; all others count.

use std::path::{Path, PathBuf};
use std::time::Duration;

use isobench_schema::format;
use isobench_schema::noise::{NoiseEntry, NoiseRecord, NoiseRemoval};

use crate::atomic::{StoreError, create_folder, folder_of, plain_file, read_if_there, write_named};
use crate::lock::{Lock, LockError};

/// How long to wait for other writers, each of which needs a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The file of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoiseLibrary {
    path: PathBuf,
}

/// What a library holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LibraryContents {
    /// The entries that count, oldest first.
    pub entries: Vec<NoiseEntry>,
    /// The lines that can't be read.
    pub problems: Vec<LibraryProblem>,
}

/// A line that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryProblem {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}

/// Why a library can't be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Another process keeps it to itself.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file can't be read or written.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// An entry can't be written as JSON.
    #[error("an entry of task `{task}` can't be written as JSON")]
    Serialise {
        /// The task.
        task: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// No entry has this name.
    #[error("the library `{}` has no entry `{id}`", .path.display())]
    Unknown {
        /// The library.
        path: PathBuf,
        /// The name.
        id: String,
    },
    /// Several entries' names begin so.
    #[error("several entries of the library `{}` begin with `{id}`", .path.display())]
    Ambiguous {
        /// The library.
        path: PathBuf,
        /// The name.
        id: String,
    },
}

/// The least standard deviation of log ratios that clocks can show.
const LEAST_SPREAD: f64 = 1e-9;
/// The most that can be meant: a factor of twenty thousand between two launches.
const MOST_SPREAD: f64 = 10.0;
/// More degrees of freedom than a run has blocks.
const MOST_DEGREES: u32 = 10_000;

impl NoiseLibrary {
    /// Names a library, whether it is there or not.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it. A library that isn't there is empty.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn read(&self) -> Result<LibraryContents, StoreError> {
        // Reading a pipe would wait, and a device may have no end.
        Ok(parse(&read_if_there(&plain_file(&self.path)?)?.unwrap_or_default()))
    }

    /// Begins the library as an empty one, unless it is there.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub fn begin(&self) -> Result<(), StoreError> {
        if self.path.exists() {
            return Ok(());
        }
        create_folder(folder_of(&self.path))?;
        write_named(&self.path, &[])
    }

    /// Adds entries, unless they are there already, and returns how many were added. An entry of the same differences takes the
    /// place of an older one.
    ///
    /// # Errors
    /// Returns an error if the file can't be written, and the library is as it was.
    pub fn add(&self, entries: &[NoiseEntry]) -> Result<usize, LibraryError> {
        self.change(|contents| {
            let is_there = |new: &NoiseEntry| {
                let dated = |old: &NoiseEntry| NoiseEntry {
                    date: new.date.clone(),
                    isobench: new.isobench.clone(),
                    ..old.clone()
                };
                contents.entries.iter().any(|old| dated(old) == *new)
            };
            let new = entries.iter().filter(|entry| !is_there(entry));
            Ok(new.map(|entry| NoiseRecord::Spread(Box::new(entry.clone()))).collect())
        })
    }

    /// Takes entries out by the beginnings of their names, and returns how many.
    ///
    /// # Errors
    /// Returns an error if a name is none, or stands for several, or if the file can't be written; the library is as it was.
    pub fn remove(&self, ids: &[String], date: &str, isobench: &str) -> Result<usize, LibraryError> {
        self.change(|contents| {
            let named: Vec<String> = contents.entries.iter().map(id_of).collect::<Result<_, _>>()?;
            let record = |id: &String| {
                let mut found = named.iter().filter(|name| !id.is_empty() && name.starts_with(id.as_str()));
                let entry = match (found.next(), found.next()) {
                    (Some(entry), None) => entry.clone(),
                    (Some(_), Some(_)) => {
                        return Err(LibraryError::Ambiguous { path: self.path.clone(), id: id.clone() });
                    }
                    (None, _) => return Err(LibraryError::Unknown { path: self.path.clone(), id: id.clone() }),
                };
                Ok(NoiseRecord::Removed(NoiseRemoval { entry, date: date.to_owned(), isobench: isobench.to_owned() }))
            };
            ids.iter().map(record).collect()
        })
    }

    /// Adds the lines that `decide` makes of what is there, with the library to itself. Returns how many.
    fn change(
        &self,
        decide: impl FnOnce(&LibraryContents) -> Result<Vec<NoiseRecord>, LibraryError>,
    ) -> Result<usize, LibraryError> {
        create_folder(folder_of(&self.path))?;
        // The lock belongs to the file that is written, also where a link leads to it.
        let mut lock = plain_file(&self.path)?.into_os_string();
        lock.push(".lock");
        let _lock = Lock::take_file(Path::new(&lock), &self.path, PATIENCE)?;
        let mut bytes = read_if_there(&plain_file(&self.path)?)?.unwrap_or_default();
        let records = decide(&parse(&bytes))?;
        if records.is_empty() {
            return Ok(0);
        }
        // A line that somebody cut short stays a line of its own.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        for record in &records {
            let serialise = |source| LibraryError::Serialise { task: task_of(record), source };
            bytes.extend_from_slice(format::to_line(record).map_err(serialise)?.as_bytes());
            bytes.push(b'\n');
        }
        write_named(&self.path, &bytes)?;
        Ok(records.len())
    }
}

fn task_of(record: &NoiseRecord) -> String {
    match record {
        NoiseRecord::Spread(entry) => entry.task.to_string(),
        NoiseRecord::Removed(removal) => removal.entry.clone(),
    }
}

fn id_of(entry: &NoiseEntry) -> Result<String, LibraryError> {
    entry.id().map_err(|source| LibraryError::Serialise { task: entry.task.to_string(), source })
}

/// Returns whether a run could have found that: some spread, and no more blocks than a run may have.
fn is_possible(entry: &NoiseEntry) -> bool {
    entry.deviation >= LEAST_SPREAD && entry.deviation <= MOST_SPREAD && (1..=MOST_DEGREES).contains(&entry.degrees)
}

fn parse(bytes: &[u8]) -> LibraryContents {
    let mut contents = LibraryContents::default();
    let lines = bytes.split(|byte| *byte == b'\n');
    for (line, text) in (1..).zip(lines).filter(|(_, text)| !text.is_empty()) {
        match format::from_slice::<NoiseRecord>(text) {
            Ok(NoiseRecord::Spread(entry)) if !is_possible(&entry) => {
                let (deviation, degrees) = (entry.deviation, entry.degrees);
                let message = format!("no spread is {deviation} with {degrees} degrees of freedom");
                contents.problems.push(LibraryProblem { line, message });
            }
            Ok(NoiseRecord::Spread(entry)) => {
                contents.entries.retain(|older| !older.is_of_same(&entry));
                contents.entries.push(*entry);
            }
            Ok(NoiseRecord::Removed(removal)) => {
                contents.entries.retain(|entry| entry.id().ok().as_ref() != Some(&removal.entry));
            }
            Err(error) => {
                let source = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                contents.problems.push(LibraryProblem { line, message: format!("{error}{source}") });
            }
        }
    }
    contents
}
