//! Facts about images that tasks name for their environments: what the daemon of containers has under each name.

use std::path::Path;

use isobench_plan::dataset::Dataset;
use isobench_plan::planner::PlanOptions;
use isobench_plan::toolkit::images_needed;
use isobench_runner::container::{Daemon, ask, with_login};
use isobench_runner::run_images::{FindImage, FindImageError, find_or_fetch};
use isobench_schema::facts::{Facts, FoundImage};

use crate::container_args::next_step;
use crate::exit::{CommandError, Exit};
use crate::terminal::Terminal;

/// Returns the whole disk that the daemon of containers of this machine keeps images on, in MiB, if it can be told.
pub(crate) fn image_disk_mib() -> Option<u64> {
    let facts = ask(async { Daemon::connect().await?.facts().await }).ok()?;
    Some(isobench_runner::disk::whole_bytes(Path::new(&facts.root?)).ok()? >> 20)
}

/// Adds what stands under the names of images that the chosen tasks run on and are built in. One that isn't here is fetched.
///
/// # Errors
/// Returns an error if no daemon answers; an image that isn't to be had is a fact.
pub(crate) fn gather_images(
    dataset: &Dataset,
    options: &PlanOptions,
    asked: (FindImage<'_>, Terminal),
    facts: &mut Facts,
) -> Result<(), CommandError> {
    let (asked, terminal) = asked;
    for name in images_needed(dataset, facts, options) {
        terminal.status(&format!("looking for the image {name}, which is pulled if it isn't here"));
        let found = find_or_fetch(&name, asked, &mut |text| terminal.status(text));
        let found = found.map_err(find_error)?;
        let found = match found {
            Ok(image) => FoundImage::Found { image },
            Err(reason) => FoundImage::Missing { reason: with_login(&name, reason) },
        };
        facts.environment_images.insert(name, found);
    }
    Ok(())
}

fn find_error(error: FindImageError) -> CommandError {
    let next = match &error {
        FindImageError::Container(error) => next_step(error),
        FindImageError::Cache(_) => {
            "free some room or lower `--disk-floor`; `isobench environments prune` and `docker image prune` say what can go"
        }
    };
    CommandError::from_error(Exit::Machine, error).hint(next)
}
