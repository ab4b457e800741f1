//! How far the images that are there cover a dataset: a pure function of what the registry answered.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::ids::{CommitId, ImageDigest, ImageTag, Moment};
use isobench_schema::images::{
    AuditCounts, AuditStorage, AuditedImage, AuditedTask, ImageAudit, ImageFact, ImageFacts, ImageFound, ImagePart,
    ImageState, RateLimit, SharedLayer,
};

use super::{Naming, Wanted, WantedImage};

/// How many shared layers are named.
const LISTED_LAYERS: usize = 10;

/// The digits of a commit by which a tag of another naming is found.
const TELLING_DIGITS: usize = 8;

/// What a registry answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// Every tag of the repository; absent if it lets nobody list them.
    pub tags: Option<BTreeSet<String>>,
    /// What it has under each tag that was asked for.
    pub found: BTreeMap<ImageTag, ImageFound>,
    /// How much may be pulled.
    pub pulls: Option<RateLimit>,
}

/// What was asked of a registry.
#[derive(Debug, Clone)]
pub struct AuditAsked<'a> {
    /// The dataset's name.
    pub dataset: &'a str,
    /// The repository, with its registry.
    pub repository: &'a str,
    /// The platform.
    pub platform: &'a str,
    /// When.
    pub asked: Moment,
    /// How images are named.
    pub naming: &'a Naming,
}

/// Returns how far images cover the tasks that ask for them.
pub fn audit(asked: &AuditAsked<'_>, wanted: &[Wanted<'_>], answers: &Answers) -> ImageAudit {
    let tasks: Vec<AuditedTask> = wanted.iter().map(|wanted| audited(wanted, answers)).collect();
    let tags: BTreeMap<&ImageTag, &ImageFound> = tasks
        .iter()
        .flat_map(|task| [&task.human, &task.baseline])
        .filter_map(|image| Some((image.tag.as_ref()?, &image.found)))
        .filter(|(_, found)| found.state == ImageState::Present)
        .collect();
    let (storage, shared) = storage(tags.values().copied());
    ImageAudit {
        dataset: asked.dataset.to_owned(),
        repository: asked.repository.to_owned(),
        asked: asked.asked.clone(),
        platform: asked.platform.to_owned(),
        human_tag: asked.naming.human.as_str().to_owned(),
        baseline_tag: asked.naming.baseline.as_str().to_owned(),
        tags_listed: answers.tags.as_ref().map(|tags| number(tags.len())),
        counts: counts(&tasks),
        storage,
        shared,
        same_image: same_image(&tasks),
        other_tags: other_tags(&tasks, answers),
        tasks,
        pulls: answers.pulls.clone(),
    }
}

/// Returns what a plan should know of the images.
pub fn facts(repository: &str, wanted: &[Wanted<'_>], answers: &Answers) -> ImageFacts {
    let mut commits: BTreeMap<CommitId, ImageFact> = BTreeMap::new();
    for image in wanted.iter().flat_map(Wanted::images) {
        let found = found(image, answers);
        let is_present = found.state == ImageState::Present;
        let fact = ImageFact {
            tag: image.tag.clone(),
            state: found.state,
            digest: found.digest,
            config: found.config,
            bytes: found.bytes,
            layers: found.layers,
            reason: (!is_present).then_some(found.reason),
        };
        // A commit may be the human one of one task and the baseline of another: either image holds it.
        match commits.get(&image.commit) {
            Some(known) if known.state == ImageState::Present || !is_present => {}
            Some(_) | None => {
                commits.insert(image.commit.clone(), fact);
            }
        }
    }
    ImageFacts { repository: repository.to_owned(), commits }
}

fn audited(wanted: &Wanted<'_>, answers: &Answers) -> AuditedTask {
    let image = |image: &Result<WantedImage, String>| match image {
        Ok(image) => AuditedImage {
            commit: Some(image.commit.clone()),
            tag: Some(image.tag.clone()),
            found: found(image, answers),
        },
        Err(reason) => {
            AuditedImage { commit: None, tag: None, found: ImageFound::only(ImageState::Unnamed, reason.clone()) }
        }
    };
    AuditedTask {
        task: wanted.task.id.clone(),
        engine: wanted.task.engine,
        subject: wanted.subject.clone(),
        human: image(&wanted.human),
        baseline: image(&wanted.baseline),
    }
}

/// Returns what is known of an image; of a missing one, which tags name its commit in another way.
fn found(image: &WantedImage, answers: &Answers) -> ImageFound {
    let Some(found) = answers.found.get(&image.tag) else {
        return ImageFound::only(ImageState::NotAsked, "the registry wasn't asked for it");
    };
    let mut found = found.clone();
    match found.state {
        ImageState::Missing => {
            let others = named_otherwise(image, answers);
            if !others.is_empty() {
                found.reason = format!("{}; {} may be of the same commit", found.reason, others.join(", "));
            }
        }
        ImageState::Present => {
            let claim = found.claimed_revision.as_deref().filter(|claim| claim.len() >= TELLING_DIGITS);
            if let Some(claim) = claim.filter(|claim| !image.commit.as_str().starts_with(claim)) {
                found.reason = format!("{}, and its label says that it holds `{claim}`", found.reason);
            }
        }
        ImageState::OtherPlatform | ImageState::Unreadable | ImageState::NotAsked | ImageState::Unnamed => {}
    }
    found
}

fn named_otherwise(image: &WantedImage, answers: &Answers) -> Vec<String> {
    let Some(digits) = image.commit.as_str().get(..TELLING_DIGITS) else { return Vec::new() };
    let tags = answers.tags.iter().flatten();
    tags.filter(|tag| tag.contains(digits) && *tag != image.tag.as_str()).map(|tag| format!("`{tag}`")).collect()
}

fn counts(tasks: &[AuditedTask]) -> AuditCounts {
    let mut counts = AuditCounts { tasks: number(tasks.len()), ..AuditCounts::default() };
    for task in tasks {
        let is_there = |image: &AuditedImage| image.found.state == ImageState::Present;
        let count = match (is_there(&task.human), is_there(&task.baseline)) {
            (true, true) => &mut counts.both,
            (true, false) => &mut counts.human_only,
            (false, true) => &mut counts.baseline_only,
            (false, false) => &mut counts.neither,
        };
        *count += 1;
    }
    counts
}

/// Returns what images take, and the layers whose sharing saves most.
fn storage<'f>(found: impl Iterator<Item = &'f ImageFound>) -> (AuditStorage, Vec<SharedLayer>) {
    // Two tags of one image are one image.
    let images: BTreeMap<&ImageDigest, &ImageFound> = found
        .filter(|found| !found.layers.is_empty())
        .filter_map(|found| Some((found.manifest.as_ref()?, found)))
        .collect();
    let mut storage = AuditStorage { images: number(images.len()), ..AuditStorage::default() };
    let mut layers: BTreeMap<&ImageDigest, (&ImagePart, u64)> = BTreeMap::new();
    for image in images.values() {
        let own: BTreeMap<&ImageDigest, &ImagePart> = image.layers.iter().map(|layer| (&layer.digest, layer)).collect();
        let of_layers = own.values().fold(0_u64, |sum, layer| sum.saturating_add(layer.bytes));
        // The configuration is no layer, and every image's own.
        let bytes = image.bytes.unwrap_or(of_layers).max(of_layers);
        storage.bytes_alone = storage.bytes_alone.saturating_add(bytes);
        storage.bytes_together = storage.bytes_together.saturating_add(bytes - of_layers);
        storage.largest = storage.largest.max(bytes);
        for (digest, layer) in own {
            layers.entry(digest).or_insert((layer, 0)).1 += 1;
        }
    }
    for (layer, _) in layers.values() {
        storage.bytes_together = storage.bytes_together.saturating_add(layer.bytes);
    }
    storage.layers = number(layers.len());
    let mut shared: Vec<SharedLayer> = layers
        .into_values()
        .filter(|(_, images)| *images > 1)
        .map(|(layer, images)| SharedLayer {
            layer: layer.clone(),
            images,
            saves: layer.bytes.saturating_mul(images - 1),
        })
        .collect();
    storage.shared_layers = number(shared.len());
    shared.sort_by(|one, other| other.saves.cmp(&one.saves).then_with(|| one.layer.digest.cmp(&other.layer.digest)));
    shared.truncate(LISTED_LAYERS);
    (storage, shared)
}

/// Returns the tags that name one image though they stand for different commits.
fn same_image(tasks: &[AuditedTask]) -> Vec<Vec<ImageTag>> {
    let mut by_digest: BTreeMap<&ImageDigest, BTreeMap<&CommitId, &ImageTag>> = BTreeMap::new();
    for image in tasks.iter().flat_map(|task| [&task.human, &task.baseline]) {
        if let (Some(digest), Some(commit), Some(tag)) = (&image.found.digest, &image.commit, &image.tag) {
            by_digest.entry(digest).or_default().insert(commit, tag);
        }
    }
    let several = by_digest.into_values().filter(|commits| commits.len() > 1);
    several.map(|commits| commits.into_values().cloned().collect()).collect()
}

fn other_tags(tasks: &[AuditedTask], answers: &Answers) -> Vec<String> {
    let images = tasks.iter().flat_map(|task| [&task.human, &task.baseline]);
    let asked: BTreeSet<&str> = images.filter_map(|image| Some(image.tag.as_ref()?.as_str())).collect();
    answers.tags.iter().flatten().filter(|tag| !asked.contains(tag.as_str())).cloned().collect()
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
