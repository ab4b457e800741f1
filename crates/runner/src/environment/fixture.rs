//! Test fixtures: small git repositories, and a private place to prepare environments in.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isobench_schema::environment::{EngineKind, EnvironmentSpec, Python, Rung, Source};
use isobench_schema::ids::CommitId;
use rustix::fs::{Mode, OFlags};

use super::PrepareContext;
use crate::git::Repository;

/// A private folder with a cache, a scratch folder and a log.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    log: PathBuf,
    scratch: PathBuf,
    cache: PathBuf,
    pub(crate) cancel: AtomicBool,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir(at("scratch")).unwrap();
        let (log, scratch, cache) = (at("prepare.log"), at("scratch"), at("cache"));
        Self { folder, log, scratch, cache, cancel: AtomicBool::new(false) }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn context(&self) -> PrepareContext<'_> {
        let (cache, scratch, log) = (&self.cache, &self.scratch, &self.log);
        let timeout = Duration::from_secs(120);
        PrepareContext { cache, scratch, log, timeout, cancel: &self.cancel, reaper: None, steps: None }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Makes a repository with these files in one commit.
    pub(crate) fn repository(&self, files: &[(&str, &str)]) -> TestRepository {
        let repository = TestRepository { folder: self.path("repository") };
        std::fs::create_dir(&repository.folder).unwrap();
        repository.git(["init", "--quiet", "--initial-branch=main"]);
        repository.commit(files);
        repository
    }

    /// Exports a commit into a new folder of this name.
    pub(crate) fn export(&self, repository: &TestRepository, commit: &CommitId, name: &str) -> PathBuf {
        let opened = Repository::open(repository.address(), &self.context()).unwrap().unwrap();
        opened.export(commit, &self.path(name), &self.context()).unwrap().unwrap();
        self.path(name)
    }
}

/// A repository to test with.
pub(crate) struct TestRepository {
    pub(crate) folder: PathBuf,
}

impl TestRepository {
    pub(crate) fn address(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    pub(crate) fn git<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Vec<u8> {
        self.git_with(arguments, b"")
    }

    /// Runs git with this input and returns what it prints.
    pub(crate) fn git_with<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "core.quotePath=true"])
            .args(arguments)
            .current_dir(&self.folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        output.stdout
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: &[u8]) {
        let place = self.folder.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content).unwrap();
    }

    /// Commits these files and whatever else lies in the work tree.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> CommitId {
        for (path, content) in files {
            self.write(path, content.as_bytes());
        }
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--allow-empty", "-m", "commit"]);
        self.head()
    }

    pub(crate) fn head(&self) -> CommitId {
        id(&self.git(["rev-parse", "HEAD"]))
    }

    /// Returns a specification of an environment from the newest commit: plain files, the machine's Python.
    pub(crate) fn spec(&self) -> EnvironmentSpec {
        EnvironmentSpec {
            engine: EngineKind::Generic,
            rung: Rung::Source,
            source: Source {
                repository: self.address().to_owned(),
                commit: self.head(),
                patch: None,
                allow_binary_patch: false,
            },
            python: Python::System,
            overlay: None,
            native: None,
            toolkit: None,
            build: Vec::new(),
            build_environment: std::collections::BTreeMap::new(),
            python_path: vec![".".to_owned()],
            modules: vec!["engine".to_owned()],
        }
    }
}

/// Writes other bytes into a file and gives it its old times back.
pub(crate) fn rewrite_in_place(path: &Path) {
    let metadata = path.metadata().unwrap();
    let mut content = std::fs::read(path).unwrap();
    *content.last_mut().unwrap() ^= 1;
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(&content).unwrap();
    let times = std::fs::FileTimes::new().set_modified(metadata.modified().unwrap());
    file.set_times(times.set_accessed(metadata.accessed().unwrap())).unwrap();
    assert_eq!(path.metadata().unwrap().modified().unwrap(), metadata.modified().unwrap());
}

/// Makes this many folders, each in the one before, with a file in the last: deeper than any path could name.
pub(crate) fn dig(folder: &Path, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here = rustix::fs::open(folder, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        rustix::fs::mkdirat(&here, "deep", Mode::RWXU).unwrap();
        here = rustix::fs::openat(&here, "deep", flags, Mode::empty()).unwrap();
    }
    rustix::fs::openat(&here, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
}

/// Parses an object id as git prints it.
pub(crate) fn id(output: &[u8]) -> CommitId {
    CommitId::new(String::from_utf8_lossy(output).trim()).unwrap()
}

/// Returns everything in a folder, for comparisons: path, mode, and content or target. `.git` is left out.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut lines = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&inner)).unwrap() {
            let path = inner.join(entry.unwrap().file_name());
            let metadata = folder.join(&path).symlink_metadata().unwrap();
            let shown = path.as_os_str().as_encoded_bytes().escape_ascii();
            if metadata.is_symlink() {
                lines.push(format!("{shown} -> {}", folder.join(&path).read_link().unwrap().display()));
            } else if metadata.is_dir() {
                if path != Path::new(".git") {
                    folders.push(path);
                }
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                let content = std::fs::read(folder.join(&path)).unwrap();
                lines.push(format!("{shown} {executable} {}", content.escape_ascii()));
            }
        }
    }
    lines.sort();
    lines
}
