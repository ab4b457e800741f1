//! Which Python: found, asked for its version and its packages, never running a tree's code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use serde::Deserialize;

use super::super::{PrepareContext, Stop};
use crate::command::{Invocation, RunCommandError, Watch, find_program, run_into};

/// Prints what an interpreter is and has.
const INSPECT: &str = r#"
import importlib.metadata, json, platform, sys, sysconfig
paths = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
found = {(d.metadata["Name"], d.version) for d in importlib.metadata.distributions(path=paths)}
print(json.dumps({
    "program": sys.executable,
    "version": platform.python_version(),
    "site_packages": list(dict.fromkeys(paths)),
    "packages": sorted(f"{name}=={version}" for name, version in found if name),
}))
"#;

/// Returns the options of an interpreter that runs nothing but a script of ours: `-I` keeps the working folder, `PYTHON*`
/// and the user's packages out of it, and it reads and writes no bytecode but in `scratch`, where there is none. What lies
/// in a virtual environment may be another engine's.
pub(in super::super) fn isolated(scratch: &Path) -> Vec<OsString> {
    let mut prefix = OsString::from("pycache_prefix=");
    prefix.push(scratch.join("no-bytecode"));
    vec!["-I".into(), "-B".into(), "-X".into(), prefix, "-c".into()]
}

/// A Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Interpreter {
    /// Its absolute path.
    pub(in super::super) program: PathBuf,
    /// Its version, such as `3.11.7`.
    pub(in super::super) version: String,
}

/// What an interpreter says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Inspected {
    pub(super) program: PathBuf,
    pub(super) version: String,
    pub(super) site_packages: Vec<PathBuf>,
    pub(super) packages: Vec<String>,
}

/// Returns the machine's `python3`.
pub(in super::super) fn system_python(context: &PrepareContext<'_>) -> Result<Interpreter, Stop> {
    base(None, context)
}

/// Returns the interpreter that a virtual environment is made from: a version such as `3.11`, a path, or the machine's.
pub(super) fn base(wanted: Option<&str>, context: &PrepareContext<'_>) -> Result<Interpreter, Stop> {
    let wanted = wanted.unwrap_or("python3");
    let is_version = wanted.starts_with(|c: char| c.is_ascii_digit());
    let name = if is_version { format!("python{wanted}") } else { wanted.to_owned() };
    let fits = |interpreter: &Interpreter| {
        let rest = interpreter.version.strip_prefix(wanted);
        !is_version || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // The version's own name first; then the machine's default, which may be of that version; then what uv knows of.
    let mut candidates = vec![name];
    if is_version {
        candidates.push("python3".to_owned());
    }
    for program in candidates.iter().filter_map(|name| find_program(name)) {
        if let Some(found) = probe(&program, context)?.filter(&fits) {
            return Ok(found);
        }
    }
    let known_to_uv = ask_uv(wanted, context)?.map(|program| probe(&program, context)).transpose()?.flatten();
    if let Some(found) = known_to_uv.filter(fits) {
        return Ok(found);
    }
    let message = format!("Python `{wanted}` isn't on this machine; install it and put it on the search path");
    Err(Failure::new(FailureStage::Acquire, FailureClass::ToolMissing, message).into())
}

/// Returns the interpreter if it works. A launcher of a version manager may exist and still have nothing to launch.
fn probe(program: &Path, context: &PrepareContext<'_>) -> Result<Option<Interpreter>, Stop> {
    let inspected = try_inspect(program, context)?;
    Ok(inspected.map(|found| Interpreter { program: found.program, version: found.version }))
}

/// Asks the interpreter of a virtual environment what it has.
pub(super) fn inspect(program: &Path, context: &PrepareContext<'_>) -> Result<Inspected, Stop> {
    try_inspect(program, context)?.ok_or_else(|| {
        let message = format!("the interpreter `{}` can't list its packages", program.display());
        Failure::new(FailureStage::Acquire, FailureClass::PackageInstallFailed, message).into()
    })
}

fn try_inspect(program: &Path, context: &PrepareContext<'_>) -> Result<Option<Inspected>, Stop> {
    let mut arguments = isolated(context.scratch);
    arguments.push(INSPECT.into());
    let output = output_of(program, arguments, context)?;
    // A package's start-up hook may print as well; the report is the last line.
    let last = output.as_deref().and_then(|output| output.lines().last());
    Ok(last.and_then(|line| serde_json::from_str(line).ok()))
}

fn ask_uv(wanted: &str, context: &PrepareContext<'_>) -> Result<Option<PathBuf>, Stop> {
    let Some(uv) = super::install::find_uv().filter(|_| !wanted.starts_with('-')) else { return Ok(None) };
    let arguments = ["python", "find", "--no-project", "--no-python-downloads", wanted];
    let output = output_of(&uv, arguments.map(OsString::from).into(), context)?;
    Ok(output.and_then(|output| Some(PathBuf::from(output.lines().next()?.trim()))).filter(|path| path.is_file()))
}

/// Returns what the program prints, if it can be started and succeeds.
fn output_of(program: &Path, arguments: Vec<OsString>, context: &PrepareContext<'_>) -> Result<Option<String>, Stop> {
    let environment = context.own_environment();
    let invocation = Invocation::new(program, context.scratch, environment).with(arguments);
    let deadline = Instant::now() + context.timeout;
    let watch = Watch { log: context.log, deadline, cancel: context.cancel };
    let mut output = Vec::new();
    match run_into(&invocation, &watch, &mut output) {
        Ok(finished) if finished.ending.is_success() => Ok(Some(String::from_utf8_lossy(&output).into_owned())),
        Ok(_) => {
            context.check_cancelled()?;
            Ok(None)
        }
        Err(RunCommandError::Start { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
