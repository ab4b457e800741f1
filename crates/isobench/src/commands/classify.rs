//! `isobench classify`: why a run failed, from the logs that it left.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use isobench_analysis::classify::{Classifier, Exit as ProcessExit, FileFindings};
use isobench_report::terminal;
use isobench_schema::cause::Cause;
use isobench_schema::failure::Failure;
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::verdict::Judgement;
use isobench_store::layout;
use serde::Serialize;

use super::{Context, input};
use crate::args::ClassifyArgs;
use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};

/// How much of a log is read at once.
const CHUNK: usize = 1 << 18;

/// A failure of a run with its cause, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Row<'j> {
    task: &'j TaskId,
    arm: &'j ArmId,
    launches: u32,
    failure: &'j Failure,
    cause: &'j Cause,
}

/// Runs the command. It succeeds if the cause of everything that failed is known.
pub(crate) fn run(args: &ClassifyArgs, context: Context) -> Result<Exit, CommandError> {
    match args.paths.as_slice() {
        [folder] if folder.join(layout::PLAN).is_file() => {
            if args.exit_status.is_some() {
                let message = "a run's record says how each process of it ended";
                return Err(CommandError::new(Exit::Usage, message).hint("leave `--exit-status` out"));
            }
            of_run(folder, context)
        }
        paths if paths.len() > 1 && paths.iter().any(|path| path.join(layout::PLAN).is_file()) => {
            let message = "the folder of a run is among several paths, which are read as the logs of one failure";
            Err(CommandError::new(Exit::Usage, message).hint("name the run alone, as in `isobench classify RUN`"))
        }
        paths => of_files(paths, args.exit_status, context),
    }
}

fn of_files(paths: &[PathBuf], status: Option<i32>, context: Context) -> Result<Exit, CommandError> {
    let classifier = Classifier::new();
    let mut findings = Vec::new();
    for path in paths {
        for log in logs(path)? {
            findings.push(read(classifier, &log)?);
        }
    }
    let exit = status.map(|status| match status {
        signal @ i32::MIN..=-1 => ProcessExit::Signal(signal.saturating_neg()),
        status => ProcessExit::Status(status),
    });
    let cause = classifier.classify(&findings, exit);
    if context.json {
        context.print_json(&cause)?;
    } else {
        let names: Vec<String> = paths.iter().map(|path| input::name(path)).collect();
        context.terminal.data(&terminal::cause(&names.join(", "), &cause, super::report::style(context)));
    }
    Ok(exit_for([&cause]))
}

/// Returns a log, or the plain files of a folder of logs in the order of their names.
fn logs(path: &Path) -> Result<Vec<PathBuf>, CommandError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).exit(Exit::Usage)?;
    let mut files =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().exit(Exit::Usage)?;
    files.retain(|file| file.is_file());
    files.sort();
    if files.is_empty() {
        let message = format!("the folder `{}` holds neither a run nor a log", path.display());
        return Err(CommandError::new(Exit::Usage, message).hint("name log files, or the folder of a run"));
    }
    Ok(files)
}

fn read(classifier: Classifier, path: &Path) -> Result<FileFindings, CommandError> {
    let mut file = input::open(path)?;
    let mut reader = classifier.log(input::name(path));
    let mut chunk = vec![0_u8; CHUNK];
    loop {
        let count = match file.read(&mut chunk) {
            Ok(0) => return Ok(reader.finish()),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(input::read_error(path, &error)),
        };
        reader.feed(chunk.get(..count).unwrap_or_default());
    }
}

fn of_run(run: &Path, context: Context) -> Result<Exit, CommandError> {
    let judgement = evidence::judgement(run)?;
    let rows = rows(&judgement);
    if context.json {
        context.print_json(&rows)?;
        return Ok(exit_for(rows.iter().map(|row| row.cause)));
    }
    if rows.is_empty() {
        context.terminal.status("no launch of the run failed in a way that its logs could explain");
    }
    let style = super::report::style(context);
    for (place, row) in rows.iter().enumerate() {
        let Row { task, arm, launches, failure, cause } = row;
        let times = if *launches == 1 { "1 launch".to_owned() } else { format!("{launches} launches") };
        let title = format!("{task} · {arm} · {} at {}, {times}: {}", failure.class, failure.stage, failure.message);
        let gap = if place > 0 { "\n" } else { "" };
        context.terminal.data(&(gap.to_owned() + &terminal::cause(&title, cause, style)));
    }
    Ok(exit_for(rows.iter().map(|row| row.cause)))
}

fn rows(judgement: &Judgement) -> Vec<Row<'_>> {
    let arms = judgement.tasks.iter().flat_map(|task| task.arms.iter().map(move |arm| (&task.id, arm)));
    let failures = arms.flat_map(|(task, arm)| arm.failures.iter().map(move |counted| (task, &arm.arm, counted)));
    failures
        .filter_map(|(task, arm, counted)| {
            let cause = counted.cause.as_ref()?;
            Some(Row { task, arm, launches: counted.launches, failure: &counted.failure, cause })
        })
        .collect()
}

fn exit_for<'c>(causes: impl IntoIterator<Item = &'c Cause>) -> Exit {
    let all_known = causes.into_iter().all(|cause| cause.signature.is_some());
    if all_known { Exit::Success } else { Exit::SomeFailed }
}
