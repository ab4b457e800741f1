//! `isobench load … --explain-flags`: how each word of the command line was understood.

use isobench_report::load::flags::{FlagLine, FlagTone, flags};
use isobench_report::terminal::Style;

use super::Context;
use crate::exit::{CommandError, Exit};
use crate::flags::{Fate, FlagRow};

/// Runs the command.
///
/// # Errors
/// Returns an error if the lines can't be written.
pub(crate) fn run(rows: &[FlagRow], context: Context) -> Result<Exit, CommandError> {
    let lines: Vec<FlagLine> = rows.iter().map(line).collect();
    if context.json {
        context.print_json(&lines)?;
    } else {
        let style = Style { width: context.terminal.size().0, color: context.terminal.colors_data() };
        context.terminal.data(&flags(&lines, style));
    }
    let is_refused = rows.iter().any(|row| row.fate == Fate::Refused);
    Ok(if is_refused { Exit::Usage } else { Exit::Success })
}

fn line(row: &FlagRow) -> FlagLine {
    let (tone, became) = match &row.fate {
        Fate::Own => (FlagTone::Own, String::new()),
        Fate::Becomes(words) => (FlagTone::Becomes, words.join(" ")),
        Fate::Ignored => (FlagTone::Ignored, String::new()),
        Fate::Refused => (FlagTone::Refused, String::new()),
    };
    FlagLine { written: row.written.clone(), tone, became, note: row.note.clone() }
}
