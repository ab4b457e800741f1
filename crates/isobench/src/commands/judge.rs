//! `isobench judge`: judges a run from its stored evidence.

use isobench_report::json;

use super::{Context, report};
use crate::args::JudgeArgs;
use crate::evidence;
use crate::exit::{CommandError, Exit};

/// Runs the command.
pub(crate) fn run(args: &JudgeArgs, context: Context) -> Result<Exit, CommandError> {
    let judgement = evidence::judge(&args.run)?;
    if context.json {
        context.print_json(&json::contract(&judgement))?;
    } else {
        report::print(&judgement, context)?;
    }
    Ok(super::run::exit(&judgement))
}
