//! Files that are named on the command line, and standard input by the name `-`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::exit::{CommandError, Exit};

/// How standard input is named.
const STANDARD_INPUT: &str = "-";

/// Returns whether a path names standard input.
fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// Returns how a file is called in what is printed.
pub(crate) fn name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Opens a file, or standard input.
///
/// # Errors
/// Returns an error that names the file if it can't be opened or is a folder.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, CommandError> {
    if is_standard_input(path) {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| open_error(path, &error))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        let message = format!("`{}` is a folder, and a file is asked for", path.display());
        let hint = format!("name files in it, as in `{}`", path.join("*").display());
        return Err(CommandError::new(Exit::Usage, message).hint(hint));
    }
    Ok(Box::new(file))
}

fn open_error(path: &Path, error: &io::Error) -> CommandError {
    let failed = CommandError::new(Exit::Usage, format!("cannot open `{}`: {error}", path.display()));
    failed.hint("name a file that is there and may be read, or `-` for standard input")
}

/// Returns the error of a file that can't be read to its end.
pub(crate) fn read_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(Exit::Machine, format!("cannot read `{}`: {error}", name(path)))
}
