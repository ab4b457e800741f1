//! Gzip as a stream, without compressing: each write is a stored block, so that a reader gets it at once.

/// The longest stored block, in bytes.
const LONGEST_BLOCK: usize = 0xffff;

/// What a gzip stream remembers for its end.
#[derive(Debug)]
pub(crate) struct Gzip {
    crc: u32,
    length: u32,
    started: bool,
}

impl Gzip {
    /// Starts a stream.
    pub(crate) fn new() -> Self {
        Self { crc: u32::MAX, length: 0, started: false }
    }

    /// Appends `plain` to `out` as a part of the stream.
    pub(crate) fn part(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        if !self.started {
            self.started = true;
            out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
        }
        for block in plain.chunks(LONGEST_BLOCK) {
            let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
            out.push(0);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&(!length).to_le_bytes());
            out.extend_from_slice(block);
        }
        for byte in plain {
            self.crc ^= u32::from(*byte);
            for _ in 0..8 {
                let carry = self.crc & 1;
                self.crc = (self.crc >> 1) ^ (0xedb8_8320 * carry);
            }
        }
        self.length = self.length.wrapping_add(u32::try_from(plain.len()).unwrap_or(u32::MAX));
    }

    /// Appends the stream's end to `out`.
    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
        out.extend_from_slice(&(!self.crc).to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_gzip() {
        let (mut gzip, mut out) = (Gzip::new(), Vec::new());
        gzip.part(b"1234", &mut out);
        gzip.part(b"56789", &mut out);
        gzip.end(&mut out);
        let (head, rest) = out.split_at(10);
        assert_eq!(head, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
        // The check value of CRC-32 for `123456789`.
        let end = [&[1, 0, 0, 0xff, 0xff][..], &0xcbf4_3926_u32.to_le_bytes(), &9_u32.to_le_bytes()].concat();
        assert_eq!(rest, [b"\0\x04\0\xfb\xff1234\0\x05\0\xfa\xff56789", &end[..]].concat());
    }
}
