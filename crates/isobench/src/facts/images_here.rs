//! Facts about images that tasks name for their environments: what the daemon of containers has under each name.

use isobench_plan::dataset::Dataset;
use isobench_plan::planner::PlanOptions;
use isobench_plan::toolkit::images_needed;
use isobench_runner::container::{Daemon, ask, with_login};
use isobench_schema::facts::{Facts, FoundImage};

use crate::container_args::next_step;
use crate::exit::{CommandError, Exit};
use crate::terminal::Terminal;

/// Adds what stands under the names of images that the chosen tasks run on and are built in. One that isn't here is fetched.
///
/// # Errors
/// Returns an error if no daemon answers; an image that isn't to be had is a fact.
pub(crate) fn gather_images(
    dataset: &Dataset,
    options: &PlanOptions,
    terminal: Terminal,
    facts: &mut Facts,
) -> Result<(), CommandError> {
    for name in images_needed(dataset, facts, options) {
        terminal.status(&format!("looking for the image {name}, which is pulled if it isn't here"));
        let found = ask(async { Daemon::connect().await?.find_or_pull(&name).await });
        let found = found.map_err(|error| {
            let next = next_step(&error);
            CommandError::from_error(Exit::Machine, error).hint(next)
        })?;
        let found = match found {
            Ok(image) => FoundImage::Found { image },
            Err(reason) => FoundImage::Missing { reason: with_login(&name, reason) },
        };
        facts.environment_images.insert(name, found);
    }
    Ok(())
}
