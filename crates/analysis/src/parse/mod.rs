//! Reads what benchmark tools print and write: [`read`] takes any file and says what it measured, or why it measured
//! nothing.
//!
//! [`binding`] is what is known of the run beforehand, [`catalogue`] lists the formats. Console output goes through
//! [`console`], result files through the other half.

pub mod binding;
pub mod catalogue;
mod checks;
pub mod console;
mod json;
mod start;

use std::io;

use isobench_schema::reading::{Reading, ReadingProblem, ReadingProblemKind};

use binding::Binding;
use console::Console;
use json::Outcome;
use start::{Beginning, Start, Tee};

/// How much is read at once, in bytes.
const CHUNK: usize = 1 << 16;

/// Returns what a file says, whatever its size, in constant memory for console output.
///
/// A file that begins as JSON does is read as a result file; if it is none, such as a log whose first line is a JSON
/// object, it is read as console output.
///
/// # Errors
///
/// Only those of `input`. What it holds never is an error.
pub fn read(input: impl io::Read, binding: &Binding) -> io::Result<Reading> {
    let mut beginning = Beginning::new(input);
    let mut reading = read_text(&mut beginning, binding)?;
    // What says nothing may be no text at all.
    if let Some(problem) = reading.problem.as_mut().filter(|_| reading.format.is_none())
        && problem.kind == ReadingProblemKind::NotAResult
        && let Some(message) = beginning.disguise()
    {
        message.clone_into(&mut problem.message);
        problem.line = None;
    }
    Ok(reading)
}

fn read_text(mut input: impl io::Read, binding: &Binding) -> io::Result<Reading> {
    let (head, start) = Start::of(&mut input)?;
    let mut console = Console::new(binding);
    let mut chunk = vec![0; CHUNK];
    match start {
        Start::Console => {
            console.feed(&head);
            feed_rest(&mut input, &mut console, &mut chunk)?;
            Ok(if head.is_empty() { empty() } else { console.finish() })
        }
        Start::Json => {
            let mut both = Tee::new(head.as_slice(), &mut input, &mut console);
            let reading = match json::read(&mut both, binding)? {
                Outcome::ResultFile(reading) => return Ok(reading),
                Outcome::Other(reading) => reading,
            };
            feed_rest(&mut input, &mut console, &mut chunk)?;
            let printed = console.finish();
            Ok(if printed.metrics.is_empty() { reading } else { printed })
        }
    }
}

/// Returns what an empty file says.
fn empty() -> Reading {
    let message = "the file is empty".to_owned();
    let problem = ReadingProblem { kind: ReadingProblemKind::NotAResult, message, line: None };
    Reading { problem: Some(problem), ..Reading::default() }
}

fn feed_rest(input: &mut impl io::Read, console: &mut Console, chunk: &mut [u8]) -> io::Result<()> {
    loop {
        match input.read(chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => console.feed(chunk.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
