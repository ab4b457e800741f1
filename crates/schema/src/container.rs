//! Containers that engines run in: what they are made with, and what was seen of them from outside.

use serde::{Deserialize, Serialize};

use crate::ids::Digest;

/// What the containers of a run are made with. A plan pins the image, so that the same plan runs the same files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerSpec {
    /// The image of every engine whose environment doesn't come from an image of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageFacts>,
    /// The bounds of what each container may use.
    pub limits: ContainerLimits,
    /// Devices by their CDI names, such as `nvidia.com/gpu=all`. Without any, all of the machine's GPUs are asked for if it
    /// has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// A profile of allowed system calls, as Docker reads it; the daemon's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<String>,
}

/// An image, by what can't change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFacts {
    /// The name by which it was asked for, for people.
    pub name: String,
    /// Its id: the digest of its configuration, which names its layers, such as `sha256:..`.
    pub id: String,
    /// The digests under which registries know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repo_digests: Vec<String>,
}

/// What a container may use. What is absent has no bound of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerLimits {
    /// Memory in bytes, with no swap beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The processors that it may run on, as the kernel lists them, such as `0-3,8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<String>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Shared memory in bytes; the daemon's default, mostly 64 MiB, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory_bytes: Option<u64>,
}

/// A running container as it was seen from outside: by the daemon, and by the kernel's files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerFacts {
    /// Its id.
    pub id: String,
    /// The id of the image that the daemon says it was made from.
    pub image_id: String,
    /// The daemon.
    pub daemon: DaemonFacts,
    /// Its first process, by this machine's process table.
    pub process: u32,
    /// Bounds as the kernel has them.
    pub limits: ContainerLimits,
    /// The most memory that it had used so far, in bytes, where the kernel tells.
    pub peak_memory_bytes: Option<u64>,
    /// The capabilities that its processes may have, as the kernel's mask in hexadecimal.
    pub capabilities: String,
    /// Whether its processes can gain no privileges.
    pub no_new_privileges: bool,
    /// Whether its system calls are filtered.
    pub seccomp: bool,
    /// Network interfaces that it has.
    pub interfaces: Vec<String>,
    /// The digest of the engine's executable, read in the container.
    pub executable: Option<Digest>,
}

/// What serves containers on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonFacts {
    /// `docker` or `podman`.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// The version of its API that is spoken.
    pub api: String,
    /// `1` or `2`.
    pub cgroup_version: Option<String>,
    /// How layers are kept, such as `overlay2`.
    pub storage_driver: Option<String>,
    /// Runtimes that it knows, sorted.
    pub runtimes: Vec<String>,
    /// Where it keeps images and containers.
    pub root: Option<String>,
    /// Free disk there in MiB, if this process may look.
    pub root_free_mib: Option<u64>,
}
