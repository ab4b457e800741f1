//! Why something failed, as the lines that it left say it: the table of signatures against logs of any size.
//!
//! Each file is read once and in constant memory by a [`LogReader`]; [`Classifier::classify`] joins the files of one launch
//! into one cause, and [`arms::blame`] says whom the causes of several arms speak against. The cause is the *earliest* error
//! that a signature knows for certain: engines print it first, in the process that failed, and then in other processes what
//! follows from it. What no signature knows stays unknown.

pub mod arms;
mod decide;
mod line;
mod matcher;
mod reader;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod tracebacks;
mod triggers;
mod words;

use isobench_schema::cause::Cause;

pub use decide::{Exit, UNKNOWN};
use matcher::Matcher;
pub use reader::{FileFindings, LogReader, without_places};
pub use table::{
    Accepts, Charge, ClassRow, Ending, FileRole, FixTemplate, Fixable, Grade, Remembered, Seen, Signature, Signatures,
    StageCount, classes, signatures, signatures_by_stage, table_digest,
};

/// The table of signatures, ready for searching. Copies share it.
#[derive(Debug, Clone, Copy)]
pub struct Classifier {
    matcher: &'static Matcher,
}

impl Default for Classifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Classifier {
    /// Returns the classifier of the table that is built into the program. The first call makes it ready, which takes
    /// milliseconds; later ones cost nothing.
    pub fn new() -> Self {
        Self { matcher: Matcher::embedded() }
    }

    /// Returns a reader of one file, whose name stands in the evidence and tells what wrote it, for example `server.stderr`.
    pub fn log(self, file: impl Into<String>) -> LogReader<'static> {
        LogReader::new(self.matcher, file)
    }

    /// Returns the cause that the files of one launch show, with the way in which its process ended, if that is known.
    pub fn classify(self, files: &[FileFindings], exit: Option<Exit>) -> Cause {
        decide::decide(self.matcher, files, exit)
    }

    /// Returns the cause that one text shows, such as the message that a harness kept.
    pub fn text(self, file: impl Into<String>, text: &[u8]) -> Cause {
        let mut reader = self.log(file);
        reader.feed(text);
        self.classify(&[reader.finish()], None)
    }
}
