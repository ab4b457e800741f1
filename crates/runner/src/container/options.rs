//! What a container is made with, in our words, and in those of the daemon's API.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use bollard::models::{
    ContainerCreateBody, DeviceRequest, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};
use isobench_schema::container::ContainerLimits;

/// What a container is made with. The default is the strictest: no network, no device, nothing writable, no input.
#[derive(Debug, Clone, Default)]
pub struct ContainerOptions {
    /// The image, by name or id.
    pub image: String,
    /// The command, in the place of the image's own.
    pub command: Vec<String>,
    /// Variables, above those of the image.
    pub environment: BTreeMap<String, String>,
    /// The working folder.
    pub folder: Option<PathBuf>,
    /// The user, such as `1000:1000`; the image's own if absent.
    pub user: Option<String>,
    /// Bounds.
    pub limits: ContainerLimits,
    /// Bounds of each process, by name.
    pub ulimits: Vec<Ulimit>,
    /// Devices.
    pub devices: Devices,
    /// Files and folders of this machine, and where they are in the container, to be read only.
    pub reads: Vec<(PathBuf, PathBuf)>,
    /// Folders of this machine, and where they are in the container, to be written.
    pub writes: Vec<(PathBuf, PathBuf)>,
    /// Folders in memory, empty at first.
    pub in_memory: Vec<PathBuf>,
    /// Whether the image's files may be written over.
    pub root: RootFiles,
    /// A profile of system calls, as JSON; the daemon's own if absent.
    pub seccomp: Option<String>,
    /// The network.
    pub network: Network,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Whether somebody writes to its standard input.
    pub input: Input,
    /// Whether the daemon keeps what it writes.
    pub log: Log,
}

/// Whether the daemon keeps what a container writes, so that it can be asked for again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Log {
    /// It does.
    #[default]
    Kept,
    /// It does, of the latest 128 MiB: a stranger's program may write without end.
    Bounded,
    /// It doesn't: whoever is attached gets it, and nobody else.
    Passed,
}

/// What of a container's words is kept at most, if it is bounded: more than is read, so that too much is noticed.
const MOST_KEPT: &str = "128m";

/// A bound of each process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ulimit {
    /// Its name, such as `nofile`.
    pub name: String,
    /// The bound that holds.
    pub soft: i64,
    /// The bound up to which a process may raise it.
    pub hard: i64,
}

/// The devices of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Devices {
    /// None.
    #[default]
    None,
    /// Every GPU of the machine.
    AllGpus,
    /// Those with these CDI names.
    Named(Vec<String>),
}

impl Devices {
    /// Returns the devices with these CDI names; without any, those that are `otherwise` meant.
    pub fn of(names: &[String], otherwise: Self) -> Self {
        if names.is_empty() { otherwise } else { Self::Named(names.to_vec()) }
    }
}

/// Whether the image's files may be written over, in a copy of the container's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RootFiles {
    /// They may not.
    #[default]
    ReadOnly,
    /// They may.
    Writable,
}

/// What of the network a container sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Its own loopback address and nothing else.
    #[default]
    None,
    /// A network of that name, which may be an internal one.
    Named(String),
    /// What the daemon gives by default, with a way out.
    Default,
}

/// Whether somebody writes to a container's standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Input {
    /// Nobody does.
    #[default]
    Closed,
    /// One does, and it is closed for good when that one is gone, however it ends.
    Attached,
}

impl ContainerOptions {
    /// Returns the body of the request that makes the container.
    pub(super) fn body(&self) -> ContainerCreateBody {
        let is_attached = self.input == Input::Attached;
        ContainerCreateBody {
            image: Some(self.image.clone()),
            // The image's entry point would be put before the command.
            entrypoint: Some(self.command.clone()),
            cmd: Some(Vec::new()),
            env: Some(self.environment.iter().map(|(name, value)| format!("{name}={value}")).collect()),
            user: self.user.clone(),
            working_dir: self.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
            labels: Some(self.labels.clone().into_iter().collect()),
            attach_stdin: Some(is_attached),
            attach_stdout: Some(is_attached),
            attach_stderr: Some(is_attached),
            open_stdin: Some(is_attached),
            stdin_once: Some(is_attached),
            host_config: Some(self.host_config()),
            ..ContainerCreateBody::default()
        }
    }

    fn host_config(&self) -> HostConfig {
        let limits = &self.limits;
        let size = |bytes: Option<u64>| bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let mut security = vec!["no-new-privileges".to_owned()];
        security.extend(self.seccomp.as_ref().map(|profile| format!("seccomp={profile}")));
        HostConfig {
            memory: size(limits.memory_bytes),
            // The same bound for memory and swap together: no swap.
            memory_swap: size(limits.memory_bytes),
            cpuset_cpus: limits.processors.clone(),
            pids_limit: size(limits.processes),
            shm_size: size(limits.shared_memory_bytes),
            ulimits: Some(self.ulimits.iter().map(ulimit).collect()),
            device_requests: device_requests(&self.devices),
            mounts: Some(self.mounts()),
            tmpfs: Some(self.tmpfs()),
            readonly_rootfs: Some(self.root == RootFiles::ReadOnly),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(security),
            network_mode: match &self.network {
                Network::None => Some("none".to_owned()),
                Network::Named(name) => Some(name.clone()),
                Network::Default => None,
            },
            log_config: self.log_config(),
            ..HostConfig::default()
        }
    }

    fn log_config(&self) -> Option<HostConfigLogConfig> {
        let kind = |typ: &str, config| HostConfigLogConfig { typ: Some(typ.to_owned()), config };
        match self.log {
            Log::Kept => None,
            Log::Bounded => {
                let bounds = [("max-size", MOST_KEPT), ("max-file", "1")];
                let bounds = bounds.map(|(name, value)| (name.to_owned(), value.to_owned()));
                Some(kind("json-file", Some(bounds.into())))
            }
            Log::Passed => Some(kind("none", None)),
        }
    }

    fn mounts(&self) -> Vec<Mount> {
        let mount = |(source, target): &(PathBuf, PathBuf), read_only| Mount {
            typ: Some(MountType::BIND),
            source: Some(source.to_string_lossy().into_owned()),
            target: Some(target.to_string_lossy().into_owned()),
            read_only: Some(read_only),
            ..Mount::default()
        };
        let reads = self.reads.iter().map(|read| mount(read, true));
        reads.chain(self.writes.iter().map(|write| mount(write, false))).collect()
    }

    /// Programs are compiled into such folders and run from them, so that they aren't `noexec`.
    fn tmpfs(&self) -> HashMap<String, String> {
        let folder =
            |path: &PathBuf| (path.to_string_lossy().into_owned(), "rw,exec,nosuid,nodev,mode=1777".to_owned());
        self.in_memory.iter().map(folder).collect()
    }
}

fn ulimit(limit: &Ulimit) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(limit.name.clone()), soft: Some(limit.soft), hard: Some(limit.hard) }
}

fn device_requests(devices: &Devices) -> Option<Vec<DeviceRequest>> {
    match devices {
        Devices::None => None,
        Devices::AllGpus => Some(vec![DeviceRequest {
            count: Some(-1),
            capabilities: Some(vec![vec!["gpu".to_owned()]]),
            ..DeviceRequest::default()
        }]),
        Devices::Named(names) => Some(vec![DeviceRequest {
            driver: Some("cdi".to_owned()),
            device_ids: Some(names.clone()),
            ..DeviceRequest::default()
        }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_is_refused() {
        let body = ContainerOptions { image: "base".to_owned(), ..ContainerOptions::default() }.body();
        let host = body.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!((host.readonly_rootfs, host.device_requests), (Some(true), None));
        assert_eq!((body.open_stdin, host.privileged), (Some(false), None));
    }

    #[test]
    fn bounds_and_devices_are_passed_on_as_they_are_meant() {
        let limits = ContainerLimits {
            memory_bytes: Some(64 << 20),
            processors: Some("0-1".to_owned()),
            processes: Some(100),
            shared_memory_bytes: Some(1 << 30),
        };
        let options = ContainerOptions {
            limits,
            devices: Devices::of(&["nvidia.com/gpu=0".to_owned()], Devices::AllGpus),
            input: Input::Attached,
            ..ContainerOptions::default()
        };
        let body = options.body();
        assert_eq!((body.open_stdin, body.stdin_once), (Some(true), Some(true)));
        let host = body.host_config.unwrap();
        assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)), "no swap");
        assert_eq!(
            (host.cpuset_cpus.as_deref(), host.pids_limit, host.shm_size),
            (Some("0-1"), Some(100), Some(1 << 30))
        );
        let request = host.device_requests.unwrap().remove(0);
        assert_eq!(
            (request.driver.as_deref(), request.device_ids),
            (Some("cdi"), Some(vec!["nvidia.com/gpu=0".to_owned()]))
        );
        let gpus = device_requests(&Devices::of(&[], Devices::AllGpus)).unwrap().remove(0);
        assert_eq!(gpus.capabilities, Some(vec![vec!["gpu".to_owned()]]));
    }
}
