//! `isobench judge`: judges a run from its stored evidence.

use isobench_report::{explain, json};

use super::{Context, report};
use crate::args::JudgeArgs;
use crate::evidence;
use crate::exit::{CommandError, Exit};

/// Runs the command.
pub(crate) fn run(args: &JudgeArgs, context: Context) -> Result<Exit, CommandError> {
    let judgement = evidence::judge(&args.run)?;
    if args.explain {
        let explanations = explain::judgement(&judgement);
        if context.json {
            context.print_json(&explain::json(&explanations))?;
        } else {
            context.terminal.data(&explain::text(&explanations, report::style(context)));
        }
    } else if context.json {
        context.print_json(&json::contract(&judgement))?;
    } else {
        report::print(&judgement, context)?;
    }
    Ok(super::run::exit(&judgement))
}
