//! The only module that prints: data to standard output, status to standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use isobench_report::{clean, clean_lines};

/// Whether data couldn't be printed.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much status is shown, and in what form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// A live view on a terminal, plain lines elsewhere.
    Shown,
    /// Only errors.
    Quiet,
}

/// Where and how to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    color: ColorChoice,
    status: Status,
}

#[expect(clippy::unused_self, reason = "only who was given the terminal may print")]
impl Terminal {
    /// Returns a terminal that prints as asked.
    pub(crate) fn new(color: ColorChoice, status: Status) -> Self {
        Self { color, status }
    }

    /// Prints data: as it is for a program, and for a terminal without what others may have put into it to move its cursor. A reader that went away (a closed pipe) is no error; that anything else was lost is told by
    /// [`Self::has_lost_data`].
    pub(crate) fn data(self, text: &str) {
        let mut output = io::stdout().lock();
        let text = if output.is_terminal() { clean_lines(text) } else { text.into() };
        let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
        // A reader that has seen enough closes its end, which is no loss.
        if written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            LOST.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether data couldn't be printed, for example because a disk is full.
    pub(crate) fn has_lost_data(self) -> bool {
        LOST.load(Ordering::Relaxed)
    }

    /// Prints a line of status.
    pub(crate) fn status(self, line: &str) {
        if self.status == Status::Shown {
            self.error(line);
        }
    }

    /// Prints a line to standard error, also when quiet. What others put into it can't move the terminal's cursor.
    pub(crate) fn error(self, line: &str) {
        let mut output = io::stderr().lock();
        let _ = line.split('\n').try_for_each(|line| writeln!(output, "{}", clean(line)));
    }

    /// Prints raw control text of the live view.
    pub(crate) fn draw(self, text: &str) {
        let mut output = io::stderr().lock();
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    }

    /// Returns whether the live view can be drawn.
    pub(crate) fn is_live(self) -> bool {
        self.status == Status::Shown && io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|t| t != "dumb")
    }

    /// Returns whether data is coloured.
    pub(crate) fn colors_data(self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }

    /// Returns the size of the terminal in columns and rows, or a size that suits files.
    pub(crate) fn size(self) -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(io::stderr()).or_else(|_| rustix::termios::tcgetwinsize(io::stdout()));
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
            Ok(_) | Err(_) => (100, 40),
        }
    }
}
