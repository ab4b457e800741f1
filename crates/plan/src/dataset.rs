//! Reads a dataset: one task, a folder of tasks, or a file with one task a line. A bad one is a problem, never the end.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::commit_task::{CommitTask, DatasetHeader};
use isobench_schema::deviation::Deviation;
use isobench_schema::ids::TaskId;
use isobench_schema::plan::Problem;
use isobench_schema::task::Task;

use crate::node::Node;
use crate::paths;
use crate::setting::Setting;
use crate::shape::Finding;
use crate::typed::{self, Surroundings};

/// The name of a task's file.
const TASK_FILE: &str = "task.toml";

/// How many folders deep tasks are looked for.
const DEEPEST: usize = 3;

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without the folder's path.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// Why a file or folder can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFileError {
    /// There is none.
    #[error("there is no such file or folder")]
    Missing,
    /// Another reason, as the operating system gives it: a lower-case fragment.
    #[error("{message}")]
    Refused {
        /// The reason.
        message: String,
    },
}

/// The files below a base folder. Paths are relative to it, with `/`, without `.` and `..`; the base folder is `""`.
pub trait Files {
    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// Returns why it can't be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadFileError>;

    /// Returns the entries of a folder, in any order.
    ///
    /// # Errors
    /// Returns why it can't be listed.
    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadFileError>;

    /// Returns what is at a path, or `None` if nothing that can be read is there.
    fn kind(&self, path: &str) -> Option<EntryKind>;
}

/// The tasks of a dataset, and what is wrong with the rest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset {
    /// The dataset's name, for people.
    pub name: String,
    /// The tasks, in the order of the folders' names or of the file's lines.
    pub tasks: Vec<Task>,
    /// The tasks of rows that name commits, in the order of the rows.
    pub commit_tasks: Vec<CommitTask>,
    /// What the rows that name commits looked like.
    pub header: DatasetHeader,
    /// How many rows, task files and task lines were read, bad ones included.
    pub rows: u64,
    /// What can't be read.
    pub problems: Vec<Problem>,
    /// The values of each task that settings changed.
    pub overrides: BTreeMap<TaskId, Vec<Deviation>>,
}

/// Why nothing of a dataset can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadDatasetError {
    /// The path can't be read.
    #[error("cannot read the dataset `{path}`")]
    Read {
        /// The path, as given.
        path: String,
        /// Why.
        #[source]
        source: ReadFileError,
    },
    /// The path leads out of the base folder or is absolute.
    #[error("the dataset `{path}` is not below its base folder")]
    Outside {
        /// The path, as given.
        path: String,
    },
    /// A folder without tasks.
    #[error("no `task.toml` in the folder `{path}` or up to {DEEPEST} folders below it")]
    Empty {
        /// The path, as given.
        path: String,
    },
    /// A file that is neither TOML nor JSON Lines.
    #[error("the dataset `{path}` is neither a folder nor a `.toml` or `.jsonl` file")]
    UnknownKind {
        /// The path, as given.
        path: String,
    },
}

/// Reads the dataset at `path` below the folder whose absolute path is `base`, with `settings` put over every task.
///
/// # Errors
/// Returns why there is no dataset at all. Whatever is wrong inside one is among its problems.
pub fn read(files: &dyn Files, base: &str, path: &str, settings: &[Setting]) -> Result<Dataset, ReadDatasetError> {
    let outside = || ReadDatasetError::Outside { path: path.to_owned() };
    let inside = paths::inside("", path).ok_or_else(outside)?;
    let mut reader = Reader { files, base, settings, seen: BTreeMap::new(), dataset: Dataset::default() };
    reader.dataset.name = name(base, &inside);
    let failed = |source| ReadDatasetError::Read { path: path.to_owned(), source };
    match files.kind(&inside).ok_or(ReadFileError::Missing).map_err(failed)? {
        EntryKind::Folder => {
            let found = find(files, &inside, &mut reader.dataset.problems).map_err(failed)?;
            if found.is_empty() && reader.dataset.problems.is_empty() {
                return Err(ReadDatasetError::Empty { path: path.to_owned() });
            }
            for file in found {
                reader.task_file(&file);
            }
        }
        EntryKind::File => {
            let extension = inside.rsplit_once('.').map(|(_, extension)| extension);
            match extension {
                Some("toml") => reader.task_file(&inside),
                Some("jsonl") => {
                    let bytes = files.read(&inside).map_err(failed)?;
                    reader.lines(&inside, &bytes);
                }
                Some(_) | None => return Err(ReadDatasetError::UnknownKind { path: path.to_owned() }),
            }
        }
    }
    Ok(reader.dataset)
}

/// Returns the name of a dataset: of its folder, or of its file without the extension.
fn name(base: &str, inside: &str) -> String {
    let folder = paths::absolute(base, "", inside);
    let folder = folder.strip_suffix(&format!("/{TASK_FILE}")).unwrap_or(&folder);
    let last = folder.rsplit('/').next().unwrap_or(folder);
    last.strip_suffix(".jsonl").or_else(|| last.strip_suffix(".toml")).unwrap_or(last).to_owned()
}

/// Returns the task files in and below a folder, sorted by path. A folder with a task is not searched further.
fn find(files: &dyn Files, folder: &str, problems: &mut Vec<Problem>) -> Result<Vec<String>, ReadFileError> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        let entries = match files.list(&folder) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                problems.push(Problem {
                    file: folder,
                    line: None,
                    column: None,
                    message: format!("cannot list the folder: {error}"),
                });
                continue;
            }
        };
        let join = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        if entries.iter().any(|entry| entry.name == TASK_FILE && entry.kind == EntryKind::File) {
            found.insert(join(TASK_FILE));
            continue;
        }
        let folders = entries.iter().filter(|entry| entry.kind == EntryKind::Folder && !entry.name.starts_with('.'));
        if depth < DEEPEST {
            waiting.extend(folders.map(|entry| (join(&entry.name), depth + 1)));
        }
    }
    Ok(found.into_iter().collect())
}

/// Where a task stands, for people.
struct Place {
    file: String,
    line: Option<u64>,
}

struct Reader<'f> {
    files: &'f dyn Files,
    base: &'f str,
    settings: &'f [Setting],
    seen: BTreeMap<TaskId, Place>,
    dataset: Dataset,
}

impl Reader<'_> {
    fn problem(&mut self, file: &str, line: Option<u64>, message: impl Into<String>) {
        self.dataset.problems.push(Problem { file: file.to_owned(), line, column: None, message: message.into() });
    }

    fn task_file(&mut self, file: &str) {
        let bytes = match self.files.read(file) {
            Ok(bytes) => bytes,
            Err(error) => return self.problem(file, None, format!("cannot read the file: {error}")),
        };
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return self.problem(file, None, "the file is not UTF-8");
        };
        match Node::from_toml(text) {
            Ok(root) => self.task(file, None, root),
            Err((line, message)) => self.problem(file, line, format!("this is not TOML: {message}")),
        }
    }

    fn lines(&mut self, file: &str, bytes: &[u8]) {
        for (line, bytes) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<serde_json::Value>(bytes) {
                Ok(value) => self.task(file, Some(line), Node::from_json(value, line)),
                Err(error) => self.problem(file, Some(line), not_json(&error)),
            }
        }
    }

    fn task(&mut self, file: &str, line: Option<u64>, mut root: Node) {
        let mut overrides = Vec::new();
        for setting in self.settings {
            match setting.apply(&mut root) {
                Ok(deviation) => overrides.extend(deviation),
                Err(message) => return self.problem(file, line, message),
            }
        }
        let surroundings = Surroundings { files: self.files, base: self.base, folder: paths::folder_of(file) };
        match typed::task(&root, surroundings) {
            Ok(task) => {
                let line = root.get("id").and_then(|node| node.line).or(line);
                self.keep(file, line, task, overrides);
            }
            Err(findings) => {
                for Finding { line: found, message } in findings {
                    self.problem(file, found.or(line), message);
                }
            }
        }
    }

    fn keep(&mut self, file: &str, line: Option<u64>, task: Task, overrides: Vec<Deviation>) {
        if let Some(first) = self.seen.get(&task.id) {
            let place = first.line.map_or_else(String::new, |line| format!(", line {line}"));
            let message = format!("`id`: the task id `{}` is taken already by `{}`{place}", task.id, first.file);
            return self.problem(file, line, message);
        }
        self.seen.insert(task.id.clone(), Place { file: file.to_owned(), line });
        if !overrides.is_empty() {
            self.dataset.overrides.insert(task.id.clone(), overrides);
        }
        self.dataset.tasks.push(task);
    }
}

/// Returns what is wrong with a line, by its column: the parser's own text counts lines within the one line.
fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("this is not JSON: {what} at column {}", error.column())
}
