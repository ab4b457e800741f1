//! What a commit changes: the files that can matter at run time, and its subject.

use super::case::Case;
use super::pattern;
use crate::knowledge::coverage::Aside;

/// What rules about a commit's change ask for, gathered once.
pub(super) struct Changed<'a> {
    /// The changed files that a benchmark may run.
    pub(super) files: Vec<&'a str>,
    /// The subject in lower case.
    subject: Option<String>,
}

impl<'a> Changed<'a> {
    /// Gathers it.
    pub(super) fn of(case: &Case<'a>) -> Self {
        Self { files: product_files(case), subject: case.subject().map(str::to_lowercase) }
    }

    /// Returns whether one of the patterns matches the subject.
    pub(super) fn subject_is(&self, patterns: &[String]) -> bool {
        self.subject.as_ref().is_some_and(|subject| pattern::any(patterns, subject))
    }

    /// Returns whether a file is changed that one of the patterns matches.
    pub(super) fn has(&self, patterns: &[String]) -> bool {
        self.files.iter().any(|file| pattern::any(patterns, file))
    }

    /// Returns whether every file is one that a pattern matches; not if there is none.
    pub(super) fn is_all(&self, patterns: &[String]) -> bool {
        !self.files.is_empty() && self.files.iter().all(|file| pattern::any(patterns, file))
    }

    /// Returns the files for people.
    pub(super) fn list(&self) -> String {
        self.files.join(", ")
    }
}

/// Returns the changed files that a benchmark may run, those that only carry settings left out if there are others.
fn product_files<'a>(case: &Case<'a>) -> Vec<&'a str> {
    let coverage = &case.knowledge.coverage;
    let outside = |asides: &[Aside], file: &str| !asides.iter().any(|aside| pattern::any(&aside.paths, file));
    let run: Vec<&str> =
        case.files().iter().map(String::as_str).filter(|file| outside(&coverage.inert, file)).collect();
    let telling: Vec<&str> = run.iter().copied().filter(|file| outside(&coverage.neutral, file)).collect();
    if telling.is_empty() { run } else { telling }
}
