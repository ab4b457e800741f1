//! One row for each request of a load, from its records to CSV or Parquet, a few thousand at a time.

mod columns;
mod parquet;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use isobench_schema::format;
use isobench_schema::record::{RecordHeader, RecordLine, RequestRecord};

use columns::{COLUMNS, Value};

/// The most bytes of a line: an answer of a million tokens is shorter.
const LONGEST: u64 = 256 * 1024 * 1024;

/// Why rows can't be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteRowsError {
    /// The records can't be read.
    #[error("cannot read the records `{path}`")]
    Read {
        /// The file of the records.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line is no record.
    #[error("line {line} of the records `{path}` can't be read: {reason}")]
    Line {
        /// The file of the records.
        path: PathBuf,
        /// Its number, from 1.
        line: u64,
        /// Why.
        reason: String,
    },
    /// The rows can't be written.
    #[error("cannot write the rows `{path}`")]
    Write {
        /// The file of the rows.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The Parquet library refuses to write.
    #[error("cannot write the Parquet file `{path}`")]
    Parquet {
        /// The file of the rows.
        path: PathBuf,
        /// Why.
        #[source]
        source: ::parquet::errors::ParquetError,
    },
}

/// Writes one row for each request of `records` (JSON Lines, packed if the name ends in `.zst`) as CSV; returns how many.
///
/// # Errors
/// Returns which file can't be read or written, and why.
pub(crate) fn write_csv(records: &Path, out: &Path) -> Result<u64, WriteRowsError> {
    let failed = |source| WriteRowsError::Write { path: out.to_owned(), source };
    let mut file = BufWriter::new(File::create(out).map_err(failed)?);
    let names: Vec<String> = COLUMNS.iter().map(|column| column.name.to_owned()).collect();
    csv_line(&mut file, &names).map_err(failed)?;
    let mut rows = 0;
    each(records, |record| {
        let fields: Vec<String> = COLUMNS.iter().map(|column| text((column.value)(record))).collect();
        rows += 1;
        csv_line(&mut file, &fields).map_err(failed)
    })?;
    file.flush().map_err(failed)?;
    Ok(rows)
}

/// Writes one row for each request of `records` as Parquet; returns how many.
///
/// # Errors
/// Returns which file can't be read or written, and why.
pub(crate) fn write_parquet(records: &Path, out: &Path) -> Result<u64, WriteRowsError> {
    let failed = |source| WriteRowsError::Write { path: out.to_owned(), source };
    let broken = |source| WriteRowsError::Parquet { path: out.to_owned(), source };
    let file = BufWriter::new(File::create(out).map_err(failed)?);
    let mut writer = parquet::RowsWriter::new(file).map_err(broken)?;
    each(records, |record| writer.push(record).map_err(broken))?;
    writer.finish().map_err(broken)
}

/// Gives each request of the records to `take`.
fn each(path: &Path, mut take: impl FnMut(&RequestRecord) -> Result<(), WriteRowsError>) -> Result<(), WriteRowsError> {
    let failed = |source| WriteRowsError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let is_packed = path.extension().is_some_and(|end| end == "zst");
    let bytes: Box<dyn Read> =
        if is_packed { Box::new(zstd::Decoder::new(file).map_err(failed)?) } else { Box::new(file) };
    let mut reader = BufReader::with_capacity(1 << 16, bytes);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        (&mut reader).take(LONGEST).read_until(b'\n', &mut line).map_err(failed)?;
        let Some(text) = line.strip_suffix(b"\n") else {
            // A last line without its end was never whole; nothing but it may be there.
            return Ok(());
        };
        number += 1;
        let wrong = |reason: String| WriteRowsError::Line { path: path.to_owned(), line: number, reason };
        if number == 1 {
            format::from_slice::<RecordHeader>(text).map_err(|error| wrong(error.to_string()))?;
            continue;
        }
        match RecordLine::parse(text).map_err(|error| wrong(error.to_string()))? {
            RecordLine::Request(record) => take(&record)?,
            RecordLine::Audit(_) | RecordLine::Server(_) => {}
        }
    }
}

fn text(value: Value<'_>) -> String {
    match value {
        Value::Absent => String::new(),
        Value::Text(text) => text.to_owned(),
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
    }
}

/// Writes a line of comma-separated values (RFC 4180).
fn csv_line(out: &mut impl Write, fields: &[String]) -> io::Result<()> {
    for (place, field) in fields.iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        if field.contains(['"', ',', '\r', '\n']) {
            write!(out, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            out.write_all(field.as_bytes())?;
        }
    }
    out.write_all(b"\r\n")
}
