//! `isobench images`: what registries have, and how far it covers a dataset.

pub(crate) mod ask;
mod audit;
mod list;
mod progress;
mod transfer;

use super::Context;
use crate::exit::{CommandError, Exit};
use crate::images_args::{ImagesArgs, ImagesCommand};

/// Runs the command.
pub(crate) fn run(args: &ImagesArgs, context: Context) -> Result<Exit, CommandError> {
    match &args.what {
        ImagesCommand::List(args) => list::run(args, context),
        ImagesCommand::Audit(args) => audit::run(args, context),
        ImagesCommand::Pull(args) => transfer::pull(args, context),
        ImagesCommand::Push(args) => transfer::push(args, context),
    }
}
