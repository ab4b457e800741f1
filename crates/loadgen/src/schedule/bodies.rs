//! The prepared bytes of a phase's requests: in memory while they are few, else in a file that has no name.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Up to how many bytes are kept in memory.
const IN_MEMORY: usize = 16 << 20;

/// A place among the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) length: u32,
}

/// The bytes, each part of which is read back by its place.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    memory: Vec<u8>,
    file: Option<Arc<File>>,
    /// Where in the file they begin.
    begin: u64,
    /// How much lies in the file; the rest is in memory until it is written behind it.
    in_file: u64,
}

impl Bodies {
    /// Returns the bytes that lie in a file already.
    pub(crate) fn stored(file: Arc<File>, begin: u64, length: u64) -> Self {
        Self { memory: Vec::new(), file: Some(file), begin, in_file: length }
    }

    /// Returns how many there are.
    pub(crate) fn length(&self) -> u64 {
        self.in_file + self.memory.len() as u64
    }

    /// Writes all of them.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or if `out` takes no more.
    pub(crate) fn copy(&self, out: &mut impl Write) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        while at < self.in_file {
            let length = usize::try_from(self.in_file - at).unwrap_or(usize::MAX).min(buffer.len());
            let part = buffer.get_mut(..length).ok_or(io::ErrorKind::UnexpectedEof)?;
            let file = self.file.as_ref().ok_or(io::ErrorKind::UnexpectedEof)?;
            file.read_exact_at(part, self.begin + at)?;
            out.write_all(part)?;
            at += length as u64;
        }
        out.write_all(&self.memory)
    }

    /// Adds a part.
    ///
    /// # Errors
    /// Returns an error if the file can't be made or written.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<Span> {
        let length = u32::try_from(bytes.len()).map_err(|_too_long| io::ErrorKind::FileTooLarge)?;
        let span = Span { at: self.length(), length };
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > IN_MEMORY {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(Arc::new(tempfile::tempfile()?)),
            };
            file.as_ref().write_all(&self.memory)?;
            self.in_file += self.memory.len() as u64;
            self.memory.clear();
        }
        Ok(span)
    }

    /// Appends a part to `out`.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub(crate) fn read(&self, span: Span, out: &mut Vec<u8>) -> io::Result<()> {
        let length = usize::try_from(span.length).map_err(|_too_long| io::ErrorKind::FileTooLarge)?;
        if let Some(start) = span.at.checked_sub(self.in_file) {
            let start = usize::try_from(start).map_err(|_too_long| io::ErrorKind::FileTooLarge)?;
            let part = self.memory.get(start..start + length).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.extend_from_slice(part);
            return Ok(());
        }
        let file = self.file.as_ref().ok_or(io::ErrorKind::UnexpectedEof)?;
        let old = out.len();
        out.resize(old + length, 0);
        let part = out.get_mut(old..).ok_or(io::ErrorKind::UnexpectedEof)?;
        if span.at + u64::from(span.length) > self.in_file {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.read_exact_at(part, self.begin + span.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_from_memory_and_from_the_file() {
        let mut bodies = Bodies::default();
        let parts: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; (1 << 20) + usize::from(n)]).collect();
        let spans: Vec<Span> = parts.iter().map(|part| bodies.push(part).unwrap()).collect();
        assert!(bodies.in_file > 0 && !bodies.memory.is_empty());
        for (part, span) in parts.iter().zip(spans) {
            let mut out = b"before".to_vec();
            bodies.read(span, &mut out).unwrap();
            assert_eq!(out.strip_prefix(b"before").unwrap(), part);
        }
    }
}
