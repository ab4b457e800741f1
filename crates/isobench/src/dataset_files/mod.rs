//! The files of a dataset: read from disk for the planner, and written again.

mod pages;
mod parquet_reader;
mod parquet_writer;
mod shred;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use isobench_plan::dataset::{self, Dataset, Entry, EntryKind, Files, ReadDatasetError, ReadFileError};
use isobench_plan::intake::Table;
use isobench_plan::setting::Setting;

pub(crate) use parquet_writer::write as write_parquet;

/// The largest file that is read for a plan: a task, a patch or a table of tasks.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Why a dataset can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenDatasetError {
    /// The path can't be resolved.
    #[error("cannot find the dataset `{path}`")]
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The path isn't UTF-8, and plans are.
    #[error("the path of the dataset `{path}` is not UTF-8")]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// It can't be read as a dataset.
    #[error(transparent)]
    Read(#[from] ReadDatasetError),
}

/// Reads a dataset: a folder of tasks or of rows, a JSONL, JSON or Parquet file, or one `task.toml`.
///
/// # Errors
/// Returns an error if the path can't be read at all; a bad row is a problem of the dataset.
pub(crate) fn open(path: &Path, settings: &[Setting]) -> Result<Dataset, OpenDatasetError> {
    let resolved = fs::canonicalize(path).map_err(|source| OpenDatasetError::Path { path: path.to_owned(), source })?;
    let (base, inside) = if resolved.is_dir() {
        (resolved.clone(), String::new())
    } else {
        let name = resolved.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| OpenDatasetError::NotUtf8 { path: resolved.clone() })?;
        (resolved.parent().unwrap_or(Path::new("/")).to_owned(), name.to_owned())
    };
    let text = base.to_str().ok_or_else(|| OpenDatasetError::NotUtf8 { path: base.clone() })?;
    Ok(dataset::read(&DiskFiles { base: base.clone() }, text, &inside, settings)?)
}

struct DiskFiles {
    base: PathBuf,
}

fn refused(error: &io::Error) -> ReadFileError {
    if error.kind() == io::ErrorKind::NotFound {
        ReadFileError::Missing
    } else {
        ReadFileError::Refused { message: error.to_string() }
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadFileError> {
        let path = self.base.join(path);
        let metadata = fs::metadata(&path).map_err(|error| refused(&error))?;
        if !metadata.is_file() {
            return Err(ReadFileError::Refused { message: "it is not a regular file".to_owned() });
        }
        if metadata.len() > LARGEST {
            let message = format!("it has {} bytes, more than {LARGEST}", metadata.len());
            return Err(ReadFileError::Refused { message });
        }
        fs::read(&path).map_err(|error| refused(&error))
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadFileError> {
        let folder = if path.is_empty() { self.base.clone() } else { self.base.join(path) };
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| refused(&error))? {
            let entry = entry.map_err(|error| refused(&error))?;
            // A name that isn't UTF-8 can't be named in a plan.
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Links are followed, as the reader would.
            let Ok(metadata) = fs::metadata(entry.path()) else { continue };
            let kind = if metadata.is_dir() { EntryKind::Folder } else { EntryKind::File };
            entries.push(Entry { name, kind });
        }
        Ok(entries)
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        let path = if path.is_empty() { self.base.clone() } else { self.base.join(path) };
        let metadata = fs::metadata(path).ok()?;
        Some(if metadata.is_dir() { EntryKind::Folder } else { EntryKind::File })
    }

    fn table(&self, path: &str) -> Result<Table, ReadFileError> {
        parquet_reader::read(self.read(path)?, pages::LIMITS).map_err(|message| ReadFileError::Refused { message })
    }
}
