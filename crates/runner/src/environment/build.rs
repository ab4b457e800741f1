//! Build commands, run in the tree one after the other.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use isobench_schema::environment::EnvironmentSpec;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::venv::{Interpreter, VenvRecord};
use super::{EnvironmentError, PrepareContext, Stop};
use crate::command::{Ending, Environment, Invocation, RunCommandError, Watch, run};

/// Lines of a build's output that are kept as evidence.
const EVIDENCE_LINES: usize = 20;

/// What every build gets, so that equal trees are built into equal files as far as the tools follow it.
const REPRODUCIBLE: &[(&str, &str)] =
    &[("SOURCE_DATE_EPOCH", "315532800"), ("PYTHONHASHSEED", "0"), ("PYTHONDONTWRITEBYTECODE", "1")];

/// Runs the build commands of `spec` in `tree`.
pub(super) fn build(
    spec: &EnvironmentSpec,
    tree: &Path,
    python: Option<&Interpreter>,
    venv: Option<&VenvRecord>,
    context: &PrepareContext<'_>,
) -> Result<(), Stop> {
    if spec.build.is_empty() {
        return Ok(());
    }
    let write_error = EnvironmentError::write(context.scratch);
    let home = tempfile::tempdir_in(context.scratch).map_err(&write_error)?;
    let tmp = tempfile::tempdir_in(context.scratch).map_err(&write_error)?;
    let mut environment = context.environment(home.path(), tmp.path());
    environment.extend(REPRODUCIBLE.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    if let Some(venv) = venv {
        venv.add_to(&mut environment);
    }
    environment.extend(spec.build_environment.iter().map(|(name, value)| (name.clone(), value.into())));
    for command in &spec.build {
        let filled = command.iter().map(|argument| fill(argument, tree, python));
        run_one(&filled.collect::<Vec<_>>(), tree, &environment, context)?;
    }
    Ok(())
}

/// Replaces `{python}` and `{tree}`.
fn fill(argument: &str, tree: &Path, python: Option<&Interpreter>) -> OsString {
    let mut filled = argument.replace("{tree}", &tree.to_string_lossy());
    if let Some(python) = python {
        filled = filled.replace("{python}", &python.program.to_string_lossy());
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
