//! `isobench images list`: every tag of a repository.

use isobench_report::terminal as report;
use isobench_runner::images::{Address, HUB, RegistryError, Repository, Target, hub_tags};
use isobench_schema::format;
use isobench_schema::ids::ImageTag;
use isobench_schema::images::{ImageList, ImageState, ListedBy, ListedTag};

use super::ask::{self, Asking};
use super::progress::Progress;
use crate::commands::Context;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::images_args::ListArgs;

/// Runs the command.
pub(super) fn run(args: &ListArgs, context: Context) -> Result<Exit, CommandError> {
    let repository = ask::repository(&args.repository)?;
    let of_hub = match &args.hub_api {
        Some(hub) => Some(of_hub(hub, &repository, args, context).map_err(ask::error)?),
        // What Docker Hub doesn't show to anybody, its registry may show to who is logged in.
        None if repository.is_hub() => match of_hub(HUB, &repository, args, context) {
            Ok(list) => Some(list),
            Err(error) => {
                let said =
                    format!("Docker Hub's own interface doesn't list it, so that its registry is asked: {error}");
                context.terminal.status(&said);
                None
            }
        },
        None => None,
    };
    let asking = ask::open(repository, &args.registry, context)?;
    let mut list = match of_hub {
        Some(list) => list,
        None => of_registry(&asking, context).map_err(ask::error)?,
    };
    if args.digests || args.sizes {
        details(&mut list, &asking, args, context)?;
    }
    list.pulls = asking.registry.pulls();
    if context.json {
        context.terminal.data(&format::to_pretty(&list).exit(Exit::Error)?);
    } else {
        context.terminal.data(&report::image_list(&list, crate::commands::report::style(context)));
    }
    Ok(Exit::Success)
}

fn of_hub(hub: &str, repository: &Repository, args: &ListArgs, context: Context) -> Result<ImageList, RegistryError> {
    let hub = Address::parse(hub).map_err(|source| RegistryError::Address { address: hub.to_owned(), source })?;
    let progress = Progress::new(context.terminal);
    let how = (ask::patience(&args.registry), ask::notice(context.terminal));
    let found = hub_tags(&hub, repository, how, &|count| progress.say(|| format!("{count} tags of {repository}")))?;
    Ok(ImageList {
        repository: repository.to_string(),
        listed_by: ListedBy::Hub,
        pages: found.pages,
        announced: found.announced,
        tags: found.tags,
        pulls: None,
    })
}

fn of_registry(asking: &Asking, context: Context) -> Result<ImageList, RegistryError> {
    let registry = &asking.registry;
    let progress = Progress::new(context.terminal);
    let found = registry.tags(&|count| progress.say(|| format!("{count} tags of {}", registry.repository())))?;
    let listed = |tag: String| {
        let tag = ImageTag::new(tag).ok()?;
        Some(ListedTag { tag, digest: None, bytes: None, platforms: Vec::new(), pushed: None, problem: None })
    };
    Ok(ImageList {
        repository: registry.repository().to_string(),
        listed_by: ListedBy::Registry,
        pages: found.pages,
        announced: None,
        tags: found.tags.into_iter().filter_map(listed).collect(),
        pulls: None,
    })
}

/// Asks for more of each tag.
fn details(list: &mut ImageList, asking: &Asking, args: &ListArgs, context: Context) -> Result<(), CommandError> {
    let progress = Progress::new(context.terminal);
    let count = list.tags.len();
    for (place, tag) in list.tags.iter_mut().enumerate() {
        progress.say(|| format!("asked for {place} of {count} tags"));
        let target = Target::Tag(tag.tag.clone());
        if !args.sizes {
            match asking.registry.head(&target).map_err(ask::error)? {
                Some(head) => tag.digest = head.digest.or(tag.digest.take()),
                None => tag.problem = Some("it is listed, and isn't there".to_owned()),
            }
            continue;
        }
        let found = asking.registry.look(&target, &asking.platform).map_err(ask::error)?;
        tag.digest = found.digest.or(tag.digest.take());
        tag.bytes = found.bytes.or(tag.bytes);
        if !found.platforms.is_empty() {
            tag.platforms = found.platforms;
        }
        match found.state {
            ImageState::Present => {}
            ImageState::Missing => tag.problem = Some("it is listed, and isn't there".to_owned()),
            ImageState::OtherPlatform | ImageState::Unreadable | ImageState::NotAsked | ImageState::Unnamed => {
                tag.problem = Some(found.reason);
            }
        }
    }
    Ok(())
}
