//! Where records go as requests end: to a file, if one was named, and to the reader that computes the numbers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use isobench_analysis::load_report::LoadReader;
use isobench_loadgen::record::RecordWriter;
use isobench_schema::record::{PhaseAudit, RecordHeader, RecordLine, RequestRecord, ServerSample};

/// How records are packed: quickly, as that is done while the load is under way.
const LEVEL: i32 = 1;

/// How often what was recorded goes to the file, so that it is there if this process is killed.
const FLUSH: Duration = Duration::from_secs(1);

/// A file of records.
enum Out {
    Plain(BufWriter<File>),
    Packed(Box<zstd::Encoder<'static, BufWriter<File>>>),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Packed(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Packed(encoder) => {
                encoder.flush()?;
                encoder.get_mut().flush()
            }
        }
    }
}

/// Takes records to where they are kept, and to the reader.
pub(super) struct Recording {
    writer: Option<RecordWriter<Out>>,
    flushed: Instant,
    reader: LoadReader,
}

impl Recording {
    /// Begins to record, to `path` too if there is one, packed if its name ends in `.zst`.
    ///
    /// # Errors
    /// Returns an error if the file can't be made or written.
    pub(super) fn create(path: Option<&Path>, header: RecordHeader, mut reader: LoadReader) -> io::Result<Self> {
        let writer = match path {
            None => None,
            Some(path) => {
                let file = BufWriter::with_capacity(1 << 18, File::create(path)?);
                let is_packed = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("zst"));
                let out =
                    if is_packed { Out::Packed(Box::new(zstd::Encoder::new(file, LEVEL)?)) } else { Out::Plain(file) };
                Some(RecordWriter::new(out, &header)?)
            }
        };
        reader.begin(header);
        Ok(Self { writer, flushed: Instant::now(), reader })
    }

    /// Takes the record of a request.
    ///
    /// # Errors
    /// Returns an error if it can't be written.
    pub(super) fn request(&mut self, record: RequestRecord) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.write(&record)?;
            if self.flushed.elapsed() >= FLUSH {
                writer.flush()?;
                self.flushed = Instant::now();
            }
        }
        self.reader.take(RecordLine::Request(Box::new(record)));
        Ok(())
    }

    /// Takes what the client saw of itself in a phase.
    ///
    /// # Errors
    /// Returns an error if it can't be written.
    pub(super) fn audit(&mut self, audit: PhaseAudit) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.write_audit(audit.clone())?;
        }
        self.reader.take(RecordLine::Audit(audit));
        Ok(())
    }

    /// Takes a look at the server's own metrics.
    ///
    /// # Errors
    /// Returns an error if it can't be written.
    pub(super) fn server(&mut self, sample: ServerSample) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.write_server(sample.clone())?;
        }
        self.reader.take(RecordLine::Server(sample));
        Ok(())
    }

    /// Returns the reader, once everything is in the file.
    ///
    /// # Errors
    /// Returns an error if the end can't be written.
    pub(super) fn finish(self) -> io::Result<LoadReader> {
        match self.writer.map(RecordWriter::finish).transpose()? {
            None => {}
            Some(Out::Plain(mut file)) => file.flush()?,
            Some(Out::Packed(encoder)) => encoder.finish()?.flush()?,
        }
        Ok(self.reader)
    }
}
