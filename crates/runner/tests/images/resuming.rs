//! Layers whose fetch was cut off: gone on with where the registry lets one, fetched whole where not, and believed only whole.

use std::fs;
use std::path::PathBuf;

use isobench_runner::images::{Layout, RegistryError};
use isobench_schema::ids::ImageDigest;
use isobench_testkit::{FakeImage, FakeRegistry, RegistryFault};

use crate::support::{amd64, client, faulty, tag};

const LENGTH: usize = 50_000;

/// An image with a layer in which no two places look alike.
fn image() -> FakeImage {
    let large: Vec<u8> = (0..LENGTH).map(|place| u8::try_from(place * place % 251).unwrap()).collect();
    FakeImage::new(&[b"lower", &large])
}

/// Where the large layer is asked for.
fn layer() -> String {
    format!("/blobs/{}", image().layer_digest(1).unwrap())
}

struct Half {
    folder: tempfile::TempDir,
    layout: Layout,
}

impl Half {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        Self { folder, layout }
    }

    fn of(bytes: &[u8]) -> Self {
        let half = Self::new();
        fs::write(half.unfinished(), bytes).unwrap();
        half
    }

    fn digest() -> ImageDigest {
        ImageDigest::new(image().layer_digest(1).unwrap()).unwrap()
    }

    fn unfinished(&self) -> PathBuf {
        self.folder.path().join("blobs/sha256").join(format!(".part-{}", Self::digest().hex()))
    }

    fn pull(&self, registry: &FakeRegistry) -> Result<u64, RegistryError> {
        let moved = self.layout.pull(&client(registry), &tag("a"), &amd64(), &|_, _| ())?;
        Ok(moved.expect("the tag is there").blobs)
    }

    /// Checks that the layer is there as it should be, and nothing beside it.
    fn check_whole(&self) {
        let found = fs::read(self.layout.blob_path(&Self::digest())).unwrap();
        assert_eq!(found.len(), LENGTH);
        assert_eq!(ImageDigest::of(&found), Self::digest());
        assert!(!self.unfinished().exists());
    }
}

/// Returns which parts of the large layer were asked for.
fn asked(registry: &FakeRegistry) -> Vec<Option<String>> {
    let of_layer = registry.asked().into_iter().filter(|asked| asked.target.ends_with(&layer()));
    of_layer.map(|asked| asked.range).collect()
}

fn with(faults: &[RegistryFault]) -> FakeRegistry {
    let registry = faulty(faults);
    registry.add("a", &image());
    registry
}

fn true_start() -> Vec<u8> {
    let large = image().blobs().last().unwrap().to_vec();
    large[..20_000].to_vec()
}

#[test]
fn a_layer_that_is_cut_off_is_gone_on_with_at_once() {
    let half = Half::new();
    let registry = with(&[RegistryFault::DieInBody { at: layer(), after: 20_000 }]);
    assert_eq!(half.pull(&registry).unwrap(), 3);
    half.check_whole();
    let from = |start: usize| Some(format!("bytes={start}-"));
    assert_eq!(asked(&registry), [None, from(20_000), from(40_000)]);
}

#[test]
fn what_came_before_a_registry_died_is_not_fetched_again() {
    let half = Half::new();
    let dying = with(&[RegistryFault::DieInBody { at: layer(), after: 20_000 }, RegistryFault::NoRanges]);
    let error = half.pull(&dying).unwrap_err();
    assert!(matches!(error, RegistryError::BrokenOff { got: 20_000, .. }), "{error:?}");
    // It was tried once more, and no more of it came.
    assert_eq!(asked(&dying).len(), 2);
    assert_eq!(fs::read(half.unfinished()).unwrap(), true_start());
    assert!(!half.folder.path().join("index.json").exists());
    let sound = with(&[]);
    assert_eq!(half.pull(&sound).unwrap(), 1);
    half.check_whole();
    assert_eq!(asked(&sound), [Some("bytes=20000-".to_owned())]);
    assert_eq!(half.pull(&sound).unwrap(), 0);
}

#[test]
fn a_registry_that_can_not_or_does_not_begin_there_sends_all_of_it() {
    let whole = Some("bytes=20000-".to_owned());
    for (fault, expected) in [
        (RegistryFault::NoRanges, vec![whole.clone()]),
        (RegistryFault::RefusedRanges, vec![whole.clone(), None]),
        (RegistryFault::OtherRanges, vec![whole.clone(), None]),
        // What comes isn't what is said, which the digest of the whole tells.
        (RegistryFault::LyingRanges, vec![whole.clone(), None]),
    ] {
        let half = Half::of(&true_start());
        let registry = with(&[fault]);
        half.pull(&registry).unwrap();
        half.check_whole();
        assert_eq!(asked(&registry), expected);
    }
}

#[test]
fn a_beginning_that_is_not_the_layers_is_thrown_away() {
    for (beginning, requests) in [
        (vec![9; 20_000], 2),
        // As long as the layer, or longer.
        (vec![9; LENGTH], 1),
        (vec![9; LENGTH + 1], 1),
        (Vec::new(), 1),
    ] {
        let half = Half::of(&beginning);
        let registry = with(&[]);
        half.pull(&registry).unwrap();
        half.check_whole();
        assert_eq!(asked(&registry).len(), requests);
    }
    // All of it came, and the fetch was killed before it was put into its place.
    let half = Half::of(image().blobs().last().unwrap());
    let registry = with(&[]);
    half.pull(&registry).unwrap();
    half.check_whole();
    assert!(asked(&registry).is_empty());
}

#[test]
fn a_registry_that_gives_other_bytes_in_part_and_whole_leaves_nothing() {
    let half = Half::of(&true_start());
    let registry = with(&[RegistryFault::OtherBytes { at: layer() }]);
    let error = half.pull(&registry).unwrap_err();
    assert!(matches!(error, RegistryError::OtherBytes { .. }), "{error}");
    assert!(!half.unfinished().exists() && !half.layout.blob_path(&Half::digest()).exists());
}

#[test]
fn a_link_in_the_place_of_a_beginning_is_not_followed() {
    let half = Half::new();
    let elsewhere = half.folder.path().join("mine");
    fs::write(&elsewhere, "mine").unwrap();
    std::os::unix::fs::symlink(&elsewhere, half.unfinished()).unwrap();
    let error = half.pull(&with(&[])).unwrap_err();
    assert!(matches!(error, RegistryError::Folder { .. }), "{error}");
    assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
}
