//! Parents, dates, changed files, and between which releases a commit lies.

use std::collections::{BTreeMap, HashMap};

use isobench_schema::ids::{CommitId, Moment};

use crate::environment::{PrepareContext, Stop};
use crate::git::Repository;

use super::moment;

/// The first parents of all that matters, and the place of each commit of the main branch on it.
pub(super) struct History {
    parents: HashMap<String, Option<String>>,
    places: HashMap<String, usize>,
    tags: BTreeMap<String, String>,
    shallow: bool,
}

impl History {
    pub(super) fn read(
        repository: &Repository,
        main: &str,
        commits: &[CommitId],
        context: &PrepareContext<'_>,
    ) -> Result<Self, Stop> {
        let main_refs = [format!("refs/remotes/origin/{main}"), format!("refs/heads/{main}")];
        let [remote, local] = &main_refs;
        let arguments =
            ["for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", "refs/tags", remote, local];
        let output = repository.ask(&arguments, std::iter::empty::<&str>(), context)?;
        let output = String::from_utf8_lossy(&output);
        let mut refs = BTreeMap::new();
        for line in output.lines() {
            let mut fields = line.split(' ').filter(|field| !field.is_empty());
            if let (Some(name), Some(commit)) = (fields.next(), fields.next_back()) {
                refs.insert(name.to_owned(), commit.to_owned());
            }
        }
        let head = main_refs.iter().find_map(|name| refs.get(name)).cloned();
        let release = |(name, commit): (&String, &String)| {
            let name = name.strip_prefix("refs/tags/").filter(|name| is_release(name))?;
            Some((name.to_owned(), commit.clone()))
        };
        let tags: BTreeMap<String, String> = refs.iter().filter_map(release).collect();
        let starts = tags.values().map(String::as_str).chain(head.as_deref());
        let starts = starts.chain(commits.iter().map(CommitId::as_str));
        // A tag may be of something else than a commit.
        let arguments = ["rev-list", "--first-parent", "--parents", "--ignore-missing", "--stdin"];
        let output = repository.ask(&arguments, starts, context)?;
        let mut parents = HashMap::new();
        for line in String::from_utf8_lossy(&output).lines() {
            let mut ids = line.split(' ').map(str::to_owned);
            if let Some(commit) = ids.next() {
                parents.insert(commit, ids.next());
            }
        }
        let mut history = Self { parents, places: HashMap::new(), tags, shallow: repository.is_shallow() };
        let chain: Vec<String> = history.line(head.as_deref()).map(str::to_owned).collect();
        history.places = chain.into_iter().rev().enumerate().map(|(place, commit)| (commit, place)).collect();
        Ok(history)
    }

    /// Returns a commit and its first parents.
    fn line<'h>(&'h self, start: Option<&'h str>) -> impl Iterator<Item = &'h str> {
        std::iter::successors(start, |commit| self.parents.get(*commit)?.as_deref())
    }

    /// Returns where a commit is on the main branch, or else where its line branched off.
    fn place(&self, commit: &str) -> Option<usize> {
        self.line(Some(commit)).find_map(|commit| self.places.get(commit)).copied()
    }

    pub(super) fn parent(&self, commit: &CommitId) -> Option<CommitId> {
        CommitId::new(self.parents.get(commit.as_str())?.as_deref()?).ok()
    }

    /// Returns the files that each commit changes against its first parent; nothing if history is cut off somewhere.
    pub(super) fn files_changed(
        &self,
        repository: &Repository,
        commits: &[CommitId],
        context: &PrepareContext<'_>,
    ) -> Result<Option<BTreeMap<CommitId, Vec<String>>>, Stop> {
        if self.shallow {
            return Ok(None);
        }
        let arguments = ["diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames", "--root"];
        let pair = |commit: &CommitId| match self.parent(commit) {
            Some(parent) => format!("{commit} {parent}"),
            None => commit.to_string(),
        };
        let output = repository.ask(&arguments, commits.iter().map(pair), context)?;
        let mut files = BTreeMap::<CommitId, Vec<String>>::new();
        let mut waiting = commits.iter().peekable();
        let mut current = None;
        for field in output.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
            let text = String::from_utf8_lossy(field);
            // Answers come in the order of the questions; a commit that changes nothing has none.
            let mut ahead = waiting.clone();
            if let Some(commit) = ahead.find(|commit| commit.as_str() == text) {
                (waiting, current) = (ahead, Some(commit));
            } else if let Some(commit) = current {
                files.entry(commit.clone()).or_default().push(text.into_owned());
            }
        }
        Ok(Some(files))
    }
}

/// Returns the committer date and the subject line of each commit.
pub(super) fn dates_and_subjects(
    repository: &Repository,
    commits: &[CommitId],
    context: &PrepareContext<'_>,
) -> Result<BTreeMap<CommitId, (Moment, String)>, Stop> {
    let arguments = ["log", "--no-walk=unsorted", "--stdin", "--no-show-signature", "-z", "--format=%H%x00%ct%x00%s"];
    let output = repository.ask(&arguments, commits.iter(), context)?;
    let fields: Vec<String> =
        output.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned()).collect();
    let mut said = BTreeMap::new();
    for record in fields.chunks_exact(3) {
        let [commit, seconds, subject] = record else { continue };
        let at = seconds.parse().ok().and_then(moment);
        if let (Ok(commit), Some(at)) = (CommitId::new(commit.as_str()), at) {
            said.insert(commit, (at, subject.clone()));
        }
    }
    Ok(said)
}

/// A release's place on the main branch, the numbers of its version, and its name.
type Placed = (usize, Vec<u64>, String);

/// The releases, by where they branched off.
pub(super) struct Releases {
    placed: Vec<Placed>,
}

impl Releases {
    pub(super) fn read(history: &History) -> Self {
        let placed = |(name, commit): (&String, &String)| Some((history.place(commit)?, numbers(name), name.clone()));
        let mut placed: Vec<Placed> = history.tags.iter().filter_map(placed).collect();
        placed.sort();
        Self { placed }
    }

    /// Returns the newest release that branched off before a commit, and the first one that contains it.
    pub(super) fn around(&self, history: &History, commit: &CommitId) -> (Option<String>, Option<String>) {
        let Some(place) = history.place(commit.as_str()) else { return (None, None) };
        let split = self.placed.partition_point(|(branched, _, _)| *branched < place);
        let name = |placed: &Placed| placed.2.clone();
        let before = split.checked_sub(1).and_then(|last| self.placed.get(last)).map(name);
        (before, self.placed.get(split).map(name))
    }
}

/// Returns whether a tag is a release's: `v`, numbers and dots, perhaps `.post1`; no candidate.
fn is_release(name: &str) -> bool {
    let Some(version) = name.strip_prefix('v') else { return false };
    let (numbers, post) = version.split_once(".post").map_or((version, None), |(numbers, post)| (numbers, Some(post)));
    let whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.contains('.') && numbers.split('.').all(whole) && post.is_none_or(whole)
}

/// Returns the numbers of a version.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
