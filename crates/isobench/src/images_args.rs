//! Arguments of `images`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isobench_plan::images::{BASELINE_TEMPLATE, HUMAN_TEMPLATE};

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
    /// Send an image of such a folder to a registry, and read it back.
    Push(PushArgs),
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
}

impl Default for RegistryArgs {
    fn default() -> Self {
        Self { platform: PLATFORM.to_owned(), wait: WAIT_S }
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
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `images push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The folder, as `isobench images pull` leaves it.
    pub(crate) folder: PathBuf,
    /// The image as it is to be named: `REPOSITORY:TAG`.
    pub(crate) image: String,
    /// The tag or digest that the folder has it under; by default the tag that it is to have.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}
