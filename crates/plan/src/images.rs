//! Images of commits: how they are named, which a dataset asks for, and how far those that are there cover it. Pure.

mod audit;
mod naming;
#[cfg(test)]
mod tests;

use isobench_schema::assessment::RevisionFacts;
use isobench_schema::commit_task::CommitTask;
use isobench_schema::facts::Facts;
use isobench_schema::ids::{CommitId, ImageTag};

use crate::knowledge::Knowledge;

pub use audit::{Answers, AuditAsked, audit, facts};
pub use naming::{BASELINE_TEMPLATE, HUMAN_TEMPLATE, Naming, NamingError, TagTemplate};

/// An image that a task asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedImage {
    /// The commit that it should hold.
    pub commit: CommitId,
    /// The tag that it should have.
    pub tag: ImageTag,
}

/// The images that a task asks for; where one can't be named, why.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted<'t> {
    /// The task.
    pub task: &'t CommitTask,
    /// The commit's subject line.
    pub subject: Option<String>,
    /// The image of the human commit.
    pub human: Result<WantedImage, String>,
    /// The image of its baseline.
    pub baseline: Result<WantedImage, String>,
}

impl Wanted<'_> {
    /// Returns the images that can be named.
    pub fn images(&self) -> impl Iterator<Item = &WantedImage> {
        [&self.human, &self.baseline].into_iter().filter_map(|image| image.as_ref().ok())
    }
}

/// Returns the images that tasks ask for, in their order.
pub fn wanted<'t>(tasks: &'t [CommitTask], facts: &Facts, knowledge: &Knowledge, naming: &Naming) -> Vec<Wanted<'t>> {
    tasks.iter().map(|task| one(task, facts, knowledge, naming)).collect()
}

fn one<'t>(task: &'t CommitTask, facts: &Facts, knowledge: &Knowledge, naming: &Naming) -> Wanted<'t> {
    let known = |revision: &str| -> Option<RevisionFacts> {
        let details = facts.details.get(&task.repository).and_then(|details| details.get(revision));
        details.or_else(|| knowledge.commits.find(task.engine, revision)).cloned()
    };
    let whole = |revision: &str| -> Option<CommitId> {
        known(revision).map(|facts| facts.commit).or_else(|| CommitId::new(revision).ok())
    };
    let human = known(task.commit.as_str());
    let commit = whole(task.commit.as_str());
    let parent = match &task.parent {
        Some(parent) => whole(parent.as_str()),
        None => human.as_ref().and_then(|facts| facts.parent.clone()),
    };
    let clone = format!("name a clone that has it with `--clone {}=DIR`", task.engine);
    let image = |commit: &Option<CommitId>, template: &TagTemplate, whose: String| match commit {
        None => Err(format!("the whole id of {whose} isn't known: {clone}")),
        Some(commit) => match template.tag(commit) {
            Ok(tag) => Ok(WantedImage { commit: commit.clone(), tag }),
            Err(error) => Err(error.to_string()),
        },
    };
    let of_parent = match &task.parent {
        Some(parent) => format!("the parent `{parent}`"),
        None => format!("the parent of `{}`", task.commit),
    };
    Wanted {
        task,
        subject: human.map(|facts| facts.subject).or_else(|| task.subject.clone()),
        human: image(&commit, &naming.human, format!("the commit `{}`", task.commit)),
        baseline: image(&parent, &naming.baseline, of_parent),
    }
}
