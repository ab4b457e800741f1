//! Real daemons of containers, each in a folder of its own, started by a test and ended with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a daemon may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Where programs of the system are.
pub(crate) const SYSTEM_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// The image that tests run on: the machine's own Python and nothing else.
pub(crate) const IMAGE: &str = "isobench-test:python";

/// Prints the files of the interpreter that runs it, one a line: itself, its library, and the libraries they are linked to.
pub(crate) const FILES: &str = r#"
import os, pathlib, subprocess, sys, sysconfig
found = set()
def add(path):
    path = pathlib.Path(path)
    while True:
        found.add(str(path))
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
def link(path):
    output = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    for word in output.split():
        if word.startswith("/"):
            # The loader is asked for by this very name; a folder above it may be a link.
            found.add(os.path.join(os.path.realpath(os.path.dirname(word)), os.path.basename(word)))
            found.add(os.path.realpath(word))
            above = pathlib.Path("/") / pathlib.Path(word).parts[1]
            if above.is_symlink():
                found.add(str(above))
add(sys.executable)
add(os.path.realpath(sys.executable))
link(os.path.realpath(sys.executable))
library = pathlib.Path(sysconfig.get_path("stdlib"))
left_out = {"site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "__pycache__"}
for folder, folders, files in os.walk(library):
    folders[:] = [name for name in folders if name not in left_out and not name.startswith("config-")]
    for name in files:
        found.add(os.path.join(folder, name))
        if name.endswith(".so"):
            link(os.path.join(folder, name))
print("\n".join(sorted(os.path.normpath(path).lstrip("/") for path in found if os.path.lexists(path))))
"#;

/// A daemon. Dropping it ends it.
pub(crate) struct TestDaemon {
    child: Child,
    folder: tempfile::TempDir,
    pub(crate) socket: PathBuf,
}

/// Returns the path of a program of the system.
fn program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(SYSTEM_PATH).map(|folder| folder.join(name)).find(|path| path.is_file())
}

impl TestDaemon {
    /// Starts Docker's daemon without a network of its own, or says why it can't be.
    pub(crate) fn docker() -> Result<Self, String> {
        Self::docker_in(private_folder()?, None)
    }

    /// Starts Docker's daemon with all that it keeps on another disk, or says why it can't be.
    pub(crate) fn docker_on(disk: &Path) -> Result<Self, String> {
        Self::docker_in(tempfile::tempdir_in(disk).map_err(|error| error.to_string())?, None)
    }

    /// Starts Docker's daemon so that it keeps images in this folder, or says why it can't be.
    pub(crate) fn docker_with(data: &Path) -> Result<Self, String> {
        Self::docker_in(private_folder()?, Some(data))
    }

    fn docker_in(folder: tempfile::TempDir, data: Option<&Path>) -> Result<Self, String> {
        let dockerd = program("dockerd").ok_or("`dockerd` isn't installed (Debian's package docker.io)")?;
        let path = |name: &str| folder.path().join(name);
        let mut command = Command::new(dockerd);
        let data = data.map_or_else(|| path("data"), Path::to_owned);
        command.arg("--data-root").arg(data).arg("--exec-root").arg(path("exec"));
        command.arg("--pidfile").arg(path("pid")).arg("--host").arg(format!("unix://{}", path("sock").display()));
        // A second daemon must not touch the network that the machine's own one has set up.
        command.args(["--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]);
        Self::start(command, folder)
    }

    /// Starts Podman's service, or says why it can't be.
    pub(crate) fn podman() -> Result<Self, String> {
        let podman = program("podman").ok_or("`podman` isn't installed (Debian's packages podman and runc)")?;
        program("runc").ok_or("`runc` isn't installed")?;
        let folder = private_folder()?;
        let path = |name: &str| folder.path().join(name);
        // Without the right to raise them, podman's own limits can't be set; crun refuses mixed control groups.
        let settings = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n\
                        [engine]\ncgroup_manager = \"cgroupfs\"\nruntime = \"runc\"\nevents_logger = \"file\"\n";
        fs::write(path("containers.conf"), settings).map_err(|error| error.to_string())?;
        let mut command = Command::new(podman);
        command.env("CONTAINERS_CONF", path("containers.conf"));
        command.arg("--root").arg(path("data")).arg("--runroot").arg(path("exec"));
        command.args(["system", "service", "--time=0"]).arg(format!("unix://{}", path("sock").display()));
        Self::start(command, folder)
    }

    fn start(mut command: Command, folder: tempfile::TempDir) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can start a daemon of containers".to_owned());
        }
        let log = fs::File::create(folder.path().join("log")).map_err(|error| error.to_string())?;
        let both = log.try_clone().map_err(|error| error.to_string())?;
        command.env("PATH", SYSTEM_PATH).stdin(Stdio::null()).stdout(log).stderr(both);
        // Podman's monitor leaves a file where it runs when a container lacked memory.
        let child = command.current_dir(folder.path()).spawn().map_err(|error| error.to_string())?;
        let socket = folder.path().join("sock");
        let mut daemon = Self { child, folder, socket };
        let begun = Instant::now();
        while std::os::unix::net::UnixStream::connect(&daemon.socket).is_err() || !daemon.answers() {
            let ended = daemon.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(daemon.folder.path().join("log")).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(3).collect();
                return Err(format!("the daemon doesn't start: {}", last.join(" | ")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(daemon)
    }

    fn answers(&self) -> bool {
        self.client(&["version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|ended| ended.success())
    }

    /// Returns where it keeps images and containers.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns what names this daemon in a variable.
    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Returns a command of Docker's client, which speaks to this daemon.
    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("docker").unwrap_or_else(|| "docker".into()));
        command.args(arguments).env("DOCKER_HOST", self.address()).env("HOME", self.folder.path());
        command
    }

    /// Runs a command of Docker's client to its end, and returns what it prints.
    pub(crate) fn docker_says(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Makes [`IMAGE`] of the machine's own Python, and returns the interpreter's path.
    pub(crate) fn make_image(&self) -> String {
        self.import(FILES, IMAGE);
        self.python()
    }

    /// Returns the path of the interpreter in every image that is made here.
    #[expect(clippy::unused_self, reason = "it is that of its images")]
    pub(crate) fn python(&self) -> String {
        python("import sys; print(sys.executable)").trim().to_owned()
    }

    /// Makes an image of the files of this machine that a script of Python prints.
    pub(crate) fn import(&self, script: &str, image: &str) {
        let [list, archive] = ["files", "image.tar"].map(|name| self.folder.path().join(name));
        let printed = python(script);
        // Scripts that go on where another one ends print its list as well.
        let files: std::collections::BTreeSet<&str> = printed.lines().collect();
        fs::write(&list, files.into_iter().collect::<Vec<_>>().join("\n")).unwrap();
        let mut tar = Command::new("tar");
        tar.args(["--create", "--directory=/", "--no-recursion", "--file"])
            .arg(&archive)
            .arg("--files-from")
            .arg(&list);
        assert!(tar.status().unwrap().success());
        self.docker_says(&["import", &archive.to_string_lossy(), image]);
        fs::remove_file(archive).unwrap();
    }
}

fn python(script: &str) -> String {
    let output = Command::new("python3").args(["-I", "-c", script]).env("PATH", SYSTEM_PATH).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns a folder whose path is short enough for the sockets in it.
fn private_folder() -> Result<tempfile::TempDir, String> {
    tempfile::Builder::new().prefix("d").tempdir().map_err(|error| error.to_string())
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        let process = Pid::from_child(&self.child);
        let _ = kill_process(process, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        unmount(self.folder.path());
    }
}

/// Undoes the mounts that a daemon has left below a folder, the deepest first.
fn unmount(folder: &Path) {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let places = table.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    let mut below: Vec<PathBuf> = places.filter(|place| place.starts_with(folder)).collect();
    below.sort();
    for place in below.iter().rev() {
        let _ = Command::new("umount").arg(place).env("PATH", SYSTEM_PATH).stderr(Stdio::null()).status();
    }
}
