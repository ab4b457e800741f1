//! `isobench doctor`: what this machine lacks, what that forbids, and how to get it.

use isobench_runner::inventory::{self, CheckStatus};

use super::Context;
use crate::exit::{CommandError, Exit};

/// Runs the command.
pub(crate) fn run(context: Context) -> Result<Exit, CommandError> {
    let cache = super::cache_folder(None)?;
    let checks = inventory::doctor(&[&cache]);
    let lacks = checks.iter().any(|check| check.status == CheckStatus::Missing && check.required);
    if context.json {
        context.print_json(&checks)?;
    } else {
        for check in &checks {
            let mark = match check.status {
                CheckStatus::Ok => "ok     ",
                CheckStatus::Warning => "warning",
                CheckStatus::Missing => "missing",
            };
            context.terminal.data(&format!("{mark}  {}: {}\n", check.name, check.found));
            if check.status != CheckStatus::Ok {
                context.terminal.data(&format!("         forbids: {}\n         to get it: {}\n", check.forbids, check.advice));
            }
        }
    }
    Ok(if lacks { Exit::Machine } else { Exit::Success })
}
