//! `isobench doctor`: what this machine lacks, what that forbids, and how to get it.

use std::path::Path;

use isobench_runner::inventory::{self, CheckStatus};

use super::Context;
use crate::exit::{CommandError, Exit};

/// Runs the command.
pub(crate) fn run(context: Context) -> Result<Exit, CommandError> {
    let checks = inventory::doctor(&super::cache_folder(None)?, Path::new("."));
    let lacks = checks.iter().any(|check| check.status == CheckStatus::Missing);
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
            for (label, text) in [("forbids", check.forbids), ("to mend it", check.advice)] {
                if let Some(text) = text {
                    context.terminal.data(&format!("         {label}: {text}\n"));
                }
            }
        }
    }
    Ok(if lacks { Exit::Machine } else { Exit::Success })
}
