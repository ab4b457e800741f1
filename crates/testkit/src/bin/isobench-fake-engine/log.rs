//! The program's log: its standard error.

use std::io::Write as _;

/// Writes a line to the standard error, in one piece.
pub(crate) fn log(line: &str) {
    // Nothing is to be done about a reader that is gone.
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}
