//! Writing records: a header line, then one JSON line for each request.

use std::io::{self, Write};

use isobench_schema::format;
use isobench_schema::record::{RecordHeader, RequestRecord};

/// A writer of one file of records.
#[derive(Debug)]
pub struct RecordWriter<W> {
    to: W,
    line: Vec<u8>,
}

impl<W: Write> RecordWriter<W> {
    /// Writes the header and returns a writer for what follows it.
    ///
    /// # Errors
    /// Returns the error of the first write that fails.
    pub fn new(to: W, header: &RecordHeader) -> io::Result<Self> {
        let mut writer = Self { to, line: format::to_line(header)?.into_bytes() };
        writer.end_line()?;
        Ok(writer)
    }

    /// Writes one record, as one write of a whole line.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn write(&mut self, record: &RequestRecord) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)?;
        self.end_line()
    }

    /// Flushes what was written.
    ///
    /// # Errors
    /// Returns the error of the flush.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Flushes what was written and returns where it went.
    ///
    /// # Errors
    /// Returns the error of the flush.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.push(b'\n');
        self.to.write_all(&self.line)
    }
}
