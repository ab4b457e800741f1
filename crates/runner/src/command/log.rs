//! The log of a program's output, and the end of it for people.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::Path;

use isobench_schema::failure::EvidenceLine;

/// The end of the output that is kept in memory, in bytes.
const TAIL_BYTES: usize = 64 * 1024;

/// A log file that is appended to, and its end.
pub(super) struct Log {
    file: File,
    /// Line ends so far.
    lines: u64,
    pub(super) tail: Tail,
}

impl Log {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let mut buffer = vec![0; TAIL_BYTES];
        let mut lines = 0;
        loop {
            let length = file.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
            lines += count_lines(bytes);
        }
        Ok(Self { file, lines, tail: Tail::default() })
    }

    /// Starts a new tail at the end of the file.
    pub(super) fn begin_tail(&mut self) {
        self.tail = Tail { bytes: VecDeque::new(), first_line: self.lines + 1 };
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.lines += count_lines(bytes);
        self.tail.take(bytes);
        Ok(())
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// The last 64 KiB of a program's output in its log.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: VecDeque<u8>,
    /// The number of the line that `bytes` begins in.
    first_line: u64,
}

impl Tail {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(TAIL_BYTES);
        let dropped = self.bytes.drain(..excess);
        self.first_line += dropped.map(|byte| u64::from(byte == b'\n')).sum::<u64>();
    }

    /// Reads the end of what stands in a log from a place on.
    pub(crate) fn read(log: &Path, since: u64) -> io::Result<Self> {
        let mut file = File::open(log)?;
        let mut tail = Self { bytes: VecDeque::new(), first_line: 1 };
        let mut before = Read::take(&mut file, since);
        let mut buffer = vec![0; TAIL_BYTES];
        loop {
            let length = before.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
            tail.first_line += count_lines(bytes);
        }
        loop {
            let length = file.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
            tail.take(bytes);
        }
        Ok(tail)
    }

    /// Returns the lines with their numbers in the log, from 1; empty ones are left out.
    pub fn lines(&self) -> Vec<(u64, String)> {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let numbered = (self.first_line..).zip(text.split('\n'));
        numbered.filter(|(_, line)| !line.trim().is_empty()).map(|(number, line)| (number, line.to_owned())).collect()
    }

    /// Returns the last lines, at most `count` of them in their order, as evidence from the file that people know as `file`.
    pub fn evidence(&self, file: &str, count: usize) -> Vec<EvidenceLine> {
        let lines = self.lines();
        let skipped = lines.len().saturating_sub(count);
        lines.iter().skip(skipped).map(|(number, line)| EvidenceLine::new(file, Some(*number), line)).collect()
    }
}
