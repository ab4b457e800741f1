//! `isobench lint`: what is wrong with a dataset, before a device is used.

use isobench_report::lint::{Grouping, Summary};
use isobench_report::{json, terminal};

use super::Context;
use crate::args::{GroupArg, LintArgs};
use crate::exit::{CommandError, Exit};

/// Runs the command. It succeeds if no error is left that a repair doesn't take care of, and everything could be read.
pub(crate) fn run(args: &LintArgs, context: Context) -> Result<Exit, CommandError> {
    let (plan, _) = super::plan::make(&args.dataset, &args.choice, context)?;
    let (assessments, problems) = (&plan.assessments, &plan.problems);
    if context.json {
        context.print_json(&json::lint(assessments, problems))?;
    } else {
        let grouping = match args.by {
            GroupArg::Task => Grouping::Task,
            GroupArg::Rule => Grouping::Rule,
        };
        context.terminal.data(&terminal::lint(assessments, problems, grouping, super::report::style(context)));
    }
    if assessments.is_empty() {
        context.terminal.status("the rules are about datasets of commits, and this one names none; it was only read");
    }
    let summary = Summary::of(assessments, problems);
    Ok(if summary.is_broken() { Exit::SomeFailed } else { Exit::Success })
}
