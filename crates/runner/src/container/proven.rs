//! What is known of images that were built and proven here: a record by the image's id, which is a digest of all that it holds.

use std::path::{Path, PathBuf};

use isobench_schema::format::Stored;
use isobench_schema::ids::CommitId;
use serde::{Deserialize, Serialize};

use crate::environment::EnvironmentError;
use crate::environment::cache::{read_record, write_record};

/// An image that was proven to hold a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenImage {
    /// Its id.
    pub image: String,
    /// The commit.
    pub commit: CommitId,
    /// How many files of the commit were found in it, with the same bytes.
    pub files: u64,
    /// Where the module was imported from.
    pub module: String,
}

impl Stored for ProvenImage {
    const NAME: &'static str = "proven-image";
    const VERSION: u32 = 1;
}

impl ProvenImage {
    /// Writes the record into a cache, durably.
    ///
    /// # Errors
    /// Returns an error if it can't be written.
    pub fn keep(&self, cache: &Path) -> Result<(), EnvironmentError> {
        let folder = folder(cache, &self.image);
        std::fs::create_dir_all(&folder).map_err(EnvironmentError::write(&folder))?;
        write_record(&folder, self)
    }

    /// Returns what a cache knows of an image; none if it wasn't proven with this cache.
    pub fn of(cache: &Path, image: &str) -> Option<Self> {
        read_record::<Self>(&folder(cache, image)).filter(|record| record.image == image)
    }
}

fn folder(cache: &Path, image: &str) -> PathBuf {
    let name: String = image.chars().filter(char::is_ascii_alphanumeric).collect();
    cache.join("images/proven").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_kept_is_known() {
        let cache = tempfile::tempdir().unwrap();
        let image = format!("sha256:{}", "a".repeat(64));
        let commit = CommitId::new("0".repeat(40)).unwrap();
        let proven = ProvenImage { image: image.clone(), commit, files: 3, module: "/x/engine/__init__.py".to_owned() };
        assert_eq!(ProvenImage::of(cache.path(), &image), None);
        proven.keep(cache.path()).unwrap();
        assert_eq!(ProvenImage::of(cache.path(), &image), Some(proven));
        assert_eq!(ProvenImage::of(cache.path(), "sha256:../a"), None);
    }
}
