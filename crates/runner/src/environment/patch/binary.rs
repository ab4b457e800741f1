//! Patches with content that only git can decode: tried on a copy, checked there, and applied only then.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_schema::environment::Patch;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::super::safe_path::{link_stays_inside, relative, to_text};
use super::super::{EnvironmentError, PrepareContext, Stop, manifest};
use super::EVIDENCE_LINES;
use super::parse::ParsedPatch;
use crate::command::{Finished, Invocation, Watch, find_program, run_into};

/// Applies the patch with `git apply`, first on a copy of the tree.
pub(super) fn apply_with_git(
    patch: &Patch,
    parsed: &ParsedPatch,
    tree: &Path,
    context: &PrepareContext<'_>,
) -> Result<BTreeSet<PathBuf>, Stop> {
    let fail = |class, message: String| Failure::new(FailureStage::Acquire, class, message);
    let write_error = EnvironmentError::write(context.scratch);
    let scratch = tempfile::tempdir_in(context.scratch).map_err(&write_error)?;
    let (copy, file) = (scratch.path().join("tree"), scratch.path().join("patch"));
    std::fs::write(&file, &patch.bytes.0).map_err(&write_error)?;
    copy_tree(tree, &copy)?;
    let git = Git { file: &file, option: parsed.prefix.option(), context };
    let named: BTreeSet<PathBuf> =
        parsed.files.iter().flat_map(|file| [&file.old, &file.new]).flatten().cloned().collect();
    if git.paths(&copy, patch)?.difference(&named).next().is_some() {
        let message = format!("the patch `{}` names files that its headers don't", patch.name);
        return Err(fail(FailureClass::PatchMalformed, message).into());
    }
    let before = manifest::scan(&copy)?;
    let (finished, output) = git.run(&copy, &["--verbose"])?;
    let evidence = finished.tail.evidence(&context.log_name(), EVIDENCE_LINES);
    if !finished.ending.is_success() {
        context.check_cancelled()?;
        let message = format!("the patch `{}` doesn't apply: git apply {}", patch.name, finished.ending);
        return Err(fail(FailureClass::PatchRejected, message).with_evidence(evidence).into());
    }
    let told = String::from_utf8_lossy(&output).into_owned()
        + &finished.tail.lines().into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
    if told.contains("(offset ") || told.contains("Context reduced") {
        let message = format!("the patch `{}` applies only at other lines than it names", patch.name);
        return Err(fail(FailureClass::PatchFuzzy, message).with_evidence(evidence).into());
    }
    let after = manifest::scan(&copy)?;
    let changed: BTreeSet<String> = manifest::differences(&before, &after)
        .into_iter()
        .filter_map(|line| line.split_once(": ").map(|(_, path)| path.to_owned()))
        .collect();
    if changed.is_empty() {
        let message = format!("the patch `{}` leaves every file as it is", patch.name);
        return Err(fail(FailureClass::PatchEmpty, message).into());
    }
    check_links(&copy, Path::new(""), patch)?;
    let (finished, _) = git.run(tree, &[])?;
    if !finished.ending.is_success() {
        let message = format!("the patch `{}` applied to a copy of the tree only", patch.name);
        return Err(fail(FailureClass::HostError, message).with_evidence(evidence).transient().into());
    }
    Ok(named.into_iter().filter(|path| changed.contains(&to_text(path))).collect())
}

/// `git apply` of one patch file.
struct Git<'a> {
    file: &'a Path,
    option: &'static str,
    context: &'a PrepareContext<'a>,
}

impl Git<'_> {
    fn run(&self, tree: &Path, options: &[&str]) -> Result<(Finished, Vec<u8>), Stop> {
        let program = find_program("git").ok_or_else(|| {
            let message = "`git` isn't installed; install it with the system's package manager";
            Failure::new(FailureStage::Acquire, FailureClass::ToolMissing, message)
        })?;
        let mut environment = self.context.own_environment();
        let ceiling = tree.parent().unwrap_or(tree);
        environment.insert("GIT_CEILING_DIRECTORIES".to_owned(), ceiling.into());
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ] {
            environment.insert(name.to_owned(), value.into());
        }
        let invocation = Invocation::new(program, tree, environment)
            .with(["-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null", "apply", "--whitespace=nowarn"])
            .with([self.option])
            .with(options.iter().copied())
            .with(["--".as_ref(), self.file.as_os_str()]);
        let deadline = Instant::now() + self.context.timeout;
        let watch = Watch { log: self.context.log, deadline, cancel: self.context.cancel };
        let mut output = Vec::new();
        let finished = run_into(&invocation, &watch, &mut output)?;
        Ok((finished, output))
    }

    /// Returns the paths that git would touch, each checked again.
    fn paths(&self, tree: &Path, patch: &Patch) -> Result<BTreeSet<PathBuf>, Stop> {
        let (finished, output) = self.run(tree, &["--numstat", "-z"])?;
        if !finished.ending.is_success() {
            let message = format!("the patch `{}` can't be read by git", patch.name);
            let evidence = finished.tail.evidence(&self.context.log_name(), EVIDENCE_LINES);
            let failure = Failure::new(FailureStage::Acquire, FailureClass::PatchMalformed, message);
            return Err(failure.with_evidence(evidence).into());
        }
        let mut paths = BTreeSet::new();
        for record in output.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            // `ADDED<tab>REMOVED<tab>PATH`; a rename gives its paths as records of their own.
            let name = record.splitn(3, |byte| *byte == b'\t').nth(2).unwrap_or(record);
            if name.is_empty() {
                continue;
            }
            let path = relative(name).map_err(|reason| {
                let message = format!("the patch `{}` names a path that {reason}", patch.name);
                let line = EvidenceLine::new(&patch.name, None, &name.escape_ascii().to_string());
                Failure::new(FailureStage::Acquire, FailureClass::PatchEscapes, message).with_evidence([line])
            })?;
            paths.insert(path.to_owned());
        }
        Ok(paths)
    }
}

/// Checks that no link of the patched tree leaves it.
fn check_links(root: &Path, folder: &Path, patch: &Patch) -> Result<(), Stop> {
    let here = root.join(folder);
    let read_error = EnvironmentError::read(&here);
    for entry in std::fs::read_dir(&here).map_err(&read_error)? {
        let entry = entry.map_err(&read_error)?;
        let kind = entry.file_type().map_err(&read_error)?;
        let path = folder.join(entry.file_name());
        if kind.is_dir() {
            check_links(root, &path, patch)?;
        } else if kind.is_symlink() {
            let target = std::fs::read_link(root.join(&path)).map_err(&read_error)?;
            if !link_stays_inside(root, &path, target.as_os_str()).map_err(&read_error)? {
                let message = format!("the patch `{}` makes a link that leaves the tree", patch.name);
                let text = format!("{} -> {}", to_text(&path), to_text(&target));
                let failure = Failure::new(FailureStage::Acquire, FailureClass::PatchEscapes, message);
                return Err(failure.with_evidence([EvidenceLine::new(&patch.name, None, &text)]).into());
            }
        }
    }
    Ok(())
}

/// Copies a tree without following links.
fn copy_tree(from: &Path, to: &Path) -> Result<(), EnvironmentError> {
    let write_error = EnvironmentError::write(to);
    std::fs::create_dir(to).map_err(&write_error)?;
    for entry in std::fs::read_dir(from).map_err(EnvironmentError::read(from))? {
        let entry = entry.map_err(EnvironmentError::read(from))?;
        let kind = entry.file_type().map_err(EnvironmentError::read(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_symlink() {
            let link = std::fs::read_link(&source).map_err(EnvironmentError::read(&source))?;
            std::os::unix::fs::symlink(OsStr::from_bytes(link.as_os_str().as_bytes()), &target)
                .map_err(EnvironmentError::write(&target))?;
        } else {
            std::fs::copy(&source, &target).map_err(EnvironmentError::write(&target))?;
        }
    }
    Ok(())
}
