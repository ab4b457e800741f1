//! Installs packages with uv, or with the interpreter's own `venv` and pip where uv isn't installed.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_schema::environment::Venv;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;

use super::super::full::check_room;
use super::super::orphans;
use super::super::{EnvironmentError, PrepareContext, Stop};
use super::Interpreter;
use crate::command::{Ending, Environment, Invocation, Watch, find_program, pass_package_variables, run};

/// Lines of an installer's output that are kept as evidence.
const EVIDENCE_LINES: usize = 20;

/// How the interpreter's own pip is asked to install.
const PIP_INSTALL: &[&str] = &["-I", "-m", "pip", "install", "--no-input", "--progress-bar=off", "--no-compile"];

/// What installers write when it is the network that fails, in lower case.
const NETWORK_SIGNS: &[&str] = &[
    "connection",
    "could not resolve",
    "dns error",
    "error sending request",
    "failed to fetch",
    "name resolution",
    "network is unreachable",
    "timed out",
    "too many requests",
];

/// Returns uv, if it is installed: on the search path, or where its own installer puts it.
pub(super) fn find_uv() -> Option<PathBuf> {
    let own = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/bin/uv")).filter(|path| path.is_file());
    find_program("uv").or_else(own)
}

/// Makes a virtual environment at `place` and installs its packages. With uv they are chosen once, by the list that is kept at
/// `locked` with the hashes of every file; its digest is returned.
pub(super) fn install(
    venv: &Venv,
    base: &Interpreter,
    (place, locked): (&Path, &Path),
    context: &PrepareContext<'_>,
) -> Result<Option<Digest>, Stop> {
    for requirement in
        [&venv.requirements, &venv.overrides, &venv.no_dependencies, &venv.extra_indexes].into_iter().flatten()
    {
        check_requirement(requirement)?;
    }
    let has_packages = !venv.requirements.is_empty() || !venv.no_dependencies.is_empty();
    let uv = find_uv().filter(|_| has_packages);
    if uv.is_none() && has_packages && (!venv.overrides.is_empty() || venv.exclude_newer.is_some()) {
        let what = if venv.overrides.is_empty() {
            "bounds when packages were released"
        } else {
            "overrides what packages ask for"
        };
        let message = format!("the task {what}, which only `uv` can do; install uv");
        return Err(Failure::new(FailureStage::Acquire, FailureClass::ToolMissing, message).into());
    }
    let write_error = EnvironmentError::write(context.scratch);
    let scratch = tempfile::tempdir_in(context.scratch).map_err(write_error)?;
    let installer =
        Installer { environment: environment(scratch.path(), place, context), scratch: scratch.path(), context };
    installer.make_venv(base, place, uv.as_deref(), if has_packages { Pip::Wanted } else { Pip::Unwanted })?;
    let python = place.join("bin/python");
    let lock = match uv.as_deref().filter(|_| !venv.requirements.is_empty()) {
        None => {
            installer.install_list(venv, &python, uv.as_deref(), Dependencies::Wanted)?;
            None
        }
        Some(uv) => {
            let digest = installer.lock(venv, &python, uv, locked)?;
            installer.install_locked(venv, &python, uv, locked)?;
            Some(digest)
        }
    };
    installer.install_list(venv, &python, uv.as_deref(), Dependencies::Unwanted)?;
    Ok(lock)
}

/// Whether pip is needed later, which some systems package apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pip {
    Wanted,
    Unwanted,
}

/// Whether what a package asks for is installed as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dependencies {
    Wanted,
    Unwanted,
}

/// A line of a requirements file could also be an option, or two lines.
fn check_requirement(requirement: &str) -> Result<(), Failure> {
    let reason = if requirement.trim_start().starts_with('-') {
        "starts with `-` and would be read as an option"
    } else if requirement.trim().is_empty() || requirement.chars().any(char::is_control) {
        "is empty or has control characters"
    } else {
        return Ok(());
    };
    let message = format!("the requirement `{requirement}` {reason}");
    Err(Failure::new(FailureStage::Dataset, FailureClass::PackageInstallFailed, message))
}

fn environment(scratch: &Path, place: &Path, context: &PrepareContext<'_>) -> Environment {
    let mut environment = context.environment(scratch, scratch);
    pass_package_variables(&mut environment);
    orphans::mark(&mut environment, place);
    for (name, folder) in [("UV_CACHE_DIR", "uv"), ("PIP_CACHE_DIR", "pip")] {
        environment.entry(name.to_owned()).or_insert_with(|| context.cache.join("packages").join(folder).into());
    }
    for (name, value) in [
        // What shares its bytes with uv's own cache could be changed there by one engine for all later ones.
        ("UV_LINK_MODE", "copy"),
        ("UV_NO_PROGRESS", "1"),
        // Wheels of single commits lie in their archive under a placeholder for the version, such as `1.0.0.dev`.
        ("UV_SKIP_WHEEL_FILENAME_CHECK", "1"),
        ("UV_PYTHON_DOWNLOADS", "never"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ] {
        environment.insert(name.to_owned(), value.into());
    }
    environment
}

struct Installer<'a> {
    environment: Environment,
    scratch: &'a Path,
    context: &'a PrepareContext<'a>,
}

impl Installer<'_> {
    fn make_venv(&self, base: &Interpreter, place: &Path, uv: Option<&Path>, pip: Pip) -> Result<(), Stop> {
        let mut arguments: Vec<OsString> = Vec::new();
        let (program, what) = if let Some(uv) = uv {
            arguments.extend(["venv".into(), "--no-project".into(), "--python".into(), base.program.clone().into()]);
            (uv, "the virtual environment can't be made")
        } else {
            arguments.extend(["-I".into(), "-m".into(), "venv".into()]);
            if pip == Pip::Unwanted {
                arguments.push("--without-pip".into());
            }
            let hint = "the virtual environment can't be made; install uv, or Python's `venv` and `pip`";
            (base.program.as_path(), hint)
        };
        arguments.push(place.into());
        self.check(&self.run(program, &arguments)?, what)
    }

    fn install_list(
        &self,
        venv: &Venv,
        python: &Path,
        uv: Option<&Path>,
        dependencies: Dependencies,
    ) -> Result<(), Stop> {
        let (name, requirements) = match dependencies {
            Dependencies::Wanted => ("requirements", &venv.requirements),
            Dependencies::Unwanted => ("no-dependencies", &venv.no_dependencies),
        };
        if requirements.is_empty() {
            return Ok(());
        }
        let mut arguments: Vec<OsString> = match uv {
            Some(_) => vec!["pip".into(), "install".into(), "--python".into(), python.into()],
            None => PIP_INSTALL.iter().map(OsString::from).collect(),
        };
        for index in &venv.extra_indexes {
            arguments.extend(["--extra-index-url".into(), index.into()]);
        }
        match dependencies {
            Dependencies::Unwanted => arguments.push("--no-deps".into()),
            Dependencies::Wanted => {}
        }
        if let Some(moment) = venv.exclude_newer.as_ref().filter(|_| uv.is_some()) {
            arguments.extend(["--exclude-newer".into(), moment.as_str().into()]);
        }
        arguments.extend(["--requirement".into(), self.list(name, requirements)?.into()]);
        self.check(&self.run(uv.unwrap_or(python), &arguments)?, "the packages can't be installed")
    }

    /// Chooses the packages, unless they were chosen before: what is made again must not become something else.
    fn lock(&self, venv: &Venv, python: &Path, uv: &Path, locked: &Path) -> Result<Digest, Stop> {
        if let Ok(known) = std::fs::read(locked) {
            return Ok(Digest::of(&known));
        }
        let unfinished = self.scratch.join("locked.txt");
        let mut arguments: Vec<OsString> =
            ["pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate"]
                .map(OsString::from)
                .into();
        arguments.extend(["--python".into(), python.into(), "--output-file".into(), (&unfinished).into()]);
        for index in &venv.extra_indexes {
            arguments.extend(["--extra-index-url".into(), index.into()]);
        }
        if !venv.overrides.is_empty() {
            arguments.extend(["--override".into(), self.list("overrides", &venv.overrides)?.into()]);
        }
        if let Some(moment) = &venv.exclude_newer {
            arguments.extend(["--exclude-newer".into(), moment.as_str().into()]);
        }
        arguments.push(self.list("requirements", &venv.requirements)?.into());
        self.check(&self.run(uv, &arguments)?, "the packages can't be chosen")?;
        let bytes = std::fs::read(&unfinished).map_err(EnvironmentError::read(&unfinished))?;
        keep(locked, &bytes).map_err(EnvironmentError::write(locked))?;
        Ok(Digest::of(&bytes))
    }

    /// Installs what was chosen, each file against its hash.
    fn install_locked(&self, venv: &Venv, python: &Path, uv: &Path, locked: &Path) -> Result<(), Stop> {
        let mut arguments: Vec<OsString> = ["pip", "install", "--no-deps"].map(OsString::from).into();
        arguments.extend(["--python".into(), python.into(), "--requirement".into(), locked.into()]);
        for index in &venv.extra_indexes {
            arguments.extend(["--extra-index-url".into(), index.into()]);
        }
        self.check(&self.run(uv, &arguments)?, "the packages can't be installed")
    }

    /// Writes a list for the installer to read, one requirement a line.
    fn list(&self, name: &str, lines: &[String]) -> Result<PathBuf, EnvironmentError> {
        let path = self.scratch.join(format!("{name}.txt"));
        std::fs::write(&path, lines.join("\n") + "\n").map_err(EnvironmentError::write(&path))?;
        Ok(path)
    }

    fn run(&self, program: &Path, arguments: &[OsString]) -> Result<crate::command::Finished, Stop> {
        let invocation = Invocation::new(program, self.scratch, self.environment.clone()).with(arguments);
        let deadline = Instant::now() + self.context.timeout;
        let watch = Watch { log: self.context.log, deadline, cancel: self.context.cancel };
        let finished = run(&invocation, &watch)?;
        // Packages run code of their own to be built.
        self.context.end_strays()?;
        check_room(&finished, &[self.context.cache, self.scratch])?;
        Ok(finished)
    }

    fn check(&self, finished: &crate::command::Finished, what: &str) -> Result<(), Stop> {
        let class = match finished.ending {
            Ending::Exited(0) => return Ok(()),
            Ending::Cancelled => {
                self.context.check_cancelled()?;
                FailureClass::Interrupted
            }
            Ending::DeadlinePassed => FailureClass::BuildTimeout,
            Ending::Exited(_) | Ending::Signalled(_) => FailureClass::PackageInstallFailed,
        };
        let told: Vec<String> = finished.tail.lines().into_iter().map(|(_, line)| line.to_lowercase()).collect();
        let network = told.iter().any(|line| NETWORK_SIGNS.iter().any(|sign| line.contains(sign)));
        let message = format!("{what}: the installer {}", finished.ending);
        let failure = Failure::new(FailureStage::Acquire, class, message);
        let failure = failure.with_evidence(finished.tail.evidence(&self.context.log_name(), EVIDENCE_LINES));
        Err(if network { failure.transient() } else { failure }.into())
    }
}

/// Writes a file at once: whole, or not at all.
fn keep(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut unfinished = tempfile::NamedTempFile::new_in(folder)?;
    unfinished.write_all(bytes)?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(place)?;
    Ok(())
}
