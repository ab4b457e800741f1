//! Where records go as requests end: to a file, if one was named, and to the reader that computes the numbers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use isobench_analysis::load_report::LoadReader;

/// How records are packed: quickly, as that is done while the load is under way.
const LEVEL: i32 = 1;

/// A file of records.
enum Kept {
    Nowhere,
    Plain(BufWriter<File>),
    Packed(Box<zstd::Encoder<'static, BufWriter<File>>>),
}

/// Writes records to where they are kept, and to the reader.
pub(super) struct Recording {
    kept: Kept,
    reader: LoadReader,
}

impl Recording {
    /// Returns a writer to `path`, packed if its name ends in `.zst`, and to `reader`.
    ///
    /// # Errors
    /// Returns an error if the file can't be made.
    pub(super) fn create(path: Option<&Path>, reader: LoadReader) -> io::Result<Self> {
        let kept = match path {
            None => Kept::Nowhere,
            Some(path) => {
                let file = BufWriter::with_capacity(1 << 18, File::create(path)?);
                if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("zst")) {
                    Kept::Packed(Box::new(zstd::Encoder::new(file, LEVEL)?))
                } else {
                    Kept::Plain(file)
                }
            }
        };
        Ok(Self { kept, reader })
    }

    /// Returns the reader, once everything is in the file.
    ///
    /// # Errors
    /// Returns an error if the end can't be written.
    pub(super) fn finish(self) -> io::Result<LoadReader> {
        match self.kept {
            Kept::Nowhere => {}
            Kept::Plain(mut file) => file.flush()?,
            Kept::Packed(encoder) => encoder.finish()?.flush()?,
        }
        Ok(self.reader)
    }
}

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.kept {
            Kept::Nowhere => {}
            Kept::Plain(file) => file.write_all(bytes)?,
            Kept::Packed(encoder) => encoder.write_all(bytes)?,
        }
        self.reader.feed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.kept {
            Kept::Nowhere => Ok(()),
            Kept::Plain(file) => file.flush(),
            Kept::Packed(encoder) => encoder.flush(),
        }
    }
}
