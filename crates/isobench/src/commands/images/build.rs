//! `isobench images build`: images of commits, built, proven, named and sent one after the other.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isobench_plan::images::TagTemplate;
use isobench_runner::container::build_image;
use isobench_runner::container::{BuildImageError, BuiltImage, ContainerError, Daemon, ImageBuild, Network, ask};
use isobench_runner::environment::PrepareContext;
use isobench_runner::git::Repository as Source;
use isobench_runner::images::{Credentials, Repository};
use isobench_schema::facts::ResolvedRevision;
use isobench_schema::ids::{CommitId, Revision};
use isobench_schema::units::size_text;
use serde::Serialize;

use super::ask as registry;
use super::progress::Progress;
use super::send::{Sender, Sent};
use crate::commands::{Context, cache_folder};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::images_args::BuildArgs;
use crate::interrupt;

/// What to do where a daemon's disk has too little room.
pub(super) const ROOM: &str =
    "free some room or lower `--disk-floor`; `isobench images prune` and `docker image prune` say what can go";

/// What became of a commit, as `--json` prints it.
#[derive(Debug, Default, Serialize)]
struct Built {
    commit: String,
    /// The image's id, if it is built and proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its names.
    names: Vec<String>,
    /// Whether it was built now.
    is_new: bool,
    /// How many files of the commit it holds.
    files: u64,
    /// Where the module is imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    /// What it takes with all its layers.
    bytes: u64,
    /// The digest by which the registry has it, if it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The whole log.
    log: PathBuf,
}

/// What the builds of one command share.
struct Builder<'a> {
    args: &'a BuildArgs,
    context: Context,
    cache: &'a Path,
    cancel: &'a AtomicBool,
    names: Vec<TagTemplate>,
    images: Repository,
    credentials: Option<Credentials>,
}

/// Runs the command. It succeeds if every image is built, proven and, if asked for, sent.
pub(super) fn run(args: &BuildArgs, context: Context) -> Result<Exit, CommandError> {
    let cache = cache_folder(args.cache.as_ref())?;
    let images = registry::repository(&args.images)?;
    let template = |text: &String| {
        let hint = "write it as `baseline-{commit12}`, for example";
        TagTemplate::parse(text).map_err(|error| CommandError::from_error(Exit::Usage, error).hint(hint))
    };
    if !args.folder.starts_with('/') || args.folder.trim_matches('/').is_empty() || args.folder.contains("..") {
        let message = format!("`{}` is no folder of an image for a tree", args.folder);
        return Err(CommandError::new(Exit::Usage, message).hint("give a path such as `/opt/isobench/source`"));
    }
    let cancel = interrupt::flag().exit(Exit::Machine)?;
    let builder = Builder {
        args,
        context,
        cache: &cache,
        cancel: &cancel,
        names: args.names.iter().map(template).collect::<Result<_, _>>()?,
        credentials: if args.push { registry::credentials(&images)? } else { None },
        images,
    };
    if args.push {
        builder.sender().check()?;
    }
    let mut all = Vec::new();
    for commit in &args.commits {
        let built = builder.build(commit)?;
        if !context.json {
            match (&built.id, &built.problem) {
                (Some(id), None) => context.terminal.data(&format!("{id}  {}\n", built.names.join("  "))),
                (Some(id), Some(why)) => {
                    let names = built.names.join("  ");
                    context.terminal.data(&format!("{id}  {names}\n"));
                    context.terminal.status(&format!("{commit}: it is built, named and not sent: {why}"));
                }
                (None, problem) => {
                    let why = problem.as_deref().unwrap_or_default();
                    context.terminal.status(&format!("{}: {why}; the whole log is `{}`", commit, built.log.display()));
                }
            }
        }
        all.push(built);
    }
    if context.json {
        context.print_json(&all)?;
    }
    let failed = all.iter().filter(|built| built.problem.is_some()).count();
    Ok(if failed == 0 { Exit::Success } else { Exit::SomeFailed })
}

impl Builder<'_> {
    fn build(&self, commit: &str) -> Result<Built, CommandError> {
        self.check_room()?;
        let scratch = tempfile::tempdir().exit(Exit::Machine)?;
        let folder = self.cache.join("images");
        make_folder(&folder)?;
        let name: String = commit.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        let log = folder.join(format!("{name}.log"));
        let context = PrepareContext {
            cache: self.cache,
            scratch: scratch.path(),
            log: &log,
            timeout: Duration::from_secs(self.args.timeout),
            cancel: self.cancel,
            reaper: None,
            steps: None,
        };
        let mut built = Built { commit: commit.to_owned(), log: log.clone(), ..Built::default() };
        let tree = scratch.path().join("tree");
        let commit = match self.export(commit, &tree, &context)? {
            Ok(commit) => commit,
            Err(problem) => {
                built.problem = Some(problem);
                return Ok(built);
            }
        };
        built.commit = commit.to_string();
        match self.make(&commit, &tree, &context) {
            Ok(made) => self.name_and_send(&commit, made, &mut built)?,
            Err(BuildImageError::Cancelled) => return Err(interrupted()),
            Err(error @ BuildImageError::Failed { .. }) => built.problem = Some(error.to_string()),
            Err(BuildImageError::Container(error)) => return Err(daemon_error(error)),
            Err(error @ (BuildImageError::Environment(_) | BuildImageError::File { .. })) => {
                return Err(CommandError::from_error(Exit::Machine, error));
            }
        }
        Ok(built)
    }

    /// Checks that the floor holds where the daemon keeps images and where logs and mirrors are, before anything is begun.
    fn check_room(&self) -> Result<(), CommandError> {
        let floor = self.args.disk.floor_bytes();
        let disk = ask(async { Daemon::connect().await?.disk().await }).map_err(daemon_error)?;
        disk.check(0, floor).map_err(|error| CommandError::from_error(Exit::Machine, error).hint(ROOM))?;
        make_folder(self.cache)?;
        let free = isobench_runner::disk::free_bytes(self.cache).exit(Exit::Machine)?;
        if free >= floor {
            return Ok(());
        }
        let (cache, free, floor) = (self.cache.display(), size_text(free), size_text(floor));
        let message = format!("the disk of the cache `{cache}` has {free} left, and {floor} are to stay free");
        let hint = "free some room or lower `--disk-floor`; `isobench environments prune` says what can go";
        Err(CommandError::new(Exit::Machine, message).hint(hint))
    }

    /// Writes the tree of a commit; the inner error says why the repository can't give it.
    fn export(
        &self,
        commit: &str,
        tree: &Path,
        context: &PrepareContext<'_>,
    ) -> Result<Result<CommitId, String>, CommandError> {
        let revision = Revision::new(commit).exit(Exit::Usage)?;
        // A folder may be named from where one is.
        let address = Path::new(&self.args.repository);
        let address = if address.is_dir() { address.canonicalize().exit(Exit::Machine)? } else { address.to_owned() };
        let source = match Source::open(&address.to_string_lossy(), context).exit(Exit::Machine)? {
            Ok(source) => source,
            Err(failure) => return Err(CommandError::new(Exit::Usage, failure.message).hint("check `--repository`")),
        };
        let commit = match source.resolve(&revision, context).exit(Exit::Machine)? {
            ResolvedRevision::Found { commit } => commit,
            ResolvedRevision::Missing { failure } => return Ok(Err(failure.message)),
        };
        let exported = source.export(&commit, tree, context).exit(Exit::Machine)?;
        Ok(exported.map(|_| commit).map_err(|failure| failure.message))
    }

    fn make(
        &self,
        commit: &CommitId,
        tree: &Path,
        context: &PrepareContext<'_>,
    ) -> Result<BuiltImage, BuildImageError> {
        let args = self.args;
        let network = args.network.clone().map_or(Network::None, Network::Named);
        let by_name = args.module.replace('.', "/");
        let build = ImageBuild {
            commit,
            tree,
            base: &args.base,
            commands: &args.commands,
            module: &args.module,
            python: &args.python,
            module_folder: args.module_folder.as_deref().unwrap_or(&by_name),
            folder: args.folder.trim_end_matches('/'),
            native: &args.native,
            network,
            memory_bytes: args.memory,
            memory_per_job_mib: args.memory_per_job,
        };
        let progress = Progress::new(self.context.terminal);
        let say = |line: &str| progress.say(|| format!("{}: {line}", commit.short()));
        // The daemon's errors are one kind of a build's, and the other way round they aren't.
        ask(async {
            let daemon = Daemon::connect().await?;
            Ok(build_image(&daemon, &build, context, &say).await)
        })?
    }

    fn sender(&self) -> Sender<'_> {
        Sender {
            images: &self.images,
            credentials: self.credentials.as_ref(),
            registry: &self.args.registry,
            context: self.context,
            cancel: self.cancel,
        }
    }

    fn name_and_send(&self, commit: &CommitId, made: BuiltImage, built: &mut Built) -> Result<(), CommandError> {
        let BuiltImage { image, is_new, files, module } = made;
        let terminal = self.context.terminal;
        let sender = self.sender();
        for template in &self.names {
            let tag = template.tag(commit).exit(Exit::Usage)?;
            let repository = self.images.to_string();
            ask(async { Daemon::connect().await?.name_image(&image.id, &repository, tag.as_str()).await })
                .map_err(daemon_error)?;
            built.names.push(format!("{repository}:{tag}"));
            if !self.args.push {
                continue;
            }
            match sender.send(&image.id, &tag) {
                Ok(Sent::There(digest) | Sent::Whole(digest)) => built.digest = Some(digest),
                Ok(Sent::Failed(why)) => built.problem = Some(why),
                Ok(Sent::Cancelled) => return Err(interrupted()),
                // It stays built and named, and the next commit may still be taken.
                Err(error) => built.problem = Some(error.message),
            }
        }
        let verb = if is_new { "built" } else { "there already" };
        terminal.status(&format!(
            "{}: {verb}, {}, {files} files of the commit are in it; its module is imported from {module}",
            commit.short(),
            size_text(image.bytes)
        ));
        built.bytes = image.bytes;
        built.id = Some(image.id);
        (built.is_new, built.files, built.module) = (is_new, files, Some(module));
        Ok(())
    }
}

fn make_folder(folder: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(folder).map_err(|source| {
        let message = format!("cannot make the folder `{}` of builds", folder.display());
        CommandError { source: Some(source.into()), ..CommandError::new(Exit::Machine, message) }
            .hint("name a folder that may be written to with `--cache DIR`, or in ISOBENCH_CACHE")
    })
}

fn interrupted() -> CommandError {
    let hint = "give the same command again: what is built and proven stays";
    CommandError::from_error(Exit::Interrupted, BuildImageError::Cancelled).hint(hint)
}

/// Returns the command's error of a daemon's.
pub(super) fn daemon_error(error: ContainerError) -> CommandError {
    let hint = "start Docker or Podman's service, name its socket in DOCKER_HOST as `unix://PATH`, and check the names";
    CommandError::from_error(Exit::Machine, error).hint(hint)
}
