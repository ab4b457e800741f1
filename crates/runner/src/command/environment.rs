//! The environment of child processes, built from an allow-list: nothing is inherited that isn't named here.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variables of a child process, by name.
pub type Environment = BTreeMap<String, OsString>;

/// Where programs are searched if isobench itself has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that tell package installers where packages are and how to reach them. Only installs get them.
const PACKAGE_VARIABLES: &[&str] = &[
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Beginnings of further variables that only installs get.
const PACKAGE_PREFIXES: &[&str] = &["PIP_", "UV_"];

/// Installer variables that are left out all the same: each would change where a package ends up.
const PACKAGE_EXCEPTIONS: &[&str] = &[
    "PIP_PREFIX",
    "PIP_PYTHON",
    "PIP_REQUIREMENT",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_PROJECT_ENVIRONMENT",
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
];

/// Returns the environment that every child process starts from: the search path for programs, a fixed language and time
/// zone, and private folders.
///
/// `home` and `tmp` should be empty folders of the caller's; nothing is created here.
pub fn clean_environment(home: &Path, tmp: &Path) -> Environment {
    let mut environment = Environment::new();
    let mut set = |name: &str, value: OsString| environment.insert(name.to_owned(), value);
    set("PATH", program_path());
    set("LANG", "C.UTF-8".into());
    set("LC_ALL", "C.UTF-8".into());
    set("TZ", "UTC".into());
    set("HOME", home.into());
    set("TMPDIR", tmp.into());
    set("XDG_CACHE_HOME", home.join(".cache").into());
    set("XDG_CONFIG_HOME", home.join(".config").into());
    set("XDG_DATA_HOME", home.join(".local/share").into());
    set("XDG_STATE_HOME", home.join(".local/state").into());
    set("XDG_RUNTIME_DIR", tmp.into());
    environment
}

/// Adds the variables that isobench itself has under `names`. One that it lacks is left out.
pub fn pass_variables<'a>(environment: &mut Environment, names: impl IntoIterator<Item = &'a str>) {
    for name in names {
        if let Some(value) = std::env::var_os(name) {
            environment.insert(name.to_owned(), value);
        }
    }
}

/// Adds what package installers need to reach the package indexes that this machine is set up for.
///
/// The home folder of a child is private, so the user's and the machine's installer configuration is named.
pub fn pass_package_variables(environment: &mut Environment) {
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        if is_package_variable(name) {
            environment.insert(name.to_owned(), value);
        }
    }
    let files = [("PIP_CONFIG_FILE", "pip/pip.conf"), ("UV_CONFIG_FILE", "uv/uv.toml")];
    for (variable, file) in files {
        if let Some(path) = user_configuration(file).filter(|_| !environment.contains_key(variable)) {
            environment.insert(variable.to_owned(), path.into());
        }
    }
}

fn is_package_variable(name: &str) -> bool {
    let named = PACKAGE_VARIABLES.contains(&name) || PACKAGE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    named && !PACKAGE_EXCEPTIONS.contains(&name)
}

/// Returns the user's configuration file, if it exists. The machine's, under `/etc`, is found by the installers themselves.
fn user_configuration(file: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".config"),
    };
    let path = folder.join(file);
    (path.is_absolute() && path.is_file()).then_some(path)
}

/// Returns the search path for programs: isobench's own, without relative entries, which would mean the child's folder.
fn program_path() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let absolute = std::env::split_paths(&own).filter(|entry| entry.is_absolute());
    match std::env::join_paths(absolute) {
        Ok(path) if !path.is_empty() => path,
        Ok(_) | Err(_) => DEFAULT_PATH.into(),
    }
}

/// Returns the absolute path of the program `name`, as a child with a clean environment would find it.
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_program_in(name, &program_path())
}

fn find_program_in(name: &str, path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        return is_executable(Path::new(name)).then(|| PathBuf::from(name));
    }
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_variables_are_in_a_clean_environment() {
        let environment = clean_environment(Path::new("/h"), Path::new("/t"));
        let names: Vec<&str> = environment.keys().map(String::as_str).collect();
        let expected = "HOME LANG LC_ALL PATH TMPDIR TZ XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR \
                        XDG_STATE_HOME";
        assert_eq!(names.join(" "), expected);
        for (name, value) in &environment {
            let value = value.to_str().unwrap();
            let private = name.starts_with("XDG") || name == "HOME" || name == "TMPDIR";
            assert!(!private || value.starts_with("/h") || value.starts_with("/t"), "{name}={value}");
        }
    }

    #[test]
    fn installs_get_indexes_and_certificates_but_no_other_target() {
        for (name, expected) in [
            ("PIP_INDEX_URL", true),
            ("PIP_CONFIG_FILE", true),
            ("UV_DEFAULT_INDEX", true),
            ("https_proxy", true),
            ("PIP_TARGET", false),
            ("UV_SYSTEM_PYTHON", false),
            ("HF_TOKEN", false),
            ("LD_PRELOAD", false),
            ("PYTHONPATH", false),
        ] {
            assert_eq!(is_package_variable(name), expected, "{name}");
        }
    }

    #[test]
    fn a_program_is_found_only_if_it_can_be_run() {
        assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find_program("no-such-program-anywhere"), None);
        assert_eq!(find_program_in("passwd", OsStr::new("/etc")), None);
    }
}
