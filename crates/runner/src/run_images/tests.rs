//! What is reckoned for an image that shares layers with others, and what goes first, on a disk of the tests' own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use isobench_schema::ids::ImageDigest;
use isobench_schema::images::ImagePart;

use super::is_held;
use super::record::{self, PulledImage};
use super::room::ImageRoom;
use crate::cache_entries::{self, EntryKind};
use crate::cache_use::UseLock;

fn layer(name: &str) -> ImagePart {
    ImagePart { digest: ImageDigest::of(name.as_bytes()), bytes: 100 }
}

fn put(cache: &Path, name: &str, layers: &[&str]) -> String {
    let id = ImageDigest::of(name.as_bytes()).to_string();
    let image = PulledImage {
        id: id.clone(),
        name: name.to_owned(),
        reference: format!("registry.example/{name}"),
        socket: PathBuf::from("/nonexistent/socket"),
        root: Some(cache.to_owned()),
        bytes: 1,
        layers: layers.iter().map(|name| layer(name).digest).collect(),
    };
    image.note_there(&record::entry(cache, &id)).unwrap();
    id
}

#[test]
fn layers_are_there_that_another_image_begins_with_too() {
    let cache = tempfile::tempdir().unwrap();
    put(cache.path(), "one", &["base", "a", "b"]);
    put(cache.path(), "two", &["other"]);
    let none = BTreeSet::new();
    for (wanted, missing) in [
        (&["base", "a", "c"][..], 100),
        (&["base", "a", "b"], 0),
        (&["a", "b"], 200),
        (&["other", "base"], 100),
        (&[], 0),
    ] {
        let layers: Vec<ImagePart> = wanted.iter().map(|name| layer(name)).collect();
        let room = ImageRoom { cache: cache.path(), root: cache.path(), floor_bytes: 0, later: &none, layers: &layers };
        assert_eq!(room.missing_bytes(), missing, "{wanted:?}");
    }
}

#[test]
fn what_no_task_needs_any_more_goes_first_and_what_shares_layers_last() {
    let cache = tempfile::tempdir().unwrap();
    let needed = put(cache.path(), "needed", &["other"]);
    let shares = put(cache.path(), "shares", &["base", "a"]);
    let free = put(cache.path(), "free", &["third"]);
    let later = BTreeSet::from([needed.clone()]);
    let layers = [layer("base"), layer("b")];
    let room = ImageRoom { cache: cache.path(), root: cache.path(), floor_bytes: 0, later: &later, layers: &layers };
    let order = room.candidates().unwrap();
    let ids: Vec<String> = order.iter().map(|entry| format!("sha256:{}", entry.id)).collect();
    assert_eq!(ids, [free, shares, needed]);
    // The daemon of these images can't be asked, and so still has them.
    let entries = cache_entries::list(cache.path()).unwrap();
    assert!(entries.iter().all(|entry| entry.kind == EntryKind::Image && entry.is_whole && !entry.is_used));
    let removed = cache_entries::remove(cache.path(), &entries[0]).unwrap();
    assert_eq!(removed, cache_entries::Removed::InUse);
    assert!(cache_entries::prove(cache.path(), &entries[0]).unwrap().is_some());
}

#[test]
fn an_image_is_held_for_as_long_as_a_run_uses_it() {
    let cache = tempfile::tempdir().unwrap();
    let id = format!("sha256:{}", "a".repeat(64));
    assert!(!is_held(cache.path(), &id).unwrap());
    let held = UseLock::take(&record::entry(cache.path(), &id)).unwrap();
    assert!(is_held(cache.path(), &id).unwrap());
    drop(held);
    assert!(!is_held(cache.path(), &id).unwrap());
}
