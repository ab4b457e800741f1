//! `isobench import`: reads a dataset as it was published, and writes it as commit tasks. Results of an earlier system go
//! to [`super::import_legacy`].

use std::io;
use std::path::Path;

use isobench_plan::dataset::Dataset;
use isobench_plan::intake::to_lines;
use isobench_schema::plan::Problem;
use isobench_store::{StoreError, layout, write_named, write_new_atomically};
use serde::Serialize;

use super::{Context, import_legacy};
use crate::args::{ImportArgs, ImportAsArg};
use crate::dataset_files;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::legacy_files;

/// How many problems the error of a dataset without tasks shows.
const PROBLEMS_SHOWN: usize = 8;

/// What became of a dataset, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'d> {
    /// The file that was written.
    out: &'d Path,
    /// Rows that were read.
    rows: u64,
    /// Tasks that they became.
    tasks: usize,
    /// Rows that were written.
    written: usize,
    /// What can't be read.
    problems: &'d [Problem],
}

/// Runs the command.
pub(crate) fn run(args: &ImportArgs, context: Context) -> Result<Exit, CommandError> {
    let is_legacy = match args.kind {
        Some(ImportAsArg::Legacy) => true,
        Some(ImportAsArg::Dataset) => false,
        None => legacy_files::looks_legacy(&args.source),
    };
    if is_legacy { import_legacy::run(args, context) } else { dataset(args, context) }
}

/// Imports a dataset.
fn dataset(args: &ImportArgs, context: Context) -> Result<Exit, CommandError> {
    if args.out.is_none() && context.json {
        let error = CommandError::new(Exit::Usage, "`--json` prints a summary where the tasks would go");
        return Err(error.hint("give `--out FILE.jsonl`"));
    }
    if let Some(out) = &args.out {
        may_write(out, args.force)?;
    }
    let dataset = read(&args.source)?;
    let text = to_lines(&dataset.header, &dataset.commit_tasks).exit(Exit::Error)?;
    let Some(out) = &args.out else {
        context.terminal.data(&text);
        return Ok(report(&dataset, context));
    };
    has_tasks(&dataset, &args.source)?;
    write(out, text.as_bytes(), args.force)?;
    finish(&dataset, out, dataset.commit_tasks.len(), context)
}

/// Reads a dataset of rows that name commits.
///
/// # Errors
/// Returns an error if it can't be read, or if none of its rows is such a task.
pub(crate) fn read(source: &Path) -> Result<Dataset, CommandError> {
    let dataset = dataset_files::open(source, &[]).exit(Exit::Usage)?;
    if !dataset.tasks.is_empty() {
        let message = format!(
            "`{}` holds {} with the keys of `task.toml`, not rows that name commits",
            source.display(),
            counted(dataset.tasks.len(), "task")
        );
        let hint = if source.join(layout::PLAN).is_file() {
            "`isobench export --format legacy` writes the results of a run"
        } else {
            "what has such keys can be planned as it is: `isobench plan`"
        };
        return Err(CommandError::new(Exit::Usage, message).hint(hint));
    }
    Ok(dataset)
}

/// Checks that nothing is lost if a file is written.
///
/// # Errors
/// Returns an error if the file is there and may not be replaced.
pub(crate) fn may_write(out: &Path, force: bool) -> Result<(), CommandError> {
    // A link that leads nowhere is there too.
    if !force && out.symlink_metadata().is_ok() { Err(is_there(out)) } else { Ok(()) }
}

fn is_there(out: &Path) -> CommandError {
    let message = format!("the file `{}` is there already", out.display());
    CommandError::new(Exit::Usage, message).hint("give another name, or `--force` to replace it")
}

/// Writes a file, in the place of one that is there only if `force` is set.
///
/// # Errors
/// Returns an error if the file is there and may not be replaced, or can't be written.
pub(crate) fn write(out: &Path, bytes: &[u8], force: bool) -> Result<(), CommandError> {
    let written = if force { write_named(out, bytes) } else { write_new_atomically(out, bytes) };
    written.map_err(|error| match error {
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => is_there(out),
        other @ (StoreError::Io { .. } | StoreError::DiskFull { .. }) => super::write_error(other),
    })
}

/// Checks that a dataset has something to write.
///
/// # Errors
/// Returns an error that names what can't be read if there is no task.
pub(crate) fn has_tasks(dataset: &Dataset, source: &Path) -> Result<(), CommandError> {
    if !dataset.commit_tasks.is_empty() {
        return Ok(());
    }
    let message = format!("`{}` holds no task that can be read, so that nothing is written", source.display());
    let shown = dataset.problems.iter().take(PROBLEMS_SHOWN).map(sentence);
    let more = dataset.problems.len().saturating_sub(PROBLEMS_SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    let lines: Vec<String> = std::iter::once(message).chain(shown).chain(more).collect();
    Err(CommandError::new(Exit::Usage, lines.join("\n  ")))
}

/// Says what was written and what couldn't be read.
pub(crate) fn finish(dataset: &Dataset, out: &Path, written: usize, context: Context) -> Result<Exit, CommandError> {
    if context.json {
        let (rows, tasks) = (dataset.rows, dataset.commit_tasks.len());
        context.print_json(&Summary { out, rows, tasks, written, problems: &dataset.problems })?;
    }
    let exit = report(dataset, context);
    context.terminal.status(&format!("wrote {}", out.display()));
    Ok(exit)
}

/// Says what was read, with every problem.
fn report(dataset: &Dataset, context: Context) -> Exit {
    for problem in &dataset.problems {
        context.terminal.status(&sentence(problem));
    }
    let rows = usize::try_from(dataset.rows).unwrap_or(usize::MAX);
    let (tasks, problems) = (dataset.commit_tasks.len(), dataset.problems.len());
    context.terminal.status(&format!(
        "read {}: {}, {}",
        counted(rows, "row"),
        counted(tasks, "task"),
        counted(problems, "problem")
    ));
    if problems == 0 { Exit::Success } else { Exit::SomeFailed }
}

/// Returns a count with its noun.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Returns a problem as one line: file, row, what is wrong. The message names the column.
pub(super) fn sentence(problem: &Problem) -> String {
    let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
    let text = format!("{}{line}: {}", problem.file, problem.message);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
