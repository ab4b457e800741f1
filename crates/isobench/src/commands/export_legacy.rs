//! `isobench export --format legacy`: writes the results of a run in the shape of the earlier system's files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use isobench_analysis::legacy::{ExportInput, ExportedFile, export};
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::units::Millis;
use isobench_store::RunReader;
use jiff::Timestamp;
use serde_json::json;

use super::{Context, import};
use crate::args::ExportArgs;
use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};

/// What the events say of one task.
#[derive(Default)]
struct Times {
    durations_s: BTreeMap<ArmId, f64>,
    timestamp: Option<String>,
}

/// Runs the command.
pub(super) fn run(args: &ExportArgs, context: Context) -> Result<Exit, CommandError> {
    let reader = evidence::open(&args.source)?;
    let judgement = evidence::judgement(&args.source)?;
    let times = times(&reader)?;
    let none = Times::default();
    let input = |task: &'_ isobench_schema::verdict::TaskJudgement| {
        let planned = reader.plan().tasks.iter().find(|planned| planned.id == task.id)?;
        Some((planned, times.get(&task.id).unwrap_or(&none)))
    };
    let inputs: Vec<ExportInput<'_>> = judgement
        .tasks
        .iter()
        .filter_map(|task| {
            let (planned, times) = input(task)?;
            let (durations_s, timestamp) = (&times.durations_s, times.timestamp.as_deref());
            Some(ExportInput { run: &judgement.run, task: planned, judgement: task, durations_s, timestamp })
        })
        .collect();
    let files = export(&inputs);
    for file in &files {
        import::may_write(&path(&args.out, &file.path), args.force)?;
    }
    write(&files, args)?;
    if context.json {
        let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        context.print_json(&json!({ "out": args.out, "files": names }))?;
    }
    context.terminal.status(&format!("wrote {} files to {}", files.len(), args.out.display()));
    Ok(Exit::Success)
}

/// Writes all files, or none beside those that were there, so that the same command can be given again.
fn write(files: &[ExportedFile], args: &ExportArgs) -> Result<(), CommandError> {
    let mut written = Vec::new();
    let one = |file: &ExportedFile, written: &mut Vec<PathBuf>| {
        let path = path(&args.out, &file.path);
        let folder = path.parent().unwrap_or(&args.out);
        fs::create_dir_all(folder).map_err(|error| {
            CommandError::new(Exit::Usage, format!("cannot make the folder `{}`: {error}", folder.display()))
        })?;
        let text = serde_json::to_string_pretty(&file.object).exit(Exit::Error)? + "\n";
        import::write(&path, text.as_bytes(), args.force)?;
        written.push(path);
        Ok(())
    };
    for file in files {
        if let Err(error) = one(file, &mut written) {
            if !args.force {
                for path in &written {
                    drop(fs::remove_file(path));
                }
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Returns where a file goes. Its path is made of checked names, so that it stays in the folder.
fn path(out: &Path, file: &str) -> PathBuf {
    let plain = Path::new(file).components().filter(|part| matches!(part, Component::Normal(_)));
    plain.fold(out.to_owned(), |path, part| path.join(part))
}

/// Returns how long the launches of complete blocks took, and when the last of them ended, by task.
fn times(reader: &RunReader) -> Result<BTreeMap<TaskId, Times>, CommandError> {
    let mut times: BTreeMap<TaskId, Times> = BTreeMap::new();
    for event in reader.events().exit(Exit::Error)? {
        let event = event.exit(Exit::Error)?;
        let EventKind::BlockEnded { id, end: BlockEnd::Complete, launches, .. } = event.kind else { continue };
        let of = times.entry(id.task).or_default();
        of.timestamp = moment(event.at_ms);
        for launch in launches {
            // What isn't known is no zero.
            let Some(total) = launch.timeline.total_ms else { continue };
            *of.durations_s.entry(launch.launch.arm).or_default() += total.get() / 1000.0;
        }
    }
    Ok(times)
}

/// Returns a moment as the earlier system writes it, in UTC.
fn moment(unix_ms: Millis) -> Option<String> {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit for 292 million years")]
    let moment = Timestamp::from_millisecond(unix_ms.get() as i64).ok()?;
    Some(moment.strftime("%Y-%m-%d %H:%M:%S").to_string())
}
