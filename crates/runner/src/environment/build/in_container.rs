//! A build command in a container: what it sees of this machine, and what its end means.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::super::native::tools;
use super::super::venv::{Interpreter, VenvRecord};
use super::super::{EnvironmentError, PrepareContext, Stop};
use super::{Inside, check, empty, not_started};
use crate::command::{Ending, Finished, Tail};
use crate::container::{BuildCommand, ContainerError, Ended, ask, run_build, with_cause};

/// Folders that every image has its own of: an interpreter in one of them must be the image's.
const OF_SYSTEMS: &[&str] = &["/", "/usr", "/usr/local"];

pub(super) fn run_one(
    command: &[OsString],
    inside: &Inside<'_>,
    (python, venv): (Option<&Interpreter>, Option<&VenvRecord>),
    context: &PrepareContext<'_>,
) -> Result<(), Stop> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let command: Vec<String> = command.iter().map(text).collect();
    let Some(program) = command.first().cloned() else { return Err(empty().into()) };
    let (toolkit, tree) = (inside.toolkit, inside.build.tree);
    let image = &toolkit.image;
    let shown = command.join(" ");
    let line = format!("$ {shown}\n# in a container of {}, {}\n", image.name, image.id);
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(context.log);
    let logged = log.as_mut().map_err(|error| std::io::Error::new(error.kind(), error.to_string()));
    logged.and_then(|log| log.write_all(line.as_bytes())).map_err(EnvironmentError::write(context.log))?;
    let begun = Instant::now();
    let reads = venv.map(|venv| venv.folder.clone()).into_iter().chain(python.and_then(own_folder));
    let memory_bytes = tools::bound(inside.build.memory_per_job_mib);
    let build = BuildCommand {
        toolkit,
        command,
        environment: inside.environment.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        programs: venv.and_then(VenvRecord::programs).map(Path::to_owned),
        folder: tree.to_owned(),
        writes: inside.writes.iter().map(|path| (*path).to_owned()).collect(),
        reads: reads.collect(),
        memory_bytes,
    };
    let watched = ask(run_build(&build, context)).map_err(unable)?;
    let (ending, lacked) = match watched.ended {
        Ended::Refused(why) => {
            let why = format!("{why}; in a container of {}", image.name);
            return Err(not_started(&program, &why).into());
        }
        Ended::LackedMemory(code) => (Ending::Exited(i32::try_from(code).unwrap_or(-1)), true),
        Ended::Exited(code) => (Ending::Exited(i32::try_from(code).unwrap_or(-1)), false),
        Ended::TooLate => (Ending::DeadlinePassed, false),
        Ended::Cancelled => (Ending::Cancelled, false),
    };
    let tail = Tail::read(context.log, watched.since).map_err(EnvironmentError::read(context.log))?;
    let finished = Finished { ending, duration: begun.elapsed(), tail };
    match check(&finished, (&shown, tree), context) {
        Err(Stop::Failed(failure)) if lacked => {
            let bound = memory_bytes.map_or_else(String::new, |bytes| format!(" within its bound of {bytes} bytes"));
            let line = format!("the kernel killed a process of the container for want of memory{bound}");
            Err(failure.with_evidence([EvidenceLine::new("container", None, &line)]).into())
        }
        checked => checked,
    }
}

/// Returns the folder of an interpreter that brings all its files along, as those that uv installs do.
fn own_folder(python: &Interpreter) -> Option<PathBuf> {
    let program = python.program.canonicalize().ok()?;
    let folder = program.parent()?.parent()?;
    let is_own = !OF_SYSTEMS.iter().any(|system| folder == Path::new(system));
    is_own.then(|| folder.to_owned())
}

/// Returns what it means that a daemon couldn't do its part: a full disk is this machine's, all else the arm's.
fn unable(error: ContainerError) -> Stop {
    if let ContainerError::File { path, source } = error {
        return EnvironmentError::Write { path: path.into(), source }.into();
    }
    let text = with_cause(&error);
    let line = EvidenceLine::new("container", None, &text);
    let failure = Failure::new(FailureStage::Build, FailureClass::ContainerRefused, text);
    failure.with_evidence([line]).into()
}
