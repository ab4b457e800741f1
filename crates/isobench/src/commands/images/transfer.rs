//! `isobench images pull` and `push`: an image between a registry and a folder.

use isobench_runner::images::{Layout, Moved, ReferenceError, Target, parse_reference};
use isobench_schema::ids::{ImageDigest, ImageTag};
use isobench_schema::images::ImagePart;
use serde_json::json;

use super::ask;
use super::load::Loaded;
use super::progress::Progress;
use crate::commands::Context;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::images_args::{PullArgs, PushArgs};

/// Fetches an image.
pub(super) fn pull(args: &PullArgs, context: Context) -> Result<Exit, CommandError> {
    let (repository, target) = parse_reference(&args.image).map_err(reference_error)?;
    let asking = ask::open(repository, &args.registry, context)?;
    let layout = Layout::create(&args.out).map_err(ask::error)?;
    let moved = {
        let progress = Progress::new(context.terminal);
        let said = said(&progress, "fetched");
        layout.pull(&asking.registry, &target, &asking.platform, &said).map_err(ask::error)?
    };
    let Some(moved) = moved else {
        let message = format!("{} has no image `{target}`", asking.registry.repository());
        let hint = format!("`isobench images list {}` lists its tags", asking.registry.repository());
        return Err(CommandError::new(Exit::Usage, message).hint(hint));
    };
    let loaded = if args.into_daemon {
        let repository = asking.registry.repository();
        // What was fetched just now is meant, whatever the tag comes to name meanwhile.
        let fetched = Target::Digest(moved.digest.clone());
        Some(super::load::load(&layout, &fetched, (repository, &target), &args.disk, context)?)
    } else {
        None
    };
    print(&moved, ("fetched", loaded.as_ref()), context)?;
    Ok(Exit::Success)
}

/// Sends an image.
pub(super) fn push(args: &PushArgs, context: Context) -> Result<Exit, CommandError> {
    let (folder, image) = match (&args.watch, &args.folder, &args.image) {
        (Some(repository), _, _) => return super::watch::run(args, repository, context),
        (None, Some(folder), Some(image)) => (folder, image),
        (None, _, _) => {
            let hint = "name a folder and an image, or give `--watch REPOSITORY`";
            return Err(CommandError::new(Exit::Usage, "nothing says what is to be sent").hint(hint));
        }
    };
    let (repository, to) = parse_reference(image).map_err(reference_error)?;
    let from = target_in_folder(args.tag.as_ref(), &to)?;
    let layout = Layout::open(folder).map_err(ask::error)?;
    let asking = ask::open(repository, &args.registry, context)?;
    let moved = {
        let progress = Progress::new(context.terminal);
        let said = said(&progress, "sent");
        layout.push(&asking.registry, &from, &to, &said).map_err(ask::error)?
    };
    print(&moved, ("sent", None), context)?;
    Ok(Exit::Success)
}

fn said<'p>(progress: &'p Progress, verb: &'static str) -> impl Fn(&ImagePart, u64) + 'p {
    move |part, got| {
        progress.say(|| format!("{verb} {got} of {} bytes of {}", part.bytes, part.digest.short()));
    }
}

/// Returns what of a folder is meant: the tag or digest that is given, or else the one that the image is to have.
pub(super) fn target_in_folder(given: Option<&String>, to: &Target) -> Result<Target, CommandError> {
    Ok(match given {
        Some(text) if text.contains(':') => Target::Digest(ImageDigest::new(text.as_str()).exit(Exit::Usage)?),
        Some(text) => Target::Tag(ImageTag::new(text.as_str()).exit(Exit::Usage)?),
        None => to.clone(),
    })
}

pub(super) fn reference_error(error: ReferenceError) -> CommandError {
    CommandError::from_error(Exit::Usage, error)
        .hint("name an image as `registry.example/team/engine:TAG`, of Docker Hub as `team/engine:TAG`")
}

fn print(moved: &Moved, (verb, loaded): (&str, Option<&Loaded>), context: Context) -> Result<(), CommandError> {
    let Moved { digest, blobs, bytes, blobs_there, bytes_there } = moved;
    if context.json {
        return context.print_json(&json!({
            "digest": digest.as_str(),
            "blobs": blobs,
            "bytes": bytes,
            "blobs_there": blobs_there,
            "bytes_there": bytes_there,
            "id": loaded.map(|loaded| &loaded.id),
            "name": loaded.map(|loaded| &loaded.name),
        }));
    }
    context.terminal.data(&format!("{digest}\n"));
    context.terminal.status(&format!(
        "{verb} {blobs} pieces ({bytes} bytes); {blobs_there} ({bytes_there} bytes) were there already"
    ));
    Ok(())
}
