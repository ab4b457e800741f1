//! Tests with engines that do their worst to the cache.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn whatever_an_engine_makes_of_its_entry_it_is_a_change_and_the_entry_is_made_again() {
    let changes: &[Change] = &[
        ("added: deep", |entry| dig(&entry.join("tree"), 3000)),
        ("added: endless", |entry| File::create(entry.join("tree/endless")).unwrap().set_len(1 << 42).unwrap()),
        ("changed: run.sh", |entry| {
            OpenOptions::new().write(true).open(entry.join("tree/run.sh")).unwrap().set_len(1 << 42).unwrap();
        }),
        ("removed: engine", |entry| {
            fs::rename(entry.join("tree"), entry.join("away")).unwrap();
            symlink(entry.join("away"), entry.join("tree")).unwrap();
        }),
        ("removed: engine", |entry| {
            fs::remove_dir_all(entry.join("tree")).unwrap();
            fs::write(entry.join("tree"), "").unwrap();
        }),
        ("removed: engine", |entry| {
            fs::remove_dir_all(entry.join("tree")).unwrap();
            fs::remove_file(entry.join("manifest.json")).unwrap();
            fs::create_dir_all(entry.join("manifest.json/inner")).unwrap();
        }),
        ("removed: engine", |entry| {
            let outside = entry.parent().unwrap().parent().unwrap().join("outside");
            fs::create_dir(&outside).unwrap();
            fs::set_permissions(&outside, Permissions::from_mode(0o500)).unwrap();
            fs::remove_dir_all(entry).unwrap();
            symlink(&outside, entry).unwrap();
        }),
        ("removed: engine", |entry| fs::remove_dir_all(entry).unwrap()),
    ];
    let place = Place::new();
    let spec = place.repository(ENGINE).spec();
    let first = prepared(&place, &spec);
    for (expected, change) in changes {
        let environment = prepared(&place, &spec);
        change(&environment.folder);
        let failure = verify_unmodified(&environment).unwrap().expect_err(expected);
        assert_eq!(failure.class, FailureClass::EnvironmentModified);
        assert_eq!(failure.evidence[0].text, *expected);
        let unproven = prove(&place, &environment, &spec).unwrap_err();
        assert_eq!(unproven.class, FailureClass::EnvironmentUnproven);
        evict(&environment).unwrap();
        let again = prepared(&place, &spec);
        assert_eq!(again.manifest, first.manifest);
        assert!(prove(&place, &again, &spec).is_ok());
    }
    let outside = place.path("cache/outside").metadata().unwrap();
    assert_eq!(outside.permissions().mode() & 0o777, 0o500, "a link isn't followed");
    let kept = fs::read_dir(place.path("cache/environments")).unwrap().count();
    assert_eq!(kept, 2, "the entry and its lock");
}

#[test]
fn a_tree_that_holds_what_cannot_be_looked_at_is_unproven() {
    let place = Place::new();
    let mut spec = place.repository(ENGINE).spec();
    spec.build = vec![command(&["{python}", "-c", "import os; os.mkfifo('pipe')"])];
    let failure = prove(&place, &prepared(&place, &spec), &spec).unwrap_err();
    assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
    assert!(failure.evidence[0].text.ends_with(": pipe"), "{failure:?}");
}
