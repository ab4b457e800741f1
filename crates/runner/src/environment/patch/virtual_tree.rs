//! The tree as a patch would leave it, in memory, until all of the patch has been placed.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::super::EnvironmentError;
use super::super::safe_path::to_text;
use super::hunks::{Fit, place, to_lines};
use super::parse::FilePatch;

/// The mode of a new file for which the patch names none.
const DEFAULT_MODE: u32 = 0o644;

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    bytes: Vec<u8>,
    mode: u32,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Nothing,
    File(Content),
    /// A folder, a link, or anything else that a text patch can't change.
    Other,
}

/// How the parts of one file's patch fit, each with its line in the patch.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) good: usize,
    pub(super) moved: Vec<(u64, String)>,
    pub(super) bad: Vec<(u64, String)>,
}

impl Report {
    fn bad(file: &FilePatch, text: String) -> Self {
        // Each hunk of a file that isn't as expected counts, so that the share that fits is told fairly.
        let lines = file.hunks.iter().map(|hunk| (hunk.line, text.clone()));
        let mut bad: Vec<(u64, String)> = lines.collect();
        if bad.is_empty() {
            bad.push((file.line, text));
        }
        Self { bad, ..Self::default() }
    }
}

/// The files that a patch touches, as they would be.
pub(super) struct VirtualTree<'a> {
    root: &'a Path,
    files: BTreeMap<PathBuf, Found>,
}

impl<'a> VirtualTree<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, files: BTreeMap::new() }
    }

    fn get(&self, path: &Path) -> Result<Found, EnvironmentError> {
        match self.files.get(path) {
            Some(found) => Ok(found.clone()),
            None => read(self.root, path),
        }
    }

    /// Applies the patch of one file as far as it fits.
    pub(super) fn apply(&mut self, file: &FilePatch) -> Result<Report, EnvironmentError> {
        let before = match &file.old {
            None => Content { bytes: Vec::new(), mode: DEFAULT_MODE },
            Some(path) => match self.get(path)? {
                Found::File(content) => content,
                Found::Nothing => {
                    return Ok(Report::bad(file, format!("`{}` isn't in the tree", to_text(path))));
                }
                Found::Other => {
                    return Ok(Report::bad(file, format!("`{}` isn't a regular file in the tree", to_text(path))));
                }
            },
        };
        if let Some(path) = file.new.as_ref().filter(|_| file.old != file.new) {
            if self.get(path)? != Found::Nothing {
                return Ok(Report::bad(file, format!("`{}` is in the tree already", to_text(path))));
            }
            for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
                if let Found::File(_) = self.get(folder)? {
                    return Ok(Report::bad(file, format!("`{}` is a file in the tree", to_text(folder))));
                }
            }
        }
        let (fits, lines) = place(&to_lines(&before.bytes), &file.hunks);
        let report = report(file, &fits);
        let Some(lines) = lines else { return Ok(report) };
        if file.new.is_none() && !lines.is_empty() {
            return Ok(Report::bad(file, "the removal leaves lines of the file over".to_owned()));
        }
        let after = Content { bytes: lines.concat(), mode: file.new_mode.unwrap_or(before.mode) };
        if let Some(old) = file.old.as_ref().filter(|_| !file.copies) {
            self.files.insert(old.clone(), Found::Nothing);
        }
        if let Some(new) = &file.new {
            self.files.insert(new.clone(), Found::File(after));
        }
        Ok(report)
    }

    /// Returns the files that differ from those on disk; an absent one is to be removed.
    pub(super) fn changes(self) -> Result<BTreeMap<PathBuf, Option<Content>>, EnvironmentError> {
        let mut changes = BTreeMap::new();
        for (path, after) in self.files {
            if read(self.root, &path)? == after {
                continue;
            }
            match after {
                Found::File(content) => changes.insert(path, Some(content)),
                Found::Nothing | Found::Other => changes.insert(path, None),
            };
        }
        Ok(changes)
    }
}

fn report(file: &FilePatch, fits: &[Fit]) -> Report {
    let mut report = Report::default();
    for (hunk, fit) in file.hunks.iter().zip(fits) {
        match fit {
            Fit::Exact => report.good += 1,
            Fit::Elsewhere(at) => {
                report.moved.push((hunk.line, format!("names line {}, fits at line {at}", hunk.old_start)));
            }
            Fit::Nowhere(at, found) => {
                let name = file.old.as_ref().map(|path| to_text(path)).unwrap_or_default();
                let stands = match found {
                    Some(line) => format!("has `{}`", String::from_utf8_lossy(line).trim_end()),
                    None => "doesn't exist".to_owned(),
                };
                report.bad.push((hunk.line, format!("line {at} of `{name}` {stands}")));
            }
        }
    }
    if fits.is_empty() {
        report.good += 1;
    }
    report
}

fn read(root: &Path, path: &Path) -> Result<Found, EnvironmentError> {
    let place = root.join(path);
    let read_error = EnvironmentError::read(&place);
    let metadata = match place.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Found::Nothing);
        }
        Err(error) => return Err(read_error(error)),
    };
    if !metadata.is_file() {
        return Ok(Found::Other);
    }
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let mode = if executable { 0o755 } else { DEFAULT_MODE };
    Ok(Found::File(Content { bytes: std::fs::read(&place).map_err(read_error)?, mode }))
}

/// Writes the changes into the tree: removals first, so that a folder can become a file and the other way round.
pub(super) fn write(root: &Path, changes: &BTreeMap<PathBuf, Option<Content>>) -> Result<(), EnvironmentError> {
    for path in changes.iter().filter(|(_, content)| content.is_none()).map(|(path, _)| path) {
        let place = root.join(path);
        std::fs::remove_file(&place).map_err(EnvironmentError::write(&place))?;
        // Git keeps no empty folders, so a removed file takes its empty folders along.
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            if std::fs::remove_dir(root.join(folder)).is_err() {
                break;
            }
        }
    }
    for (path, content) in changes.iter().filter_map(|(path, content)| Some((path, content.as_ref()?))) {
        let place = root.join(path);
        let write_error = EnvironmentError::write(&place);
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(&write_error)?;
        }
        // A new file, never the old one written over: the old one may be shared by a link.
        match std::fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(write_error(error)),
            Ok(()) | Err(_) => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(content.mode).open(&place).map_err(&write_error)?;
        file.write_all(&content.bytes).map_err(&write_error)?;
        file.set_permissions(std::fs::Permissions::from_mode(content.mode)).map_err(&write_error)?;
    }
    Ok(())
}
