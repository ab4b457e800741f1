//! Layers and configurations: fetched and sent, with their digests checked on the way.

use std::fs::File;
use std::io::{self, Write};

use isobench_schema::ids::{Digest, ImageDigest};
use isobench_schema::images::ImagePart;
use sha2::{Digest as _, Sha256};
use ureq::http::Method;

use super::error::RegistryError;
use super::http::{Ask, Payload};
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

impl Registry {
    /// Fetches a blob into `sink`; `progress` is told how many bytes came so far.
    ///
    /// # Errors
    /// Returns an error if it can't be fetched whole, or isn't what its digest says. What was written until then must be
    /// thrown away.
    pub fn blob(&self, part: &ImagePart, sink: &mut dyn Write, progress: &dyn Fn(u64)) -> Result<(), RegistryError> {
        let address = self.address(&format!("blobs/{}", part.digest))?;
        let ask = Ask { expected_bytes: part.bytes, ..Ask::get(&address, "*/*") };
        let reply = self.send(&ask)?;
        if reply.status != 200 {
            return Err(self.unexpected(reply));
        }
        let mut hashing = Hashing { sink, hasher: Sha256::new() };
        let found = match reply.copy(part.bytes, &mut hashing, progress) {
            Ok(found) => found,
            Err(RegistryError::TooLong { address, limit }) => {
                let digest = part.digest.clone();
                return Err(RegistryError::OtherSize { address, digest, expected: limit, found: limit + 1 });
            }
            Err(error) => return Err(error),
        };
        let address = address.to_string();
        if found != part.bytes {
            let digest = part.digest.clone();
            return Err(RegistryError::OtherSize { address, digest, expected: part.bytes, found });
        }
        let found = ImageDigest::from(Digest::finish(hashing.hasher));
        if found != part.digest {
            return Err(RegistryError::OtherBytes { address, expected: part.digest.clone(), found });
        }
        Ok(())
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
