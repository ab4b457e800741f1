//! Build commands, run in the tree one after the other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::full::check_room;
use super::venv::{Interpreter, VenvRecord};
use super::{EnvironmentError, PrepareContext, Stop};
use crate::command::{Ending, Environment, Invocation, RunCommandError, Watch, run};

/// Lines of a build's output that are kept as evidence.
const EVIDENCE_LINES: usize = 20;

/// What every build gets, so that equal trees are built into equal files as far as the tools follow it.
const REPRODUCIBLE: &[(&str, &str)] =
    &[("SOURCE_DATE_EPOCH", "315532800"), ("PYTHONHASHSEED", "0"), ("PYTHONDONTWRITEBYTECODE", "1")];

/// Where build tools look for how many jobs they may run.
const JOBS: &[&str] = &["MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL", "CARGO_BUILD_JOBS"];

/// Commands to run in a tree.
pub(super) struct Commands<'a> {
    /// The commands, each an argument list. `{python}`, `{tree}` and `{jobs}` are replaced.
    pub(super) lists: &'a [Vec<String>],
    /// Variables for them.
    pub(super) variables: &'a BTreeMap<String, String>,
    /// The folder that they are run in.
    pub(super) tree: &'a Path,
    /// How many jobs may run at once, where somebody has reckoned it.
    pub(super) jobs: Option<u32>,
}

/// Runs build commands one after the other, with the interpreter and the virtual environment that are given.
pub(super) fn run_all(
    build: &Commands<'_>,
    (python, venv): (Option<&Interpreter>, Option<&VenvRecord>),
    context: &PrepareContext<'_>,
) -> Result<(), Stop> {
    if build.lists.is_empty() {
        return Ok(());
    }
    let write_error = EnvironmentError::write(context.scratch);
    let home = tempfile::tempdir_in(context.scratch).map_err(&write_error)?;
    let tmp = tempfile::tempdir_in(context.scratch).map_err(&write_error)?;
    let mut environment = context.environment(home.path(), tmp.path());
    environment.extend(REPRODUCIBLE.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    if let Some(jobs) = build.jobs {
        let jobs = jobs.to_string();
        environment.extend(JOBS.iter().map(|name| ((*name).to_owned(), jobs.clone().into())));
        environment.insert("MAKEFLAGS".to_owned(), format!("-j{jobs}").into());
    }
    if let Some(venv) = venv {
        venv.add_to(&mut environment);
    }
    environment.extend(build.variables.iter().map(|(name, value)| (name.clone(), value.into())));
    for command in build.lists {
        let filled = command.iter().map(|argument| fill(argument, build, python));
        run_one(&filled.collect::<Vec<_>>(), build.tree, &environment, context)?;
    }
    Ok(())
}

/// Replaces `{python}`, `{tree}` and `{jobs}`.
fn fill(argument: &str, build: &Commands<'_>, python: Option<&Interpreter>) -> OsString {
    let mut filled = argument.replace("{tree}", &build.tree.to_string_lossy());
    if let Some(python) = python {
        filled = filled.replace("{python}", &python.program.to_string_lossy());
    }
    if let Some(jobs) = build.jobs {
        filled = filled.replace("{jobs}", &jobs.to_string());
    }
    filled.into()
}

fn run_one(
    command: &[OsString],
    tree: &Path,
    environment: &Environment,
    context: &PrepareContext<'_>,
) -> Result<(), Stop> {
    let Some((program, arguments)) = command.split_first() else {
        let message = "a build command is empty";
        return Err(Failure::new(FailureStage::Build, FailureClass::BuildFailed, message).into());
    };
    let invocation = Invocation::new(program, tree, environment.clone()).with(arguments);
    let deadline = Instant::now() + context.timeout;
    let watch = Watch { log: context.log, deadline, cancel: context.cancel };
    let shown = invocation.line();
    let finished = match run(&invocation, &watch) {
        Ok(finished) => finished,
        Err(RunCommandError::Start { source, .. }) => {
            let message = format!("the build program `{}` can't be started", program.display());
            let line = EvidenceLine::new("spawn", None, &source.to_string());
            let failure = Failure::new(FailureStage::Build, FailureClass::ToolMissing, message);
            return Err(failure.with_evidence([line]).into());
        }
        Err(error) => return Err(error.into()),
    };
    // What it has left running could change the tree after it was read, or disturb a measurement.
    context.end_strays()?;
    check_room(&finished, &[tree, context.scratch])?;
    let class = match finished.ending {
        Ending::Exited(0) => return Ok(()),
        Ending::Cancelled => {
            context.check_cancelled()?;
            FailureClass::Interrupted
        }
        Ending::DeadlinePassed => FailureClass::BuildTimeout,
        Ending::Exited(_) | Ending::Signalled(_) => FailureClass::BuildFailed,
    };
    let failure = Failure::new(FailureStage::Build, class, format!("the build command `{shown}` {}", finished.ending));
    Err(failure.with_evidence(finished.tail.evidence(&context.log_name(), EVIDENCE_LINES)).into())
}
