//! From one row to one task: what the planner reads is typed and checked, and the whole row is kept.

use isobench_schema::commit_task::{CommitTask, Origin};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{AgentName, Revision, TaskId};
use isobench_schema::task::AgentPatch;
use serde_json::{Map, Value};

use super::columns::{self, Field, describe, given, present};
use super::{KnownCommit, detect, engine};

/// How many digits of a commit are in a task's name.
const ID_DIGITS: usize = 8;

/// The largest value that a row may hold, in bytes: beyond it a dataset is data of another kind.
const LARGEST_TEXT: usize = 16 * 1024 * 1024;

/// Why a row is no task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The column at fault, if it is one.
    pub(crate) column: Option<String>,
    /// What is wrong, in one sentence that names the column.
    pub(crate) message: String,
}

impl Fault {
    /// Returns a fault of the row as a whole.
    pub(crate) fn row(message: impl Into<String>) -> Self {
        Self { column: None, message: message.into() }
    }

    /// Returns a fault of a column.
    pub(crate) fn column(column: &str, message: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), message: message.into() }
    }
}

/// What a row stands in: it fills what the row itself doesn't say.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'s> {
    /// The key of the mapping, if it is one.
    pub(crate) key: Option<&'s str>,
    /// The repository that the whole file names.
    pub(crate) repository: Option<&'s str>,
    /// The file's own name, or the name that a plan file gives its task.
    pub(crate) name: &'s str,
    /// Finds a known commit by its first digits.
    pub(crate) known: &'s dyn Fn(&str) -> Option<KnownCommit>,
}

/// Reads a row.
///
/// # Errors
/// Returns everything that is wrong with it.
pub(crate) fn task(
    columns: Map<String, Value>,
    origin: Origin,
    around: Surroundings<'_>,
) -> Result<CommitTask, Vec<Fault>> {
    let row = Reading { columns: &columns, around };
    let mut faults: Vec<Fault> = too_large(&columns).into_iter().collect();
    let mut keep = |fault| faults.push(fault);
    let commit = row.commit().map_err(&mut keep).ok();
    let parent = row.parent().map_err(&mut keep).ok().flatten();
    let subject = row.subject().map_err(&mut keep).ok().flatten();
    let model = row.model().map_err(&mut keep).ok().flatten();
    let benchmark_kind = row.text(Field::BenchmarkKind).map_err(&mut keep).ok().flatten();
    let command = row.text(Field::Command).map_err(&mut keep).ok().flatten();
    let server_command = row.text(Field::ServerCommand).map_err(&mut keep).ok().flatten();
    let files_changed = row.files_changed().map_err(&mut keep).unwrap_or_default();
    let agents = row.agents().map_err(&mut keep).unwrap_or_default();
    let engine = row.engine(commit.as_deref(), command.as_deref()).map_err(&mut keep).ok();
    let (Some(commit), Some(engine), true) = (commit, engine, faults.is_empty()) else {
        return Err(faults);
    };
    let whole = |fault: String| vec![Fault::row(fault)];
    Ok(CommitTask {
        id: task_id(engine, &commit).map_err(whole)?,
        engine,
        repository: row.repository(engine).map_err(whole)?,
        commit: Revision::new(commit).map_err(|error| whole(error.to_string()))?,
        parent: parent.map(Revision::new).transpose().map_err(|error| whole(error.to_string()))?,
        subject,
        model,
        benchmark_kind,
        command,
        server_command,
        files_changed,
        agents,
        origin,
        columns,
        further_rows: Vec::new(),
    })
}

/// Returns the name of the task of a commit.
pub(crate) fn task_id(engine: EngineKind, commit: &str) -> Result<TaskId, String> {
    let digits = commit.get(..ID_DIGITS).unwrap_or(commit);
    TaskId::new(format!("{engine}-{digits}")).map_err(|error| error.to_string())
}

/// Returns the fault of a row with a value that is too large.
fn too_large(columns: &Map<String, Value>) -> Option<Fault> {
    columns.iter().find_map(|(name, value)| {
        let bytes = text_bytes(value);
        let name = detect::shorten(name);
        let message = format!("the column `{name}` holds {bytes} bytes of text, more than {LARGEST_TEXT}");
        (bytes > LARGEST_TEXT).then(|| Fault::column(&name, message))
    })
}

/// Returns how many bytes of text a value holds.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(entries) => entries.iter().map(|(key, value)| key.len() + text_bytes(value)).sum(),
    }
}

/// Returns whether a text is a commit, whole or shortened.
pub(crate) fn is_commit(text: &str) -> bool {
    (7..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

struct Reading<'r> {
    columns: &'r Map<String, Value>,
    around: Surroundings<'r>,
}

impl Reading<'_> {
    /// Returns the commit, as whole as it is known.
    fn commit(&self) -> Result<String, Fault> {
        let found = self.commits(Field::Commit, self.around.key)?.ok_or_else(|| {
            let names = columns::names(Field::Commit);
            let column = names.iter().copied().find(|name| self.columns.contains_key(*name));
            match column {
                Some(name) => {
                    Fault::column(name, format!("the column `{name}` is empty, and no other names the commit"))
                }
                None => Fault::row("no column names a commit"),
            }
        })?;
        Ok(self.whole(found))
    }

    /// Returns the revision before the commit, if the row names it.
    fn parent(&self) -> Result<Option<String>, Fault> {
        if let Some(parent) = self.commits(Field::Parent, None)? {
            return Ok(Some(self.whole(parent)));
        }
        match self.columns.get("pre_parent_index").and_then(present) {
            None => Ok(None),
            Some(index) if index.as_u64() == Some(1) => Ok(None),
            Some(index) => {
                let message = format!(
                    "the column `pre_parent_index` is {index} and `pre` is empty: only a commit's first parent is taken \
                     unasked; give the revision in `pre`"
                );
                Err(Fault::column("pre_parent_index", message))
            }
        }
    }

    /// Returns the whole id of a shortened one, if it is known.
    fn whole(&self, commit: String) -> String {
        if commit.len() == 40 {
            return commit;
        }
        (self.around.known)(&commit).map_or(commit, |known| known.commit.as_str().to_owned())
    }

    /// Returns the commit that a field's columns name: the longest, of which each other one is the beginning.
    fn commits(&self, field: Field, key: Option<&str>) -> Result<Option<String>, Fault> {
        let mut longest: Option<(&str, String)> = None;
        let key = key.map(|key| ("key", Value::from(key)));
        let given = given(self.columns, field).map(|(name, value)| (name, value.clone()));
        for (name, value) in key.into_iter().chain(given) {
            let Value::String(text) = &value else {
                let what = describe(&value);
                let message =
                    format!("the column `{name}` is {what}, and a commit is a text of 7 to 40 hexadecimal digits");
                return Err(Fault::column(name, message));
            };
            let text = text.trim().to_ascii_lowercase();
            if !is_commit(&text) {
                let shown = detect::shorten(&text);
                let message = format!("the column `{name}` is `{shown}`, and a commit has 7 to 40 hexadecimal digits");
                return Err(Fault::column(name, message));
            }
            longest = Some(match longest {
                Some((first, found)) if found.starts_with(&text) => (first, found),
                Some((_, found)) if text.starts_with(&found) => (name, text),
                Some((first, found)) => {
                    let message = format!("the column `{name}` is `{text}`, but `{first}` is `{found}`");
                    return Err(Fault::column(name, message));
                }
                None => (name, text),
            });
        }
        Ok(longest.map(|(_, commit)| commit))
    }

    /// Returns the text of a field; several columns that differ are a fault.
    fn text(&self, field: Field) -> Result<Option<String>, Fault> {
        let mut found: Option<(&str, &str)> = None;
        for (name, value) in given(self.columns, field) {
            let text = as_text(name, value)?;
            match found {
                Some((first, other)) if other != text => {
                    let message = format!("the columns `{first}` and `{name}` differ; leave one of them");
                    return Err(Fault::column(name, message));
                }
                Some(_) => {}
                None => found = Some((name, text)),
            }
        }
        Ok(found.map(|(_, text)| text.to_owned()))
    }

    /// Returns the commit's subject line.
    fn subject(&self) -> Result<Option<String>, Fault> {
        let Some((name, value)) = given(self.columns, Field::Subject).next() else { return Ok(None) };
        Ok(as_text(name, value)?.lines().next().map(|line| line.trim_end().to_owned()))
    }

    /// Returns the model.
    fn model(&self) -> Result<Option<String>, Fault> {
        let Some((name, value)) = given(self.columns, Field::Model).next() else { return Ok(None) };
        let first = match value {
            Value::Array(items) => items.iter().find_map(present).unwrap_or(value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => value,
        };
        Ok(Some(as_text(name, first)?.trim().to_owned()))
    }

    /// Returns the files that the commit changes.
    fn files_changed(&self) -> Result<Vec<String>, Fault> {
        let Some((name, value)) = given(self.columns, Field::FilesChanged).next() else { return Ok(Vec::new()) };
        let Value::Array(items) = value else {
            return Err(Fault::column(
                name,
                format!("the column `{name}` is {}, and a list of paths is meant", describe(value)),
            ));
        };
        items.iter().map(|item| as_text(name, item).map(str::to_owned)).collect()
    }

    /// Returns the agent whose result the row holds.
    fn agents(&self) -> Result<Vec<AgentPatch>, Fault> {
        let Some((name, value)) = given(self.columns, Field::Agent).next() else { return Ok(Vec::new()) };
        let agent = agent_name(as_text(name, value)?)
            .map_err(|error| Fault::column(name, format!("the column `{name}`: {error}")))?;
        Ok(vec![AgentPatch { name: agent, patch: None }])
    }

    /// Returns the engine: what the row's columns name, else what the whole file names, else whose program the command runs,
    /// else whose commit it is known to be.
    fn engine(&self, commit: Option<&str>, command: Option<&str>) -> Result<EngineKind, Fault> {
        let mut found: Option<(&str, EngineKind)> = None;
        for (name, value) in given(self.columns, Field::Engine) {
            let Some(engine) = value.as_str().and_then(engine::named) else { continue };
            match found {
                Some((first, other)) if other != engine => {
                    let message = format!("the column `{name}` names {engine}, but `{first}` names {other}");
                    return Err(Fault::column(name, message));
                }
                Some(_) => {}
                None => found = Some((name, engine)),
            }
        }
        let known = || commit.and_then(|commit| (self.around.known)(commit)).map(|known| known.engine);
        found
            .map(|(_, engine)| engine)
            .or_else(|| self.around.repository.and_then(engine::named))
            .or_else(|| command.and_then(engine::commanded))
            .or_else(known)
            .or_else(|| engine::named(self.around.name))
            .ok_or_else(|| self.no_engine())
    }

    /// Returns the fault of a row that names no engine.
    fn no_engine(&self) -> Fault {
        let expected = format!("expected {}", engine::names());
        match given(self.columns, Field::Engine).next() {
            Some((name, value)) => {
                let shown = value
                    .as_str()
                    .map_or_else(|| describe(value).to_owned(), |text| format!("`{}`", detect::shorten(text)));
                Fault::column(
                    name,
                    format!("the column `{name}` is {shown}, which names no engine that is known; {expected}"),
                )
            }
            None => Fault::row(format!(
                "nothing names the engine that the commit belongs to; give `project` or `repo`: {expected}"
            )),
        }
    }

    /// Returns the address of the repository: the row's own, else the file's, else the engine's.
    fn repository(&self, engine: EngineKind) -> Result<String, String> {
        let own = self.columns.get("repo").and_then(present).and_then(Value::as_str).and_then(engine::address);
        let own = own.or_else(|| self.around.repository.and_then(engine::address));
        let own = own.or_else(|| engine::repository(engine).map(str::to_owned));
        own.ok_or_else(|| format!("the engine {engine} has no repository of its own; give `repo`"))
    }
}

/// Returns the name of an agent's arm: what isn't fit for a name is a hyphen.
pub(crate) fn agent_name(text: &str) -> Result<AgentName, String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    AgentName::new(text.trim().chars().map(plain).collect::<String>()).map_err(|error| error.to_string())
}

fn as_text<'v>(name: &str, value: &'v Value) -> Result<&'v str, Fault> {
    value
        .as_str()
        .ok_or_else(|| Fault::column(name, format!("the column `{name}` is {} where a text is meant", describe(value))))
}
