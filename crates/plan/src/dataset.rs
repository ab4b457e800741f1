//! Reads a dataset: one task, a folder of tasks, a file with one task a line, or rows that name commits as others publish them.
//! A bad one is a problem, never the end.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::commit_task::{CommitTask, DatasetHeader};
use isobench_schema::deviation::Deviation;
use isobench_schema::format::Stored as _;
use isobench_schema::ids::TaskId;
use isobench_schema::plan::Problem;
use isobench_schema::task::Task;
use serde_json::{Map, Value};

use crate::intake::{self, Collector, Extent, KnownCommit, RowPlace, Table};
use crate::keys;
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

    /// Returns the rows of a Parquet file.
    ///
    /// # Errors
    /// Returns why it can't be read; where the caller has no reader for such files, that.
    fn table(&self, path: &str) -> Result<Table, ReadFileError> {
        let _ = path;
        Err(ReadFileError::Refused { message: "Parquet files are not read here".to_owned() })
    }
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
    #[error(
        "no `task.toml` and no dataset (`.jsonl`, `.json`, `.parquet`) in the folder `{path}` or up to {DEEPEST} folders below it"
    )]
    Empty {
        /// The path, as given.
        path: String,
    },
    /// A file of a kind that isn't read.
    #[error("the dataset `{path}` is neither a folder nor a `.toml`, `.jsonl`, `.json` or `.parquet` file")]
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
    let failed = |source| ReadDatasetError::Read { path: path.to_owned(), source };
    let known = |digits: &str| intake::known_commit(digits);
    let mut reader = Reader::new(files, base, settings, &known);
    reader.dataset.name = name(base, &inside);
    match files.kind(&inside).ok_or(ReadFileError::Missing).map_err(failed)? {
        EntryKind::Folder => {
            let found = find(files, &inside, &mut reader.dataset.problems).map_err(failed)?;
            if found.is_empty() && reader.dataset.problems.is_empty() {
                return Err(ReadDatasetError::Empty { path: path.to_owned() });
            }
            for (file, kind) in found {
                if let Err(error) = reader.file(&file, kind) {
                    reader.problem(&file, None, format!("cannot read the file: {error}"));
                }
            }
        }
        EntryKind::File => {
            let kind = FileKind::of(&inside).ok_or_else(|| ReadDatasetError::UnknownKind { path: path.to_owned() })?;
            reader.file(&inside, kind).map_err(failed)?;
        }
    }
    Ok(reader.finish())
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileKind {
    /// One task in TOML.
    Task,
    /// One row a line.
    Lines,
    /// One JSON value.
    Document,
    /// A Parquet file.
    Parquet,
}

impl FileKind {
    /// Returns how a file is read, by its name's end.
    fn of(path: &str) -> Option<Self> {
        match path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("toml") => Some(Self::Task),
            Some("jsonl") => Some(Self::Lines),
            Some("json") => Some(Self::Document),
            Some("parquet") => Some(Self::Parquet),
            Some(_) | None => None,
        }
    }
}

/// Returns the name of a dataset: of its folder, or of its file without the extension.
fn name(base: &str, inside: &str) -> String {
    let folder = paths::absolute(base, "", inside);
    let folder = folder.strip_suffix(&format!("/{TASK_FILE}")).unwrap_or(&folder);
    let last = folder.rsplit('/').next().unwrap_or(folder);
    let ends = [".jsonl", ".json", ".parquet", ".toml"];
    ends.iter().find_map(|end| last.strip_suffix(end)).unwrap_or(last).to_owned()
}

/// Returns the task files in and below a folder, sorted by path, or, where there are none, the files of rows. A folder with a
/// task is not searched further.
fn find(
    files: &dyn Files,
    folder: &str,
    problems: &mut Vec<Problem>,
) -> Result<Vec<(String, FileKind)>, ReadFileError> {
    let (mut tasks, mut rows) = (BTreeSet::new(), BTreeSet::new());
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
            tasks.insert((join(TASK_FILE), FileKind::Task));
            continue;
        }
        let loose = entries.iter().filter(|entry| entry.kind == EntryKind::File && !entry.name.starts_with('.'));
        let loose = loose.filter_map(|entry| Some((join(&entry.name), FileKind::of(&entry.name)?)));
        rows.extend(loose.filter(|(_, kind)| *kind != FileKind::Task));
        let folders = entries.iter().filter(|entry| entry.kind == EntryKind::Folder && !entry.name.starts_with('.'));
        if depth < DEEPEST {
            waiting.extend(folders.map(|entry| (join(&entry.name), depth + 1)));
        }
    }
    Ok(if tasks.is_empty() { rows } else { tasks }.into_iter().collect())
}

/// Where a task stands, for people.
struct Place {
    file: String,
    line: Option<u64>,
}

/// What a line of JSON Lines is.
enum LineKind {
    /// The header of a file of commit tasks.
    Header,
    /// A commit task.
    CommitTask,
    /// A task with the keys of `task.toml`.
    Task,
    /// A row that names a commit, or that nothing is known of.
    Row,
}

impl LineKind {
    fn of(row: &Map<String, Value>) -> Self {
        let format = row.get("format").and_then(Value::as_str).and_then(|tag| tag.strip_prefix("isobench."));
        let is = |name: &str| format.and_then(|tag| tag.strip_prefix(name)).is_some_and(|rest| rest.starts_with('/'));
        let has_key_of_task = || keys::task_keys().iter().any(|key| row.contains_key(key.path));
        if is(DatasetHeader::NAME) {
            Self::Header
        } else if is(CommitTask::NAME) {
            Self::CommitTask
        } else if row.contains_key("baseline") || !intake::names_commit(row) && has_key_of_task() {
            Self::Task
        } else {
            Self::Row
        }
    }
}

struct Reader<'f> {
    files: &'f dyn Files,
    base: &'f str,
    settings: &'f [Setting],
    seen: BTreeMap<TaskId, Place>,
    rows: Collector<'f>,
    dataset: Dataset,
}

impl<'f> Reader<'f> {
    fn new(
        files: &'f dyn Files,
        base: &'f str,
        settings: &'f [Setting],
        known: &'f dyn Fn(&str) -> Option<KnownCommit>,
    ) -> Self {
        let (seen, dataset) = (BTreeMap::new(), Dataset::default());
        Self { files, base, settings, seen, rows: Collector::new(known), dataset }
    }

    fn finish(self) -> Dataset {
        let Self { mut rows, mut dataset, .. } = self;
        dataset.header = std::mem::take(&mut rows.header);
        if dataset.header.name.is_empty() {
            dataset.header.name.clone_from(&dataset.name);
        }
        dataset.rows += rows.rows;
        dataset.problems.append(&mut rows.problems);
        dataset.commit_tasks = rows.tasks;
        dataset
    }

    fn problem(&mut self, file: &str, line: Option<u64>, message: impl Into<String>) {
        self.dataset.problems.push(Problem { file: file.to_owned(), line, column: None, message: message.into() });
    }

    fn file(&mut self, file: &str, kind: FileKind) -> Result<(), ReadFileError> {
        if kind == FileKind::Parquet {
            let table = self.files.table(file)?;
            self.rows.table(file, table);
            return Ok(());
        }
        let bytes = self.files.read(file)?;
        match (intake::without_mark(&bytes), kind) {
            (Err(message), _) => self.problem(file, None, message),
            (Ok(bytes), FileKind::Task) => self.task_file(file, bytes),
            (Ok(bytes), FileKind::Lines) => self.lines(file, bytes),
            (Ok(bytes), FileKind::Document) => self.rows.document(file, bytes),
            (Ok(_), FileKind::Parquet) => {}
        }
        Ok(())
    }

    fn task_file(&mut self, file: &str, bytes: &[u8]) {
        self.dataset.rows += 1;
        let Ok(text) = std::str::from_utf8(bytes) else {
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
            match intake::parse(bytes, Extent::Line) {
                Ok(parsed) => self.line(RowPlace { file, row: line }, bytes, parsed),
                Err(message) => {
                    self.dataset.rows += 1;
                    self.problem(file, Some(line), message);
                }
            }
        }
    }

    fn line(&mut self, place: RowPlace<'_>, bytes: &[u8], parsed: intake::Parsed) {
        let value = match parsed.value {
            Value::Object(row) => match LineKind::of(&row) {
                LineKind::Header => return self.rows.stored_header(place, bytes),
                LineKind::CommitTask => return self.rows.stored_task(place, bytes),
                LineKind::Row => return self.rows.row(place, row, &parsed.keys),
                LineKind::Task => Value::Object(row),
            },
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => other,
        };
        self.dataset.rows += 1;
        self.task(place.file, Some(place.row), Node::from_json(value, place.row));
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
