//! A real registry, Debian's `docker-registry`, started for a test on loopback and ended with it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::certificate::TestCertificate;

/// How long it may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);
/// From one look to the next.
const TICK: Duration = Duration::from_millis(50);
/// Where Debian puts the program.
const PROGRAMS: [&str; 2] = ["/usr/bin/docker-registry", "/usr/local/bin/docker-registry"];

/// Who may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryUser {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

/// A running registry, whose folder goes with it.
#[derive(Debug)]
pub struct DockerRegistry {
    process: Child,
    address: String,
    folder: TempDir,
}

impl DockerRegistry {
    /// Starts one for anybody, or for one user; if it can't be started here, why.
    ///
    /// # Errors
    /// Returns what this machine lacks.
    ///
    /// # Panics
    /// Panics if it is there and doesn't come up.
    pub fn start(user: Option<&RegistryUser>) -> Result<Self, String> {
        Self::start_with(user, None)
    }

    /// As [`Self::start`], and it speaks TLS.
    ///
    /// # Errors
    /// Returns what this machine lacks.
    ///
    /// # Panics
    /// Panics if it is there and doesn't come up.
    pub fn start_with_tls(user: Option<&RegistryUser>, certificate: &TestCertificate) -> Result<Self, String> {
        Self::start_with(user, Some(certificate))
    }

    fn start_with(user: Option<&RegistryUser>, certificate: Option<&TestCertificate>) -> Result<Self, String> {
        let program = PROGRAMS.iter().map(Path::new).find(|path| path.is_file());
        let program = program.ok_or("docker-registry isn't installed (Debian package `docker-registry`)")?;
        let folder = tempfile::tempdir().map_err(|error| format!("there is no scratch folder: {error}"))?;
        let password_file = user.map(|user| htpasswd(user, folder.path())).transpose()?;
        let port = free_port().map_err(|error| format!("no port of loopback is free: {error}"))?;
        let address = format!("127.0.0.1:{port}");
        let config = folder.path().join("config.yml");
        let tls = certificate.map(|certificate| certificate.write(folder.path())).transpose();
        let tls = tls.map_err(|error| format!("there is no room for its certificate: {error}"))?;
        let text = config_text(&address, &folder.path().join("data"), password_file.as_deref(), tls.as_ref());
        fs::write(&config, text).map_err(|error| format!("there is no room for its configuration: {error}"))?;
        let log = File::create(folder.path().join("log")).map_err(|error| format!("there is no room: {error}"))?;
        let errors = log.try_clone().map_err(|error| format!("there is no room: {error}"))?;
        let process = Command::new(program)
            .arg("serve")
            .arg(&config)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("docker-registry can't be started: {error}"))?;
        let mut registry = Self { process, address, folder };
        registry.wait_until_it_answers();
        Ok(registry)
    }

    #[expect(clippy::panic, reason = "only tests call this, and its log is what they need")]
    fn wait_until_it_answers(&mut self) {
        let begun = Instant::now();
        while !answers(&self.address) {
            let ended = self.process.try_wait().ok().flatten();
            if begun.elapsed() > PATIENCE || ended.is_some() {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("docker-registry doesn't answer ({ended:?}):\n{log}");
            }
            thread::sleep(TICK);
        }
    }

    /// Returns its host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the folder that it keeps images in.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Ends it, and says whether it was still running.
    pub fn end(&mut self) -> bool {
        let was_running = self.process.try_wait().ok().flatten().is_none();
        self.process.kill().ok();
        self.process.wait().ok();
        was_running
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        self.end();
    }
}

fn config_text(address: &str, data: &Path, password_file: Option<&Path>, tls: Option<&[PathBuf; 2]>) -> String {
    let tls = tls
        .map(|[certificate, key]| {
            format!(", tls: {{certificate: \"{}\", key: \"{}\"}}", certificate.display(), key.display())
        })
        .unwrap_or_default();
    let auth = password_file
        .map(|path| format!("auth: {{htpasswd: {{realm: test, path: \"{}\"}}}}\n", path.display()))
        .unwrap_or_default();
    format!(
        "version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: \"{}\"}}, delete: {{enabled: true}}}}\n\
         http: {{addr: \"{address}\"{tls}}}\n{auth}",
        data.display()
    )
}

/// Writes the file of passwords.
fn htpasswd(user: &RegistryUser, folder: &Path) -> Result<PathBuf, String> {
    let output = Command::new("htpasswd")
        .args(["-Bbn", &user.user, &user.password])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("htpasswd can't be started (Debian package `apache2-utils`): {error}"))?;
    let path = folder.join("htpasswd");
    fs::write(&path, output.stdout).map_err(|error| format!("there is no room for passwords: {error}"))?;
    Ok(path)
}

fn free_port() -> io::Result<u16> {
    // Nobody else binds it in the moment until the registry does.
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn answers(address: &str) -> bool {
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(format!("GET /v2/ HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().is_ok_and(|text| text.starts_with("HTTP/1."))
}
