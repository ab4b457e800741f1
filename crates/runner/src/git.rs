//! Git repositories of strangers: opened without hooks, filters, submodules or odd transports.

mod address;
mod export;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_schema::facts::ResolvedRevision;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{CommitId, Digest, Revision};

use crate::command::{Environment, Finished, Invocation, Watch, find_program};
use crate::command::{pass_variables, run, run_into};
use crate::environment::lock::FolderLock;
use crate::environment::{EnvironmentError, PrepareContext, Stop, split};

pub use address::{Address, BadAddressError};
pub use export::Exported;

/// Lines of git's output that are kept as evidence.
const EVIDENCE_LINES: usize = 8;

/// Variables that tell how the network is reached. Only clones and fetches get them.
const NETWORK_VARIABLES: &[&str] = &[
    "GIT_SSL_CAINFO",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SSH_AUTH_SOCK",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Settings of every git command. They win over whatever the repository's own configuration says.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.symlinks=true",
    "core.pager=cat",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
    "transfer.fsckObjects=false",
    "safe.directory=*",
];

/// A repository that can be read.
#[derive(Debug)]
pub struct Repository {
    address: Address,
    /// The git directory: the repository's own, or that of the mirror in the cache.
    git_dir: PathBuf,
    /// Whether the mirror was fetched by this value already.
    fetched: Cell<bool>,
}

impl Repository {
    /// Opens the repository at `address`: a folder is used in place, a URL is mirrored into the cache.
    ///
    /// # Errors
    /// The outer error is the tool's own inability; the inner failure says why the repository can't be had.
    pub fn open(address: &str, context: &PrepareContext<'_>) -> Result<Result<Self, Failure>, EnvironmentError> {
        split(Self::try_open(address, context))
    }

    fn try_open(address: &str, context: &PrepareContext<'_>) -> Result<Self, Stop> {
        let address = Address::parse(address).map_err(|error| unavailable(error.to_string()))?;
        let (git_dir, fetched) = match &address {
            Address::Local(folder) => (find_git_dir(folder, context)?, true),
            Address::Remote { url, .. } => mirror(&address, url, context)?,
        };
        Ok(Self { address, git_dir, fetched: Cell::new(fetched) })
    }

    /// Looks up the commit that `revision` names, as [`Repository::resolve_all`] does.
    ///
    /// # Errors
    /// Returns an error if git can't be run at all.
    pub fn resolve(
        &self,
        revision: &Revision,
        context: &PrepareContext<'_>,
    ) -> Result<ResolvedRevision, EnvironmentError> {
        Ok(match split(self.try_resolve(revision, context))? {
            Ok(commit) => ResolvedRevision::Found { commit },
            Err(failure) => ResolvedRevision::Missing { failure },
        })
    }

    /// Looks up the commits that `revisions` name, in their order. However many they are, git is started at most thrice.
    ///
    /// A mirror is fetched first, once, if one of them is a name, which may have moved, or a commit that it lacks.
    ///
    /// # Errors
    /// Returns an error if git can't be run at all.
    pub fn resolve_all(
        &self,
        revisions: &[Revision],
        context: &PrepareContext<'_>,
    ) -> Result<Vec<ResolvedRevision>, EnvironmentError> {
        let mut found = Vec::with_capacity(revisions.len());
        match split(self.try_resolve_all(revisions, context))? {
            Ok(looked_up) => {
                for result in looked_up {
                    found.push(match result {
                        Ok(commit) => ResolvedRevision::Found { commit },
                        Err(failure) => ResolvedRevision::Missing { failure },
                    });
                }
            }
            Err(failure) => found.resize(revisions.len(), ResolvedRevision::Missing { failure }),
        }
        Ok(found)
    }

    fn try_resolve(&self, revision: &Revision, context: &PrepareContext<'_>) -> Result<CommitId, Stop> {
        let found = self.try_resolve_all(std::slice::from_ref(revision), context)?;
        Ok(found.into_iter().next().unwrap_or_else(|| Err(self.not_found(revision)))?)
    }

    fn try_resolve_all(
        &self,
        revisions: &[Revision],
        context: &PrepareContext<'_>,
    ) -> Result<Vec<Result<CommitId, Failure>>, Stop> {
        // What an old mirror says of a name doesn't count: the name may have moved since.
        let counts = |revision: &Revision| self.fetched.get() || CommitId::new(revision.as_str()).is_ok();
        let mut found = self.look_up(revisions, &counts, context)?;
        let mut fetching = None;
        if !self.fetched.get() && found.iter().any(Option::is_none) {
            match split(self.fetch(context))? {
                Ok(()) => found = self.look_up(revisions, &|_| true, context)?,
                // The commits that the mirror has are there all the same.
                Err(failure) => fetching = Some(failure),
            }
        }
        let missing = |revision: &Revision| fetching.clone().unwrap_or_else(|| self.not_found(revision));
        Ok(found.into_iter().zip(revisions).map(|(found, revision)| found.ok_or_else(|| missing(revision))).collect())
    }

    fn not_found(&self, revision: &Revision) -> Failure {
        let hint = match &self.address {
            Address::Local(_) if self.git_dir.join("shallow").exists() => {
                "the clone is shallow: fetch its whole history with `git fetch --unshallow`"
            }
            Address::Local(_) => "fetch it into the repository, or check the spelling",
            Address::Remote { .. } => "check the spelling, or name a repository that has it",
        };
        let message = format!("the repository `{}` has no revision `{revision}`; {hint}", self.address);
        Failure::new(FailureStage::Acquire, FailureClass::RevisionNotFound, message)
    }

    /// Looks up those of `revisions` that `counts` takes, all by one git command.
    fn look_up(
        &self,
        revisions: &[Revision],
        counts: &dyn Fn(&Revision) -> bool,
        context: &PrepareContext<'_>,
    ) -> Result<Vec<Option<CommitId>>, Stop> {
        let mut found = vec![None; revisions.len()];
        let asked: Vec<(&Revision, &mut Option<CommitId>)> =
            revisions.iter().zip(&mut found).filter(|(revision, _)| counts(revision)).collect();
        if asked.is_empty() {
            return Ok(found);
        }
        let git = Git::local(&self.git_dir, context)?;
        // A revision holds no line end and none of git's syntax, so it is never a second question or a range.
        let questions = asked.iter().map(|(revision, _)| format!("{revision}^{{commit}}"));
        let mut invocation = git.invocation(["cat-file", "--batch-check=%(objectname)"]);
        invocation.stdin = Some(git.input(questions)?);
        let mut output = Vec::new();
        let finished = run_into(&invocation, &git.watch(), &mut output)?;
        git.check(&finished, || format!("the revisions of `{}` can't be looked up", self.address))?;
        let output = String::from_utf8_lossy(&output);
        for ((_, found), answer) in asked.into_iter().zip(output.lines()) {
            // Any other answer, such as `NAME missing`, is no commit.
            *found = CommitId::new(answer).ok();
        }
        Ok(found)
    }

    fn fetch(&self, context: &PrepareContext<'_>) -> Result<(), Stop> {
        let Address::Remote { protocol, .. } = &self.address else { return Ok(()) };
        let _lock = FolderLock::take(&self.git_dir.with_extension("lock"), context)?;
        let git = Git::remote(Some(&self.git_dir), protocol, context)?;
        let finished = git.run(["fetch", "--prune", "--no-recurse-submodules", "origin"])?;
        git.check(&finished, || format!("the repository `{}` can't be fetched", self.address))?;
        self.fetched.set(true);
        Ok(())
    }

    /// Returns what one git command prints that reads `lines` and only looks at the repository.
    pub(crate) fn ask(
        &self,
        arguments: &[&str],
        lines: impl Iterator<Item = impl Display>,
        context: &PrepareContext<'_>,
    ) -> Result<Vec<u8>, Stop> {
        let git = Git::local(&self.git_dir, context)?;
        let mut invocation = git.invocation(arguments);
        invocation.stdin = Some(git.input(lines)?);
        let mut output = Vec::new();
        let finished = run_into(&invocation, &git.watch(), &mut output)?;
        let what = arguments.first().copied().unwrap_or_default();
        git.check(&finished, || format!("the history of `{}` can't be read by `git {what}`", self.address))?;
        Ok(output)
    }

    /// Returns whether history is cut off somewhere, so that a commit may seem to have no parent.
    pub(crate) fn is_shallow(&self) -> bool {
        self.git_dir.join("shallow").exists()
    }

    /// Writes the tree of `commit` as plain files into the new folder `folder`: no `.git`, no filters, fixed times.
    ///
    /// # Errors
    /// The outer error is the tool's own inability; the inner failure says why the tree can't be had or isn't safe.
    pub fn export(
        &self,
        commit: &CommitId,
        folder: &Path,
        context: &PrepareContext<'_>,
    ) -> Result<Result<Exported, Failure>, EnvironmentError> {
        split(self.try_export(commit, folder, context))
    }

    pub(crate) fn try_export(
        &self,
        commit: &CommitId,
        folder: &Path,
        context: &PrepareContext<'_>,
    ) -> Result<Exported, Stop> {
        let revision = Revision::new(commit.as_str())
            .map_err(|error| Failure::new(FailureStage::Acquire, FailureClass::RevisionNotFound, error.to_string()))?;
        self.try_resolve(&revision, context)?;
        export::export(&Git::local(&self.git_dir, context)?, commit, "", folder)
    }

    /// Writes one folder of the tree of `commit`, with its place in the tree, as [`Repository::export`] does.
    pub(crate) fn try_export_folder(
        &self,
        commit: &CommitId,
        under: &str,
        folder: &Path,
        context: &PrepareContext<'_>,
    ) -> Result<Exported, Stop> {
        let revision = Revision::new(commit.as_str())
            .map_err(|error| Failure::new(FailureStage::Acquire, FailureClass::RevisionNotFound, error.to_string()))?;
        self.try_resolve(&revision, context)?;
        export::export(&Git::local(&self.git_dir, context)?, commit, under, folder)
    }
}

/// Returns the git directory of the repository at exactly `folder`, bare or not.
fn find_git_dir(folder: &Path, context: &PrepareContext<'_>) -> Result<PathBuf, Stop> {
    let canonical = folder
        .canonicalize()
        .map_err(|error| unavailable(format!("the repository `{}` can't be read: {error}", folder.display())))?;
    let mut git = Git::local(Path::new(""), context)?;
    git.folder.clone_from(&canonical);
    // Without this, git would take any repository further up.
    let ceiling = canonical.parent().unwrap_or(&canonical);
    git.environment.insert("GIT_CEILING_DIRECTORIES".to_owned(), ceiling.into());
    let (finished, output) = git.output(["rev-parse", "--absolute-git-dir"])?;
    git.check(&finished, || format!("`{}` is no git repository", folder.display()))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output).trim_end_matches('\n')))
}

/// Returns the mirror of `url` in the cache and whether it is fresh, cloning it if there is none.
fn mirror(address: &Address, url: &str, context: &PrepareContext<'_>) -> Result<(PathBuf, bool), Stop> {
    let name = Digest::of(url.as_bytes());
    let folder = context.cache.join("repositories").join(format!("{}.git", name.as_str()));
    let _lock = FolderLock::take(&folder.with_extension("lock"), context)?;
    if folder.exists() {
        return Ok((folder, false));
    }
    let unfinished = folder.with_extension("unfinished");
    let io_error = |source| EnvironmentError::Write { path: unfinished.clone(), source };
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(io_error)?;
    }
    let Address::Remote { protocol, .. } = address else { return Ok((folder, false)) };
    let git = Git::remote(None, protocol, context)?;
    let finished = git.run([
        "clone".as_ref(),
        "--mirror".as_ref(),
        "--no-recurse-submodules".as_ref(),
        "--".as_ref(),
        std::ffi::OsStr::new(url),
        unfinished.as_os_str(),
    ])?;
    git.check(&finished, || format!("the repository `{address}` can't be cloned"))?;
    std::fs::rename(&unfinished, &folder).map_err(io_error)?;
    Ok((folder, true))
}

fn unavailable(message: impl Into<String>) -> Failure {
    Failure::new(FailureStage::Acquire, FailureClass::RepositoryUnavailable, message)
}

/// Git with its settings, ready to be run.
struct Git<'a> {
    program: PathBuf,
    folder: PathBuf,
    environment: Environment,
    settings: Vec<String>,
    directory: Option<PathBuf>,
    context: &'a PrepareContext<'a>,
}

impl<'a> Git<'a> {
    /// Git without any transport, for the repository at `git_dir`; an empty path lets git look for it.
    fn local(git_dir: &Path, context: &'a PrepareContext<'a>) -> Result<Self, Stop> {
        let git_dir = (!git_dir.as_os_str().is_empty()).then(|| git_dir.to_owned());
        Self::new(git_dir, "none", context)
    }

    /// Git with one transport.
    fn remote(git_dir: Option<&Path>, protocol: &str, context: &'a PrepareContext<'a>) -> Result<Self, Stop> {
        let mut git = Self::new(git_dir.map(Path::to_owned), protocol, context)?;
        pass_variables(&mut git.environment, NETWORK_VARIABLES.iter().copied());
        Ok(git)
    }

    fn new(directory: Option<PathBuf>, protocol: &str, context: &'a PrepareContext<'a>) -> Result<Self, Stop> {
        let program = find_program("git").ok_or_else(|| {
            let message = "`git` isn't installed; install it with the system's package manager";
            Failure::new(FailureStage::Acquire, FailureClass::ToolMissing, message)
        })?;
        let mut environment = context.own_environment();
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "/bin/false"),
            ("SSH_ASKPASS", "/bin/false"),
            ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
            ("GIT_ALLOW_PROTOCOL", protocol),
            ("GIT_PROTOCOL_FROM_USER", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            // A replaced object would give other files under the same commit.
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "0"),
        ] {
            environment.insert(name.to_owned(), value.into());
        }
        let mut settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
        settings.push("protocol.allow=never".to_owned());
        settings.push("protocol.ext.allow=never".to_owned());
        Ok(Self { program, folder: context.scratch.to_owned(), environment, settings, directory, context })
    }

    fn invocation<A: Into<std::ffi::OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Invocation {
        let mut invocation =
            Invocation::new(&self.program, &self.folder, self.environment.clone()).with(["--no-pager"]);
        for setting in &self.settings {
            invocation = invocation.with(["-c", setting]);
        }
        if let Some(directory) = &self.directory {
            let mut argument = std::ffi::OsString::from("--git-dir=");
            argument.push(directory);
            invocation = invocation.with([argument]);
        }
        invocation.with(arguments)
    }

    fn watch(&self) -> Watch<'a> {
        Watch { log: self.context.log, deadline: Instant::now() + self.context.timeout, cancel: self.context.cancel }
    }

    /// Returns a file from which git reads these lines.
    fn input(&self, lines: impl Iterator<Item = impl Display>) -> Result<File, EnvironmentError> {
        let write = || -> io::Result<File> {
            let mut file = BufWriter::new(tempfile::tempfile_in(self.context.scratch)?);
            for line in lines {
                writeln!(file, "{line}")?;
            }
            file.rewind()?;
            file.into_inner().map_err(IntoInnerError::into_error)
        };
        write().map_err(EnvironmentError::write(self.context.scratch))
    }

    fn run<A: Into<std::ffi::OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<Finished, Stop> {
        Ok(run(&self.invocation(arguments), &self.watch())?)
    }

    fn output<A: Into<std::ffi::OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<(Finished, Vec<u8>), Stop> {
        let mut output = Vec::new();
        let finished = run_into(&self.invocation(arguments), &self.watch(), &mut output)?;
        Ok((finished, output))
    }

    /// Turns a git command that failed into a failure of the repository.
    fn check(&self, finished: &Finished, message: impl FnOnce() -> String) -> Result<(), Stop> {
        if finished.ending.is_success() {
            return Ok(());
        }
        self.context.check_cancelled()?;
        let failure = unavailable(format!("{}: git {}", message(), finished.ending)).transient();
        Err(failure.with_evidence(finished.tail.evidence(&self.context.log_name(), EVIDENCE_LINES)).into())
    }
}
