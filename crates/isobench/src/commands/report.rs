//! `isobench report`: writes a report of a run, of legacy evidence or of published tables in the form asked for.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use isobench_report::terminal::{self, Style};
use isobench_report::{csv, html, markdown, svg, view};
use isobench_schema::format;
use isobench_schema::verdict::Judgement;
use isobench_store::{StoreError, layout, write_atomically, write_named};

use super::{Context, report_legacy};
use crate::args::{FormatArg, ReportArgs};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::{evidence, legacy_files};

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, context: Context) -> Result<Exit, CommandError> {
    if let Some(folder) = &args.svg {
        return write_plots(&args.run, folder, context);
    }
    let format = match (context.json, args.format) {
        (false, format) => format,
        (true, FormatArg::Terminal | FormatArg::Json) => FormatArg::Json,
        (true, FormatArg::Markdown | FormatArg::Html | FormatArg::Csv) => {
            return Err(CommandError::new(Exit::Usage, "`--json` and `--format` ask for two forms")
                .hint("leave one of the two out"));
        }
    };
    if let Some(path) = &args.out {
        super::load::writable(path)?;
    }
    let text = match report_legacy::kind(&args.run) {
        Some(kind) => report_legacy::page(&args.run, kind, format, style(context))?,
        None => render(&judgement(&args.run)?, format, style(context))?,
    };
    match &args.out {
        Some(path) => {
            write_named(path, text.as_bytes()).map_err(super::write_error)?;
            context.terminal.status(&format!("wrote {}", path.display()));
        }
        None => context.terminal.data(&text),
    }
    Ok(Exit::Success)
}

/// Writes every plot of a run into a folder.
fn write_plots(run: &Path, folder: &Path, context: Context) -> Result<Exit, CommandError> {
    if report_legacy::kind(run).is_some() {
        return Err(CommandError::new(Exit::Usage, format!("`{}` is no run, and only runs have plots", run.display()))
            .hint("give the folder of a run"));
    }
    let judgement = judgement(run)?;
    let plan = evidence::open(run)?.plan().clone();
    let files = svg::files(&view::view(&judgement, Some(&plan)));
    fs::create_dir_all(folder)
        .map_err(|error| super::write_error(StoreError::new("create the folder", folder, error)))?;
    for file in &files {
        write_atomically(&folder.join(&file.name), file.text.as_bytes()).map_err(super::write_error)?;
    }
    context.terminal.status(&format!("wrote {} plots into {}", files.len(), folder.display()));
    Ok(Exit::Success)
}

/// Returns the judgement of a run; results that aren't imported yet are told apart from what is no run.
fn judgement(run: &Path) -> Result<Judgement, CommandError> {
    let is_run = run.join(layout::PLAN).is_file();
    if !is_run && legacy_files::looks_legacy(run) {
        let message = format!("`{}` holds results of an earlier system, which aren't imported yet", run.display());
        let hint = format!("report on what `isobench import {} --out FILE.jsonl` writes", run.display());
        return Err(CommandError::new(Exit::Usage, message).hint(hint));
    }
    evidence::judgement(run)
}

fn render(judgement: &Judgement, format: FormatArg, style: Style) -> Result<String, CommandError> {
    let view = view::view(judgement, None);
    Ok(match format {
        FormatArg::Terminal => terminal::judgement(&view, style),
        FormatArg::Markdown => markdown::judgement(&view),
        FormatArg::Json => format::to_pretty(judgement).exit(Exit::Error)?,
        FormatArg::Html => html::page(&view, &html::Options::default()),
        FormatArg::Csv => csv::contrasts(judgement),
    })
}

/// Returns how to write for the terminal.
pub(crate) fn style(context: Context) -> Style {
    // What is piped or kept in a file must not depend on the terminal that the command was typed in.
    let width =
        if io::stdout().is_terminal() { context.terminal.size().0.clamp(60, 160) } else { Style::default().width };
    Style { width, color: context.terminal.colors_data() }
}

/// Prints a judgement for people.
pub(crate) fn print(judgement: &Judgement, context: Context) -> Result<(), CommandError> {
    if !context.json {
        context.terminal.data(&render(judgement, FormatArg::Terminal, style(context))?);
    }
    Ok(())
}

/// Writes the pages of a finished run into its folder.
pub(crate) fn write_pages(run: &Path, judgement: &Judgement) -> Result<(), CommandError> {
    let folder = evidence::derived(run)?;
    for (name, format) in [("report.html", FormatArg::Html), ("report.md", FormatArg::Markdown)] {
        let text = render(judgement, format, Style::default())?;
        write_atomically(&folder.join(name), text.as_bytes()).map_err(super::record_error)?;
    }
    Ok(())
}
