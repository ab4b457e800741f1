//! Builds the image of a commit: its tree in a container of a base, build commands, a commit, and the proof that the image
//! holds what it claims.
//!
//! Only what is proven is given a name, by the caller. What was built for the same inputs is found by its label, and is proven
//! again instead of built again: nothing is believed for its label. An image that nobody ever proved is removed: a daemon goes on
//! with a commit whose client was killed, while the container goes, and the proof doesn't see all that a build has made.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_schema::container::ContainerLimits;
use isobench_schema::ids::{CommitId, Digest};
use serde::Serialize;

use super::image_proof::{Proof, prove};
use super::init::Start;
use super::labels;
use super::watched::{self, Ended};
use super::{ContainerError, ContainerOptions, Daemon, HeldImage, Network, ProvenImage, RootFiles, sweep};
use crate::environment::lock::FolderLock;
use crate::environment::native::tools;
use crate::environment::{Entry, EnvironmentError, PrepareContext, scan, split};

/// The label of every image that this program builds; its value is the digest of all that the image was built from.
pub const IMAGE_LABEL: &str = "io.isobench.image";
/// The label with which OCI names the commit.
const REVISION: &str = "org.opencontainers.image.revision";
/// The format of the inputs: another one is another image.
const FORMAT: u32 = 1;

/// What is to be built.
#[derive(Debug, Clone)]
pub struct ImageBuild<'a> {
    /// The commit.
    pub commit: &'a CommitId,
    /// Its tree, as exported.
    pub tree: &'a Path,
    /// The image to build upon, by name or id.
    pub base: &'a str,
    /// Build commands, each for `/bin/sh`, run in the tree's folder.
    pub commands: &'a [String],
    /// The module that must be importable then.
    pub module: &'a str,
    /// The interpreter that imports it.
    pub python: &'a str,
    /// Where the module's files are in the commit.
    pub module_folder: &'a str,
    /// Where the tree is put in the image.
    pub folder: &'a str,
    /// Paths of the commit that decide what is compiled.
    pub native: &'a [String],
    /// The network of the build.
    pub network: Network,
    /// The most memory that it may take.
    pub memory_bytes: Option<u64>,
    /// What one job of it needs, in MiB: so many run at once as memory allows.
    pub memory_per_job_mib: u32,
}

/// What the image of a commit is made from: equal inputs, one image.
#[derive(Serialize)]
struct Inputs<'a> {
    format: u32,
    commit: &'a CommitId,
    base: &'a str,
    commands: &'a [String],
    module: &'a str,
    module_folder: &'a str,
    python: &'a str,
    folder: &'a str,
    native: &'a [String],
    with_network: bool,
}

/// An image that is built and proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// The image.
    pub image: HeldImage,
    /// Whether it was built now; else it was there.
    pub is_new: bool,
    /// How many files of the commit were found in it, with the same bytes.
    pub files: u64,
    /// Where the module was imported from.
    pub module: String,
}

/// Why an image wasn't built.
#[derive(Debug, thiserror::Error)]
pub enum BuildImageError {
    /// The daemon can't.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// This machine can't.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// A file of this machine can't be used.
    #[error("failed to use `{path}` for an image")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The build failed, or made something else.
    #[error("the image of `{commit}` {why}")]
    Failed {
        /// The commit.
        commit: String,
        /// What went wrong.
        why: String,
    },
    /// Somebody gave up.
    #[error("the build was interrupted")]
    Cancelled,
}

impl BuildImageError {
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// Who is told how a build goes on.
pub type Say<'s> = &'s dyn Fn(&str);

/// Builds and proves the image, unless one of the same inputs is there and can be proven. Everything that the build writes is
/// appended to the log of the context, whose deadline is that of the build.
///
/// # Errors
/// Returns an error if it can't be built or proven; then no new image is left.
pub async fn build_image(
    daemon: &Daemon,
    build: &ImageBuild<'_>,
    context: &PrepareContext<'_>,
    say: Say<'_>,
) -> Result<BuiltImage, BuildImageError> {
    let (base, variables) = daemon.image(build.base).await?;
    let entries = scan(build.tree)?;
    let inputs = digest(&Inputs {
        format: FORMAT,
        commit: build.commit,
        base: &base.id,
        commands: build.commands,
        module: build.module,
        module_folder: build.module_folder,
        python: build.python,
        folder: build.folder,
        native: build.native,
        with_network: build.network != Network::None,
    })?;
    let lock = context.cache.join("images").join(format!("{inputs}.lock"));
    let _lock = match split(FolderLock::take(&lock, context))? {
        Ok(lock) => lock,
        Err(failure) => return Err(failed(build, format!("can't be built: {}", failure.message))),
    };
    let marker = format!("image-{}", inputs.short());
    // Whatever is left of a build of these inputs is nobody's: its lock is held here.
    sweep(daemon, Some(&marker)).await?;
    let proof = Proof { build, entries: &entries, marker: &marker, context };
    let held = daemon.held_images(&format!("{IMAGE_LABEL}={inputs}")).await?;
    let (left_over, held): (Vec<_>, Vec<_>) = held.into_iter().partition(|image| is_left_over(image, context.cache));
    for image in &left_over {
        say("an image of the same inputs was never proven, and is removed");
        daemon.remove_image(image).await?;
    }
    for image in held {
        say("an image of the same inputs is there: proving it again");
        match prove(daemon, &image.id, &proof).await? {
            Ok(proven) => {
                let built = BuiltImage { image, is_new: false, files: proven.files, module: proven.module };
                return kept(built, build, context);
            }
            Err(why) => {
                say(&format!("it isn't what it claims, and is built anew: {why}"));
                daemon.remove_image(&image).await?;
            }
        }
    }
    let manners = daemon.manners(&base.id).await?;
    let marks = Marks { inputs: &inputs, base: &base.id, variables: &variables, entries: &entries };
    let changes = changes(build, &marks, &manners)?;
    let container = make(daemon, build, &base.id, &marker, context).await?;
    let made = run(daemon, &container, (build, &entries, &base.id), context, say).await;
    let made = match made {
        Ok(()) => daemon.commit_unnamed(&container, &changes).await.map_err(BuildImageError::from),
        Err(error) => Err(error),
    };
    daemon.remove(&container).await?;
    let id = made?;
    say("proving the image");
    let held = daemon.held_images(&format!("{IMAGE_LABEL}={inputs}")).await?;
    let found = held.into_iter().find(|image| image.id == id);
    let image = found.ok_or_else(|| failed(build, format!("isn't among those that the daemon lists as `{id}`")))?;
    match prove(daemon, &image.id, &proof).await {
        Ok(Ok(proven)) => {
            kept(BuiltImage { image, is_new: true, files: proven.files, module: proven.module }, build, context)
        }
        Ok(Err(why)) => {
            daemon.remove_image(&image).await?;
            Err(failed(build, format!("was built, and isn't what it claims: {why}")))
        }
        // Whether it is what it claims isn't known; the next build removes it.
        Err(error) => Err(error),
    }
}

/// Returns whether nobody has proven an image: it has no name, and this cache doesn't know it.
fn is_left_over(image: &HeldImage, cache: &Path) -> bool {
    image.names.is_empty() && ProvenImage::of(cache, &image.id).is_none()
}

/// Writes down that an image is proven, while its inputs' lock is held: who takes it next must know.
fn kept(
    built: BuiltImage,
    build: &ImageBuild<'_>,
    context: &PrepareContext<'_>,
) -> Result<BuiltImage, BuildImageError> {
    let BuiltImage { image, files, module, .. } = &built;
    let (image, commit) = (image.id.clone(), build.commit.clone());
    ProvenImage { image, commit, files: *files, module: module.clone() }.keep(context.cache)?;
    Ok(built)
}

pub(super) fn failed(build: &ImageBuild<'_>, why: impl Into<String>) -> BuildImageError {
    BuildImageError::Failed { commit: build.commit.short().to_owned(), why: why.into() }
}

fn digest(of: &impl Serialize) -> Result<Digest, BuildImageError> {
    Digest::of_json(of).map_err(|error| BuildImageError::file(Path::new("inputs"))(io::Error::other(error)))
}

/// What the labels of an image say.
struct Marks<'a> {
    inputs: &'a Digest,
    base: &'a str,
    variables: &'a BTreeMap<String, String>,
    entries: &'a BTreeMap<String, Entry>,
}

/// Returns the instructions that make an image out of the container: labels, and the manners of the base.
fn changes(
    build: &ImageBuild<'_>,
    marks: &Marks<'_>,
    manners: &super::held::Manners,
) -> Result<Vec<String>, BuildImageError> {
    let is_native = |path: &&String| {
        build.native.iter().any(|native| Path::new(path.as_str()).starts_with(native.trim_end_matches('/')))
    };
    let native: BTreeMap<&String, &Entry> = marks.entries.iter().filter(|(path, _)| is_native(path)).collect();
    let mut pairs = vec![
        (IMAGE_LABEL, marks.inputs.to_string()),
        ("io.isobench.image.base", marks.base.to_owned()),
        ("io.isobench.image.tree", digest(marks.entries)?.to_string()),
        ("io.isobench.image.version", env!("CARGO_PKG_VERSION").to_owned()),
        (REVISION, build.commit.to_string()),
    ];
    if !native.is_empty() {
        pairs.push(("io.isobench.image.native-tree", digest(&native)?.to_string()));
    }
    // The build's container was one of a run; those of the image aren't.
    pairs.extend(labels::NAMES.iter().map(|name| (*name, String::new())));
    let mut changes: Vec<String> = pairs.iter().map(|(name, value)| format!("LABEL {name}={value}")).collect();
    // What the build's first process could not be given is the image's again.
    let loader = watched::loader_variables(marks.variables);
    changes.extend(loader.map(|(name, value)| format!("ENV {name}={}", escaped(value))));
    let list = |words: &[String]| serde_json::to_string(words).unwrap_or_else(|_| "[]".to_owned());
    changes.push(format!("ENTRYPOINT {}", list(&manners.entry)));
    changes.push(format!("CMD {}", list(&manners.command)));
    changes.push(format!("USER {}", if manners.user.is_empty() { "0:0" } else { &manners.user }));
    Ok(changes)
}

async fn make(
    daemon: &Daemon,
    build: &ImageBuild<'_>,
    base: &str,
    marker: &str,
    context: &PrepareContext<'_>,
) -> Result<String, BuildImageError> {
    let options = ContainerOptions {
        image: base.to_owned(),
        user: Some("0:0".to_owned()),
        limits: ContainerLimits { memory_bytes: build.memory_bytes, ..ContainerLimits::default() },
        root: RootFiles::Writable,
        network: build.network.clone(),
        ..ContainerOptions::default()
    };
    Ok(watched::make(daemon, (marker, &format!("isobench-{marker}")), options, context.timeout).await?)
}

/// Returns what the shell runs: each command in a shell of its own, in the tree's folder, until one fails.
fn script(build: &ImageBuild<'_>) -> String {
    let of_bound = build.memory_bytes.map(|bytes| bytes / (u64::from(build.memory_per_job_mib.max(1)) << 20));
    let of_bound = of_bound.map_or(u32::MAX, |jobs| u32::try_from(jobs).unwrap_or(u32::MAX));
    let jobs = tools::jobs(build.memory_per_job_mib).min(of_bound).max(1);
    let mut lines = vec![
        format!("export MAX_JOBS={jobs} CMAKE_BUILD_PARALLEL_LEVEL={jobs} CARGO_BUILD_JOBS={jobs} MAKEFLAGS=-j{jobs}"),
        "export PYTHONDONTWRITEBYTECODE=1".to_owned(),
        format!("cd {} || exit 1", quoted(build.folder)),
    ];
    let count = build.commands.len();
    for (place, command) in build.commands.iter().enumerate() {
        let said = quoted(&format!("isobench: command {} of {count}: {command}", place + 1));
        let command = quoted(command);
        lines.push(format!("echo {said}; /bin/sh -c {command} </dev/null || exit $?"));
    }
    lines.join("\n")
}

/// Returns a value as one word of an instruction of a build file; one of plain characters as it is.
fn escaped(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/:._-+,=".contains(&byte);
    if value.bytes().all(is_plain) {
        return value.to_owned();
    }
    let inner: String =
        value.chars().flat_map(|c| matches!(c, '"' | '\\' | '$').then_some('\\').into_iter().chain([c])).collect();
    format!("\"{inner}\"")
}

/// Returns a text as one word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Puts the tree into the container and runs the build to its end.
async fn run(
    daemon: &Daemon,
    container: &str,
    (build, entries, base): (&ImageBuild<'_>, &BTreeMap<String, Entry>, &str),
    context: &PrepareContext<'_>,
    say: Say<'_>,
) -> Result<(), BuildImageError> {
    let archive = super::tree_archive::pack(build.tree, entries, build.folder);
    let archive = archive.map_err(BuildImageError::file(build.tree))?;
    say(&format!("copying {} files", entries.len()));
    daemon.copy_in(container, "/", archive).await?;
    let begun = Instant::now();
    let progress = |bytes| say(&format!("building for {} s, {bytes} bytes of log", begun.elapsed().as_secs()));
    let start = start(&["/bin/sh", "-c", &script(build)], daemon.image(base).await?.1);
    let why = match watched::finish(daemon, container, &start, context, &progress).await?.ended {
        Ended::Exited(0) => return Ok(()),
        Ended::Cancelled => return Err(BuildImageError::Cancelled),
        Ended::LackedMemory(code) => {
            format!("wasn't built: the kernel killed a process of it for want of memory (exit code {code})")
        }
        Ended::Exited(code) => format!("wasn't built: a build command ended with exit code {code}"),
        Ended::Refused(why) => format!("wasn't built: the base has no shell that can be started: {why}"),
        Ended::TooLate => format!("wasn't built within {} s", context.timeout.as_secs()),
    };
    Err(failed(build, why))
}

/// Returns what is started as root in a container of an image with these variables.
pub(super) fn start(command: &[&str], image: BTreeMap<String, String>) -> Start {
    let mut environment = watched::variables_of(image);
    environment.entry("HOME".to_owned()).or_insert_with(|| "/root".to_owned());
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    Start { command, environment, folder: PathBuf::from("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_word_whatever_is_in_it() {
        assert_eq!(escaped("/usr/local/nvidia/lib:/x"), "/usr/local/nvidia/lib:/x");
        assert_eq!(escaped("a $b \"c"), r#""a \$b \"c""#);
        assert_eq!(quoted("pip install ."), "'pip install .'");
        assert_eq!(quoted("echo 'a'; $(b)"), r"'echo '\''a'\''; $(b)'");
    }
}
