//! `isobench images load`, and the second half of `pull --into-daemon`: an image of a folder becomes one of the daemon.

use isobench_runner::container::{Daemon, ImageSource, LoadImageError, LoadWatch, ask};
use isobench_runner::images::{Layout, Repository, Target, parse_reference};
use isobench_schema::ids::ImageTag;
use isobench_schema::units::size_text;
use serde_json::json;

use super::ask as registry;
use super::build::{ROOM, daemon_error};
use super::progress::Progress;
use super::transfer::{reference_error, target_in_folder};
use crate::commands::Context;
use crate::disk_args::DaemonDiskArgs;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::images_args::LoadImageArgs;
use crate::interrupt;

/// An image that the daemon has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loaded {
    /// Its id.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    /// Whether the daemon had it before.
    pub(super) was_there: bool,
}

/// Runs the command.
pub(super) fn run(args: &LoadImageArgs, context: Context) -> Result<Exit, CommandError> {
    let (repository, to) = parse_reference(&args.image).map_err(reference_error)?;
    let from = target_in_folder(args.tag.as_ref(), &to)?;
    let layout = Layout::open(&args.folder).map_err(registry::error)?;
    let loaded = load(&layout, &from, (&repository, &to), &args.disk, context)?;
    if context.json {
        let Loaded { id, name, was_there } = &loaded;
        context.print_json(&json!({ "id": id, "name": name, "was_there": was_there }))?;
    } else {
        context.terminal.data(&format!("{}  {}\n", loaded.id, loaded.name));
    }
    Ok(Exit::Success)
}

/// Loads an image of a folder into the daemon, and names it.
pub(super) fn load(
    layout: &Layout,
    from: &Target,
    (repository, to): (&Repository, &Target),
    disk: &DaemonDiskArgs,
    context: Context,
) -> Result<Loaded, CommandError> {
    let cancel = interrupt::flag().exit(Exit::Machine)?;
    let tag = match to {
        Target::Tag(tag) => tag.clone(),
        // Names by digest are a registry's to give; this is how signatures of images are tagged, too.
        Target::Digest(digest) => ImageTag::new(format!("sha256-{}", digest.hex())).exit(Exit::Usage)?,
    };
    let progress = Progress::new(context.terminal);
    let say = |sent: u64, whole: u64| {
        progress.say(|| format!("the daemon took {} of {}, and unpacks it", size_text(sent), size_text(whole)));
    };
    let watch = LoadWatch { cancel: &cancel, floor_bytes: disk.floor_bytes(), progress: &say };
    let source = ImageSource { layout, target: from };
    let (id, was_there) = ask(async {
        let daemon = Daemon::connect().await?;
        Ok(daemon.load_image(source, &watch).await)
    })
    .map_err(daemon_error)?
    .map_err(error)?;
    let name = repository.to_string();
    ask(async { Daemon::connect().await?.name_image(&id, &name, tag.as_str()).await }).map_err(daemon_error)?;
    drop(progress);
    let verb = if was_there { "there already" } else { "loaded into the daemon" };
    context.terminal.status(&format!("{name}:{tag}: {verb}"));
    Ok(Loaded { id, name: format!("{name}:{tag}"), was_there })
}

fn error(error: LoadImageError) -> CommandError {
    let hint = match error {
        LoadImageError::Folder(error) => return registry::error(error),
        LoadImageError::Container(error) if error.is_disk_full() => {
            return CommandError::from_error(Exit::Machine, error).hint(ROOM);
        }
        LoadImageError::Container(error) => return daemon_error(error),
        LoadImageError::Cancelled => {
            let hint = "give the same command again: what was fetched stays in its folder";
            return CommandError::from_error(Exit::Interrupted, error).hint(hint);
        }
        LoadImageError::NoRoom(_) => ROOM,
        LoadImageError::NotThere { .. } => "look into the daemon's log, and give the same command again",
    };
    CommandError::from_error(Exit::Machine, error).hint(hint)
}
