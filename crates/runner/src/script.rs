//! A benchmark script of the engine: its files, exported from git for each launch, and the command that runs them on the arm's
//! engine.
//!
//! The files are the revision's own, whatever the arm's patch makes of them: they lie in a folder of their own, outside of
//! the arm's tree, and the engine that they import is found by Python's search path, which leads into the tree.

pub(crate) mod bars;
pub(crate) mod process;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use isobench_schema::check::Check;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::{CommitId, Digest};
use isobench_schema::outcome::evidence;
use isobench_schema::script::Script;

use crate::engine::Serve;
use crate::environment::safe_path::relative;
use crate::environment::{Entry, EnvironmentError, PrepareContext, Stop, differences, scan, scan_again, split};
use crate::git::Repository;

/// Runs a program that is a part of the engine's package, with the package's benchmark modules taken from the exported files.
const LAUNCHER: &str = include_str!("script/launcher.py");
/// The launcher's file.
const LAUNCHER_FILE: &str = "launcher.py";
/// Lines of evidence that are shown.
const SHOWN: usize = 5;

/// The exported files of a script.
#[derive(Debug)]
pub(crate) struct ScriptFiles {
    /// The folder that stands for the root of the repository.
    pub(crate) root: PathBuf,
    /// The commit.
    pub(crate) commit: CommitId,
    /// The digest of all files.
    pub(crate) digest: Digest,
    files: BTreeMap<String, Entry>,
    launcher: PathBuf,
}

impl ScriptFiles {
    /// Exports the folder of the repository that holds the script into `folder`, which is a launch's own.
    ///
    /// # Errors
    /// The outer error is the tool's own inability; the inner failure says why the script can't be had, or isn't safe to run
    /// beside an engine with these modules.
    pub(crate) fn export(
        script: &Script,
        repository: &str,
        modules: &[String],
        folder: &Path,
        context: &PrepareContext<'_>,
    ) -> Result<Result<Self, Failure>, EnvironmentError> {
        split(Self::try_export(script, repository, modules, folder, context))
    }

    fn try_export(
        script: &Script,
        repository: &str,
        modules: &[String],
        folder: &Path,
        context: &PrepareContext<'_>,
    ) -> Result<Self, Stop> {
        let unusable = |message: String| Failure::new(FailureStage::Dataset, FailureClass::TreeUnsafe, message);
        let place = relative(script.path.as_bytes())
            .map_err(|reason| unusable(format!("the path `{}` of the benchmark script {reason}", script.path)))?;
        let commit =
            script.commit.clone().ok_or_else(|| unusable("the plan names no commit of the script".to_owned()))?;
        let root = folder.join("script");
        let source = Repository::open(repository, context)??;
        source.try_export_folder(&commit, script.folder(), &root, context)?;
        if !root.join(place).is_file() {
            let message = format!("there is no benchmark script `{}` at {}", script.path, commit.short());
            return Err(Failure::new(FailureStage::Acquire, FailureClass::RevisionNotFound, message).into());
        }
        let launcher = folder.join("launcher").join(LAUNCHER_FILE);
        let write = || {
            fs::create_dir_all(folder.join("launcher"))?;
            fs::write(&launcher, LAUNCHER)
        };
        write().map_err(EnvironmentError::write(&launcher))?;
        let files = scan(&root)?;
        let digest = Digest::of_json(&files)?;
        let exported = Self { root, commit, digest, files, launcher };
        exported.check_modules(script, modules)?;
        Ok(exported)
    }

    /// Checks that no file beside the script would be imported in the place of the engine's modules: a program's own folder
    /// comes first on its search path.
    fn check_modules(&self, script: &Script, modules: &[String]) -> Result<(), Failure> {
        if script.subcommand().is_some() {
            return Ok(());
        }
        for module in modules {
            let beside = [format!("{}/{module}", script.folder()), format!("{}/{module}.py", script.folder())];
            if let Some(found) = beside.iter().find(|path| self.files.contains_key(path.trim_start_matches('/'))) {
                let message = format!("`{found}` lies beside the benchmark script and would be imported as `{module}`");
                return Err(unproven(message, Check::StaticProof, &[]));
            }
        }
        Ok(())
    }

    /// Returns the folder of the launcher, which the script's process reads.
    pub(crate) fn launcher_folder(&self) -> PathBuf {
        self.launcher.parent().map(Path::to_owned).unwrap_or_default()
    }

    /// Returns how many files there are.
    pub(crate) fn count(&self) -> u64 {
        self.files.values().map(|entry| u64::from(!matches!(entry, Entry::Folder))).sum()
    }

    /// Returns the command, as an argument list. It writes its result file, if it writes one, into `folder`.
    pub(crate) fn command(&self, script: &Script, python: &Path, folder: &Path, serve: &Serve<'_>) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut command = vec![text(python)];
        match script.subcommand() {
            Some(words) => {
                let package = script.folder().replace('/', ".");
                let engine = package.split('.').next().unwrap_or_default();
                command.extend([text(&self.launcher), text(&self.root), package.clone()]);
                command.push(format!("{engine}.entrypoints.cli.main"));
                command.extend(words.map(str::to_owned));
            }
            None => command.push(text(&self.root.join(&script.path))),
        }
        let (model, tree) = (serve.place(&serve.spec.model), text(serve.tree));
        // A repository that was fetched is a folder wherever it is named, such as a draft model's.
        let filled = script.arguments.iter().map(|argument| {
            if serve.folders.contains_key(argument) {
                serve.place(argument)
            } else {
                argument.replace("{model}", &model).replace("{tree}", &tree)
            }
        });
        command.extend(filled);
        if script.output_json {
            command.extend(["--output-json".to_owned(), text(&folder.join(evidence::SCRIPT_RESULT))]);
        }
        command
    }

    /// Looks at every file again after the launch.
    ///
    /// # Errors
    /// The outer error is the tool's own inability; the inner failure, of class `environment-modified`, names what changed.
    pub(crate) fn verify_unmodified(&self) -> Result<Result<(), Failure>, EnvironmentError> {
        let lines = differences(&self.files, &scan_again(&self.root, &self.files)?);
        if lines.is_empty() {
            return Ok(Ok(()));
        }
        let message = format!("{} files of the benchmark script changed during the launch", lines.len());
        let evidence = lines.iter().take(SHOWN).map(|line| EvidenceLine::new("script", None, line));
        let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentModified, message);
        Ok(Err(failure.breaking(Check::TreeUnmodified).with_evidence(evidence)))
    }

    /// Returns the incident of a patch that changes files which are run: it has no effect on them.
    pub(crate) fn patched(&self, patch: &[u8]) -> Option<Failure> {
        let text = String::from_utf8_lossy(patch);
        let heads = text.lines().filter_map(|line| line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")));
        let names = heads.map(|head| head.split('\t').next().unwrap_or(head).trim());
        let mut touched: Vec<&str> = names
            .map(|name| name.split_once('/').map_or(name, |(_, rest)| rest))
            .filter(|name| self.files.contains_key(*name))
            .collect();
        touched.sort_unstable();
        touched.dedup();
        if touched.is_empty() {
            return None;
        }
        let message = format!(
            "the patch changes `{}`, which has no effect: the files of the benchmark script are those of {} for every arm",
            touched.join("`, `"),
            self.commit.short()
        );
        let lines = touched.into_iter().take(SHOWN).map(|name| EvidenceLine::new("patch", None, name));
        Some(Failure::new(FailureStage::Workload, FailureClass::ScriptPatched, message).with_evidence(lines))
    }
}

/// Returns the failure of a script that wasn't proven to run on the arm's engine.
pub(crate) fn unproven(message: String, check: Check, lines: &[String]) -> Failure {
    let lines = lines.iter().map(|line| EvidenceLine::new("/proc", None, line));
    Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message).breaking(check).with_evidence(lines)
}

#[cfg(test)]
mod tests;
