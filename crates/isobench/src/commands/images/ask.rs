//! Asking a registry for the images of commits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use isobench_plan::images::{Answers, Naming, TagTemplate, Wanted};
use isobench_runner::images::{
    Authorities, Credentials, DockerConfig, Notice, Patience, Platform, Registry, RegistryError, Repository, Target,
    missing,
};
use isobench_schema::ids::ImageTag;
use isobench_schema::images::{ImageFound, ImageState};

use super::progress::Progress;
use crate::commands::Context;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::images_args::{NamingArgs, RegistryArgs};
use crate::terminal::Terminal;

/// How much is asked of each image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only whether it is there.
    Existence,
    /// Sizes, layers and platforms too.
    Layers,
}

/// A registry, and what of it is asked for.
pub(crate) struct Asking {
    /// The registry.
    pub(super) registry: Registry,
    /// The platform.
    pub(super) platform: Platform,
}

/// Returns how long a registry is waited for.
pub(super) fn patience(args: &RegistryArgs) -> Patience {
    Patience { throttled: Duration::from_secs(args.wait), ..Patience::default() }
}

/// Returns who is told what is waited for.
pub(super) fn notice(terminal: Terminal) -> Notice {
    Box::new(move |line| terminal.status(line))
}

/// Returns a registry that can be asked, with the credentials that Docker's configuration has for it.
pub(crate) fn open(repository: Repository, args: &RegistryArgs, context: Context) -> Result<Asking, CommandError> {
    let platform = Platform::parse(&args.platform).exit(Exit::Usage)?;
    let credentials = credentials(&repository)?;
    let authorities = authorities(&repository, args)?;
    let manners = (patience(args), notice(context.terminal));
    let registry = Registry::trusting(&authorities, repository, credentials, manners).map_err(error)?;
    Ok(Asking { registry, platform })
}

/// Returns which authorities are trusted for the registry of a repository beyond those of this machine.
fn authorities(repository: &Repository, args: &RegistryArgs) -> Result<Authorities, CommandError> {
    let found = Authorities::of(repository.registry(), |name| std::env::var(name).ok());
    let found = found.and_then(|mut found| {
        args.ca.iter().try_for_each(|file| found.add_file(file))?;
        Ok(found)
    });
    found.map_err(|error| {
        CommandError::from_error(Exit::Usage, error)
            .hint("mend the file, or name one of certificates in the form of PEM")
    })
}

/// Reads the name of a repository.
pub(crate) fn repository(text: &str) -> Result<Repository, CommandError> {
    Repository::parse(text).map_err(|error| {
        CommandError::from_error(Exit::Usage, error)
            .hint("name a repository of Docker Hub as `team/engine`, any other as `registry.example/team/engine`")
    })
}

/// Returns what Docker's configuration has for the registry of a repository.
pub(super) fn credentials(repository: &Repository) -> Result<Option<Credentials>, CommandError> {
    let config = DockerConfig::load(|name| std::env::var(name).ok());
    let found = config.and_then(|config| match config {
        Some(config) => config.credentials(repository.registry()),
        None => Ok(None),
    });
    found.map_err(|error| {
        CommandError::from_error(Exit::Usage, error)
            .hint("mend Docker's configuration, or set DOCKER_CONFIG to a folder without one to ask as nobody")
    })
}

/// Returns how images are named.
pub(crate) fn naming(args: &NamingArgs) -> Result<Naming, CommandError> {
    let template = |text: &str| {
        TagTemplate::parse(text).map_err(|error| {
            CommandError::from_error(Exit::Usage, error).hint("write it as `baseline-{commit12}`, for example")
        })
    };
    Ok(Naming { human: template(&args.human_tag)?, baseline: template(&args.baseline_tag)? })
}

/// Asks for every image that is wanted: first which tags there are, then for each image.
///
/// # Errors
/// Returns an error if the registry can't be asked. One that lets one ask no more is no error: what wasn't asked says so.
pub(crate) fn answers(
    asking: &Asking,
    wanted: &[Wanted<'_>],
    depth: Depth,
    context: Context,
) -> Result<Answers, CommandError> {
    let registry = &asking.registry;
    let progress = Progress::new(context.terminal);
    let mut answers = Answers::default();
    match registry.tags(&|count| progress.say(|| format!("{count} tags of {}", registry.repository()))) {
        Ok(found) => answers.tags = Some(found.tags),
        Err(error @ (RegistryError::Refused { .. } | RegistryError::Throttled { .. })) => {
            progress.clear();
            context.terminal.status(&format!("the tags can't be listed, so that each image is asked for: {error}"));
        }
        Err(other) => return Err(error(other)),
    }
    let mut tags: Vec<&ImageTag> = wanted.iter().flat_map(Wanted::images).map(|image| &image.tag).collect();
    tags.sort();
    tags.dedup();
    let mut look = Look { asking, depth, listed: answers.tags.as_ref(), ends: None };
    let mut found = BTreeMap::new();
    for (place, tag) in tags.iter().enumerate() {
        progress.say(|| format!("asked for {place} of {} images", tags.len()));
        found.insert((*tag).clone(), look.at(tag).map_err(error)?);
    }
    answers.found = found;
    answers.pulls = registry.pulls();
    Ok(answers)
}

/// Looks at images for as long as the registry lets it.
struct Look<'a> {
    asking: &'a Asking,
    depth: Depth,
    /// The tags of the repository, if they are known.
    listed: Option<&'a BTreeSet<String>>,
    /// Why nothing is asked any more.
    ends: Option<String>,
}

impl Look<'_> {
    fn at(&mut self, tag: &ImageTag) -> Result<ImageFound, RegistryError> {
        if let Some(reason) = &self.ends {
            return Ok(ImageFound::only(ImageState::NotAsked, reason.clone()));
        }
        let found = match self.depth {
            Depth::Layers if self.may_pull() => self.deeply(tag),
            Depth::Layers => self.existence(tag, "its layers weren't asked for, so that half of the pulls are left"),
            Depth::Existence => self.existence(tag, "nothing else was asked"),
        };
        match found {
            Err(error @ RegistryError::Throttled { .. }) => {
                let reason = error.to_string();
                self.ends = Some(reason.clone());
                Ok(ImageFound::only(ImageState::NotAsked, reason))
            }
            other => other,
        }
    }

    /// Returns whether a question that counts as a pull may be asked: whoever asks will want to pull, too.
    fn may_pull(&self) -> bool {
        let Some(limit) = self.asking.registry.pulls() else { return true };
        limit.remaining.is_none_or(|remaining| remaining > limit.limit / 2)
    }

    fn deeply(&mut self, tag: &ImageTag) -> Result<ImageFound, RegistryError> {
        // What isn't there is asked for in a way that costs no pull.
        let is_listed = self.listed.is_some_and(|tags| tags.contains(tag.as_str()));
        if !is_listed {
            let there = self.existence(tag, "nothing else was asked")?;
            if there.state != ImageState::Present {
                return Ok(there);
            }
        }
        match self.asking.registry.look(&Target::Tag(tag.clone()), &self.asking.platform) {
            Err(RegistryError::Throttled { .. }) => {
                self.depth = Depth::Existence;
                self.existence(tag, "the registry lets one pull no more")
            }
            other => other,
        }
    }

    fn existence(&self, tag: &ImageTag, beside: &str) -> Result<ImageFound, RegistryError> {
        Ok(match self.asking.registry.head(&Target::Tag(tag.clone()))? {
            Some(head) => ImageFound {
                digest: head.digest,
                ..ImageFound::only(ImageState::Present, format!("it is there; {beside}"))
            },
            None => missing(),
        })
    }
}

/// Returns the command's error of a registry's, with the next step.
pub(crate) fn error(error: RegistryError) -> CommandError {
    let (exit, hint) = match &error {
        RegistryError::Refused { registry, .. } => (
            Exit::Usage,
            format!(
                "check the name; for a private repository `docker login {registry}`, or set DOCKER_CONFIG to the folder of another `config.json`"
            ),
        ),
        RegistryError::NoRepository { .. } => {
            (Exit::Usage, "check the name; a private repository is shown to those who are logged in only".to_owned())
        }
        RegistryError::Throttled { .. } => (
            Exit::Machine,
            "ask again later, or wait longer with `--wait SECONDS`; who is logged in may ask more".to_owned(),
        ),
        error if error.is_distrust() => (
            Exit::Machine,
            "check the name; an authority of your own is named with `--ca FILE.pem`, or stands in Docker's `certs.d/HOST:PORT`"
                .to_owned(),
        ),
        RegistryError::Unreachable { .. } | RegistryError::Deadline { .. } | RegistryError::BrokenOff { .. } => (
            Exit::Machine,
            "check the name and the network, and give the same command again; HTTPS_PROXY names a proxy".to_owned(),
        ),
        RegistryError::NoAuthorities => {
            (Exit::Machine, "install the machine's certificates, or name a file of them in SSL_CERT_FILE".to_owned())
        }
        RegistryError::NoRoom { .. } | RegistryError::Folder { .. } => {
            (Exit::Machine, "free some room or name another folder, then give the same command again".to_owned())
        }
        RegistryError::Layout { .. } => {
            (Exit::Usage, "name a new folder, or one and a tag in it that `isobench images pull` left".to_owned())
        }
        RegistryError::Address { .. } => (Exit::Usage, "name a registry that is spoken to by `https`".to_owned()),
        RegistryError::OtherPlatform { found, .. } => {
            (Exit::Usage, format!("give `--platform {found}` if that is what is wanted, or name another tag"))
        }
        RegistryError::Status { status: 500.., .. } => {
            (Exit::Machine, "the registry has trouble of its own: give the same command again later".to_owned())
        }
        RegistryError::Status { .. }
        | RegistryError::TooLong { .. }
        | RegistryError::Endless { .. }
        | RegistryError::LeadsElsewhere { .. }
        | RegistryError::NotARegistry { .. }
        | RegistryError::OtherBytes { .. }
        | RegistryError::OtherSize { .. } => (
            Exit::Error,
            "the registry answers what no registry should: check its name, or ask whoever runs it".to_owned(),
        ),
    };
    CommandError::from_error(exit, error).hint(hint)
}
