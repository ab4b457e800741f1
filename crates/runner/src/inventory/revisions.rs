//! Facts about revisions, read from a clone: a dozen git processes, however many revisions there are.
//!
//! The rules are those of `docs/formats.md`, "Facts about revisions"; `knowledge/tools/revisions.py` follows them too.

mod history;
mod objects;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::assessment::{FactSource, RevisionFacts};
use isobench_schema::facts::ResolvedRevision;
use isobench_schema::failure::Failure;
use isobench_schema::ids::{CommitId, Digest, Moment, Revision};

use crate::environment::{EnvironmentError, PrepareContext, Stop, split};
use crate::git::Repository;

use history::{History, Releases};
use objects::Objects;

/// A file or folder of a native tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativePath {
    /// The path.
    pub path: String,
    /// It doesn't count at a revision that has this path, one of the native tree's, too.
    pub unless: Option<String>,
}

/// What to look for in the revisions of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookFor {
    /// The main branch, from which releases branch off.
    pub main: String,
    /// The native tree, in the order in which it is hashed.
    pub native: Vec<NativePath>,
    /// Benchmark and server programs, as files of the repository.
    pub scripts: Vec<String>,
    /// A script with this text only says where it has gone.
    pub stub: Option<String>,
}

/// Returns the facts of each revision, in their order; none of one that the repository doesn't have.
///
/// # Errors
/// The outer error is the tool's own inability; the inner failure says why the repository can't be read.
pub fn revisions(
    repository: &Repository,
    wanted: &[Revision],
    look_for: &LookFor,
    context: &PrepareContext<'_>,
) -> Result<Result<Vec<Option<RevisionFacts>>, Failure>, EnvironmentError> {
    split(try_revisions(repository, wanted, look_for, context))
}

fn try_revisions(
    repository: &Repository,
    wanted: &[Revision],
    look_for: &LookFor,
    context: &PrepareContext<'_>,
) -> Result<Vec<Option<RevisionFacts>>, Stop> {
    let resolved: Vec<Option<CommitId>> = repository.resolve_all(wanted, context)?.into_iter().map(found).collect();
    let commits: BTreeSet<&CommitId> = resolved.iter().flatten().collect();
    let commits: Vec<CommitId> = commits.into_iter().cloned().collect();
    if commits.is_empty() {
        return Ok(resolved.into_iter().map(|_| None).collect());
    }
    let history = History::read(repository, &look_for.main, &commits, context)?;
    let releases = Releases::read(&history);
    let files = history.files_changed(repository, &commits, context)?;
    let paths: Vec<&str> = look_for.native.iter().map(|native| native.path.as_str()).collect();
    let paths: Vec<&str> = paths.into_iter().chain(look_for.scripts.iter().map(String::as_str)).collect();
    let objects = Objects::read(repository, &commits, &paths, context)?;
    let stubs = match &look_for.stub {
        Some(stub) => objects.files_with(repository, &look_for.scripts, stub, context)?,
        None => BTreeSet::new(),
    };
    let said = history::dates_and_subjects(repository, &commits, context)?;
    let mut facts = BTreeMap::new();
    for commit in commits {
        let Some((committed, subject)) = said.get(&commit).cloned() else { continue };
        let (after_release, first_release) = releases.around(&history, &commit);
        let script = |path: &&String| objects.get(&commit, path).is_some_and(|object| !stubs.contains(object));
        let scripts = objects.has_tree(&commit).then(|| look_for.scripts.iter().filter(script).cloned().collect());
        let one = RevisionFacts {
            parent: history.parent(&commit),
            committed,
            subject,
            after_release,
            first_release,
            native_key: objects.has_tree(&commit).then(|| native_key(look_for, &objects, &commit)),
            files_changed: files.as_ref().map(|files| files.get(&commit).cloned().unwrap_or_default()),
            scripts,
            source: FactSource::Git,
            commit: commit.clone(),
        };
        facts.insert(commit, one);
    }
    Ok(resolved.into_iter().map(|commit| facts.get(&commit?).cloned()).collect())
}

fn found(resolved: ResolvedRevision) -> Option<CommitId> {
    match resolved {
        ResolvedRevision::Found { commit } => Some(commit),
        ResolvedRevision::Missing { .. } => None,
    }
}

/// Returns the key of a commit's native tree: equal keys, equal native trees.
fn native_key(look_for: &LookFor, objects: &Objects, commit: &CommitId) -> String {
    let counted = look_for.native.iter().filter_map(|native| {
        let replaced = native.unless.as_ref().is_some_and(|path| objects.get(commit, path).is_some());
        let object = objects.get(commit, &native.path).filter(|_| !replaced)?;
        Some(format!("{} {object}\n", native.path))
    });
    let text: Vec<String> = counted.collect();
    Digest::of(text.concat().as_bytes()).short().to_owned()
}

/// Returns the moment of a number of seconds since 1970 in UTC.
fn moment(seconds: i64) -> Option<Moment> {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01: years begin in March, so that the leap day is the last one.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + later;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    Moment::new(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")).ok()
}
