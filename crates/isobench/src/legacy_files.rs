//! Files of earlier systems on disk: result files in folders, legacy evidence, and published tables.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use isobench_analysis::legacy::tables::{self, RESULTS, TableFiles};
use isobench_analysis::legacy::{self, Explained, LARGEST_BYTES, mark_equal, mark_several};
use isobench_schema::format;
use isobench_schema::legacy::{LegacyHeader, LegacyRecord, LegacySource};
use isobench_schema::old_tables::OldTables;
use isobench_schema::plan::Problem;

use crate::exit::{CommandError, Exit, WithExit as _};

/// How deep folders of results are searched.
const DEEPEST: usize = 16;

/// How much of a file is looked at to see whether it is legacy evidence.
const HEAD_BYTES: u64 = 4096;

/// What was read from a file or a folder.
#[derive(Debug)]
pub(crate) struct Imported {
    /// The header of the evidence.
    pub(crate) header: LegacyHeader,
    /// The records, in the order of their files' names.
    pub(crate) records: Vec<LegacyRecord>,
}

/// Returns whether a file or folder looks like results of an earlier system rather than like rows of a dataset: by the
/// names of its files, or, in a file of another name, by a shape that no dataset has.
pub(crate) fn looks_legacy(source: &Path) -> bool {
    if source.is_dir() {
        let mut problems = Vec::new();
        return files(source, &mut problems).iter().any(|path| is_named_result(path));
    }
    if is_named_result(source) {
        return true;
    }
    let is_json = source.extension().is_some_and(|end| end == "json" || end == "jsonl");
    let bytes = if is_json { read_file(source).ok() } else { None };
    match bytes.and_then(|bytes| legacy::shape(&bytes, &name(source))) {
        Some(LegacySource::ErrorReport | LegacySource::Modal | LegacySource::Docker) => true,
        // Rows of these shapes name commits too, and are read as tasks unless results are asked for.
        Some(LegacySource::ThreeWay | LegacySource::Native | LegacySource::HfRow) | None => false,
    }
}

fn is_named_result(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == "benchmark_result.json" || name.ends_with("_result.json")
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Reads the results in a file or below a folder. What can't be read is a problem, and the rest goes on.
///
/// # Errors
/// Returns an error if the file or folder itself can't be read.
pub(crate) fn import(source: &Path) -> Result<Imported, CommandError> {
    let failed =
        |error: io::Error| CommandError::new(Exit::Usage, format!("cannot read `{}`: {error}", source.display()));
    fs::metadata(source).map_err(failed)?;
    let mut problems = Vec::new();
    let files = if source.is_dir() { files(source, &mut problems) } else { vec![source.to_owned()] };
    let mut records = Vec::new();
    for path in &files {
        let name = name(path);
        match read_file(path) {
            Ok(bytes) => match legacy::read(&bytes, &name) {
                Ok(found) => {
                    records.extend(found.records);
                    problems.extend(found.problems);
                }
                Err(error) => problems.push(problem(&name, error.to_string())),
            },
            Err(error) => problems.push(problem(&name, format!("cannot be read: {error}"))),
        }
    }
    mark_equal(&mut records);
    mark_several(&mut records);
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let (files, number) = (count(files.len()), count(records.len()));
    let header = LegacyHeader { source: name(source), files, records: number, problems };
    Ok(Imported { header, records })
}

/// Returns a problem of a file, which is named once.
fn problem(file: &str, message: String) -> Problem {
    let message = message.strip_prefix(&format!("`{file}` ")).map(str::to_owned).unwrap_or(message);
    Problem { file: file.to_owned(), line: None, column: None, message }
}

/// Reads a file of results. One that is larger than any, or grows beyond that while it is read, is refused.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let most = u64::try_from(LARGEST_BYTES).unwrap_or(u64::MAX);
    // Before it is opened: opening a pipe waits for whoever writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = fs::File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() > most {
        return Err(io::Error::other(format!("it has {} bytes, more than {most}", metadata.len())));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the JSON files below a folder, by name. Links to folders aren't followed, so that nothing is read twice.
fn files(folder: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(problem(&name(&folder), format!("cannot be listed: {error}")));
                continue;
            }
        };
        for entry in entries.filter_map(Result::ok) {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                if depth < DEEPEST {
                    folders.push((path, depth + 1));
                } else {
                    problems.push(problem(&name(&path), format!("lies deeper than {DEEPEST} folders")));
                }
            } else if path.extension().is_some_and(|end| end == "json" || end == "jsonl") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns whether a file is legacy evidence, by its first line.
pub(crate) fn is_evidence(path: &Path) -> bool {
    // Before it is opened: opening a pipe waits for whoever writes to it.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let tag = format!("\"isobench.{}/", <LegacyHeader as format::Stored>::NAME);
    read.is_ok() && String::from_utf8_lossy(&head).lines().next().is_some_and(|line| line.contains(&tag))
}

/// Reads a file of legacy evidence.
///
/// # Errors
/// Returns an error that names the line if it can't be read whole.
pub(crate) fn evidence(path: &Path) -> Result<(LegacyHeader, Vec<Explained>), CommandError> {
    let bytes = fs::read(path).exit(Exit::Usage)?;
    let mut lines = bytes.split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    let (_, first) = lines.next().unwrap_or_default();
    let header: LegacyHeader = format::from_slice(first).exit(Exit::Usage)?;
    let mut records = Vec::new();
    for (place, line) in lines {
        let record: LegacyRecord = serde_json::from_slice(line).map_err(|error| {
            let message =
                format!("line {} of `{}` is no record of legacy evidence: {error}", place + 1, path.display());
            CommandError::new(Exit::Usage, message)
        })?;
        records.push(Explained::from(record));
    }
    let (found, said) = (u64::try_from(records.len()).unwrap_or(u64::MAX), header.records);
    if found != said {
        let (path, done) = (path.display(), if found < said { "cut" } else { "added to" });
        let message = format!("`{path}` holds {found} records, and its head says {said}: it was {done}");
        return Err(CommandError::new(Exit::Usage, message));
    }
    Ok((header, records))
}

/// Returns whether a folder holds published per-commit results.
pub(crate) fn is_tables(folder: &Path) -> bool {
    folder.join(RESULTS).is_file()
}

/// Recomputes the published tables of a folder. The tasks may lie in the folder above.
///
/// # Errors
/// Returns an error if the results are missing, or a file that is there can't be read.
pub(crate) fn old_tables(folder: &Path) -> Result<OldTables, CommandError> {
    let results = fs::read(folder.join(RESULTS)).exit(Exit::Usage)?;
    let optional = |path: PathBuf| match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let deltas = optional(folder.join(tables::DELTAS)).exit(Exit::Usage)?;
    let ttft = optional(folder.join(tables::TTFT)).exit(Exit::Usage)?;
    let published = optional(folder.join(tables::PUBLISHED)).exit(Exit::Usage)?;
    let own = optional(folder.join(tables::TASKS)).exit(Exit::Usage)?;
    let above = if own.is_none() { optional(folder.join("..").join(tables::TASKS)).exit(Exit::Usage)? } else { None };
    let files = TableFiles {
        results: &results,
        deltas: deltas.as_deref(),
        ttft: ttft.as_deref(),
        published: published.as_deref(),
        tasks: own.as_deref().or(above.as_deref()),
    };
    tables::recompute(files).exit(Exit::Usage)
}
