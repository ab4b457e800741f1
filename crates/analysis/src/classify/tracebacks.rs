//! Tracebacks of several processes that write into one log at once, kept apart by the tags of their lines.

use super::line::{Level, Line};

/// How many writers' tracebacks are followed at once; the one that was quiet for longest makes room.
const MOST: usize = 64;

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The line, from 1.
    pub(super) line: u64,
    /// The byte at which it begins.
    pub(super) offset: u64,
}

/// What is known of one writer's tracebacks.
#[derive(Debug, Clone, Copy)]
struct Writer {
    id: u64,
    /// The indentation of the traceback that is open, if one is.
    open: Option<usize>,
    /// The chain of exceptions that is being written.
    chain: u64,
    /// Whether somebody caught the exception and only said so.
    handled: bool,
    /// Whether the next traceback belongs to the chain.
    joins: bool,
    /// Whether the next traceback is said to be ignored.
    ignored: bool,
    /// When it last wrote.
    touched: u64,
}

/// The tracebacks of a log.
#[derive(Debug, Default)]
pub(super) struct Tracebacks {
    writers: Vec<Writer>,
    clock: u64,
}

impl Tracebacks {
    /// Notes that the next traceback of a line's writer belongs to the one before.
    pub(super) fn note_chain(&mut self, line: &Line<'_>) {
        self.writer(line.writer).joins = true;
    }

    /// Notes that the next traceback of a line's writer is of an exception that nobody minded.
    pub(super) fn note_ignored(&mut self, line: &Line<'_>) {
        self.writer(line.writer).ignored = true;
    }

    /// Notes that a traceback begins in a line.
    pub(super) fn note_traceback(&mut self, line: &Line<'_>, place: &Place) {
        self.open(line.writer, line, place);
        // After a message, loggers write the traceback's own lines without their tags.
        if line.writer != 0 && !line.body.starts_with("Traceback") {
            self.open(0, line, place);
        }
    }

    fn open(&mut self, id: u64, line: &Line<'_>, place: &Place) {
        let writer = self.writer(id);
        let is_quiet = matches!(line.level, Level::Note | Level::Warning);
        if !writer.joins {
            writer.chain = place.offset + 1;
        }
        writer.handled = is_quiet || writer.ignored || (writer.joins && writer.handled);
        writer.open = Some(line.indent);
        writer.joins = false;
        writer.ignored = false;
    }

    /// Returns whether a line is a call or source text of a traceback that is open.
    pub(super) fn is_frame(&self, line: &Line<'_>) -> bool {
        let Some(indent) = self.find(line.writer).and_then(|writer| writer.open) else { return false };
        let starts = ["File \"", "^", "~", "[Previous line", "\u{2502}", "\u{2570}", "\u{256d}", "\u{2771}"];
        line.indent >= indent + 4 || starts.iter().any(|start| line.body.starts_with(start))
    }

    /// Returns the chain of exceptions that a line ends or stands alone in, and whether somebody handled what it reports.
    pub(super) fn belongs(&self, line: &Line<'_>, place: &Place) -> (u64, bool) {
        let is_quiet = matches!(line.level, Level::Note | Level::Warning);
        match self.find(line.writer) {
            Some(writer) if writer.open.is_some() => (writer.chain, writer.handled || is_quiet),
            _ => (place.offset + 1, is_quiet),
        }
    }

    /// Notes that a line ends its writer's traceback.
    pub(super) fn close(&mut self, line: &Line<'_>) {
        if let Some(writer) = self.writers.iter_mut().find(|writer| writer.id == line.writer) {
            writer.open = None;
        }
    }

    fn find(&self, id: u64) -> Option<&Writer> {
        self.writers.iter().find(|writer| writer.id == id)
    }

    /// Returns a writer, a new one if it isn't known.
    fn writer(&mut self, id: u64) -> &mut Writer {
        self.clock += 1;
        let known = self.writers.iter().position(|writer| writer.id == id);
        let place = known.unwrap_or_else(|| {
            let fresh = Writer { id, open: None, chain: 0, handled: false, joins: false, ignored: false, touched: 0 };
            let oldest = self.writers.iter().enumerate().min_by_key(|(_, writer)| writer.touched).map(|(at, _)| at);
            match oldest {
                Some(oldest) if self.writers.len() >= MOST => {
                    self.writers.splice(oldest..=oldest, [fresh]);
                    oldest
                }
                _ => {
                    self.writers.push(fresh);
                    self.writers.len() - 1
                }
            }
        });
        let clock = self.clock;
        let writer = self.writers.get_mut(place).expect("it was found or added there");
        writer.touched = clock;
        writer
    }
}
