//! `isobench parse`: what files of benchmark output measure, or precisely why they measure nothing.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use isobench_analysis::parse::binding::{Binding, ToolVersion};
use isobench_analysis::parse::read;
use isobench_plan::nearest::nearest;
use isobench_report::load::terminal::summary;
use isobench_report::terminal;
use isobench_schema::format;
use isobench_schema::load_result::{LoadResult, Validity};
use isobench_schema::reading::ToolFamily;

use super::{Context, input};
use crate::args::ParseArgs;
use crate::exit::{CommandError, Exit, WithExit as _};

/// How a result of `isobench load` begins, and within how many bytes.
const OWN: &str = "\"isobench.load/";
const START: u64 = 64;

/// Runs the command. It succeeds if every file holds a measurement.
pub(crate) fn run(args: &ParseArgs, context: Context) -> Result<Exit, CommandError> {
    let binding = binding(args)?;
    let style = super::report::style(context);
    let mut measured = true;
    for (place, path) in args.files.iter().enumerate() {
        let name = input::name(path);
        if let Some(load) = own(args, path)? {
            measured &= load.validity == Validity::Valid;
            if context.json {
                let one = args.files.len() == 1;
                let text = if one { format::to_pretty(&load) } else { format::to_line(&load) };
                context.terminal.data(&(text.exit(Exit::Error)?.trim_end().to_owned() + "\n"));
            } else {
                let gap = if place > 0 { "\n" } else { "" };
                context.terminal.data(&format!("{gap}{name}\n{}", summary(&load, style)));
            }
            continue;
        }
        let mut file = input::open(path)?;
        let reading = read(&mut file, &binding).map_err(|error| input::read_error(path, &error))?;
        measured &= reading.is_measurement();
        if context.json {
            let text = if args.files.len() == 1 {
                serde_json::to_string_pretty(&reading)
            } else {
                serde_json::to_string(&reading)
            };
            context.terminal.data(&(text.exit(Exit::Error)? + "\n"));
        } else {
            let gap = if place > 0 { "\n" } else { "" };
            context.terminal.data(&(gap.to_owned() + &terminal::reading(&name, &reading, style)));
        }
    }
    Ok(if measured { Exit::Success } else { Exit::SomeFailed })
}

/// Returns the result of `isobench load`, if the file is one.
fn own(args: &ParseArgs, path: &Path) -> Result<Option<LoadResult>, CommandError> {
    // What can't be read twice isn't looked at beforehand.
    if args.tool.is_some() || !path.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(START).read_to_end(&mut start));
    // What can't be read is named where every file is opened.
    if read.is_err() || !String::from_utf8_lossy(&start).contains(OWN) {
        return Ok(None);
    }
    let text = fs::read(path).map_err(|error| input::read_error(path, &error))?;
    let load = format::from_slice(&text).map_err(|error| {
        let message = format!("`{}` is no result of `isobench load` that can be read", path.display());
        CommandError { source: Some(error.into()), ..CommandError::new(Exit::Usage, message) }
    });
    load.map(Some)
}

fn binding(args: &ParseArgs) -> Result<Binding, CommandError> {
    let tool =
        args.tool.as_deref().map(|text| ToolFamily::parse(text).ok_or_else(|| unknown_tool(text))).transpose()?;
    let version = args.version.as_deref().map(|text| {
        let message = format!("`{text}` is no version");
        ToolVersion::parse(text)
            .ok_or_else(|| CommandError::new(Exit::Usage, message).hint("write it as in `--version 0.9.1`"))
    });
    Ok(Binding { tool, version: version.transpose()?, asked: args.asked })
}

fn unknown_tool(text: &str) -> CommandError {
    let tools = || ToolFamily::ALL.iter().map(|tool| tool.as_str());
    let near = nearest(text, tools()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let all = tools().collect::<Vec<_>>().join(", ");
    CommandError::new(Exit::Usage, format!("no tool is called `{text}`")).hint(format!("{near}known are {all}"))
}
