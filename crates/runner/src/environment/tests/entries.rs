//! Tests of environments as entries of the cache: listed, held, proven again, removed.

use super::*;
use crate::cache_entries::{EntryKind, Removed, list, prove as prove_entry, remove};

#[test]
fn an_environment_that_is_used_stays_and_goes_when_nobody_uses_it() {
    let place = Place::new();
    let mut spec = place.repository(ENGINE).spec();
    spec.python = Python::Venv(Venv::default());
    let made = prepared(&place, &spec);
    made.note_use("some-run");
    let context = place.context();
    let cache = context.cache;
    let entries = list(cache).unwrap();
    let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.is_used, entry.is_whole)).collect();
    assert_eq!(kinds, [(EntryKind::Environment, true, true), (EntryKind::Venv, true, true)]);
    for entry in &entries {
        assert_eq!(entry.last_use.as_ref().unwrap().run, "some-run");
        assert_eq!(remove(cache, entry).unwrap(), Removed::InUse);
        assert_eq!(prove_entry(cache, entry).unwrap(), None, "{entry:?}");
    }
    let tree = made.tree.clone();
    drop(made);
    std::fs::write(tree.join("engine/__init__.py"), "VALUE = 9\n").unwrap();
    let wrong = prove_entry(cache, &entries[0]).unwrap().unwrap();
    assert!(wrong.contains("engine/__init__.py"), "{wrong}");
    for entry in &entries {
        assert_eq!(remove(cache, entry).unwrap(), Removed::Gone);
    }
    assert_eq!(list(cache).unwrap(), []);
    assert!(prove(&place, &prepared(&place, &spec), &spec).is_ok());
}

#[test]
fn what_a_crash_left_is_listed_as_unfinished() {
    let place = Place::new();
    let context = place.context();
    let folder = context.cache.join("environments").join("a".repeat(64));
    std::fs::create_dir_all(folder.join("tree")).unwrap();
    let entries = list(context.cache).unwrap();
    assert!(entries.len() == 1 && !entries[0].is_whole && !entries[0].is_used, "{entries:?}");
    assert!(prove_entry(context.cache, &entries[0]).unwrap().unwrap().contains("never finished"));
}
