//! Whether a file is a whole native library or program of this platform, told from its own headers.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The first bytes of every native program and library of Linux.
const MAGIC: &[u8] = b"\x7fELF";
/// The length of the header of a 64-bit file.
const HEADER_BYTES: usize = 64;
/// The class of 64-bit files, in the fifth byte.
const CLASS_64: u8 = 2;
/// What an executable file that isn't relocated, and a library, say of themselves.
const TYPES: [u16; 2] = [2, 3];

/// Returns why the file can't be one that this machine loads, if so.
pub(super) fn fault(path: &Path) -> io::Result<Option<String>> {
    let own = header(Path::new("/proc/self/exe"))?;
    let found = header(path)?;
    Ok(compare(&found, &own, path.metadata()?.len()))
}

fn header(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    File::open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Compares a header with that of this program, which runs here.
fn compare(found: &[u8], own: &[u8], size: u64) -> Option<String> {
    if !found.starts_with(MAGIC) {
        return Some("is no native file: it has no ELF header".to_owned());
    }
    if found.len() < HEADER_BYTES {
        return Some("is cut off within its header".to_owned());
    }
    // Class and byte order, then the machine.
    if found.get(4..6) != own.get(4..6) || found.get(18..20) != own.get(18..20) {
        return Some("is built for another kind of machine".to_owned());
    }
    if !number(found, 16, 2).is_some_and(|kind| TYPES.iter().any(|known| u64::from(*known) == kind)) {
        return Some("is an object file, not a library or a program".to_owned());
    }
    if found.get(4) != Some(&CLASS_64) {
        return None;
    }
    // The tables of segments and of sections; the latter stands last, where linkers put one.
    let end = |at: usize, size_at: usize, count_at: usize| {
        let (offset, size, count) = (number(found, at, 8)?, number(found, size_at, 2)?, number(found, count_at, 2)?);
        offset.checked_add(size.checked_mul(count)?)
    };
    match (end(32, 54, 56), end(40, 58, 60)) {
        (Some(segments), Some(sections)) if segments.max(sections) <= size => None,
        (Some(_), Some(_)) => Some(format!("is cut off: it has {size} bytes and its tables end beyond them")),
        (None, _) | (_, None) => Some("has a header that can't be".to_owned()),
    }
}

/// Returns the number of `length` bytes at `at`, in this machine's byte order.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    let fold = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    Some(if cfg!(target_endian = "little") { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<&str>, change: impl FnOnce(&mut Vec<u8>)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.so");
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let found = fault(&path).unwrap();
        assert_eq!(found.as_deref().map(|found| found.split(':').next().unwrap()), expected, "{name}");
    }

    #[test]
    fn only_a_whole_file_of_this_machine_passes() {
        check("itself", None, |_| {});
        check("empty", Some("is no native file"), Vec::clear);
        check("a text", Some("is no native file"), |bytes| *bytes = b"#!/bin/sh\n".to_vec());
        check("a header", Some("is cut off within its header"), |bytes| bytes.truncate(20));
        check("half", Some("is cut off"), |bytes| bytes.truncate(bytes.len() / 2));
        check("another machine", Some("is built for another kind of machine"), |bytes| bytes[18] ^= 0x55);
        check("an object file", Some("is an object file, not a library or a program"), |bytes| {
            bytes[16..18].copy_from_slice(&1_u16.to_ne_bytes());
        });
        check("a table beyond all bounds", Some("has a header that can't be"), |bytes| bytes[32..40].fill(0xff));
    }
}
