//! The lines of request records, taken apart from pieces of any size and checked one by one.

use std::collections::BTreeSet;

use isobench_schema::format;
use isobench_schema::record::{Phase, RecordHeader, RecordLine, RequestRecord};

use super::ReadRecordsError;

/// What a line is.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    /// The header.
    Header(&'a RecordHeader),
    /// A later line with its number, from 1.
    Line(u64, RecordLine),
}

/// Reads the lines of `requests.jsonl`.
#[derive(Debug, Default)]
pub(crate) struct RecordLines {
    rest: Vec<u8>,
    lines: u64,
    header: Option<RecordHeader>,
    seen: BTreeSet<(Phase, u32)>,
    error: Option<ReadRecordsError>,
}

impl RecordLines {
    /// Takes the next bytes and gives each whole line to `take`. The first thing wrong is kept for
    /// [`RecordLines::finish`], and what follows it is ignored.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Item<'_>)) {
        let mut pieces = bytes.split_inclusive(|byte| *byte == b'\n');
        while self.error.is_none() {
            let Some(piece) = pieces.next() else { return };
            let Some(end) = piece.strip_suffix(b"\n") else {
                self.rest.extend_from_slice(piece);
                return;
            };
            self.lines += 1;
            let read = if self.rest.is_empty() {
                self.line(end, &mut take)
            } else {
                let mut line = std::mem::take(&mut self.rest);
                line.extend_from_slice(end);
                let read = self.line(&line, &mut take);
                // Its room is used again, so that lines that come in pieces cost no allocation each.
                line.clear();
                self.rest = line;
                read
            };
            self.error = read.err();
        }
    }

    /// Takes the header as it would be written.
    pub(crate) fn begin(&mut self, header: RecordHeader, mut take: impl FnMut(Item<'_>)) {
        self.lines += 1;
        take(Item::Header(self.header.insert(header)));
    }

    /// Takes a later line as it would be written.
    pub(crate) fn accept(&mut self, line: RecordLine, mut take: impl FnMut(Item<'_>)) {
        if self.error.is_some() {
            return;
        }
        self.lines += 1;
        self.error = self.checked(line, &mut take).err();
    }

    /// Returns the header.
    ///
    /// # Errors
    /// Returns the first line that can't be read.
    pub(crate) fn finish(self) -> Result<RecordHeader, ReadRecordsError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.rest.is_empty() {
            return Err(ReadRecordsError::Cut { line: self.lines + 1 });
        }
        self.header.ok_or(ReadRecordsError::Empty)
    }

    fn line(&mut self, line: &[u8], take: &mut impl FnMut(Item<'_>)) -> Result<(), ReadRecordsError> {
        if self.header.is_none() {
            let header = format::from_slice(line).map_err(|source| ReadRecordsError::Header { source })?;
            take(Item::Header(self.header.insert(header)));
            return Ok(());
        }
        let number = self.lines;
        let line = RecordLine::parse(line).map_err(|source| ReadRecordsError::Record { line: number, source })?;
        self.checked(line, take)
    }

    fn checked(&mut self, line: RecordLine, take: &mut impl FnMut(Item<'_>)) -> Result<(), ReadRecordsError> {
        match &line {
            RecordLine::Request(record) => self.check(record)?,
            RecordLine::Audit(_) | RecordLine::Server(_) => {}
        }
        take(Item::Line(self.lines, line));
        Ok(())
    }

    fn check(&mut self, record: &RequestRecord) -> Result<(), ReadRecordsError> {
        let (times, counts) = (record.chunk_ns.len(), record.chunk_tokens.len());
        if times != counts {
            return Err(ReadRecordsError::Chunks { line: self.lines, times, counts });
        }
        let (phase, index) = (record.phase, record.index);
        if !self.seen.insert((phase, index)) {
            return Err(ReadRecordsError::Repeated { line: self.lines, phase, index });
        }
        Ok(())
    }
}
