//! The exit codes of the command.

use std::process::ExitCode;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All decided or measured.
    Success,
    /// A bug in isobench, or an error that has no code of its own.
    Error,
    /// Wrong usage or configuration.
    Usage,
    /// This machine lacks something.
    Machine,
    /// There is nothing to run.
    NothingToRun,
    /// Interrupted; it can be resumed.
    Interrupted,
    /// Complete, but some trials failed.
    SomeFailed,
}

impl Exit {
    /// Returns the number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::Machine => 3,
            Self::NothingToRun => 4,
            Self::Interrupted => 5,
            Self::SomeFailed => 100,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error of a command, with the exit code that it leads to and what to do next.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What went wrong: a lower-case fragment.
    pub(crate) message: String,
    /// Why.
    pub(crate) source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// The next step.
    pub(crate) hint: Option<String>,
}

impl CommandError {
    /// Returns an error without cause or hint.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), source: None, hint: None }
    }

    /// Returns an error whose message and causes are those of `error`.
    pub(crate) fn from_error(exit: Exit, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let error = error.into();
        Self { exit, message: error.to_string(), source: Some(error), hint: None }
    }

    /// Adds the next step.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the message and its causes, each on a line of its own, and the hint.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!("error: {}", self.message)];
        // The first error may be the message itself, or what caused it.
        let first: Option<&(dyn std::error::Error + 'static)> = self.source.as_deref().map(|error| error as _);
        let mut cause = match first {
            Some(error) if self.message.contains(&error.to_string()) => error.source(),
            other => other,
        };
        while let Some(error) = cause {
            lines.push(format!("  because: {error}"));
            cause = error.source();
        }
        lines.extend(self.hint.iter().map(|hint| format!("  hint: {hint}")));
        lines.join("\n")
    }
}

/// Gives an error its exit code.
pub(crate) trait WithExit<T> {
    /// Turns the error into the command's, with `exit` as its code.
    ///
    /// # Errors
    /// Returns the error with its code.
    fn exit(self, exit: Exit) -> Result<T, CommandError>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> WithExit<T> for Result<T, E> {
    fn exit(self, exit: Exit) -> Result<T, CommandError> {
        self.map_err(|error| CommandError::from_error(exit, error))
    }
}
