//! Patches of strangers: applied to an exported tree strictly and whole, or not at all.
//!
//! The patch is read, every path checked and every hunk placed in memory first. Only when all of it fits exactly where it
//! says is the tree touched. Content that only git can decode is handed to `git apply`, after the same checks.

mod binary;
mod hunks;
mod names;
mod parse;
#[cfg(test)]
mod tests;
mod virtual_tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use isobench_schema::environment::Patch;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::safe_path::{link_on_the_way, to_text};
use super::{EnvironmentError, PrepareContext, Stop, split};
use parse::{FilePatch, ParsedPatch, parse};
use virtual_tree::VirtualTree;

/// The most lines of evidence that one failure carries.
const EVIDENCE_LINES: usize = 12;

/// Whether a patch may hold binary content, links and submodules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryContent {
    /// It may.
    Allowed,
    /// It may not.
    Refused,
}

/// Why a patch is refused, with the line of the patch that shows it.
#[derive(Debug)]
struct Refusal {
    class: FailureClass,
    /// What the patch does: a predicate whose subject is the patch.
    predicate: String,
    evidence: Vec<(Option<u64>, String)>,
}

/// Returns the refusal as an error.
fn refuse<T>(class: FailureClass, predicate: impl Into<String>, line: u64, text: &[u8]) -> Result<T, Refusal> {
    let evidence = vec![(Some(line), String::from_utf8_lossy(text).into_owned())];
    Err(Refusal { class, predicate: predicate.into(), evidence })
}

impl Refusal {
    fn into_failure(self, patch: &Patch) -> Failure {
        let message = format!("the patch `{}` {}", patch.name, self.predicate);
        let lines = self.evidence.into_iter().take(EVIDENCE_LINES);
        Failure::new(FailureStage::Acquire, self.class, message)
            .with_evidence(lines.map(|(line, text)| EvidenceLine::new(&patch.name, line, &text)))
    }
}

/// Applies `patch` to the tree at `tree`, strictly and whole, and returns the paths that it changed or removed.
///
/// On a failure the tree is as it was.
///
/// # Errors
/// The outer error is the tool's own inability, after which the tree may be half-changed; the inner failure says why the
/// patch is refused.
pub fn apply(
    patch: &Patch,
    binary: BinaryContent,
    tree: &Path,
    context: &PrepareContext<'_>,
) -> Result<Result<BTreeSet<PathBuf>, Failure>, EnvironmentError> {
    split(try_apply(patch, binary, tree, context))
}

pub(super) fn try_apply(
    patch: &Patch,
    binary: BinaryContent,
    tree: &Path,
    context: &PrepareContext<'_>,
) -> Result<BTreeSet<PathBuf>, Stop> {
    let refused = |refusal: Refusal| Stop::from(refusal.into_failure(patch));
    let parsed = parse(&patch.bytes.0).map_err(refused)?;
    check_content(&parsed, patch, binary).map_err(refused)?;
    check_paths(&parsed, tree).map_err(refused)?;
    let needs_git = parsed.files.iter().any(|file| file.binary.is_some() || file.special.is_some());
    if needs_git {
        return binary::apply_with_git(patch, &parsed, tree, context);
    }
    let mut result = VirtualTree::new(tree);
    place_all(&parsed, &mut result)?.map_err(refused)?;
    let changes = result.changes()?;
    if changes.is_empty() {
        return Err(refused(empty("leaves every file as it is")));
    }
    virtual_tree::write(tree, &changes)?;
    Ok(changes.into_keys().collect())
}

fn empty(predicate: &str) -> Refusal {
    Refusal { class: FailureClass::PatchEmpty, predicate: predicate.to_owned(), evidence: Vec::new() }
}

/// Checks what can be told from the patch alone.
fn check_content(parsed: &ParsedPatch, patch: &Patch, binary: BinaryContent) -> Result<(), Refusal> {
    let bytes = &patch.bytes.0;
    if parsed.files.is_empty() {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(empty("is empty"));
        }
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return refuse(FailureClass::PatchMalformed, "is no unified diff", 1, first);
    }
    if binary == BinaryContent::Refused {
        for file in &parsed.files {
            let name = file.new.as_ref().or(file.old.as_ref()).map(|path| to_text(path)).unwrap_or_default();
            if let Some(line) = file.special {
                let predicate = "makes or changes a link or a submodule";
                return refuse(FailureClass::PatchBinary, predicate, line, name.as_bytes());
            }
            if let Some(line) = file.binary {
                return refuse(FailureClass::PatchBinary, "holds binary content", line, name.as_bytes());
            }
        }
    }
    let does_something = |file: &FilePatch| {
        let moves = file.old != file.new || file.new_mode.is_some();
        moves || file.binary.is_some() || file.special.is_some() || file.hunks.iter().any(|hunk| hunk.changes)
    };
    if !parsed.files.iter().any(does_something) {
        return Err(empty("changes no line"));
    }
    Ok(())
}

/// Checks that no path leads through a link of the tree.
fn check_paths(parsed: &ParsedPatch, tree: &Path) -> Result<(), Refusal> {
    for file in &parsed.files {
        for path in [&file.old, &file.new].into_iter().flatten() {
            if let Some(link) = link_on_the_way(tree, path) {
                let predicate = format!("goes through the link `{}`", to_text(&link));
                return refuse(FailureClass::PatchEscapes, predicate, file.line, to_text(path).as_bytes());
            }
        }
    }
    Ok(())
}

/// Places every file's changes in memory and says which don't fit.
fn place_all(parsed: &ParsedPatch, result: &mut VirtualTree<'_>) -> Result<Result<(), Refusal>, EnvironmentError> {
    let mut good = 0_usize;
    let mut moved = Vec::new();
    let mut bad = Vec::new();
    for file in &parsed.files {
        let report = result.apply(file)?;
        good += report.good;
        moved.extend(report.moved);
        bad.extend(report.bad);
    }
    let fitting = good + moved.len();
    let (class, predicate, evidence) = if !bad.is_empty() && fitting > 0 {
        let total = fitting + bad.len();
        (FailureClass::PatchPartial, format!("applies only in part: {} of {total} changes don't fit", bad.len()), bad)
    } else if !bad.is_empty() {
        (FailureClass::PatchRejected, "doesn't apply".to_owned(), bad)
    } else if !moved.is_empty() {
        (FailureClass::PatchFuzzy, "applies only at other lines than it names".to_owned(), moved)
    } else {
        return Ok(Ok(()));
    };
    let evidence = evidence.into_iter().map(|(line, text)| (Some(line), text)).collect();
    Ok(Err(Refusal { class, predicate, evidence }))
}
