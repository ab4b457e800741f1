//! From the bytes of one result file to its records, whichever of the earlier systems left it.

use isobench_schema::legacy::{LegacyRecord, LegacySource};
use isobench_schema::plan::Problem;
use serde_json::{Map, Value};

use super::flags;
use super::lines;
use super::shapes::{self, Place, Shape};

/// The largest file that is read. The largest known results have some ten thousand characters of output in them.
pub const LARGEST_BYTES: usize = 64 << 20;

/// What a result file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LegacyFile {
    /// The records, in the order of the file.
    pub records: Vec<LegacyRecord>,
    /// What in it can't be read; the records hold everything else.
    pub problems: Vec<Problem>,
}

/// Why nothing of a file can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadLegacyError {
    /// There is nothing in it.
    #[error("`{file}` is empty")]
    Empty {
        /// The file.
        file: String,
    },
    /// It is no result file of any of those systems.
    #[error("`{file}` has {bytes} bytes, more than the {LARGEST_BYTES} of the largest result that is read")]
    TooLarge {
        /// The file.
        file: String,
        /// Its size.
        bytes: usize,
    },
    /// It isn't JSON, or is cut.
    #[error("`{file}` is not JSON at line {line}, column {column}: {message}")]
    NotJson {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// It is JSON, but no object.
    #[error("`{file}` holds {found}, where an object or a list of objects was expected")]
    NotAnObject {
        /// The file.
        file: String,
        /// What it holds.
        found: &'static str,
    },
    /// It is an object that none of those systems writes.
    #[error("`{file}` is not a result of a known shape; the nearest is `{nearest}`, which lacks {}", spelt(missing))]
    UnknownShape {
        /// The file.
        file: String,
        /// The shape that has most in common with it.
        nearest: LegacySource,
        /// The keys of that shape that it lacks.
        missing: Vec<&'static str>,
    },
}

fn spelt(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{}`", key.replace('|', "` or `"))).collect::<Vec<_>>().join(", ")
}

/// Reads one result file. `file` is its path as it is to be named; folder and name tell what the object doesn't.
///
/// A file of JSON Lines or of a list has a record for each object; an object that can't be read is a problem, and the
/// rest goes on. `NaN` and `Infinity`, which Python writes and JSON doesn't know, are read as what they are.
///
/// # Errors
/// Returns an error if nothing can be read of it at all.
pub fn read(bytes: &[u8], file: &str) -> Result<LegacyFile, ReadLegacyError> {
    if bytes.len() > LARGEST_BYTES {
        return Err(ReadLegacyError::TooLarge { file: file.to_owned(), bytes: bytes.len() });
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ReadLegacyError::Empty { file: file.to_owned() });
    }
    let mut found = LegacyFile::default();
    for (row, value) in lines::values(bytes, file)? {
        match value {
            Ok(object) => one(object, &Place { file, row }, &mut found)?,
            Err(message) => found.problems.push(problem(file, row, None, message)),
        }
    }
    for record in &mut found.records {
        flags::mark(record);
    }
    Ok(found)
}

/// Adds the records of one object. In a file of several, one of an unknown shape is a problem of its row.
fn one(object: Map<String, Value>, place: &Place<'_>, found: &mut LegacyFile) -> Result<(), ReadLegacyError> {
    match shapes::recognise(&object, place.file) {
        Shape::Known(source) => {
            let (records, problems) = shapes::records(object, source, place);
            found.records.extend(records);
            found.problems.extend(problems);
        }
        Shape::Unknown { nearest, missing } => {
            let file = place.file.to_owned();
            let error = ReadLegacyError::UnknownShape { file, nearest, missing };
            if place.row.is_none() {
                return Err(error);
            }
            found.problems.push(problem(place.file, place.row, None, error.to_string()));
        }
    }
    Ok(())
}

pub(super) fn problem(file: &str, row: Option<u64>, column: Option<&str>, message: String) -> Problem {
    Problem { file: file.to_owned(), line: row, column: column.map(str::to_owned), message }
}

/// Returns the shape of a file's first object, if it is a known one. Nothing else of it is checked.
pub fn shape(bytes: &[u8], file: &str) -> Option<LegacySource> {
    if bytes.len() > LARGEST_BYTES {
        return None;
    }
    let first = lines::values(bytes, file).ok()?.into_iter().find_map(|(_, value)| value.ok())?;
    match shapes::recognise(&first, file) {
        Shape::Known(source) => Some(source),
        Shape::Unknown { .. } => None,
    }
}
