//! Zip archives written byte by byte, so that each can be wrong in its own way.

use std::io::Write as _;

use flate2::Crc;
use flate2::write::DeflateEncoder;

/// An entry of an archive, as its two headers describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Its name in the central directory.
    pub name: Vec<u8>,
    /// Its name before its bytes; the same if absent.
    pub local_name: Option<Vec<u8>>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What kind of file it is, and its permissions.
    pub mode: u32,
    /// Whether its bytes are packed.
    pub packing: Packing,
    /// The sum that it says it has; its own if absent.
    pub crc: Option<u32>,
    /// The size that it says it has; its own if absent.
    pub size: Option<u32>,
}

/// How the bytes of an entry are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// As they are.
    Stored,
    /// By deflate.
    Deflated,
}

impl ZipEntry {
    /// Returns an ordinary file, packed.
    pub fn new(name: impl Into<Vec<u8>>, bytes: impl Into<Vec<u8>>) -> Self {
        let (name, bytes) = (name.into(), bytes.into());
        let (mode, packing) = (0o100_644, Packing::Deflated);
        Self { name, local_name: None, bytes, mode, packing, crc: None, size: None }
    }
}

/// Returns an archive of these entries, in this order.
pub fn zip(entries: &[ZipEntry]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let packed = match entry.packing {
            Packing::Stored => entry.bytes.clone(),
            Packing::Deflated => deflated(&entry.bytes),
        };
        let method: u16 = if entry.packing == Packing::Stored { 0 } else { 8 };
        let mut crc = Crc::new();
        crc.update(&entry.bytes);
        let offset = length(&archive);
        let local_name = entry.local_name.as_ref().unwrap_or(&entry.name);
        // Versions, flags (names are UTF-8), method, a time and a date, sum and sizes.
        let common = [
            &20_u16.to_le_bytes()[..],
            &0x800_u16.to_le_bytes(),
            &method.to_le_bytes(),
            &[0, 0, 0x21, 0],
            &entry.crc.unwrap_or_else(|| crc.sum()).to_le_bytes(),
            &length(&packed).to_le_bytes(),
            &entry.size.unwrap_or_else(|| length(&entry.bytes)).to_le_bytes(),
        ]
        .concat();
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(short(local_name.len()).to_le_bytes());
        archive.extend([0, 0]);
        archive.extend(local_name);
        archive.extend(&packed);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend(short(entry.name.len()).to_le_bytes());
        // No extra field, no comment, the first disk, no attributes of its own.
        directory.extend([0; 8]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(&entry.name);
    }
    let (offset, size) = (length(&archive), length(&directory));
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(short(entries.len()).to_le_bytes());
    archive.extend(short(entries.len()).to_le_bytes());
    archive.extend(size.to_le_bytes());
    archive.extend(offset.to_le_bytes());
    archive.extend([0, 0]);
    archive
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes every write")
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("archives of tests are small")
}

fn short(length: usize) -> u16 {
    u16::try_from(length).expect("archives of tests are small")
}
