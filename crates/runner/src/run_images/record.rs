//! Images that isobench had a daemon fetch, as entries of the cache: what they are, and removing them from the daemon.
//!
//! An image that was on the machine before is nobody's to remove, and has no entry.

use std::fs;
use std::path::{Path, PathBuf};

use isobench_schema::format::{self, Stored};
use isobench_schema::ids::ImageDigest;
use isobench_schema::images::ImagePart;
use serde::{Deserialize, Serialize};

use crate::container::{Daemon, ImageRemoved, ask};
use crate::environment::EnvironmentError;
use crate::environment::cache::{read_record, write_record};

/// What is written before an image is fetched, so that one is found that came when its record couldn't be written any more.
const ASKED: &str = "asked.json";

/// An image that isobench had a daemon fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PulledImage {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// The name by which it was fetched.
    pub reference: String,
    /// The daemon's socket.
    pub socket: PathBuf,
    /// Where the daemon keeps images, if it says so.
    pub root: Option<PathBuf>,
    /// What it takes with all its layers, which others may share; 0 until it is there.
    pub bytes: u64,
    /// Its layers as its registry has them, the lowest first, if they are known.
    pub layers: Vec<ImageDigest>,
}

impl Stored for PulledImage {
    const NAME: &'static str = "pulled-image";
    const VERSION: u32 = 1;
}

impl PulledImage {
    /// Returns what it is, in a few words.
    pub(crate) fn words(&self) -> String {
        format!("{}, {} layers", self.name, self.layers.len())
    }

    /// Says in the cache that it is about to be fetched.
    pub(super) fn note_asked(&self, folder: &Path) -> Result<(), EnvironmentError> {
        let place = folder.join(ASKED);
        fs::create_dir_all(folder).map_err(EnvironmentError::write(folder))?;
        fs::write(&place, format::to_pretty(self)?).map_err(EnvironmentError::write(&place))
    }

    /// Makes its entry whole.
    pub(super) fn note_there(&self, folder: &Path) -> Result<(), EnvironmentError> {
        fs::create_dir_all(folder).map_err(EnvironmentError::write(folder))?;
        write_record(folder, self)
    }

    /// Returns how many of these layers it begins with.
    pub(super) fn begins_with(&self, layers: &[ImagePart]) -> usize {
        self.layers.iter().zip(layers).take_while(|(own, other)| **own == other.digest).count()
    }
}

/// Returns the folder of the cache that holds the entries of images.
pub(crate) fn pulled_images_folder(cache: &Path) -> PathBuf {
    cache.join("pulled-images")
}

/// Returns the entry of an image.
pub(super) fn entry(cache: &Path, id: &str) -> PathBuf {
    pulled_images_folder(cache).join(id.split_once(':').map_or(id, |(_, hex)| hex))
}

/// Returns what an entry says of its image, whether it was finished or not.
pub(crate) fn read(folder: &Path) -> Option<PulledImage> {
    read_record(folder).or_else(|| format::from_slice(&fs::read(folder.join(ASKED)).ok()?).ok())
}

/// Returns the images that are there, as far as their entries are finished.
pub(super) fn there(cache: &Path) -> Vec<PulledImage> {
    let entries = fs::read_dir(pulled_images_folder(cache)).into_iter().flatten().flatten();
    entries.filter_map(|entry| read_record(&entry.path())).collect()
}

/// Removes the image of an entry from its daemon. One that can't be asked still has it.
pub(crate) fn remove_from_daemon(folder: &Path) -> ImageRemoved {
    let Some(image) = read(folder) else { return ImageRemoved::Gone };
    let removed = ask(async { Daemon::connect_to(&image.socket).await?.release_image(&image.reference).await });
    removed.unwrap_or(ImageRemoved::Used)
}

/// Returns what is wrong with an entry's image, if something is.
pub(crate) fn prove_pulled(folder: &Path) -> Option<String> {
    let Some(image) = read_record::<PulledImage>(folder) else { return Some("its record can't be read".to_owned()) };
    match ask(async { Daemon::connect_to(&image.socket).await?.image(&image.id).await }) {
        Ok((found, _)) if found.id == image.id => None,
        Ok((found, _)) => Some(format!("the daemon has `{}` in its place", found.id)),
        Err(error) => Some(crate::container::with_cause(&error)),
    }
}
