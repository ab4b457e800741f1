//! What is known of the world when a plan is made. Stored beside the plan, part of its hash.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::assessment::RevisionFacts;
use crate::container;
use crate::failure::Failure;
use crate::format::Stored;
use crate::ids::CommitId;
use crate::images::ImageFacts;
use crate::input::FoundInput;

/// An accelerator of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The name that the driver gives it.
    pub name: String,
    /// Its memory in MiB.
    pub memory_mib: u64,
    /// The driver's version.
    pub driver: String,
}

/// The machine. What can't be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A digest of the facts below that must be equal before two runs may be compared.
    pub fingerprint: String,
    /// The operating system's kernel release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The processor's model name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Processors that this process may use.
    pub processors: u32,
    /// Main memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Free disk where runs and the cache are kept, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_mib: Option<u64>,
    /// Accelerators.
    pub devices: Vec<Device>,
    /// The version of each tool that was found, by its name.
    pub tools: BTreeMap<String, String>,
}

/// A revision looked up in its repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ResolvedRevision {
    /// It is this commit.
    Found {
        /// The commit.
        commit: CommitId,
    },
    /// It can't be had.
    Missing {
        /// Why.
        failure: Failure,
    },
}

/// An image looked up on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FoundImage {
    /// It is there.
    Found {
        /// The image.
        image: container::ImageFacts,
    },
    /// It can't be had.
    Missing {
        /// Why, in one sentence without a full stop.
        reason: String,
    },
}

/// What is known of the world.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The machine that the plan is for.
    pub host: Host,
    /// Revisions by repository and name.
    pub revisions: BTreeMap<String, BTreeMap<String, ResolvedRevision>>,
    /// Files and folders that tasks name (models, for example), by path: a digest of what they hold, or absent.
    pub inputs: BTreeMap<String, Option<String>>,
    /// What is known of the commits that tasks of a dataset of commits name, by repository and by the revision as it is
    /// written there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, BTreeMap<String, RevisionFacts>>,
    /// The `config.json` of models, by the model's name, as far as a local folder or the hub's cache has one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub model_configs: BTreeMap<String, serde_json::Value>,
    /// What a registry said of the images of commits, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageFacts>,
    /// The whole disk that the daemon of containers keeps images on, in MiB, where images are planned for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_disk_mib: Option<u64>,
    /// Repositories of a hub that tasks name, as `KIND OWNER/NAME@REVISION`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hub: BTreeMap<String, FoundInput>,
    /// What the daemon of containers has under the names of images that tasks ask for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment_images: BTreeMap<String, FoundImage>,
}

impl Stored for Facts {
    const NAME: &'static str = "facts";
    const VERSION: u32 = 1;
}
