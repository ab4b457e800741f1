//! `isobench images`: what registries have, how far it covers a dataset, and building what is missing.

mod ask;
mod audit;
mod build;
mod list;
mod load;
mod progress;
mod prune;
mod send;
mod transfer;
mod watch;

use isobench_plan::dataset::Dataset;
use isobench_plan::images::wanted;
use isobench_plan::knowledge::Knowledge;
use isobench_schema::facts::Facts;
use isobench_schema::images::ImageFacts;

use self::ask::Depth;
use super::Context;
use crate::commit_args::CommitArgs;
use crate::exit::{CommandError, Exit};
use crate::images_args::{ImagesArgs, ImagesCommand};

/// Runs the command.
pub(crate) fn run(args: &ImagesArgs, context: Context) -> Result<Exit, CommandError> {
    match &args.what {
        ImagesCommand::List(args) => list::run(args, context),
        ImagesCommand::Audit(args) => audit::run(args, context),
        ImagesCommand::Pull(args) => transfer::pull(args, context),
        ImagesCommand::Load(args) => load::run(args, context),
        ImagesCommand::Push(args) => transfer::push(args, context),
        ImagesCommand::Build(args) => build::run(args, context),
        ImagesCommand::Prune(args) => prune::run(args, context),
    }
}

/// Asks a registry which images of a dataset's commits it has, for a plan.
///
/// # Errors
/// Returns an error if the registry can't be asked.
pub(super) fn facts(
    repository: &str,
    args: &CommitArgs,
    (dataset, facts): (&Dataset, &Facts),
    context: Context,
) -> Result<ImageFacts, CommandError> {
    let asking = ask::open(ask::repository(repository)?, &args.registry, context)?;
    let wanted = wanted(&dataset.commit_tasks, facts, Knowledge::embedded(), &ask::naming(&args.naming)?);
    let name = asking.registry.repository().to_string();
    context.terminal.status(&format!("asking {name} for images"));
    let answers = ask::answers(&asking, &wanted, Depth::Layers, context)?;
    Ok(isobench_plan::images::facts(&name, &wanted, &answers))
}
