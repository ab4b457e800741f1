//! What a registry says of images, and how far the images of a repository cover a dataset.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::EngineKind;
use crate::failure::spelt_enum;
use crate::format::Stored;
use crate::ids::{CommitId, ImageDigest, ImageTag, Moment, TaskId};

spelt_enum!(
    /// What became of the question whether an image is there.
    ImageState {
        /// It is there, for the platform that was asked for.
        Present = "present",
        /// The registry has no such tag.
        Missing = "missing",
        /// It is there, for other platforms only.
        OtherPlatform = "other-platform",
        /// What the registry has under the tag can't be understood, or isn't what its digest says.
        Unreadable = "unreadable",
        /// The registry wasn't asked: too little was left of what it lets one ask.
        NotAsked = "not-asked",
        /// Which tag it would have can't be told.
        Unnamed = "unnamed",
    }
);

spelt_enum!(
    /// Who listed the tags of a repository.
    ListedBy {
        /// The registry itself.
        Registry = "registry",
        /// Docker Hub's own interface, which tells sizes and dates too.
        Hub = "hub",
    }
);

/// A stored piece of an image: its configuration, or a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagePart {
    /// Its digest.
    pub digest: ImageDigest,
    /// Its size as it is stored and fetched, in bytes.
    pub bytes: u64,
}

/// What a registry has under a tag. What it wasn't asked for, or didn't say, is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFound {
    /// What became of the question.
    pub state: ImageState,
    /// Why, in one sentence without a full stop.
    pub reason: String,
    /// The digest of what the tag names: a manifest, or a list of them by platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<ImageDigest>,
    /// The digest of the manifest for the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ImageDigest>,
    /// The digest of its configuration, which daemons know it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ImageDigest>,
    /// What must be fetched of it if nothing of it is there: configuration and layers, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its layers, the lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<ImagePart>,
    /// The platforms that it is there for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<String>,
    /// When it says that it was made, as it says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The revision that its label `org.opencontainers.image.revision` claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_revision: Option<String>,
}

impl ImageFound {
    /// Returns an answer of which nothing but its state and reason is known.
    pub fn only(state: ImageState, reason: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
            digest: None,
            manifest: None,
            config: None,
            bytes: None,
            layers: Vec::new(),
            platforms: Vec::new(),
            created: None,
            claimed_revision: None,
        }
    }
}

/// How much a registry lets one ask, as it last said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// The most that may be asked in a window.
    pub limit: u64,
    /// What is left of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    /// The window, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<u64>,
}

/// A tag of a repository. What wasn't asked for is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedTag {
    /// The tag.
    pub tag: ImageTag,
    /// The digest of what it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<ImageDigest>,
    /// What must be fetched of it, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The platforms that it is there for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<String>,
    /// When it was pushed last, as Docker Hub says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<String>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The tags of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageList {
    /// The repository, with its registry.
    pub repository: String,
    /// Who listed them.
    pub listed_by: ListedBy,
    /// The pages that the list came in.
    pub pages: u64,
    /// How many tags there are, if whoever listed them said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<u64>,
    /// The tags, sorted.
    pub tags: Vec<ListedTag>,
    /// How much may be pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulls: Option<RateLimit>,
}

impl Stored for ImageList {
    const NAME: &'static str = "image-list";
    const VERSION: u32 = 1;
}

/// The image of one side of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditedImage {
    /// The commit that it should hold; absent if it isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The tag that the naming gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<ImageTag>,
    /// What the registry has.
    pub found: ImageFound,
}

/// A task and its images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditedTask {
    /// The task.
    pub task: TaskId,
    /// The engine.
    pub engine: EngineKind,
    /// The commit's subject line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The image of the human commit.
    pub human: AuditedImage,
    /// The image of its baseline.
    pub baseline: AuditedImage,
}

/// Tasks by which of their two images are there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditCounts {
    /// All tasks.
    pub tasks: u64,
    /// With both images.
    pub both: u64,
    /// With the human image alone.
    pub human_only: u64,
    /// With the baseline's image alone.
    pub baseline_only: u64,
    /// With neither.
    pub neither: u64,
}

impl AuditCounts {
    /// Returns how many human images are there.
    pub fn human(&self) -> u64 {
        self.both + self.human_only
    }

    /// Returns how many images of baselines are there, counted by task.
    pub fn baseline(&self) -> u64 {
        self.both + self.baseline_only
    }
}

/// What the images that are there take, as far as their layers are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditStorage {
    /// Images whose layers are known; two tags of one image count once.
    pub images: u64,
    /// What they take if each is fetched as if it were the only one, in bytes.
    pub bytes_alone: u64,
    /// What they take together, with each layer fetched once, in bytes.
    pub bytes_together: u64,
    /// The largest of them, in bytes.
    pub largest: u64,
    /// Different layers.
    pub layers: u64,
    /// Layers that more than one image has.
    pub shared_layers: u64,
}

/// A layer that several images have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedLayer {
    /// The layer.
    pub layer: ImagePart,
    /// How many images have it.
    pub images: u64,
    /// What sharing it saves, in bytes.
    pub saves: u64,
}

/// How far the images of a repository cover a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageAudit {
    /// The dataset's name.
    pub dataset: String,
    /// The repository, with its registry.
    pub repository: String,
    /// When the registry was asked.
    pub asked: Moment,
    /// The platform that was asked for, such as `linux/amd64`.
    pub platform: String,
    /// How human images are named.
    pub human_tag: String,
    /// How images of baselines are named.
    pub baseline_tag: String,
    /// Tags in the repository; absent if it lets nobody list them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags_listed: Option<u64>,
    /// Tasks by which of their images are there.
    pub counts: AuditCounts,
    /// What the images take.
    pub storage: AuditStorage,
    /// The tasks, in the dataset's order.
    pub tasks: Vec<AuditedTask>,
    /// The layers whose sharing saves most.
    pub shared: Vec<SharedLayer>,
    /// Tags that name one and the same image, though they stand for different commits.
    pub same_image: Vec<Vec<ImageTag>>,
    /// Tags in the repository that no task asks for.
    pub other_tags: Vec<String>,
    /// How much may be pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulls: Option<RateLimit>,
}

impl Stored for ImageAudit {
    const NAME: &'static str = "image-audit";
    const VERSION: u32 = 1;
}

/// What a registry said of the image of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFact {
    /// The tag.
    pub tag: ImageTag,
    /// What became of the question.
    pub state: ImageState,
    /// The digest of what the tag names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<ImageDigest>,
    /// The digest of its configuration, which daemons know it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ImageDigest>,
    /// What must be fetched of it, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its layers, the lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<ImagePart>,
    /// Why it can't be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An image that a task's launches run from, with what must be fetched of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedImage {
    /// Its id: the digest of its configuration.
    pub id: String,
    /// What must be fetched of it if nothing of it is there: configuration and layers, in bytes.
    pub bytes: u64,
    /// Its layers, the lowest first. Images store those once that they begin with alike.
    pub layers: Vec<ImagePart>,
}

impl PlannedImage {
    /// Returns what must be fetched of images if nothing of them is there, in bytes: every layer once.
    pub fn bytes_of(images: &[Self]) -> u64 {
        let layers: BTreeMap<&ImageDigest, u64> =
            images.iter().flat_map(|image| &image.layers).map(|layer| (&layer.digest, layer.bytes)).collect();
        layers.values().sum()
    }

    /// Returns the disk that images need, about, if nothing of them is there.
    pub fn room_of(images: &[Self]) -> u64 {
        room_for(Self::bytes_of(images))
    }
}

/// Returns the disk that so many fetched bytes of layers need, about: they lie beside what is unpacked of them until that is
/// done, and unpacked they take 2.5 times as much. Images of engines, mostly libraries of kernels, take 2 to 3 times as much.
pub fn room_for(bytes: u64) -> u64 {
    bytes.saturating_mul(7) / 2
}

/// What a registry said of the images of commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFacts {
    /// The repository, with its registry.
    pub repository: String,
    /// By commit.
    pub commits: BTreeMap<CommitId, ImageFact>,
}
