//! `isobench images prune`: removes images that this program built from the daemon, and folders of fetched images.

use isobench_runner::cache_use::now_ms;
use isobench_runner::container::{Daemon, HeldImage, IMAGE_LABEL, ImageRemoved, ask};
use isobench_runner::images::Layout;
use isobench_runner::run_images::is_held;
use isobench_schema::units::size_text;
use serde::Serialize;

use super::ask as registry;
use super::build::daemon_error;
use crate::commands::{Context, cache_folder};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::images_args::PrunedArgs;

/// Seconds of a day.
const DAY_S: u64 = 24 * 3600;

/// What goes, or would, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Gone {
    /// The image's id, or the folder.
    what: String,
    names: Vec<String>,
    bytes: u64,
    /// Whether it was removed; else nothing was to be removed.
    removed: bool,
}

/// Runs the command.
pub(super) fn run(args: &PrunedArgs, context: Context) -> Result<Exit, CommandError> {
    let is_bounded = args.max_size.is_some() || args.older_days.is_some() || args.floor.disk_floor.is_some();
    if !is_bounded && args.folder.is_empty() {
        let message = "nothing says what is to be removed";
        let hint = "give `--max-size GIB`, `--older-days DAYS`, `--disk-floor GIB` or `--folder DIR`";
        return Err(CommandError::new(Exit::Usage, message).hint(hint));
    }
    let mut gone = Vec::new();
    for folder in &args.folder {
        let layout = Layout::open(folder).map_err(registry::error)?;
        let bytes = if args.dry_run { layout.bytes() } else { layout.remove() }.map_err(registry::error)?;
        if !args.dry_run && folder.exists() {
            context.terminal.status(&format!("`{}` holds other things than images, and they stay", folder.display()));
        }
        gone.push(Gone { what: folder.display().to_string(), names: Vec::new(), bytes, removed: !args.dry_run });
    }
    let folders = gone.len();
    let left = if is_bounded { Some(of_daemon(args, &mut gone, context)?) } else { None };
    if context.json {
        context.print_json(&gone)?;
    } else {
        for Gone { what, names, bytes, .. } in &gone {
            context.terminal.data(&format!("{:>9}  {what}  {}\n", size_text(*bytes), names.join("  ")));
        }
    }
    let bytes = gone.iter().fold(0_u64, |sum, gone| sum.saturating_add(gone.bytes));
    let images = gone.len().saturating_sub(folders);
    let count = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    };
    let what: Vec<String> = [count(images, "image"), count(folders, "folder")].into_iter().flatten().collect();
    let verb = if args.dry_run { "would go" } else { "removed" };
    let what = if what.is_empty() { "nothing".to_owned() } else { what.join(" and ") };
    let stay = left.as_ref().map_or_else(String::new, |left| {
        format!("; images of {} stay in the daemon (layers that they share counted for each)", size_text(left.bytes))
    });
    context.terminal.status(&format!("{what} {verb}, {}{stay}", size_text(bytes)));
    left.and_then(|left| left.below_floor).map_or(Ok(Exit::Success), Err)
}

/// What stays.
#[derive(Default)]
struct Left {
    /// What the images that stay take, in bytes.
    bytes: u64,
    /// The error of a floor that doesn't hold.
    below_floor: Option<CommandError>,
}

/// Removes images until the bounds hold.
fn of_daemon(args: &PrunedArgs, gone: &mut Vec<Gone>, context: Context) -> Result<Left, CommandError> {
    let (images, disk) = ask(async {
        let daemon = Daemon::connect().await?;
        Ok((daemon.held_images(IMAGE_LABEL).await?, daemon.disk().await?))
    })
    .map_err(daemon_error)?;
    if let Some(kept) =
        args.keep.iter().find(|kept| !images.iter().any(|image| is_kept(image, std::slice::from_ref(kept))))
    {
        let message = format!("`--keep {kept}` names no image that isobench built, and nothing is removed");
        let hint = "give a name or the first 7 digits of an id, as `docker images` shows them";
        return Err(CommandError::new(Exit::Usage, message).hint(hint));
    }
    let cache = cache_folder(None)?;
    let floor = args.floor.disk_floor;
    if floor.is_some() && disk.free().is_none() {
        let message =
            "the disk that the daemon keeps images on can't be seen from here, so that no floor can hold on it";
        return Err(
            CommandError::new(Exit::Usage, message).hint("give `--max-size GIB` or `--older-days DAYS` instead")
        );
    }
    let mut left = images.iter().fold(0_u64, |sum, image| sum.saturating_add(image.bytes));
    // What would be free, if nothing is removed but only told.
    let mut told = 0_u64;
    let now = now_ms() / 1000;
    let oldest = args.older_days.map(|days| now.saturating_sub(u64::from(days).saturating_mul(DAY_S)));
    for image in images {
        let is_old = oldest.is_some_and(|oldest| image.created <= oldest);
        let is_too_much = args.max_size.is_some_and(|most| left > most);
        let is_too_full = floor.is_some_and(|floor| disk.check(0, floor.saturating_sub(told)).is_err());
        if is_kept(&image, &args.keep) || !(is_old || is_too_much || is_too_full) {
            continue;
        }
        if is_held(&cache, &image.id).exit(Exit::Machine)? {
            context.terminal.status(&format!("{} is used by a run, and stays", image.id));
            continue;
        }
        if args.dry_run {
            told = told.saturating_add(image.bytes);
        } else {
            let removed = ask(async { Daemon::connect().await?.remove_image(&image).await }).map_err(daemon_error)?;
            if removed == ImageRemoved::Used {
                context.terminal.status(&format!("{} is used by a container, and stays", image.id));
                continue;
            }
        }
        left = left.saturating_sub(image.bytes);
        gone.push(Gone { what: image.id, names: image.names, bytes: image.bytes, removed: !args.dry_run });
    }
    let below_floor = floor.and_then(|floor| disk.check(0, floor.saturating_sub(told)).err()).map(|error| {
        let hint = "nothing that may go is left: `docker image prune` and `docker system df` say what else is there";
        CommandError::from_error(Exit::Machine, error).hint(hint)
    });
    Ok(Left { bytes: left, below_floor })
}

fn is_kept(image: &HeldImage, keep: &[String]) -> bool {
    let hex = image.id.split_once(':').map_or(image.id.as_str(), |(_, hex)| hex);
    let is_meant = |kept: &String| {
        let digits = kept.strip_prefix("sha256:").unwrap_or(kept);
        image.names.contains(kept) || digits.len() >= 7 && hex.starts_with(digits)
    };
    keep.iter().any(is_meant)
}
