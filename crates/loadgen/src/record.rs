//! Writing records: a header line, then one JSON line for each request, each phase, and each look at the server. What was written is known by its digest.

use std::io::{self, Write};

use isobench_schema::format;
use isobench_schema::ids::Digest;
use isobench_schema::outcome::Artifact;
use isobench_schema::record::{AuditLine, PhaseAudit, RecordHeader, RequestRecord, ServerLine, ServerSample};
use sha2::{Digest as _, Sha256};

/// A writer of one file of records.
#[derive(Debug)]
pub struct RecordWriter<W> {
    to: W,
    line: Vec<u8>,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> RecordWriter<W> {
    /// Writes the header and returns a writer for what follows it.
    ///
    /// # Errors
    /// Returns the error of the first write that fails.
    pub fn new(to: W, header: &RecordHeader) -> io::Result<Self> {
        let line = format::to_line(header)?.into_bytes();
        let mut writer = Self { to, line, hasher: Sha256::new(), bytes: 0 };
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

    /// Writes what the client saw of itself in a phase.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn write_audit(&mut self, audit: PhaseAudit) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &AuditLine { audit })?;
        self.end_line()
    }

    /// Writes what the server said of itself at one moment.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn write_server(&mut self, server: ServerSample) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &ServerLine { server })?;
        self.end_line()
    }

    /// Returns the digest and the length of everything that was written so far: what the file must hold, once it is
    /// flushed, if nobody else writes to it.
    pub fn written(&self) -> Artifact {
        Artifact { digest: Digest::finish(self.hasher.clone()), bytes: self.bytes }
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
        self.to.write_all(&self.line)?;
        self.hasher.update(&self.line);
        self.bytes += self.line.len() as u64;
        Ok(())
    }
}
