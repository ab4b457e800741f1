//! Arguments of `images`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isobench_plan::images::{BASELINE_TEMPLATE, HUMAN_TEMPLATE};

use crate::disk_args::{DaemonDiskArgs, PruneFloorArgs, gib};

/// The platform whose images are asked for.
const PLATFORM: &str = "linux/amd64";
/// How long a registry that was asked too often is waited for, in seconds.
const WAIT_S: u64 = 120;

/// Arguments of `images`.
#[derive(Debug, Args)]
pub(crate) struct ImagesArgs {
    #[command(subcommand)]
    pub(crate) what: ImagesCommand,
}

/// What to do with images.
#[derive(Debug, Subcommand)]
pub(crate) enum ImagesCommand {
    /// List the tags of a repository, all of them.
    List(ListArgs),
    /// Say which images of a dataset's commits a repository has, what they take, and which are missing and why.
    Audit(AuditArgs),
    /// Fetch an image into a folder, as OCI lays images out.
    Pull(PullArgs),
    /// Load an image of such a folder into the daemon of containers, under its name.
    Load(LoadImageArgs),
    /// Send an image of such a folder to a registry, or with `--watch` what `build` makes, and read it back.
    Push(PushArgs),
    /// Build the images of commits upon a base, with a daemon of containers; prove, name and, if asked for, send them.
    Build(Box<BuildArgs>),
    /// Remove images that `build` made from the daemon, the oldest first, and folders that `pull` left.
    Prune(PrunedArgs),
}

/// How a registry is asked. Credentials are Docker's own: `docker login`, `$DOCKER_CONFIG`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Registry")]
pub(crate) struct RegistryArgs {
    /// Where a tag has images for several platforms, take the one for this.
    #[arg(long, value_name = "OS/ARCHITECTURE", default_value = PLATFORM)]
    pub(crate) platform: String,
    /// Wait so many seconds at most, all waits together, where a registry says that it was asked too often.
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT_S)]
    pub(crate) wait: u64,
    /// Also trust the authorities in this file, for registries whose certificates aren't of authorities that this machine knows;
    /// those of Docker's `certs.d/HOST:PORT` are trusted without being named.
    #[arg(long, value_name = "FILE.pem")]
    pub(crate) ca: Option<PathBuf>,
}

impl Default for RegistryArgs {
    fn default() -> Self {
        Self { platform: PLATFORM.to_owned(), wait: WAIT_S, ca: None }
    }
}

/// How the images of commits are named.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Names of images")]
pub(crate) struct NamingArgs {
    /// The tags of human commits: `{commit}` is the whole id, `{commitN}` its first N digits.
    #[arg(long, value_name = "TEMPLATE", default_value = HUMAN_TEMPLATE)]
    pub(crate) human_tag: String,
    /// The tags of baselines.
    #[arg(long, value_name = "TEMPLATE", default_value = BASELINE_TEMPLATE)]
    pub(crate) baseline_tag: String,
}

impl Default for NamingArgs {
    fn default() -> Self {
        Self { human_tag: HUMAN_TEMPLATE.to_owned(), baseline_tag: BASELINE_TEMPLATE.to_owned() }
    }
}

/// Arguments of `images list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The repository: `team/engine` of Docker Hub, or `registry.example/team/engine`.
    pub(crate) repository: String,
    /// Also ask for each tag's digest (HEAD, which counts as no pull).
    #[arg(long)]
    pub(crate) digests: bool,
    /// Also ask for each tag's digest, size and platforms, which counts as a pull each.
    #[arg(long, conflicts_with = "digests")]
    pub(crate) sizes: bool,
    /// Ask Docker Hub's own interface at this address, whatever registry the repository is of.
    #[arg(long, value_name = "URL")]
    pub(crate) hub_api: Option<String>,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `images audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// A dataset of commits: rows as published, a mapping, or a folder of tasks.
    pub(crate) dataset: PathBuf,
    /// The repository: `team/engine` of Docker Hub, or `registry.example/team/engine`.
    #[arg(long, value_name = "REPOSITORY")]
    pub(crate) images: String,
    /// Only ask whether images are there (HEAD, which counts as no pull); sizes and layers stay unknown.
    #[arg(long)]
    pub(crate) without_sizes: bool,
    /// Also write the page as Markdown to this file.
    #[arg(long, short, value_name = "FILE.md")]
    pub(crate) out: Option<PathBuf>,
    /// Read the commits of an engine from this clone, such as `vllm=DIR` (repeatable).
    #[arg(long = "clone", value_name = "ENGINE=DIR")]
    pub(crate) clones: Vec<String>,
    /// The folder of environments, shared by runs.
    #[arg(long, value_name = "DIR", env = "ISOBENCH_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) naming: NamingArgs,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `images pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The image: `REPOSITORY:TAG` or `REPOSITORY@sha256:DIGEST`.
    pub(crate) image: String,
    /// The folder; what it has already isn't fetched again.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Load it into the daemon of containers then, under its name.
    #[arg(long)]
    pub(crate) into_daemon: bool,
    #[command(flatten)]
    pub(crate) disk: DaemonDiskArgs,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `images load`.
#[derive(Debug, Args)]
pub(crate) struct LoadImageArgs {
    /// The folder, as `isobench images pull` leaves it.
    pub(crate) folder: PathBuf,
    /// The image as it is to be named: `REPOSITORY:TAG`, or `REPOSITORY@sha256:DIGEST`, which gets the tag `sha256-DIGEST`.
    pub(crate) image: String,
    /// The tag or digest that the folder has it under; by default the one that it is to have.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    #[command(flatten)]
    pub(crate) disk: DaemonDiskArgs,
}

/// Arguments of `images push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The folder, as `isobench images pull` leaves it.
    #[arg(required_unless_present = "watch")]
    pub(crate) folder: Option<PathBuf>,
    /// The image as it is to be named: `REPOSITORY:TAG`.
    #[arg(required_unless_present = "watch")]
    pub(crate) image: Option<String>,
    /// The tag or digest that the folder has it under; by default the tag that it is to have.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Send each image of this repository from the daemon as `isobench images build` builds, proves and names it, until Ctrl-C.
    #[arg(long, value_name = "REPOSITORY", conflicts_with_all = ["folder", "image", "tag"])]
    pub(crate) watch: Option<String>,
    /// With `--watch`, end when nothing new came for so many seconds.
    #[arg(long, value_name = "SECONDS", requires = "watch")]
    pub(crate) until_idle: Option<u64>,
    /// The folder in which `isobench images build` keeps what it has proven.
    #[arg(long, value_name = "DIR", env = "ISOBENCH_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `images build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// The commits, built one after the other.
    #[arg(required = true, value_name = "COMMIT")]
    pub(crate) commits: Vec<String>,
    /// The repository that has them: a folder, or an address that is mirrored into the cache.
    #[arg(long, value_name = "REPOSITORY")]
    pub(crate) repository: String,
    /// The image to build upon, as the daemon has it.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) base: String,
    /// The repository of images to name them in: `team/engine` of Docker Hub, or `registry.example/team/engine`.
    #[arg(long, value_name = "REPOSITORY")]
    pub(crate) images: String,
    /// The module that must be importable from the commit's files.
    #[arg(long, value_name = "MODULE")]
    pub(crate) module: String,
    /// Where the module's files are in the commit; by default the folder of its name.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) module_folder: Option<String>,
    /// A build command, run by `/bin/sh` in the tree's folder (repeatable, in this order).
    #[arg(long = "run", value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
    /// The tag to name an image by: `{commit}` is the whole id, `{commitN}` its first N digits (repeatable).
    #[arg(long = "name", value_name = "TEMPLATE", default_value = HUMAN_TEMPLATE)]
    pub(crate) names: Vec<String>,
    /// The interpreter in the image.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub(crate) python: String,
    /// Where the commit's tree is put in the image.
    #[arg(long, value_name = "FOLDER", default_value = "/opt/isobench/source")]
    pub(crate) folder: String,
    /// A path of the commit that decides what is compiled, for the label of the native tree (repeatable).
    #[arg(long, value_name = "PATH")]
    pub(crate) native: Vec<String>,
    /// Let the build reach this network of the daemon, such as `bridge`; by default it reaches none.
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<String>,
    /// The most memory that a build may take.
    #[arg(long, value_name = "GIB", value_parser = gib)]
    pub(crate) memory: Option<u64>,
    /// What one job of a build needs: so many run at once as memory allows.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub(crate) memory_per_job: u32,
    /// End a build after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 4 * 3600)]
    pub(crate) timeout: u64,
    /// Send each image to its registry as soon as it is proven, and ask the registry what it has then.
    #[arg(long)]
    pub(crate) push: bool,
    /// The folder of logs, locks and mirrors.
    #[arg(long, value_name = "DIR", env = "ISOBENCH_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) disk: DaemonDiskArgs,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `images prune`.
#[derive(Debug, Args)]
pub(crate) struct PrunedArgs {
    /// Remove until the images take no more than so many GiB, layers that they share counted for each.
    #[arg(long, value_name = "GIB", value_parser = gib)]
    pub(crate) max_size: Option<u64>,
    /// Remove what was made so many days ago.
    #[arg(long, value_name = "DAYS")]
    pub(crate) older_days: Option<u32>,
    #[command(flatten)]
    pub(crate) floor: PruneFloorArgs,
    /// Keep the image of this name or id, whatever it takes (repeatable).
    #[arg(long, value_name = "IMAGE")]
    pub(crate) keep: Vec<String>,
    /// Remove this folder, which `isobench images pull` left (repeatable).
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Vec<PathBuf>,
    /// Only say what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}
