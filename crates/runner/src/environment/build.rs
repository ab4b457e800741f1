//! Build commands, run in the tree one after the other: on this machine, or each in a container of a toolkit image.

mod in_container;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use isobench_schema::environment::Toolkit;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::full::check_room;
use super::orphans;
use super::venv::{Interpreter, VenvRecord};
use super::{EnvironmentError, PrepareContext, Stop};
use crate::command::{Ending, Environment, Finished, Invocation, RunCommandError, Watch, run};

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
    /// A folder of compiled objects that they may read and write, besides.
    pub(super) objects: Option<&'a Path>,
    /// Main memory that one job needs, in MiB: it bounds how many run at once.
    pub(super) memory_per_job_mib: u32,
    /// How many jobs may run at once.
    pub(super) jobs: u32,
    /// The container that they run in; this machine itself if absent.
    pub(super) toolkit: Option<&'a Toolkit>,
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
    let jobs = build.jobs.to_string();
    environment.extend(JOBS.iter().map(|name| ((*name).to_owned(), jobs.clone().into())));
    environment.insert("MAKEFLAGS".to_owned(), format!("-j{jobs}").into());
    if build.toolkit.is_some() {
        // The image says where its programs are.
        environment.remove("PATH");
    }
    if let Some(venv) = venv {
        match build.toolkit {
            None => venv.add_to(&mut environment),
            Some(_) => drop(environment.insert("VIRTUAL_ENV".to_owned(), venv.place().into())),
        }
    }
    environment.extend(build.variables.iter().map(|(name, value)| (name.clone(), value.into())));
    orphans::mark(&mut environment, build.tree);
    let writes: Vec<&Path> = [build.tree, home.path(), tmp.path()].into_iter().chain(build.objects).collect();
    for command in build.lists {
        let filled: Vec<OsString> = command.iter().map(|argument| fill(argument, build, python)).collect();
        match build.toolkit {
            None => run_one(&filled, build.tree, &environment, context)?,
            Some(toolkit) => {
                let inside = Inside { build, toolkit, environment: &environment, writes: &writes };
                in_container::run_one(&filled, &inside, (python, venv), context)?;
            }
        }
    }
    Ok(())
}

/// What a build command in a container is run with.
pub(super) struct Inside<'a> {
    build: &'a Commands<'a>,
    toolkit: &'a Toolkit,
    environment: &'a Environment,
    writes: &'a [&'a Path],
}

/// Replaces `{python}`, `{tree}` and `{jobs}`.
fn fill(argument: &str, build: &Commands<'_>, python: Option<&Interpreter>) -> OsString {
    let mut filled = argument.replace("{tree}", &build.tree.to_string_lossy());
    if let Some(python) = python {
        filled = filled.replace("{python}", &python.program.to_string_lossy());
    }
    filled.replace("{jobs}", &build.jobs.to_string()).into()
}

fn run_one(
    command: &[OsString],
    tree: &Path,
    environment: &Environment,
    context: &PrepareContext<'_>,
) -> Result<(), Stop> {
    let Some((program, arguments)) = command.split_first() else { return Err(empty().into()) };
    let invocation = Invocation::new(program, tree, environment.clone()).with(arguments);
    let deadline = Instant::now() + context.timeout;
    let watch = Watch { log: context.log, deadline, cancel: context.cancel };
    let shown = invocation.line();
    let finished = match run(&invocation, &watch) {
        Ok(finished) => finished,
        Err(RunCommandError::Start { source, .. }) => {
            return Err(not_started(&program.to_string_lossy(), &source.to_string()).into());
        }
        Err(error) => return Err(error.into()),
    };
    // What it has left running could change the tree after it was read, or disturb a measurement.
    context.end_strays()?;
    check(&finished, (&shown, tree), context)
}

fn empty() -> Failure {
    Failure::new(FailureStage::Build, FailureClass::BuildFailed, "a build command is empty")
}

fn not_started(program: &str, why: &str) -> Failure {
    let message = format!("the build program `{program}` can't be started");
    let line = EvidenceLine::new("spawn", None, why);
    Failure::new(FailureStage::Build, FailureClass::ToolMissing, message).with_evidence([line])
}

/// Returns what the end of a build command means.
fn check(finished: &Finished, (shown, tree): (&str, &Path), context: &PrepareContext<'_>) -> Result<(), Stop> {
    check_room(finished, &[tree, context.scratch])?;
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
