//! Credentials as Docker keeps them: in `config.json`, or with helper programs that it names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::secret::{Credentials, Secret};
use crate::command::{self, Ending, Environment, Invocation, RunCommandError, Watch};

/// The longest `config.json` that is read, in bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// The longest answer of a helper that is read, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;
/// How long a helper may take; some ask a person.
const HELPER_PATIENCE: Duration = Duration::from_secs(60);
/// The user that helpers give for identity tokens.
const TOKEN_USER: &str = "<token>";
/// How Docker Hub is called in these files.
const HUB_KEYS: [&str; 4] = ["index.docker.io", "docker.io", "registry-1.docker.io", "registry.hub.docker.com"];
/// What helpers are asked for where Docker Hub's credentials are wanted.
const HUB_SERVER: &str = "https://index.docker.io/v1/";

/// Why credentials can't be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file can't be read.
    #[error("cannot read Docker's credentials in `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file isn't Docker's. What stands in it isn't shown.
    #[error("`{path}` isn't a configuration of Docker: {rule}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        rule: String,
    },
    /// The helper can't be named.
    #[error("`{path}` names the credential helper `{name}`, which is no plain name")]
    HelperName {
        /// The file.
        path: PathBuf,
        /// The helper.
        name: String,
    },
    /// The helper can't be run.
    #[error("cannot ask `{program}` for the credentials of `{registry}`")]
    Run {
        /// The helper.
        program: String,
        /// The registry.
        registry: String,
        /// Why.
        #[source]
        source: RunCommandError,
    },
    /// The helper gave none.
    #[error("`{program}` gave no credentials of `{registry}`: {why}")]
    Helper {
        /// The helper.
        program: String,
        /// The registry.
        registry: String,
        /// What it did instead.
        why: String,
    },
    /// There is no room for scratch files.
    #[error("cannot make a scratch folder")]
    Scratch(#[source] io::Error),
}

/// Docker's configuration, as far as it holds credentials.
#[derive(Debug)]
pub struct DockerConfig {
    path: PathBuf,
    parts: Parts,
}

#[derive(Deserialize, Default)]
struct Parts {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default, rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(default, rename = "credsStore")]
    store: Option<String>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.auths.keys().collect::<Vec<_>>())
    }
}

#[derive(Deserialize, Default)]
struct Entry {
    #[serde(default, rename = "auth")]
    encoded: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default, rename = "identitytoken")]
    identity_token: Option<String>,
}

/// What a helper answers.
#[derive(Deserialize)]
struct HelperAnswer {
    #[serde(rename = "Username")]
    user: String,
    #[serde(rename = "Secret")]
    secret: String,
}

impl DockerConfig {
    /// Reads the configuration in `$DOCKER_CONFIG`, or else in `.docker` of the home folder; none if there is no file.
    ///
    /// # Errors
    /// Returns an error if the file is there and can't be used.
    pub fn load(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, CredentialsError> {
        let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = named("DOCKER_CONFIG").or_else(|| Some(named("HOME")?.join(".docker")));
        folder.map_or(Ok(None), |folder| Self::read(&folder.join("config.json")))
    }

    fn read(path: &Path) -> Result<Option<Self>, CredentialsError> {
        let failed = |source| CredentialsError::Read { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
        let malformed = |rule: String| CredentialsError::Malformed { path: path.to_owned(), rule };
        if u64::try_from(bytes.len()).is_ok_and(|length| length > LONGEST_FILE) {
            return Err(malformed(format!("it is longer than {LONGEST_FILE} bytes")));
        }
        // The error of a parser may show what stands there, and that is secret.
        let parts = serde_json::from_slice(&bytes).map_err(|error| {
            malformed(format!("line {}, column {} isn't as it should be", error.line(), error.column()))
        })?;
        Ok(Some(Self { path: path.to_owned(), parts }))
    }

    /// Returns the credentials of a registry; none if it knows none.
    ///
    /// # Errors
    /// Returns an error if there are some and they can't be had.
    pub fn credentials(&self, registry: &str) -> Result<Option<Credentials>, CredentialsError> {
        let is_meant = |key: &&String| is_same_registry(key, registry);
        let helper = self.parts.helpers.iter().find(|(key, _)| is_meant(key)).map(|(_, helper)| helper);
        let helper = helper.or(self.parts.store.as_ref()).filter(|helper| !helper.is_empty());
        if let Some(helper) = helper
            && let Some(found) = self.ask(helper, registry)?
        {
            return Ok(Some(found));
        }
        let entry = self.parts.auths.iter().find(|(key, _)| is_meant(key)).map(|(_, entry)| entry);
        entry.map_or(Ok(None), |entry| self.decode(entry, registry))
    }

    fn decode(&self, entry: &Entry, registry: &str) -> Result<Option<Credentials>, CredentialsError> {
        if let Some(token) = entry.identity_token.as_ref().filter(|token| !token.is_empty()) {
            return Ok(Some(Credentials::IdentityToken(Secret::new(token))));
        }
        if let Some(encoded) = entry.encoded.as_ref().filter(|encoded| !encoded.is_empty()) {
            let plain = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let pair = plain.as_deref().and_then(|plain| plain.split_once(':'));
            let Some((user, password)) = pair else {
                let rule = format!("`auth` of `{registry}` is no base64 of `user:password`");
                return Err(CredentialsError::Malformed { path: self.path.clone(), rule });
            };
            let password = Secret::new(password.trim_end_matches('\0'));
            return Ok(Some(Credentials::Password { user: user.to_owned(), password }));
        }
        let pair = entry.username.as_ref().zip(entry.password.as_ref());
        Ok(pair.map(|(user, password)| Credentials::Password { user: user.clone(), password: Secret::new(password) }))
    }

    /// Asks a helper, `docker-credential-NAME get`; none if it knows none.
    fn ask(&self, helper: &str, registry: &str) -> Result<Option<Credentials>, CredentialsError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if !helper.bytes().all(plain) {
            return Err(CredentialsError::HelperName { path: self.path.clone(), name: helper.to_owned() });
        }
        let program = format!("docker-credential-{helper}");
        run(Path::new(&program), &program, registry)
    }
}

/// Runs a helper.
fn run(path: &Path, program: &str, registry: &str) -> Result<Option<Credentials>, CredentialsError> {
    let server = if HUB_KEYS.contains(&registry) { HUB_SERVER } else { registry };
    let scratch = tempfile::tempdir().map_err(CredentialsError::Scratch)?;
    let mut question = tempfile::tempfile().map_err(CredentialsError::Scratch)?;
    question.write_all(server.as_bytes()).and_then(|()| question.rewind()).map_err(CredentialsError::Scratch)?;
    // It is the user's own program and needs the user's session: keyrings, agents, home.
    let environment: Environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    let mut invocation = Invocation::new(path, scratch.path(), environment).with(["get"]);
    invocation.stdin = Some(question);
    let log = scratch.path().join("log");
    let watch = Watch { log: &log, deadline: Instant::now() + HELPER_PATIENCE, cancel: &AtomicBool::new(false) };
    let mut answer = Bounded(Vec::new());
    let finished = command::run_into(&invocation, &watch, &mut answer).map_err(|source| CredentialsError::Run {
        program: program.to_owned(),
        registry: registry.to_owned(),
        source,
    })?;
    let failed =
        |why: String| CredentialsError::Helper { program: program.to_owned(), registry: registry.to_owned(), why };
    match finished.ending {
        Ending::Exited(0) => {}
        // Helpers say with words that they know no credentials.
        Ending::Exited(_) if String::from_utf8_lossy(&answer.0).contains("credentials not found") => {
            return Ok(None);
        }
        ending @ (Ending::Exited(_) | Ending::Signalled(_) | Ending::DeadlinePassed | Ending::Cancelled) => {
            return Err(failed(format!("it {ending}")));
        }
    }
    // The parser's error may show what it read, which is secret.
    let found: Option<HelperAnswer> = serde_json::from_slice(&answer.0).ok();
    let found = found.ok_or_else(|| failed("what it says isn't understood".to_owned()))?;
    if found.secret.is_empty() {
        return Ok(None);
    }
    let secret = Secret::new(found.secret);
    Ok(Some(if found.user == TOKEN_USER {
        Credentials::IdentityToken(secret)
    } else {
        Credentials::Password { user: found.user, password: secret }
    }))
}

/// Takes so many bytes, and refuses more.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST_ANSWER {
            return Err(io::Error::other(format!("it says more than {LONGEST_ANSWER} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether a key of `config.json` means a registry: keys may have a scheme and a path.
fn is_same_registry(key: &str, registry: &str) -> bool {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let host = key.split('/').next().unwrap_or(key).to_ascii_lowercase();
    let is_hub = |name: &str| HUB_KEYS.contains(&name);
    host == registry || is_hub(&host) && is_hub(registry)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn config(text: &str) -> (tempfile::TempDir, Result<Option<DockerConfig>, CredentialsError>) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.json"), text).unwrap();
        let path = folder.path().display().to_string();
        let config = DockerConfig::load(|name| (name == "DOCKER_CONFIG").then(|| path.clone()));
        (folder, config)
    }

    fn password(user: &str, password: &str) -> Credentials {
        Credentials::Password { user: user.to_owned(), password: Secret::new(password) }
    }

    #[test]
    fn passwords_are_found_by_every_spelling_of_a_registry() {
        let encoded = STANDARD.encode("ann:pa:ss");
        let text = format!(
            r#"{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{encoded}"}}, "ghcr.io": {{"auth": "{encoded}"}},
                "http://127.0.0.1:5000": {{"username": "bob", "password": "x"}}, "empty.example": {{}},
                "token.example": {{"identitytoken": "t"}}}}, "HttpHeaders": {{"a": "b"}}}}"#
        );
        let (_folder, config) = config(&text);
        let config = config.unwrap().unwrap();
        let of = |registry: &str| config.credentials(registry).unwrap();
        assert_eq!(of("docker.io"), Some(password("ann", "pa:ss")));
        assert_eq!(of("ghcr.io"), Some(password("ann", "pa:ss")));
        assert_eq!(of("127.0.0.1:5000"), Some(password("bob", "x")));
        assert_eq!(of("token.example"), Some(Credentials::IdentityToken(Secret::new("t"))));
        assert_eq!(of("empty.example"), None);
        assert_eq!(of("quay.io"), None);
        assert!(!format!("{config:?}").contains(&encoded));
    }

    #[test]
    fn no_file_is_no_credentials_and_the_home_folder_is_the_second_place() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        let load = || DockerConfig::load(|name| (name == "HOME").then(|| home.clone())).unwrap();
        assert!(load().is_none());
        fs::create_dir(folder.path().join(".docker")).unwrap();
        fs::write(folder.path().join(".docker/config.json"), "{}").unwrap();
        assert!(load().is_some());
        assert!(DockerConfig::load(|_| None).unwrap().is_none());
    }

    #[test]
    fn a_broken_file_is_told_without_what_stands_in_it() {
        let (_folder, broken) = config(r#"{"auths": {"a": {"auth": "geheim"}}, "#);
        let error = broken.unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("geheim"), "{error}");
        let (_folder, config) = config(r#"{"auths": {"a.example": {"auth": "geheim!"}}}"#);
        let error = config.unwrap().unwrap().credentials("a.example").unwrap_err().to_string();
        assert!(error.contains("`a.example`") && !error.contains("geheim"), "{error}");
    }

    #[test]
    fn a_helper_is_asked_by_its_name_and_never_by_a_shell() {
        let (folder, config) = config(r#"{"credHelpers": {"a.example": "x;touch y", "b.example": "no-such-helper"}}"#);
        let config = config.unwrap().unwrap();
        let error = config.credentials("a.example").unwrap_err().to_string();
        assert!(error.contains("which is no plain name"), "{error}");
        let error = config.credentials("b.example").unwrap_err().to_string();
        assert!(error.contains("docker-credential-no-such-helper"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Runs a helper that is a script, by a configuration whose helper is found in `PATH`.
    fn helped(script: &str, registry: &str) -> Result<Option<Credentials>, CredentialsError> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker-credential-test");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        run(&program, "docker-credential-test", registry)
    }

    #[test]
    fn what_a_helper_says_is_taken() {
        let echo =
            r#"read server; [ "$1" = get ] && echo "{\"ServerURL\":\"s\",\"Username\":\"$server\",\"Secret\":\"pw\"}""#;
        assert_eq!(helped(echo, "a.example").unwrap(), Some(password("a.example", "pw")));
        assert_eq!(helped(echo, "docker.io").unwrap(), Some(password(HUB_SERVER, "pw")));
        let token = r#"echo '{"Username":"<token>","Secret":"tk"}'"#;
        assert_eq!(helped(token, "a").unwrap(), Some(Credentials::IdentityToken(Secret::new("tk"))));
        let none = "echo 'credentials not found in native keychain'; exit 1";
        assert_eq!(helped(none, "a").unwrap(), None);
    }

    #[test]
    fn what_a_helper_does_wrong_is_told_without_its_words() {
        for (script, expected) in [
            ("echo geheim; exit 3", "it ended with exit status 3"),
            ("echo geheim", "what it says isn't understood"),
            ("yes geheim | head -c 100000", "cannot ask"),
        ] {
            let error = helped(script, "a.example").unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("geheim"), "{error}");
        }
    }
}
