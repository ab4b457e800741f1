//! The files that a commit changes: which of them can matter at run time.

use super::case::Case;
use super::pattern;
use crate::knowledge::coverage::Aside;

/// Returns the changed files that a benchmark may run, those that only carry settings left out if there are others.
pub(super) fn product_files<'a>(case: &Case<'a>) -> Vec<&'a str> {
    let coverage = &case.knowledge.coverage;
    let outside = |asides: &[Aside], file: &str| !asides.iter().any(|aside| pattern::any(&aside.paths, file));
    let run: Vec<&str> =
        case.files().iter().map(String::as_str).filter(|file| outside(&coverage.inert, file)).collect();
    let telling: Vec<&str> = run.iter().copied().filter(|file| outside(&coverage.neutral, file)).collect();
    if telling.is_empty() { run } else { telling }
}
