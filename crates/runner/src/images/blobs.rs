//! Layers and configurations: fetched and sent, with their digests checked on the way.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write};

use isobench_schema::ids::{Digest, ImageDigest};
use isobench_schema::images::ImagePart;
use sha2::{Digest as _, Sha256};
use ureq::http::Method;

use super::error::RegistryError;
use super::http::{Ask, Payload, Reply};
use super::reference::Target;
use super::registry::{FetchedManifest, Registry};

/// What became of a blob that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It was sent.
    Whole,
    /// The registry had it.
    AlreadyThere,
}

/// Passes bytes on and hashes them.
struct Hashing<'w> {
    sink: &'w mut dyn Write,
    hasher: Sha256,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Hashes a file, and leaves it at its end; returns its length, or none if it is longer than it may be.
fn read_all(file: &mut File, most: u64, hasher: &mut Sha256) -> io::Result<Option<u64>> {
    file.rewind()?;
    let mut chunk = vec![0_u8; 1 << 18];
    let mut length = 0_u64;
    loop {
        let read = file.read(&mut chunk)?;
        let Some(piece) = chunk.get(..read).filter(|piece| !piece.is_empty()) else { return Ok(Some(length)) };
        length += u64::try_from(read).unwrap_or(u64::MAX);
        if length > most {
            return Ok(None);
        }
        hasher.update(piece);
    }
}

/// Returns whether `bytes 100-499/500` begins and ends where it should.
fn begins_at(range: Option<&str>, from: u64, whole: u64) -> bool {
    let range = range.and_then(|range| range.trim().strip_prefix("bytes "));
    let Some((span, of)) = range.and_then(|range| range.split_once('/')) else { return false };
    let Some((first, last)) = span.split_once('-') else { return false };
    let is = |text: &str, wanted: u64| text.trim().parse() == Ok(wanted);
    is(first, from) && is(last, whole.saturating_sub(1)) && (of.trim() == "*" || is(of, whole))
}

/// Writes what comes of a blob from `begins` on, and checks the whole.
fn copy(
    reply: Reply,
    part: &ImagePart,
    hashing: &mut Hashing<'_>,
    (begins, progress): (u64, &dyn Fn(u64)),
) -> Result<(), RegistryError> {
    let address = reply.address.to_string();
    let other_size = |address, found| {
        let digest = part.digest.clone();
        RegistryError::OtherSize { address, digest, expected: part.bytes, found }
    };
    let got = match reply.copy(part.bytes - begins, hashing, &|got| progress(begins + got)) {
        Ok(got) => begins + got,
        Err(RegistryError::TooLong { address, .. }) => return Err(other_size(address, part.bytes + 1)),
        Err(error) => return Err(error),
    };
    if got != part.bytes {
        return Err(other_size(address, got));
    }
    let found = ImageDigest::from(Digest::finish(hashing.hasher.clone()));
    if found != part.digest {
        return Err(RegistryError::OtherBytes { address, expected: part.digest.clone(), found });
    }
    Ok(())
}

impl Registry {
    /// Fetches a blob into `sink`; `progress` is told how many bytes came so far.
    ///
    /// # Errors
    /// Returns an error if it can't be fetched whole, or isn't what its digest says. What was written until then must be
    /// thrown away.
    pub fn blob(&self, part: &ImagePart, sink: &mut dyn Write, progress: &dyn Fn(u64)) -> Result<(), RegistryError> {
        let reply = self.ask_for_blob(part, 0)?;
        if reply.status != 200 {
            return Err(self.unexpected(reply));
        }
        copy(reply, part, &mut Hashing { sink, hasher: Sha256::new() }, (0, progress))
    }

    /// Fetches a blob into a file, which may hold its beginning already: only the rest is asked for then. A registry that can't
    /// begin there sends it whole, and one whose rest doesn't make it whole is asked for all of it.
    ///
    /// # Errors
    /// Returns an error if it can't be fetched whole, or isn't what its digest says. What came until then stays in the file
    /// if the answer only broke off, to be gone on with; else nothing stays.
    pub fn resume_blob(&self, part: &ImagePart, file: &mut File, progress: &dyn Fn(u64)) -> Result<(), RegistryError> {
        let mut hasher = Sha256::new();
        let read = read_all(file, part.bytes, &mut hasher).map_err(|source| self.of_file(part, source))?;
        let is_as_long = read == Some(part.bytes);
        if is_as_long && ImageDigest::from(Digest::finish(hasher.clone())) == part.digest {
            return Ok(());
        }
        let there = read.filter(|_| !is_as_long).unwrap_or(0);
        if there > 0 {
            let reply = self.ask_for_blob(part, there)?;
            if reply.status == 200 {
                return self.whole(reply, part, file, progress);
            }
            if reply.status == 206 && begins_at(reply.header("content-range"), there, part.bytes) {
                match copy(reply, part, &mut Hashing { sink: file, hasher }, (there, progress)) {
                    // Either the beginning or the rest is of something else.
                    Err(RegistryError::OtherBytes { .. } | RegistryError::OtherSize { .. }) => {}
                    other => return other,
                }
            } else if !matches!(reply.status, 206 | 416) {
                return Err(self.unexpected(reply));
            }
        }
        let reply = self.ask_for_blob(part, 0)?;
        if reply.status != 200 {
            return Err(self.unexpected(reply));
        }
        self.whole(reply, part, file, progress)
    }

    fn ask_for_blob(&self, part: &ImagePart, from: u64) -> Result<Reply, RegistryError> {
        let address = self.address(&format!("blobs/{}", part.digest))?;
        self.send(&Ask { expected_bytes: part.bytes, from, ..Ask::get(&address, "*/*") })
    }

    /// Writes a whole answer into a file from its beginning.
    fn whole(
        &self,
        reply: Reply,
        part: &ImagePart,
        file: &mut File,
        progress: &dyn Fn(u64),
    ) -> Result<(), RegistryError> {
        file.set_len(0).and_then(|()| file.rewind()).map_err(|source| self.of_file(part, source))?;
        let copied = copy(reply, part, &mut Hashing { sink: file, hasher: Sha256::new() }, (0, progress));
        if let Err(RegistryError::OtherBytes { .. } | RegistryError::OtherSize { .. }) = copied {
            file.set_len(0).map_err(|source| self.of_file(part, source))?;
        }
        copied
    }

    fn of_file(&self, part: &ImagePart, source: io::Error) -> RegistryError {
        let path = format!("{}blobs/{}", self.base, part.digest).into();
        RegistryError::Folder { what: "keep what came from", path, source }
    }

    /// Returns whether the registry has a blob of this digest and size.
    ///
    /// # Errors
    /// Returns an error if the registry can't be asked or refuses.
    pub fn has_blob(&self, part: &ImagePart) -> Result<bool, RegistryError> {
        let address = self.address(&format!("blobs/{}", part.digest))?;
        let reply = self.send(&Ask { method: Method::HEAD, ..Ask::get(&address, "*/*") })?;
        match reply.status {
            200 => {
                let length = reply.header("content-length").and_then(|text| text.parse::<u64>().ok());
                Ok(length.is_none_or(|length| length == part.bytes))
            }
            404 => Ok(false),
            _ => Err(self.unexpected(reply)),
        }
    }

    /// Sends a blob, unless the registry has it.
    ///
    /// # Errors
    /// Returns an error if the registry can't be asked or refuses it.
    pub fn push_blob(&self, part: &ImagePart, file: &File) -> Result<Sent, RegistryError> {
        if self.has_blob(part)? {
            return Ok(Sent::AlreadyThere);
        }
        let start = self.address("blobs/uploads/")?;
        let reply = self.send(&Ask { method: Method::POST, ..Ask::get(&start, "*/*") })?;
        if reply.status != 202 {
            return Err(self.unexpected(reply));
        }
        let no_place = || RegistryError::NotARegistry {
            address: start.to_string(),
            why: "it names no place to send to".to_owned(),
        };
        let location = reply.header("location").ok_or_else(no_place)?;
        let place =
            start.join(location).map_err(|source| RegistryError::Address { address: start.to_string(), source })?;
        if !place.is_same_place(&self.base) {
            let (address, target) = (start.to_string(), place.to_string());
            let why = "and images are sent to the registry itself only";
            return Err(RegistryError::LeadsElsewhere { address, target, why });
        }
        let place = place.with_query("digest", part.digest.as_str());
        let payload = Payload::File(file, part.bytes);
        let reply = self.send(&Ask { method: Method::PUT, payload, ..Ask::get(&place, "*/*") })?;
        if !matches!(reply.status, 201 | 204) {
            return Err(self.unexpected(reply));
        }
        if !self.has_blob(part)? {
            let why = format!("it took `{}`, and doesn't have it", part.digest);
            return Err(RegistryError::NotARegistry { address: place.to_string(), why });
        }
        Ok(Sent::Whole)
    }

    /// Sends a manifest, and asks whether the registry has it now as it was sent.
    ///
    /// # Errors
    /// Returns an error if the registry can't be asked, refuses it, or has something else under that name afterwards.
    pub fn push_manifest(&self, target: &Target, manifest: &FetchedManifest) -> Result<(), RegistryError> {
        let address = self.manifest_address(target)?;
        let payload = Payload::Bytes(&manifest.content_type, &manifest.bytes);
        let reply = self.send(&Ask { method: Method::PUT, payload, ..Ask::get(&address, "*/*") })?;
        if !matches!(reply.status, 200..=204) {
            return Err(self.unexpected(reply));
        }
        let address = address.to_string();
        let stands = self.manifest(target)?;
        let Some(stands) = stands else {
            let why = format!("it took the manifest of `{target}`, and doesn't have it");
            return Err(RegistryError::NotARegistry { address, why });
        };
        if stands.digest != manifest.digest {
            let expected = manifest.digest.clone();
            return Err(RegistryError::OtherBytes { address, expected, found: stands.digest });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rest_that_was_asked_for_is_taken() {
        for (range, is_right) in [
            (Some("bytes 100-499/500"), true),
            (Some("bytes 100-499/*"), true),
            (Some("bytes 0-499/500"), false),
            (Some("bytes 100-498/500"), false),
            (Some("bytes 100-499/501"), false),
            (Some("100-499/500"), false),
            (Some("bytes */500"), false),
            (None, false),
        ] {
            assert_eq!(begins_at(range, 100, 500), is_right, "{range:?}");
        }
    }
}
