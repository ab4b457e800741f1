//! The names of files and folders in a run's folder and in a block's folder.

use std::path::{Path, PathBuf};

/// The plan, in a run's folder.
pub const PLAN: &str = "plan.json";
/// What was known of the world when the plan was made, in a run's folder.
pub const FACTS: &str = "facts.json";
/// The block's specification, in a block's folder.
pub const SPEC: &str = "spec.json";
/// How the block ended, in a block's folder; written last.
pub const COMPLETE: &str = "complete.json";
/// The events: a header line, then one event on each line.
pub const EVENTS: &str = "events.jsonl";
/// The evidence, as `<first two digits>/<digest>.zst`.
pub const ARTIFACTS: &str = "artifacts";
/// The file whose lock says that a process writes here.
pub const LOCK: &str = "lock";
/// Scratch of launches that are under way.
pub const WORK: &str = "work";
/// What was computed from the rest; it can be deleted at will.
pub const DERIVED: &str = "derived";
/// The start of the name of a file that isn't whole yet.
pub const TEMPORARY: &str = "tmp-";

/// The dataset that a run was made from, where it brought its own, as the demo does.
pub const DATASET: &str = "dataset";

/// Everything that may lie in a run's or a block's folder besides unfinished files.
const KNOWN: [&str; 10] = [PLAN, FACTS, SPEC, COMPLETE, EVENTS, ARTIFACTS, LOCK, WORK, DERIVED, DATASET];

/// Returns whether a file or folder of that name may lie in a run's or a block's folder.
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || name.starts_with(TEMPORARY)
}

/// Returns the folders in which unfinished files can be left by a process that was killed.
pub(crate) fn swept(dir: &Path) -> [PathBuf; 3] {
    [dir.to_owned(), dir.join(ARTIFACTS), dir.join(DERIVED)]
}
