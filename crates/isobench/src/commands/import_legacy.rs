//! `isobench import` of results of an earlier system: reads result files, and writes them as legacy evidence.

use isobench_analysis::legacy::{Explained, report};
use isobench_report::terminal;
use isobench_schema::format;

use super::report::style;
use super::{Context, import};
use crate::args::ImportArgs;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::legacy_files::{self, Imported};

/// Runs the command.
pub(crate) fn run(args: &ImportArgs, context: Context) -> Result<Exit, CommandError> {
    if args.out.is_none() && context.json {
        let error = CommandError::new(Exit::Usage, "`--json` prints a summary where the evidence would go");
        return Err(error.hint("give `--out FILE.jsonl`"));
    }
    if let Some(out) = &args.out {
        import::may_write(out, args.force)?;
    }
    let Imported { header, records } = legacy_files::import(&args.source)?;
    for problem in &header.problems {
        context.terminal.status(&import::sentence(problem));
    }
    if records.is_empty() {
        let message =
            format!("`{}` holds no result that can be read, so that nothing is written", args.source.display());
        return Err(CommandError::new(Exit::Usage, message).hint("`isobench import --as dataset` reads rows of tasks"));
    }
    let mut lines = vec![format::to_line(&header).exit(Exit::Error)?];
    for record in &records {
        lines.push(serde_json::to_string(record).exit(Exit::Error)?);
    }
    let text = lines.join("\n") + "\n";
    let exit = if header.problems.is_empty() { Exit::Success } else { Exit::SomeFailed };
    let Some(out) = &args.out else {
        context.terminal.data(&text);
        return Ok(exit);
    };
    import::write(out, text.as_bytes(), args.force)?;
    let records: Vec<Explained> = records.into_iter().map(Explained::from).collect();
    let report = report(&header, &records);
    if context.json {
        context.terminal.data(&format::to_pretty(&report).exit(Exit::Error)?);
    } else {
        context.terminal.data(&terminal::legacy_summary(&report, style(context)));
    }
    context.terminal.status(&format!("wrote {}; `isobench report` shows how far the records come", out.display()));
    Ok(exit)
}
