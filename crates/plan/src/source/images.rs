//! Images that give arms their native files: each its own, or one for all arms whose native trees are equal.

use std::collections::BTreeMap;

use isobench_schema::assessment::RevisionFacts;
use isobench_schema::ids::{ArmId, CommitId};
use isobench_schema::images::{ImageFact, ImageState};

use super::native;
use super::{ArmSource, Images, Request};
use crate::knowledge::engines::ImageOf;

/// The image of a commit, of which enough is known to pin it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image<'a> {
    repository: &'a str,
    pub(super) fact: &'a ImageFact,
}

impl Image<'_> {
    /// Returns its name by its digest.
    pub(super) fn artifact(&self) -> String {
        match &self.fact.digest {
            Some(digest) => format!("{}@{digest}", self.repository),
            None => self.name(),
        }
    }

    /// Returns its name by its tag.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.repository, self.fact.tag)
    }
}

/// Why a revision has no image of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoImage {
    /// What it would be called.
    pub(super) artifact: Option<String>,
    /// Why it can't be had.
    pub(super) reason: String,
}

/// The image that an arm is given.
#[derive(Debug, Clone)]
pub(super) struct Given<'a> {
    /// The arm whose revision it holds.
    pub(super) owner: ArmId,
    /// The commit that it holds.
    pub(super) commit: CommitId,
    image: Image<'a>,
}

impl Given<'_> {
    /// Returns its name by its digest.
    pub(super) fn artifact(&self) -> String {
        self.image.artifact()
    }

    /// Returns its name by its tag.
    pub(super) fn name(&self) -> String {
        self.image.name()
    }
}

/// The images of a task's arms: every arm has one.
#[derive(Debug, Clone)]
pub(super) struct Supply<'a>(BTreeMap<ArmId, Given<'a>>);

impl<'a> Supply<'a> {
    /// Returns an arm's image.
    pub(super) fn of(&self, arm: &ArmId) -> Option<&Given<'a>> {
        self.0.get(arm)
    }
}

/// Returns the image of exactly this revision.
pub(super) fn own<'a>(request: &Request<'a>, revision: &RevisionFacts) -> Result<Image<'a>, NoImage> {
    let engine = request.knowledge.engines.of(request.engine);
    if let Some(kernels) = engine.and_then(|engine| engine.kernels.as_ref()) {
        let reason = format!("what an image has of `{}` can't be held against the revision", kernels.package);
        return Err(NoImage { artifact: None, reason });
    }
    let Some((facts, fact)) = request.registry.and_then(|facts| Some((facts, facts.commits.get(&revision.commit)?)))
    else {
        return Err(published(request, revision));
    };
    let image = Image { repository: &facts.repository, fact };
    let no = |reason: &str| {
        let (artifact, name) = (Some(image.artifact()), image.name());
        Err(NoImage { artifact, reason: format!("`{name}`: {reason}") })
    };
    match (fact.state, &fact.digest, &fact.config) {
        (ImageState::Present, Some(_), Some(_)) => Ok(image),
        (ImageState::Present, ..) => {
            no("it is there, and the registry let nobody ask for more, without which a plan can't pin it")
        }
        (
            ImageState::Missing
            | ImageState::OtherPlatform
            | ImageState::Unreadable
            | ImageState::NotAsked
            | ImageState::Unnamed,
            ..,
        ) => no(fact.reason.as_deref().unwrap_or("it can't be had")),
    }
}

/// Returns why a revision's published image, which no registry was asked for, isn't taken.
fn published(request: &Request<'_>, revision: &RevisionFacts) -> NoImage {
    let engine = request.knowledge.engines.of(request.engine);
    let release = native::release_of(request, revision);
    let of = if release.is_some() { ImageOf::Release } else { ImageOf::Commit };
    let Some(layout) = engine.and_then(|engine| engine.image_at(of, &revision.committed)) else {
        let reason = "no images of single commits of that time are published".to_owned();
        return NoImage { artifact: None, reason };
    };
    let version = release.map_or("", crate::knowledge::releases::Release::version);
    let name = layout.name.replace("{commit}", revision.commit.as_str()).replace("{release}", version);
    let reason = match &layout.keep {
        Some(keep) => format!("images of single commits are kept only for a while: {keep}"),
        None => "its registry wasn't asked, so that a plan can't pin it; `--images REPOSITORY` asks one".to_owned(),
    };
    NoImage { artifact: Some(name), reason }
}

/// Returns the images of all arms, or why images don't serve them: all are made the same way.
///
/// Where the native trees of baseline and human are known to be equal, one image serves every arm: the human commit's if it is
/// there, else the baseline's. Else each arm has that of its own revision.
pub(super) fn supply<'a>(request: &Request<'a>) -> Result<Supply<'a>, String> {
    if request.means.images == Images::Unusable {
        return Err("engines would run on the machine itself".to_owned());
    }
    let common = common(request);
    let mut given = BTreeMap::new();
    for arm in request.arms {
        let one = match &common {
            Some(common) => Ok(common.clone()),
            None => of_its_own(request, arm),
        };
        let one = one.and_then(|one| compiled(request, arm).map_or(Ok(one), Err));
        let one = one.map_err(|why| format!("not every arm has an image, and all are made the same way; {why}"))?;
        given.insert(arm.arm.clone(), one);
    }
    Ok(Supply(given))
}

/// Returns the image that serves every arm.
fn common<'a>(request: &Request<'a>) -> Option<Given<'a>> {
    let revision = |wanted: &ArmId| request.arms.iter().find(|arm| arm.arm == *wanted)?.revision;
    let key = |wanted: &ArmId| revision(wanted)?.native_key.as_deref();
    let (baseline, human) = (key(&ArmId::Baseline)?, key(&ArmId::Human)?);
    let owners = [ArmId::Human, ArmId::Baseline].into_iter().filter(|_| baseline == human);
    owners.into_iter().find_map(|owner| {
        let revision = revision(&owner)?;
        let image = own(request, revision).ok()?;
        Some(Given { owner, commit: revision.commit.clone(), image })
    })
}

fn of_its_own<'a>(request: &Request<'a>, arm: &ArmSource<'_>) -> Result<Given<'a>, String> {
    let name = &arm.arm;
    let revision = arm.revision.ok_or_else(|| format!("nothing is known of the revision of `{name}`"))?;
    let image = own(request, revision).map_err(|no| format!("that of `{name}`: {}", no.reason))?;
    let owner = match name {
        ArmId::Baseline | ArmId::Human => name.clone(),
        ArmId::Agent(_) => ArmId::Baseline,
    };
    Ok(Given { owner, commit: revision.commit.clone(), image })
}

/// Returns why an arm's patch is in no image, if it must be compiled.
fn compiled(request: &Request<'_>, arm: &ArmSource<'_>) -> Option<String> {
    let engine = request.knowledge.engines.of(request.engine)?;
    let file = native::compiled_change(engine, arm, arm.revision?)?;
    Some(format!("the patch of `{}` changes `{file}`, which must be compiled", arm.arm))
}
