//! The daemon: where it listens, which version is spoken, and what it is.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use bollard::{API_DEFAULT_VERSION, Docker};
use isobench_schema::container::DaemonFacts;

use super::ContainerError;

/// How long one question may take, in seconds. Images of many gigabytes are committed within it.
const PATIENCE_S: u64 = 600;

/// A daemon that answers.
#[derive(Debug, Clone)]
pub struct Daemon {
    pub(super) docker: Docker,
    socket: PathBuf,
}

impl Daemon {
    /// Connects to the daemon that `DOCKER_HOST` names, or to the first that answers at the usual places.
    ///
    /// # Errors
    /// Returns where was looked, if none answers.
    pub async fn connect() -> Result<Self, ContainerError> {
        let mut tried = Vec::new();
        for socket in sockets()? {
            if !is_socket(&socket) {
                tried.push(format!("`{}`: no socket", socket.display()));
                continue;
            }
            match Self::connect_to(&socket).await {
                Ok(daemon) => return Ok(daemon),
                Err(error) => tried.push(format!("`{}`: {}", socket.display(), with_cause(&error))),
            }
        }
        Err(ContainerError::NoDaemon { places: tried.join(", ") })
    }

    /// Connects to the daemon that listens on a socket, and agrees with it on a version.
    ///
    /// # Errors
    /// Returns an error if it doesn't answer.
    pub async fn connect_to(socket: &Path) -> Result<Self, ContainerError> {
        let what = || format!("answer at `{}`", socket.display());
        let path = socket.to_string_lossy();
        let docker = Docker::connect_with_unix(&path, PATIENCE_S, API_DEFAULT_VERSION);
        let docker = docker.map_err(ContainerError::asked(what()))?;
        let docker = docker.negotiate_version().await.map_err(ContainerError::asked(what()))?;
        Ok(Self { docker, socket: socket.to_owned() })
    }

    /// Returns the socket that it listens on.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns what the daemon says of itself.
    ///
    /// # Errors
    /// Returns an error if it doesn't answer.
    pub async fn facts(&self) -> Result<DaemonFacts, ContainerError> {
        let version = self.docker.version().await.map_err(ContainerError::asked("tell its version"))?;
        let info = self.docker.info().await.map_err(ContainerError::asked("tell of itself"))?;
        let components = version.components.unwrap_or_default();
        let is_podman = components.iter().any(|component| component.name.to_lowercase().contains("podman"));
        let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
        runtimes.sort();
        let root_free_mib = info.docker_root_dir.as_deref().and_then(|root| free_mib(Path::new(root)));
        Ok(DaemonFacts {
            engine: if is_podman { "podman" } else { "docker" }.to_owned(),
            version: version.version.unwrap_or_default(),
            api: self.docker.client_version().to_string(),
            cgroup_version: info.cgroup_version.map(|version| version.to_string()).filter(|text| !text.is_empty()),
            storage_driver: info.driver,
            runtimes,
            root: info.docker_root_dir,
            root_free_mib,
        })
    }
}

/// Returns the sockets at which a daemon may listen, the likeliest first.
fn sockets() -> Result<Vec<PathBuf>, ContainerError> {
    if let Some(address) = std::env::var("DOCKER_HOST").ok().filter(|address| !address.is_empty()) {
        return match address.strip_prefix("unix://") {
            Some(path) => Ok(vec![PathBuf::from(path)]),
            None => Err(ContainerError::Elsewhere { address }),
        };
    }
    let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = user.iter().flat_map(|folder| [folder.join("docker.sock"), folder.join("podman/podman.sock")]);
    let places = ["/var/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from);
    Ok(places.into_iter().chain(user).collect())
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Returns the free disk for ordinary users where a folder is, if it is there and this process may look.
fn free_mib(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize) / (1024 * 1024))
}

/// Returns an error's text with those of its causes.
pub(crate) fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
