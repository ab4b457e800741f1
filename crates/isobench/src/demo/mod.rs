//! The demo: a tiny real engine in Python with a real bottleneck, a commit that removes it, and six agents' patches; and the
//! same engine with a part in C, whose arms share one native build.

pub(crate) mod calibrate;
mod repository;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, include_dir};

pub(crate) use repository::CommitError;

static ASSETS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets/demo");

/// Which engine the demo runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Python alone.
    Plain,
    /// A part is in C, which a compiler builds.
    Native,
}

impl Kind {
    /// Returns its agents, in the order of the report.
    fn agents(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["optimised", "no-op", "crash", "short", "garbage", "liar"],
            Self::Native => &["python", "native", "broken"],
        }
    }

    /// Returns what the task says of it.
    fn title(self) -> &'static str {
        match self {
            Self::Plain => "Look continuations up in an index instead of scanning the corpus",
            Self::Native => "Remember the continuations of a context instead of counting them again",
        }
    }

    /// Returns the message of the human commit.
    fn message(self) -> &'static str {
        match self {
            Self::Plain => "Look continuations up in an index",
            Self::Native => "Remember the continuations of a context",
        }
    }

    /// Returns the task's keys for how the native files are built.
    fn build(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Native => NATIVE_BUILD,
        }
    }
}

/// How the part in C is built: once for each state of `csrc`.
const NATIVE_BUILD: &str = r#"
[environment.native]
paths = ["csrc"]
commands = [
  ["mkdir", "tinyserve"],
  ["cc", "-O2", "-shared", "-fPIC", "-o", "tinyserve/_continuations.so", "csrc/continuations.c"],
]
outputs = ["tinyserve/_continuations.so"]
memory-per-job-mib = 256
"#;

/// The shortest measured window of the demo, in seconds: a deviation, so that it ends in minutes.
pub(crate) const MIN_WINDOW_S: f64 = 1.0;

/// Requests under way at any time.
const CONCURRENCY: u32 = 4;

/// Tokens of each answer.
const OUTPUT_TOKENS: u32 = 48;

/// Why the demo can't be laid down.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayDownError {
    /// A file can't be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The repository can't be made.
    #[error("failed to make the demo's repository")]
    Commit(#[source] CommitError),
}

/// How much the demo runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Requests of each measured window.
    pub(crate) requests: u32,
    /// Blocks.
    pub(crate) blocks: u32,
}

/// Lays the demo's repository, patches and task down in `folder`, whole or not at all.
///
/// # Errors
/// Returns an error if a file can't be written or git can't make the commits.
pub(crate) fn lay_down(folder: &Path, kind: Kind, size: Size) -> Result<(), LayDownError> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LayDownError::Write { path, source }
    };
    fs::create_dir_all(parent).map_err(failed(parent))?;
    let scratch = tempfile::Builder::new().prefix("tmp-demo-").tempdir_in(parent).map_err(failed(parent))?;
    let repository = scratch.path().join("repository");
    fs::create_dir_all(&repository).map_err(failed(&repository))?;
    write_tree("engine", &repository)?;
    match kind {
        Kind::Plain => write_tree("baseline", &repository)?,
        Kind::Native => {
            write_tree("native/shared", &repository)?;
            write_tree("native/baseline", &repository)?;
        }
    }
    if let Some(readme) = ASSETS.get_file("README.md") {
        write(&repository.join("README.md"), readme.contents())?;
    }
    repository::init(&repository).map_err(LayDownError::Commit)?;
    let baseline = "Serve an n-gram language model with continuous batching";
    repository::commit(&repository, "baseline", baseline).map_err(LayDownError::Commit)?;
    let [human, patches] = match kind {
        Kind::Plain => ["engine", "patches"],
        Kind::Native => ["native/human", "native/patches"],
    };
    write_tree(human, &repository)?;
    repository::commit(&repository, "human", kind.message()).map_err(LayDownError::Commit)?;
    write_tree(patches, &scratch.path().join("patches"))?;
    write(&scratch.path().join("task.toml"), task_toml(kind, size).as_bytes())?;
    let scratch = scratch.keep();
    fs::rename(&scratch, folder).map_err(|source| {
        // The half-made folder is of no use to anybody.
        let _ = fs::remove_dir_all(&scratch);
        LayDownError::Write { path: folder.to_owned(), source }
    })
}

/// Returns which engine's dataset lies in `folder`, if one does.
pub(crate) fn laid_down(folder: &Path) -> Option<Kind> {
    let repository = folder.join("repository");
    let kind = if repository.join("csrc").is_dir() { Kind::Native } else { Kind::Plain };
    repository.is_dir().then_some(kind)
}

/// Writes one folder of the embedded files. What Python left beside them while they were tested is no part of it.
fn write_tree(name: &str, to: &Path) -> Result<(), LayDownError> {
    fn entries(dir: &Dir<'_>, root: &Path, to: &Path) -> Result<(), LayDownError> {
        for entry in dir.entries() {
            match entry {
                DirEntry::Dir(dir) if dir.path().ends_with("__pycache__") => {}
                DirEntry::Dir(dir) => entries(dir, root, to)?,
                DirEntry::File(file) => {
                    let relative = file.path().strip_prefix(root).unwrap_or(file.path());
                    write(&to.join(relative), file.contents())?;
                }
            }
        }
        Ok(())
    }
    ASSETS.get_dir(name).map_or(Ok(()), |dir| entries(dir, Path::new(name), to))
}

fn write(path: &Path, contents: &[u8]) -> Result<(), LayDownError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, contents))
        .map_err(|source| LayDownError::Write { path: path.to_owned(), source })
}

fn task_toml(kind: Kind, size: Size) -> String {
    let mut text = format!(
        r#"# A commit of a tiny real engine, and {agents} agents who tried the same. Written by `isobench demo`.
id = "demo"
title = "{title}"
repository = "repository"
baseline = "baseline"
human = "human"

[engine]
kind = "generic"

[environment]
python = "system"
python-path = ["."]
modules = ["tinyserve"]
{build}
[server]
command = ["{{python}}", "-m", "tinyserve", "--host", "{{host}}", "--port", "{{port}}", "--model", "{{served-model-name}}"]
model = "tinyserve"
health = "/health"

[workload]
kind = "serving"
api = "completions"
requests = {requests}
output-tokens = {OUTPUT_TOKENS}
ignore-eos = true
arrival = {{ kind = "closed", concurrency = {CONCURRENCY} }}
prompts = {{ kind = "words", input-tokens = 32 }}
warm-up-requests = 8
probes = {{ count = 4, output-tokens = 32 }}
counter = "whitespace"

[metric]
primary = "output_throughput"
margin = 0.05
guards = ["request_throughput", "mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms"]

[design]
blocks = {blocks}
min-window-s = {MIN_WINDOW_S:.1}

[limits]
ready-s = 30
request-s = 60
stall-s = 20
workload-s = 120
stop-s = 5
"#,
        agents = if kind == Kind::Plain { "six" } else { "three" },
        title = kind.title(),
        build = kind.build(),
        requests = size.requests,
        blocks = size.blocks,
    );
    let agent = |agent: &&str| format!("\n[[agent]]\nname = \"{agent}\"\npatch = \"patches/{agent}.patch\"\n");
    text.extend(kind.agents().iter().map(agent));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_laid_down_whole_and_the_same_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let size = Size { requests: 10, blocks: 6 };
        for kind in [Kind::Plain, Kind::Native] {
            let lay = |name: &str| {
                let demo = folder.path().join(name);
                lay_down(&demo, kind, size).unwrap();
                assert!(demo.join("task.toml").is_file());
                for agent in kind.agents() {
                    assert!(demo.join(format!("patches/{agent}.patch")).is_file(), "{agent}");
                }
                fs::read_to_string(demo.join("repository/.git/refs/tags/human")).unwrap()
            };
            let of = |name: &str| format!("{name}-{kind:?}");
            assert_eq!(lay(&of("a")), lay(&of("b")));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing unfinished is left");
    }
}
