//! The result of a load in every form that was asked for.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use isobench_analysis::load_report::LoadReport;
use isobench_analysis::load_report::peers::PeerFacts;
use isobench_analysis::objective::Objective;
use isobench_loadgen::client::check_processors;
use isobench_report::load::{csv, html, terminal};
use isobench_report::terminal::Style;
use isobench_schema::format;
use isobench_schema::load_result::LoadResult;
use isobench_schema::workload::Prompts;
use rustix::fs::{Access, access};

use super::{Context, against, dataset, sweep};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_args::{LoadArgs, ResultFormatArg};
use crate::load_rows;

/// How a CSV file's name ends that has a row for each request.
const REQUESTS_CSV: &str = "requests.csv";

/// Checks before anything is sent that what was asked for can be written afterwards.
///
/// # Errors
/// Returns which file needs another one, or lies in a folder that isn't there.
pub(super) fn check(args: &LoadArgs, context: Context) -> Result<(), CommandError> {
    objective(args)?;
    let output = &args.output;
    if context.json && output.format.is_some() && output.out.is_none() {
        let message = "`--json` and `--format` both write to standard output, which would hold two documents";
        return Err(
            CommandError::new(Exit::Usage, message).hint("give one of them a file: `--json FILE` or `--out FILE`")
        );
    }
    if let Some(list) = &args.measuring.pin {
        check_processors(&list.0).map_err(|error| {
            CommandError::from_error(Exit::Usage, error).hint("give `--pin` processors that this machine lets it use")
        })?;
    }
    let needs_records = output.parquet.is_some() || output.csv.as_deref().is_some_and(is_by_request);
    if needs_records && output.records.is_none() {
        let message = "a table with a row for each request is made from their records, and none are kept";
        return Err(
            CommandError::new(Exit::Usage, message).hint("give `--records FILE` too, such as `requests.jsonl.zst`")
        );
    }
    // Other clients make the folder of their results.
    if let Some(folder) = output.out.as_deref().and_then(folder).filter(|_| !args.dry_run) {
        fs::create_dir_all(folder).map_err(|error| {
            let message = format!("failed to make the folder `{}`", folder.display());
            CommandError { source: Some(error.into()), ..CommandError::new(Exit::Usage, message) }
        })?;
    }
    let files = [
        ("--json", &output.json_file),
        ("--out", &output.out),
        ("--records", &output.records),
        ("--html", &output.html),
        ("--csv", &output.csv),
        ("--parquet", &output.parquet),
    ];
    let mut files: Vec<(&str, PathBuf)> =
        files.iter().filter_map(|(flag, path)| Some((*flag, path.as_ref()?.clone()))).collect();
    if let Some(records) = &output.records {
        let others = args.server.against.iter().map(|_urls| against::beside(records));
        let levels = args.arrival.sweep_levels.iter().map(|level| sweep::at_level(records, *level));
        files.extend(others.chain(levels).map(|path| ("--records", path)));
    }
    // A load that sends nothing writes nothing.
    for (_, file) in files.iter().filter(|_| !args.dry_run) {
        writable(file)?;
    }
    no_file_twice(&files, &inputs(args))
}

/// Checks that a file can be written.
pub(crate) fn writable(file: &Path) -> Result<(), CommandError> {
    let refused = |why: &str| CommandError::new(Exit::Usage, format!("`{}` can't be written: {why}", file.display()));
    if file.is_dir() {
        return Err(refused("it is a folder"));
    }
    let folder = folder(file).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(refused(&format!("the folder `{}` isn't there", folder.display())).hint("make the folder first"));
    }
    let is_allowed =
        if file.exists() { access(file, Access::WRITE_OK) } else { access(folder, Access::WRITE_OK | Access::EXEC_OK) };
    let hint = "give a file in a folder that you may write to";
    is_allowed.map_err(|error| refused(&io::Error::from(error).to_string()).hint(hint))
}

/// Returns the files that are read.
fn inputs(args: &LoadArgs) -> Vec<(&'static str, PathBuf)> {
    let tokenizer =
        args.workload.tokenizer.clone().map(|path| if path.is_dir() { path.join("tokenizer.json") } else { path });
    let inputs =
        [("--dataset", dataset::file(args)), ("--tokenizer", tokenizer), ("--ca-file", args.server.ca_file.clone())];
    inputs.into_iter().filter_map(|(flag, path)| Some((flag, path?))).collect()
}

/// Checks that no two forms of the result, and no form of it and what is read, are the same file.
fn no_file_twice(files: &[(&str, PathBuf)], inputs: &[(&str, PathBuf)]) -> Result<(), CommandError> {
    let mut seen: Vec<(&str, Place)> = inputs.iter().map(|(flag, path)| (*flag, Place::of(path))).collect();
    for (flag, file) in files {
        let place = Place::of(file);
        // What is no plain file, such as `/dev/null`, takes everything.
        let is_plain = !file.exists() || file.is_file();
        if let Some((other, _)) = seen.iter().find(|(_, seen)| is_plain && *seen == place) {
            let message = format!("`{}` is named by `{other}` and by `{flag}`", file.display());
            return Err(CommandError::new(Exit::Usage, message).hint("give each a file of its own"));
        }
        seen.push((flag, place));
    }
    Ok(())
}

/// Where a file is: by its number where it is there, which links share, else by its path without links.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    There { device: u64, number: u64 },
    Path(PathBuf),
}

impl Place {
    fn of(file: &Path) -> Self {
        if let Ok(found) = fs::metadata(file) {
            return Self::There { device: found.dev(), number: found.ino() };
        }
        // A link may name what isn't there yet.
        let file = fs::read_link(file).map_or_else(|_no_link| file.to_owned(), |to| file.with_file_name(to));
        let folder = folder(&file).unwrap_or(Path::new("."));
        let there = || Some(folder.canonicalize().ok()?.join(file.file_name()?));
        Self::Path(there().unwrap_or_else(|| file.clone()))
    }
}

/// Returns what a request must keep to be good, if that was asked for.
///
/// # Errors
/// Returns where it can't be read.
pub(super) fn objective(args: &LoadArgs) -> Result<Option<Objective>, CommandError> {
    args.measuring.goodput.as_deref().map(Objective::parse).transpose().exit(Exit::Usage)
}

fn folder(file: &Path) -> Option<&Path> {
    file.parent().filter(|folder| !folder.as_os_str().is_empty())
}

fn is_by_request(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(REQUESTS_CSV))
}

/// Writes the result.
///
/// # Errors
/// Returns which file can't be written.
pub(super) fn write(args: &LoadArgs, report: &LoadReport, context: Context) -> Result<(), CommandError> {
    let output = &args.output;
    if let Some(records) = &output.records {
        if let Some(out) = &output.parquet {
            load_rows::write_parquet(records, out).exit(Exit::Machine)?;
        }
        if let Some(out) = output.csv.as_deref().filter(|path| is_by_request(path)) {
            load_rows::write_csv(records, out).exit(Exit::Machine)?;
        }
    }
    if let Some(path) = output.csv.as_deref().filter(|path| !is_by_request(path)) {
        put(path, &csv::metrics(&report.result))?;
    }
    let foreign = output.format.map(|format| foreign(args, report, format));
    let mut is_said = false;
    match (&foreign, &output.out) {
        // A file of SGLang's client has a line for each load.
        (Some(text), Some(path)) if output.format == Some(ResultFormatArg::Sglang) => append(path, text)?,
        (Some(text), Some(path)) => put(path, text)?,
        (Some(text), None) => {
            context.terminal.data(&(text.trim_end().to_owned() + "\n"));
            is_said = true;
        }
        (None, _) => {}
    }
    show(args, &report.result, context, is_said)
}

/// Writes our own forms of a result: JSON, the page, and what is printed unless something else `is_said` already.
///
/// # Errors
/// Returns which file can't be written.
pub(super) fn show(args: &LoadArgs, result: &LoadResult, context: Context, is_said: bool) -> Result<(), CommandError> {
    // What can't be written isn't lost then.
    if context.json {
        context.terminal.data(&format::to_pretty(result).exit(Exit::Error)?);
    } else if !is_said {
        let style = Style { width: context.terminal.size().0, color: context.terminal.colors_data() };
        context.terminal.data(&terminal::summary(result, style));
    }
    if let Some(path) = &args.output.json_file {
        put(path, &format::to_pretty(result).exit(Exit::Error)?)?;
    }
    if let Some(path) = &args.output.html {
        put(path, &html::page(result, &isobench_report::html::Options::default()))?;
    }
    Ok(())
}

/// Writes a file.
///
/// # Errors
/// Returns an error that names it.
pub(super) fn put(path: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(path, text).map_err(|error| unwritten(path, error))
}

fn append(path: &Path, text: &str) -> Result<(), CommandError> {
    let line = text.trim_end().to_owned() + "\n";
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| unwritten(path, error))
}

fn unwritten(path: &Path, error: io::Error) -> CommandError {
    let message = format!("failed to write `{}`", path.display());
    CommandError { source: Some(error.into()), ..CommandError::new(Exit::Machine, message) }
}

/// Returns the result as another tool writes it.
fn foreign(args: &LoadArgs, report: &LoadReport, format: ResultFormatArg) -> String {
    let result = &report.result;
    let tokenizer = args.workload.tokenizer.as_ref().map(|path| path.display().to_string());
    let dataset = match &result.workload.prompts {
        Prompts::Words { .. } | Prompts::TokenIds { .. } => "random".to_owned(),
        Prompts::Dataset { name, .. } => name.clone(),
    };
    let facts = PeerFacts {
        date: jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string(),
        tokenizer: tokenizer.unwrap_or_else(|| result.model.clone()),
        dataset,
        label: None,
    };
    match format {
        ResultFormatArg::Vllm => report.vllm_json(&facts, &args.measuring.percentiles.0),
        ResultFormatArg::Sglang => report.sglang_json(&facts),
    }
}
