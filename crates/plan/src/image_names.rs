//! Images that tasks name for their environments: which name each arm's image has, and what stands under it.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::container::ImageFacts;
use isobench_schema::environment::{EnvironmentSpec, ImagePython, Python};
use isobench_schema::facts::{Facts, FoundImage};
use isobench_schema::ids::{ArmId, CommitId};
use isobench_schema::images::PlannedImage;
use isobench_schema::plan::{Exclusion, ExclusionReason};
use isobench_schema::task::Task;

use crate::arms::Commits;
use crate::choose::{self, Choice};
use crate::dataset::Dataset;
use crate::exclude::{self, Why};

/// The fewest digits of a commit that a name may take: fewer name several commits of a large repository.
const FEWEST_DIGITS: usize = 7;

/// Returns the name with `{commit}` replaced by the commit and `{commitN}` by its first N digits.
///
/// # Errors
/// Returns the placeholder that isn't known.
pub fn fill(template: &str, commit: &CommitId) -> Result<String, String> {
    let mut name = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (placeholder, after) = after.split_once('}').ok_or_else(|| after.to_owned())?;
        let unknown = || placeholder.to_owned();
        let digits = placeholder.strip_prefix("commit").ok_or_else(unknown)?;
        let digits = match digits {
            "" => commit.as_str(),
            digits => {
                let digits = digits.parse().ok().filter(|digits| *digits >= FEWEST_DIGITS);
                digits.and_then(|digits| commit.as_str().get(..digits)).ok_or_else(unknown)?
            }
        };
        name.extend([before, digits]);
        rest = after;
    }
    name.push_str(rest);
    Ok(name)
}

/// Returns whether each arm's image is named by its own commit, so that it claims to hold that very revision.
pub(crate) fn is_of_commit(python: &Python) -> bool {
    match python {
        Python::Image(image) => {
            let names = std::iter::once(&image.image).chain(&image.baseline_image);
            names.into_iter().all(|name| name.contains("{commit"))
        }
        Python::Absent | Python::System | Python::Venv(_) => false,
    }
}

/// Returns the commit that an arm is made from, and whether that is the baseline.
fn revision<'c>(arm: &ArmId, commits: &'c Commits) -> (Option<&'c CommitId>, bool) {
    match arm {
        ArmId::Baseline | ArmId::Agent(_) => (commits.baseline.as_ref(), true),
        ArmId::Human => (commits.human.as_ref(), commits.human == commits.baseline),
    }
}

fn name(image: &ImagePython, arm: &ArmId, commits: &Commits) -> Option<Result<String, String>> {
    let (commit, is_baseline) = revision(arm, commits);
    let template = image.baseline_image.as_ref().filter(|_| is_baseline).unwrap_or(&image.image);
    Some(fill(template, commit?))
}

/// Returns the names of the images that a plan of this choice needs looked up, once the revisions are.
pub(crate) fn needed(dataset: &Dataset, choice: &Choice, facts: &Facts) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for (task, arms) in choose::chosen(dataset, choice) {
        let Python::Image(image) = &task.environment.python else { continue };
        let commit = |revision| exclude::commit(facts, &task.repository, revision).ok();
        let (baseline, human) = (commit(&task.baseline), task.human.as_ref().and_then(commit));
        let commits = Commits { baseline, human, rungs: BTreeMap::new() };
        // The baseline runs in every task that runs at all.
        let arms = arms.iter().chain([&ArmId::Baseline]);
        needed.extend(arms.filter_map(|arm| name(image, arm, &commits)?.ok()));
    }
    needed
}

/// Returns the image that a registry has under a name, with the commit that its tag stands for.
fn in_registry<'f>(name: &str, facts: &'f Facts) -> Option<(&'f CommitId, ImageFacts)> {
    let found = facts.images.as_ref()?;
    let tag = name.strip_prefix(&found.repository)?.strip_prefix(':')?;
    let (commit, fact) = found.commits.iter().find(|(_, fact)| fact.tag.as_str() == tag)?;
    let (config, digest) = (fact.config.as_ref()?, fact.digest.as_ref()?);
    let repo_digests = vec![format!("{}@{digest}", found.repository)];
    Some((commit, ImageFacts { name: name.to_owned(), id: config.to_string(), repo_digests }))
}

/// Returns the images of environments that a registry told the sizes of, each once.
pub(crate) fn sizes<'e>(environments: impl Iterator<Item = &'e EnvironmentSpec>, facts: &Facts) -> Vec<PlannedImage> {
    let mut images: Vec<PlannedImage> = Vec::new();
    for environment in environments {
        let Python::Image(python) = &environment.python else { continue };
        let known = python.holds.as_ref().zip(facts.images.as_ref());
        let Some(fact) = known.and_then(|(commit, found)| found.commits.get(commit)) else { continue };
        let (Some(config), Some(bytes)) = (&fact.config, fact.bytes) else { continue };
        let id = config.to_string();
        if !images.iter().any(|image| image.id == id) {
            images.push(PlannedImage { id, bytes, layers: fact.layers.clone() });
        }
    }
    images
}

/// Returns an arm's Python with its image pinned, or why it can't be had. That of other arms is as it is.
pub(crate) fn pin(task: &Task, arm: &ArmId, commits: &Commits, facts: &Facts) -> Result<Python, Why> {
    let Python::Image(image) = &task.environment.python else { return Ok(task.environment.python.clone()) };
    let missing = |message: String| (ExclusionReason::InputMissing, message);
    let Some(name) = name(image, arm, commits) else {
        return Err(missing(format!("the commit of `{arm}` isn't known, by which its image is named")));
    };
    let name = name.map_err(|placeholder| {
        missing(format!("`environment.image` has `{{{placeholder}}}`, which isn't `{{commit}}` or `{{commitN}}`"))
    })?;
    let (holds, pinned) = match facts.environment_images.get(&name) {
        Some(FoundImage::Found { image }) => (None, image.clone()),
        Some(FoundImage::Missing { reason }) => {
            let next = "build, load or pull it, and look with `docker images`";
            return Err(missing(format!("the image `{name}` of `{arm}` can't be had: {reason}; {next}")));
        }
        None => match in_registry(&name, facts) {
            Some((commit, image)) => (Some(commit.clone()), image),
            None => return Err(missing(format!("the image `{name}` of `{arm}` was not looked up for these facts"))),
        },
    };
    let program = image.program.clone();
    Ok(Python::Image(ImagePython { image: name, baseline_image: None, program, holds, pinned: Some(pinned) }))
}

/// Returns those of the arms whose images, if they have some, can be had, and why the others are left out.
pub(crate) fn available(
    task: &Task,
    arms: Vec<ArmId>,
    commits: &Commits,
    facts: &Facts,
) -> (Vec<ArmId>, Vec<Exclusion>) {
    let (mut kept, mut left) = (Vec::new(), Vec::new());
    for arm in arms {
        match pin(task, &arm, commits, facts) {
            Ok(_) => kept.push(arm),
            Err(why) => left.push(exclude::arm(&task.id, &arm, why)),
        }
    }
    (kept, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_commits() {
        let commit = CommitId::new("0123456789abcdef0123456789abcdef01234567").unwrap();
        for (template, expected) in [
            ("team/engine:{commit}", Ok("team/engine:0123456789abcdef0123456789abcdef01234567")),
            ("team/engine:baseline-{commit12}", Ok("team/engine:baseline-0123456789ab")),
            ("engine@sha256:0", Ok("engine@sha256:0")),
            ("engine:{commit6}", Err("commit6")),
            ("engine:{commit41}", Err("commit41")),
            ("engine:{parent12}", Err("parent12")),
            ("engine:{commit", Err("commit")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(fill(template, &commit), expected, "{template}");
        }
    }
}
