//! Fetching an image into a folder and sending it from there, whole or not at all.

use std::fs;

use isobench_runner::images::{Layout, RegistryError};
use isobench_schema::ids::ImageDigest;
use isobench_testkit::{FakeImage, FakeRegistry, RegistryFault};

use crate::support::{amd64, client, faulty, tag};

fn image() -> FakeImage {
    FakeImage::new(&[&vec![7; 3000], &vec![8; 50_000]])
}

fn pull(registry: &FakeRegistry, layout: &Layout) -> Result<u64, RegistryError> {
    let moved = layout.pull(&client(registry), &tag("a"), &amd64(), &|_, _| ())?;
    Ok(moved.expect("the tag is there").blobs)
}

#[test]
fn other_bytes_than_were_named_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let image = FakeImage::new(&[b"lower case letters"]);
    let digest = image.layer_digest(0).unwrap();
    let lying = faulty(&[RegistryFault::OtherBytes { at: format!("/blobs/{digest}") }]);
    lying.add("a", &image);
    let error = pull(&lying, &layout).unwrap_err();
    assert!(matches!(error, RegistryError::OtherBytes { .. }), "{error}");
    assert!(!layout.blob_path(&ImageDigest::new(digest).unwrap()).exists());
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let error = Layout::create(folder.path()).unwrap_err().to_string();
    assert!(error.contains("it holds `notes.txt`, and no image"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_damaged_blob_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let registry = faulty(&[]);
    let image = image();
    registry.add("a", &image);
    pull(&registry, &layout).unwrap();
    let path = layout.blob_path(&ImageDigest::new(image.layer_digest(0).unwrap()).unwrap());
    fs::write(&path, "damaged").unwrap();
    assert_eq!(pull(&registry, &layout).unwrap(), 1);
    assert_eq!(fs::read(&path).unwrap(), vec![7; 3000]);
}

#[test]
fn what_a_killed_pull_left_is_swept_and_two_pulls_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let left = folder.path().join("blobs/sha256/.part-abc");
    fs::write(&left, "half").unwrap();
    let begun = folder.path().join(format!("blobs/sha256/.part-{}", "0".repeat(64)));
    fs::write(&begun, "half of another image").unwrap();
    let registry = faulty(&[]);
    registry.add("a", &image());
    pull(&registry, &layout).unwrap();
    assert!(!left.exists() && begun.exists());
    let held = fs::File::open(folder.path().join(".lock")).unwrap();
    held.lock().unwrap();
    let error = pull(&registry, &layout).unwrap_err().to_string();
    assert!(error.contains("another process is fetching into it"), "{error}");
}

#[test]
fn what_was_sent_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let from = faulty(&[]);
    from.add("a", &image());
    pull(&from, &layout).unwrap();
    let to = faulty(&[]);
    let push = |to: &FakeRegistry| layout.push(&client(to), &tag("a"), &tag("b"), &|_, _| ());
    let moved = push(&to).unwrap();
    assert_eq!((moved.digest.as_str(), moved.blobs, moved.blobs_there), (image().digest().as_str(), 3, 0));
    assert_eq!(push(&to).unwrap().blobs_there, 3);
    let forgetful = faulty(&[RegistryFault::Forgetful]);
    let error = push(&forgetful).unwrap_err().to_string();
    assert!(error.contains("it took the manifest of `b`, and doesn't have it"), "{error}");
    let other = faulty(&[RegistryFault::Forgetful]);
    other.add("b", &FakeImage::new(&[b"another"]));
    let error = push(&other).unwrap_err();
    assert!(matches!(error, RegistryError::OtherBytes { .. }), "{error}");
}

#[test]
fn a_folder_that_lacks_a_piece_sends_nothing_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let from = faulty(&[]);
    from.add("a", &image());
    pull(&from, &layout).unwrap();
    let digest = ImageDigest::new(image().layer_digest(1).unwrap()).unwrap();
    fs::write(layout.blob_path(&digest), "damaged").unwrap();
    let to = faulty(&[]);
    let error = layout.push(&client(&to), &tag("a"), &tag("a"), &|_, _| ()).unwrap_err().to_string();
    assert!(error.contains("isn't what its name says"), "{error}");
    let error = layout.push(&client(&to), &tag("none"), &tag("a"), &|_, _| ()).unwrap_err().to_string();
    assert!(error.contains("it has no image `none`"), "{error}");
    assert!(Layout::open(&folder.path().join("blobs")).is_err());
}
