//! The event log: read one line at a time, written one whole line at a time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isobench_schema::event::{Event, EventKind, EventLogHeader};
use isobench_schema::format::{self, ReadFormatError};
use isobench_schema::units::Millis;

use crate::atomic::{StoreError, open_plain, write_atomically};
use crate::attempts::{AttemptError, Attempts};

/// Why an event log can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadEventsError {
    /// The file can't be read.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// The first line isn't there or isn't whole.
    #[error("`{path}` has no first line that names its format and run")]
    NoHeader {
        /// The log.
        path: PathBuf,
    },
    /// The first line can't be read.
    #[error("line 1 of `{path}` is damaged or of another format")]
    Header {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: ReadFormatError,
    },
    /// A line that isn't the last can't be read.
    #[error("line {line} of `{path}` is damaged")]
    Line {
        /// The log.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// An event is missing, or there twice.
    #[error("line {line} of `{path}` is event {found} where event {expected} must stand")]
    Gap {
        /// The log.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// The sequence number that must stand there.
        expected: u64,
        /// The sequence number that stands there.
        found: u64,
    },
    /// An event contradicts those before it.
    #[error("line {line} of `{path}` contradicts the lines before it")]
    Contradiction {
        /// The log.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        source: AttemptError,
    },
}

/// The events of a log, in order, read as they are asked for. Their sequence is checked, and that each attempt at a block
/// begins once and ends once with the records of its launches.
///
/// A last line without a line end was cut short when the machine or the process stopped: it never happened. It isn't
/// returned, and [`Events::torn_bytes`] says how long it is.
#[derive(Debug)]
pub struct Events {
    path: PathBuf,
    header: EventLogHeader,
    input: BufReader<File>,
    buffer: Vec<u8>,
    /// The number of the last line that was read, from 1.
    line: u64,
    /// The sequence number that comes next.
    next: u64,
    /// The bytes of all whole lines so far.
    whole_bytes: u64,
    torn_bytes: u64,
    attempts: Attempts,
    done: bool,
}

impl Events {
    pub(crate) fn open(path: &Path) -> Result<Self, ReadEventsError> {
        let file = open_plain(path).map_err(StoreError::on("read", path))?;
        let mut input = BufReader::with_capacity(1 << 16, file);
        let mut buffer = Vec::new();
        input.read_until(b'\n', &mut buffer).map_err(StoreError::on("read", path))?;
        if buffer.last() != Some(&b'\n') {
            return Err(ReadEventsError::NoHeader { path: path.to_owned() });
        }
        let header =
            format::from_slice(&buffer).map_err(|source| ReadEventsError::Header { path: path.to_owned(), source })?;
        let whole_bytes = buffer.len() as u64;
        Ok(Self {
            path: path.to_owned(),
            header,
            input,
            buffer,
            line: 1,
            next: 0,
            whole_bytes,
            torn_bytes: 0,
            attempts: Attempts::default(),
            done: false,
        })
    }

    /// Returns the first line of the log.
    pub fn header(&self) -> &EventLogHeader {
        &self.header
    }

    /// Returns how many bytes of a line that was cut short follow the last event; 0 before the last event was read.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    fn read_next(&mut self) -> Result<Option<Event>, ReadEventsError> {
        self.buffer.clear();
        let read = self.input.read_until(b'\n', &mut self.buffer).map_err(StoreError::on("read", &self.path))?;
        if self.buffer.last() != Some(&b'\n') {
            self.torn_bytes = read as u64;
            return Ok(None);
        }
        self.line += 1;
        let event: Event = serde_json::from_slice(&self.buffer).map_err(|source| ReadEventsError::Line {
            path: self.path.clone(),
            line: self.line,
            source,
        })?;
        if event.sequence != self.next {
            return Err(ReadEventsError::Gap {
                path: self.path.clone(),
                line: self.line,
                expected: self.next,
                found: event.sequence,
            });
        }
        self.attempts.see(&event.kind).map_err(|source| ReadEventsError::Contradiction {
            path: self.path.clone(),
            line: self.line,
            source,
        })?;
        self.next += 1;
        self.whole_bytes += read as u64;
        Ok(Some(event))
    }
}

impl Iterator for Events {
    type Item = Result<Event, ReadEventsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.read_next().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Why an event isn't in the log.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// It can't be written. The log is as it was before.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// It contradicts the events before it, which is a mistake of isobench.
    #[error("the event contradicts the log")]
    Attempt(#[from] AttemptError),
    /// An earlier write failed, and the log couldn't be brought back to its last whole line. Opening it again does that.
    #[error("`{path}` takes no more events because an earlier write to it failed")]
    Broken {
        /// The log.
        path: PathBuf,
    },
    /// It can't be written as JSON.
    #[error("the event can't be written as JSON")]
    Serialise(#[source] serde_json::Error),
}

/// A log that is open for writing. Its folder's lock must be held.
#[derive(Debug)]
pub(crate) struct EventLog {
    path: PathBuf,
    file: File,
    header: EventLogHeader,
    next: u64,
    whole_bytes: u64,
    broken: bool,
    attempts: Attempts,
    torn_bytes: u64,
}

impl EventLog {
    /// Writes a log without events.
    pub(crate) fn create(path: &Path, header: &EventLogHeader) -> Result<(), StoreError> {
        let line = format::to_line(header).map_err(|error| StoreError::new("write", path, error.into()))?;
        write_atomically(path, (line + "\n").as_bytes())
    }

    /// Opens a log, reads all of it, calls `see` with every event, and cuts off a last line that isn't whole.
    pub(crate) fn open(path: &Path, mut see: impl FnMut(&Event)) -> Result<Self, ReadEventsError> {
        let mut events = Events::open(path)?;
        for event in events.by_ref() {
            see(&event?);
        }
        let file = File::options().append(true).open(path).map_err(StoreError::on("write", path))?;
        let Events { header, next, whole_bytes, torn_bytes, attempts, .. } = events;
        if torn_bytes > 0 {
            cut(&file, whole_bytes).map_err(StoreError::on("write", path))?;
        }
        let path = path.to_owned();
        Ok(Self { path, file, header, next, whole_bytes, broken: false, attempts, torn_bytes })
    }

    pub(crate) fn header(&self) -> &EventLogHeader {
        &self.header
    }

    pub(crate) fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Returns how long the line was that opening cut off.
    pub(crate) fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// Appends an event, and returns when it has reached the disk (for a [`EventKind::LaunchStage`]: the system).
    pub(crate) fn append(&mut self, kind: EventKind, at_ms: Millis) -> Result<Event, AppendError> {
        if self.broken {
            return Err(AppendError::Broken { path: self.path.clone() });
        }
        self.attempts.check(&kind)?;
        let event = Event { sequence: self.next, at_ms, kind };
        let mut line = serde_json::to_vec(&event).map_err(AppendError::Serialise)?;
        line.push(b'\n');
        if let Err(source) = self.write(&line, must_reach_the_disk(&event.kind)) {
            // Half a line may be there. A full disk still lets a file be cut.
            self.broken = cut(&self.file, self.whole_bytes).is_err();
            return Err(StoreError::new("write", &self.path, source).into());
        }
        self.whole_bytes += line.len() as u64;
        self.next += 1;
        self.attempts.see(&event.kind)?;
        Ok(event)
    }

    fn write(&mut self, line: &[u8], sync: bool) -> io::Result<()> {
        self.file.write_all(line)?;
        if sync { self.file.sync_data() } else { Ok(()) }
    }
}

fn cut(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)?;
    file.sync_data()
}

fn must_reach_the_disk(kind: &EventKind) -> bool {
    match kind {
        EventKind::LaunchStage { .. } => false,
        EventKind::RunStarted { .. }
        | EventKind::OrphansEnded { .. }
        | EventKind::BlockStarted { .. }
        | EventKind::BlockEnded { .. }
        | EventKind::LookTaken { .. }
        | EventKind::Confirmed { .. }
        | EventKind::ConfirmationWithdrawn { .. }
        | EventKind::RunEnded { .. } => true,
    }
}

/// Returns the wall-clock time in milliseconds since 1970-01-01 UTC, for [`Event::at_ms`]; 0 on a clock before that.
pub fn now_ms() -> Millis {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    // Whole milliseconds: people read them, and a log is shorter.
    Millis::new((elapsed.as_secs_f64() * 1000.0).floor()).expect("a duration is finite and not negative")
}
