//! An image of a folder, every piece of which is there as its digest says.

use std::path::PathBuf;

use isobench_schema::images::ImagePart;

use super::error::RegistryError;
use super::layout::Layout;
use super::manifest::{ImageManifest, Manifest};
use super::reference::Target;
use super::registry::FetchedManifest;

/// An image that a folder holds whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage {
    /// Its manifest, as bytes.
    pub fetched: FetchedManifest,
    /// Its manifest, as read.
    pub manifest: ImageManifest,
}

impl StoredImage {
    /// Returns the configuration and each layer once.
    pub fn parts(&self) -> Vec<&ImagePart> {
        self.manifest.parts()
    }

    /// Returns what its pieces take, in bytes.
    pub fn bytes(&self) -> u64 {
        self.parts().iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }
}

impl Layout {
    /// Returns the image that the folder has under a tag or digest.
    ///
    /// # Errors
    /// Returns an error if it has none, or a piece of it is missing or isn't what its name says.
    pub fn stored(&self, target: &Target) -> Result<StoredImage, RegistryError> {
        let fetched = self.manifest(target)?;
        let path = self.blob_path(&fetched.digest);
        let manifest = match fetched.read() {
            Ok(Manifest::Image(manifest)) => manifest,
            Ok(Manifest::List(_)) => {
                let why = "it is a list of images by platform, and one image is asked for".to_owned();
                return Err(RegistryError::Layout { path, why });
            }
            Err(why) => return Err(RegistryError::Layout { path, why }),
        };
        let stored = StoredImage { fetched, manifest };
        for part in stored.parts() {
            if !self.has(part)? {
                let path: PathBuf = self.blob_path(&part.digest);
                let why = "it isn't there, or isn't what its name says".to_owned();
                return Err(RegistryError::Layout { path, why });
            }
        }
        Ok(stored)
    }
}
