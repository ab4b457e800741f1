//! Gathers the rows of all files of a dataset: merges the rows of one commit, and sees that no two tasks share a name.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::commit_task::{CommitTask, DatasetHeader, FurtherRow, Origin, RowFormat};
use isobench_schema::format;
use isobench_schema::ids::{AgentName, Digest, Revision, TaskId};
use isobench_schema::plan::Problem;
use serde_json::{Map, Value};

use super::columns::{Field, given};
use super::row::{self, Fault, Surroundings};
use super::{KnownCommit, Table, detect, engine};

/// What is gathered so far.
pub(crate) struct Collector<'c> {
    known: &'c dyn Fn(&str) -> Option<KnownCommit>,
    places: BTreeMap<TaskId, usize>,
    columns: BTreeSet<String>,
    /// The tasks, in the order of their first rows.
    pub(crate) tasks: Vec<CommitTask>,
    /// What the rows looked like.
    pub(crate) header: DatasetHeader,
    /// What is wrong.
    pub(crate) problems: Vec<Problem>,
    /// How many rows there were.
    pub(crate) rows: u64,
}

/// A row in its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlace<'p> {
    /// The file.
    pub(crate) file: &'p str,
    /// The row, from 1.
    pub(crate) row: u64,
}

impl<'c> Collector<'c> {
    /// Returns one that has gathered nothing.
    pub(crate) fn new(known: &'c dyn Fn(&str) -> Option<KnownCommit>) -> Self {
        Self {
            known,
            places: BTreeMap::new(),
            columns: BTreeSet::new(),
            tasks: Vec::new(),
            header: DatasetHeader::default(),
            problems: Vec::new(),
            rows: 0,
        }
    }

    /// Notes what is wrong with a row or, without a row, with a file.
    pub(crate) fn problem(&mut self, file: &str, row: Option<u64>, fault: Fault) {
        let Fault { column, message } = fault;
        self.problems.push(Problem { file: file.to_owned(), line: row, column, message });
    }

    /// Takes in the rows of a table.
    pub(crate) fn table(&mut self, file: &str, table: Table) {
        self.name_columns(&table.columns);
        if self.header.parquet.is_none() {
            self.header.parquet = table.parquet;
        }
        for (number, columns) in (1..).zip(table.rows) {
            self.row(RowPlace { file, row: number }, columns, &[]);
        }
    }

    /// Takes in one row that stands for itself; `keys` are its columns in the order in which they stand.
    pub(crate) fn row(&mut self, place: RowPlace<'_>, columns: Map<String, Value>, keys: &[String]) {
        self.rows += 1;
        self.name_columns(keys);
        match detect::format(&columns) {
            Ok(format) => self.formed(place, format, columns, self.alone(place.file)),
            Err(message) => self.problem(place.file, Some(place.row), Fault::row(message)),
        }
    }

    /// Returns the surroundings of a row that stands for itself.
    pub(crate) fn alone<'f>(&self, file: &'f str) -> Surroundings<'f>
    where
        'c: 'f,
    {
        Surroundings { key: None, repository: None, name: file, known: self.known }
    }

    /// Takes in a row whose form is known.
    pub(crate) fn formed(
        &mut self,
        place: RowPlace<'_>,
        format: RowFormat,
        columns: Map<String, Value>,
        around: Surroundings<'_>,
    ) {
        let origin = Origin { file: place.file.to_owned(), row: place.row, format };
        match row::task(columns, origin, around) {
            Ok(task) => self.task(task),
            Err(faults) => {
                for fault in faults {
                    self.problem(place.file, Some(place.row), fault);
                }
            }
        }
    }

    /// Takes in a task, which may be one more row of a task that is there already.
    pub(crate) fn task(&mut self, task: CommitTask) {
        let place = self.places.get(&task.id).copied();
        let Some(first) = place.and_then(|place| self.tasks.get_mut(place)) else {
            self.places.insert(task.id.clone(), self.tasks.len());
            return self.tasks.push(task);
        };
        match merge(first, task) {
            Ok(faults) => self.problems.extend(faults),
            Err(problem) => self.problems.push(problem),
        }
    }

    /// Takes in the header of a file of commit tasks.
    pub(crate) fn stored_header(&mut self, place: RowPlace<'_>, bytes: &[u8]) {
        match format::from_slice::<DatasetHeader>(bytes) {
            Ok(header) => {
                self.name_columns(&header.columns);
                self.header.name = header.name;
                self.header.parquet = self.header.parquet.take().or(header.parquet);
            }
            Err(error) => self.problem(place.file, Some(place.row), Fault::row(sentence(&error))),
        }
    }

    /// Takes in a task as an import wrote it.
    pub(crate) fn stored_task(&mut self, place: RowPlace<'_>, bytes: &[u8]) {
        self.rows += 1;
        let task = match format::from_slice::<CommitTask>(bytes) {
            Ok(task) => task,
            Err(error) => return self.problem(place.file, Some(place.row), Fault::row(sentence(&error))),
        };
        if let Some(first) = self.places.get(&task.id).and_then(|at| self.tasks.get(*at)) {
            let Origin { file, row, .. } = &first.origin;
            let message = format!("the task id `{}` is taken already, by `{file}`, row {row}", task.id);
            return self.problem(place.file, Some(place.row), Fault::column("id", message));
        }
        if let Some(fault) = stored_fault(&task) {
            return self.problem(place.file, Some(place.row), fault);
        }
        self.places.insert(task.id.clone(), self.tasks.len());
        self.tasks.push(task);
    }

    /// Notes columns that weren't seen before, in their order.
    pub(crate) fn name_columns(&mut self, keys: &[String]) {
        for key in keys {
            if !self.columns.contains(key) {
                self.columns.insert(key.clone());
                self.header.columns.push(key.clone());
            }
        }
    }
}

/// Returns what in a stored task no import would have written.
fn stored_fault(task: &CommitTask) -> Option<Fault> {
    if let Err(reason) = engine::check_address(&task.repository) {
        let shown = detect::shorten(&task.repository);
        return Some(Fault::column("repository", format!("the repository `{shown}` {reason}")));
    }
    let patches = task.agents.iter().filter_map(|agent| Some((&agent.name, agent.patch.as_ref()?)));
    for (agent, patch) in patches {
        let digest = Digest::of(&patch.bytes.0);
        if digest != patch.digest {
            let message = format!(
                "the patch of agent `{agent}` has the digest {}, and its bytes have {digest}; import the dataset again",
                patch.digest
            );
            return Some(Fault::column("agents", message));
        }
    }
    given(&task.columns, Field::Commit).find_map(|(name, value)| {
        let own = value.as_str()?.trim().to_ascii_lowercase();
        let message = || format!("the commit {} is not the one of the row's own column `{name}`, `{own}`", task.commit);
        (!same_commit(task.commit.as_str(), &own)).then(|| Fault::column("commit", message()))
    })
}

/// Returns an error with its causes.
fn sentence(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Adds a task's row to the task that has its name, and returns what of it contradicts that one.
///
/// # Errors
/// Returns a problem if it isn't a row of the same commit that may stand beside it.
fn merge(first: &mut CommitTask, task: CommitTask) -> Result<Vec<Problem>, Problem> {
    let problem = |origin: &Origin, column: Option<&str>, message: String| Problem {
        file: origin.file.clone(),
        line: Some(origin.row),
        column: column.map(str::to_owned),
        message,
    };
    let place = format!("`{}`, row {}", first.origin.file, first.origin.row);
    let same = same_commit(first.commit.as_str(), task.commit.as_str());
    if !same {
        let message = format!(
            "the task `{}` is taken already by the commit {} of {place}: the first 8 digits of {} are the same",
            task.id, first.commit, task.commit
        );
        return Err(problem(&task.origin, None, message));
    }
    if task.agents.is_empty() && task.origin.format != RowFormat::Result {
        let message = format!("the commit {} is named already by {place}; leave one of the two rows", task.commit);
        return Err(problem(&task.origin, None, message));
    }
    let mut faults = Vec::new();
    for (column, found, other) in [
        ("parent_commit", first.parent.as_ref().map(Revision::as_str), task.parent.as_ref().map(Revision::as_str)),
        ("perf_command", first.command.as_deref(), task.command.as_deref()),
        ("model", first.model.as_deref(), task.model.as_deref()),
        ("server_command", first.server_command.as_deref(), task.server_command.as_deref()),
    ] {
        let equal =
            |(found, other): (&str, &str)| found == other || column == "parent_commit" && same_commit(found, other);
        if found.zip(other).is_some_and(|pair| !equal(pair)) {
            let message =
                format!("this row's `{column}` differs from that of {place}, which is the one that is planned");
            faults.push(problem(&task.origin, Some(column), message));
        }
    }
    fill(first, task);
    Ok(faults)
}

/// Returns whether two ids, whole or shortened, can be one commit's.
fn same_commit(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Adds a row to a task, and fills what the task's first row doesn't say.
fn fill(first: &mut CommitTask, task: CommitTask) {
    if task.commit.as_str().len() > first.commit.as_str().len() {
        first.commit = task.commit;
    }
    first.parent = first.parent.take().or(task.parent);
    first.subject = first.subject.take().or(task.subject);
    first.model = first.model.take().or(task.model);
    first.benchmark_kind = first.benchmark_kind.take().or(task.benchmark_kind);
    first.command = first.command.take().or(task.command);
    first.server_command = first.server_command.take().or(task.server_command);
    if first.files_changed.is_empty() {
        first.files_changed = task.files_changed;
    }
    for mut agent in task.agents {
        if first.agents.iter().any(|known| known.name == agent.name) {
            let Some(name) = with_model(&agent.name, &task.columns) else { continue };
            if first.agents.iter().any(|known| known.name == name) || !other_model(first, &task.columns) {
                continue;
            }
            agent.name = name;
        }
        first.agents.push(agent);
    }
    first.further_rows.push(FurtherRow { origin: task.origin, columns: task.columns });
}

/// Returns the name of an agent with its model, if the row names one.
fn with_model(agent: &AgentName, columns: &Map<String, Value>) -> Option<AgentName> {
    row::agent_name(&format!("{agent}-{}", model(columns)?)).ok()
}

/// Returns whether no row of the task yet has this row's agent and its model.
fn other_model(first: &CommitTask, columns: &Map<String, Value>) -> bool {
    let rows = std::iter::once(&first.columns).chain(first.further_rows.iter().map(|row| &row.columns));
    let agent = |columns| given(columns, Field::Agent).next().map(|(_, agent)| agent);
    let mut equal = rows.filter(|row| agent(row) == agent(columns) && model(row) == model(columns));
    equal.next().is_none()
}

fn model(columns: &Map<String, Value>) -> Option<&str> {
    given(columns, Field::AgentModel).next().and_then(|(_, model)| model.as_str())
}
