//! `isobench report` of legacy evidence and of published tables.

use std::path::Path;

use isobench_analysis::legacy;
use isobench_report::markdown;
use isobench_report::terminal::{self, Style};
use isobench_schema::format;

use crate::args::FormatArg;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::{legacy_causes, legacy_files};

/// What is reported on that is no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file of legacy evidence.
    Evidence,
    /// A folder with published per-commit results.
    Tables,
}

/// Returns what a path holds, if it is no run.
pub(super) fn kind(path: &Path) -> Option<Kind> {
    if legacy_files::is_tables(path) {
        return Some(Kind::Tables);
    }
    legacy_files::is_evidence(path).then_some(Kind::Evidence)
}

/// Returns the report as a page.
pub(super) fn page(path: &Path, kind: Kind, form: FormatArg, style: Style) -> Result<String, CommandError> {
    match kind {
        Kind::Evidence => evidence(path, form, style),
        Kind::Tables => tables(path, form, style),
    }
}

fn evidence(path: &Path, form: FormatArg, style: Style) -> Result<String, CommandError> {
    let (header, mut records) = legacy_files::evidence(path)?;
    legacy_causes::explain(&mut records)?;
    let report = legacy::report(&header, &records);
    match form {
        FormatArg::Terminal => Ok(terminal::legacy(&report, style)),
        FormatArg::Markdown => Ok(markdown::legacy(&report)),
        FormatArg::Json => format::to_pretty(&report).exit(Exit::Error),
        FormatArg::Html | FormatArg::Csv => Err(no_such_form()),
    }
}

fn tables(path: &Path, form: FormatArg, style: Style) -> Result<String, CommandError> {
    let tables = legacy_files::old_tables(path)?;
    match form {
        FormatArg::Terminal => Ok(terminal::old_tables(&tables, style)),
        FormatArg::Markdown => Ok(markdown::old_tables(&tables)),
        FormatArg::Json => format::to_pretty(&tables).exit(Exit::Error),
        FormatArg::Html | FormatArg::Csv => Err(no_such_form()),
    }
}

fn no_such_form() -> CommandError {
    CommandError::new(Exit::Usage, "only a run has a report in this form").hint("give `--format markdown` or `json`")
}
