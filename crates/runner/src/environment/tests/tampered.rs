//! Tests with engines that do their worst to the cache.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::symlink;

use super::super::cache::write_record;
use super::super::fixture::rewrite_in_place;
use super::super::manifest::scan;
use super::super::overlay::{Origin, Overlay, lay};
use super::super::venv::isolated;
use super::*;

/// Returns the specifications of two arms that share the native library of one virtual environment.
fn overlays(place: &Place) -> [EnvironmentSpec; 2] {
    let repository = place.repository(ENGINE);
    let python = Python::Venv(Venv { requirements: vec![wheel(place)], ..Venv::default() });
    [repository.spec(), patched(&repository, PATCH)].map(|spec| EnvironmentSpec {
        python: python.clone(),
        overlay: Some("engine".to_owned()),
        ..spec
    })
}

const LIBRARY: &str = "engine/_C.abi3.so";

#[test]
fn a_library_that_an_engine_rewrote_in_place_is_found_and_no_arm_gets_it() {
    let place = Place::new();
    let specs = overlays(&place);
    let arms = specs.each_ref().map(|spec| prepared(&place, spec));
    let library = arms[0].tree.join(LIBRARY);
    let good = fs::read(&library).unwrap();
    assert_eq!(library.metadata().unwrap().nlink(), 3, "the installed library, and the trees of two arms");
    for (arm, spec) in arms.iter().zip(&specs) {
        assert!(prove(&place, arm, spec).is_ok());
        assert_eq!(verify_unmodified(arm).unwrap(), Ok(()));
    }
    rewrite_in_place(&library);
    let failure = verify_unmodified(&arms[0]).unwrap().unwrap_err();
    assert_eq!(failure.class, FailureClass::EnvironmentModified);
    assert_eq!(failure.evidence.len(), 2, "the tree and the virtual environment: {failure:?}");
    assert_eq!(prove(&place, &arms[1], &specs[1]).unwrap_err().class, FailureClass::EnvironmentUnproven);
    // An overlay that another run lays in this moment doesn't get it.
    let (source, tree, patched) = (place.path("repository"), place.path("tree"), std::collections::BTreeSet::new());
    let overlay = Overlay { package: "engine", held: None, source: &source, tree: &tree, patched: &patched };
    let laid = lay(&overlay, arms[0].manifest.venv.as_ref().map(Origin::Venv));
    let Err(Stop::Failed(failure)) = laid else { panic!("the library isn't what was installed: {laid:?}") };
    assert!(failure.class == FailureClass::HostError && failure.transient, "{failure}");
    evict(&arms[0]).unwrap();
    for (arm, spec) in arms.iter().zip(&specs) {
        let again = prepared(&place, spec);
        assert_eq!(fs::read(again.tree.join(LIBRARY)).unwrap(), good);
        assert_eq!(again.manifest.tree, arm.manifest.tree);
        assert!(prove(&place, &again, spec).is_ok());
    }
}

#[test]
fn our_own_interpreters_run_no_bytecode_that_lies_in_a_virtual_environment() {
    const POISON: &str = r"
import importlib.util, os, py_compile, sys
module, code = sys.argv[1:]
place = importlib.util.cache_from_source(module)
os.makedirs(os.path.dirname(place), exist_ok=True)
py_compile.compile(code, place, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
";
    let place = Place::new();
    let mut spec = place.repository(ENGINE).spec();
    spec.python = Python::Venv(Venv::default());
    let environment = prepared(&place, &spec);
    let python = environment.python.clone().unwrap();
    let module = environment.manifest.venv.unwrap().site_packages[0].join("sitecustomize.py");
    let (code, marker) = (place.path("poison.py"), place.path("marker"));
    fs::write(&module, "").unwrap();
    fs::write(&code, format!("open({:?}, 'w')\n", marker.display().to_string())).unwrap();
    let run = |arguments: Vec<std::ffi::OsString>| {
        let _ = fs::remove_file(&marker);
        assert!(std::process::Command::new(&python).args(arguments).status().unwrap().success());
        marker.exists()
    };
    run(vec!["-I".into(), "-c".into(), POISON.into(), module.into(), code.into()]);
    assert!(run(vec!["-I".into(), "-B".into(), "-c".into(), "pass".into()]), "the poison works");
    let mut arguments = isolated(&place.path("scratch"));
    arguments.push("pass".into());
    assert!(!run(arguments));
}

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
    assert_eq!(kept, 3, "the entry and its locks");
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

#[test]
fn a_tree_that_an_engine_rewrote_together_with_its_record_is_made_again() {
    let place = Place::new();
    let spec = place.repository(ENGINE).spec();
    let (known, first) = (KnownTrees::default(), prepared(&place, &spec));
    known.note(&first.id, &first.manifest.tree);
    fs::write(first.tree.join("engine/__init__.py"), "VALUE = 9\n").unwrap();
    let files = scan(&first.tree).unwrap();
    let tree = Digest::of_json(&files).unwrap();
    write_record(&first.folder, &Manifest { tree, files, ..first.manifest.clone() }).unwrap();
    assert!(prove(&place, &prepared(&place, &spec), &spec).is_ok(), "by itself it looks whole");
    let again = prepare_known(&spec, &place.context(), &known).unwrap().unwrap();
    assert_eq!(again.manifest, first.manifest);
    assert!(prove(&place, &again, &spec).is_ok());
}

#[test]
fn an_environment_that_has_another_tree_in_a_later_block_is_unproven() {
    let place = Place::new();
    let mut spec = place.repository(ENGINE).spec();
    spec.build = vec![command(&["cp", "/proc/sys/kernel/random/uuid", "built"])];
    let known = KnownTrees::default();
    let first = prepare_known(&spec, &place.context(), &known).unwrap().unwrap();
    known.note(&first.id, &first.manifest.tree);
    let second = prepare_known(&spec, &place.context(), &known).unwrap().unwrap();
    assert_eq!(second.manifest, first.manifest);
    evict(&second).unwrap();
    let failure = prepare_known(&spec, &place.context(), &known).unwrap().unwrap_err();
    assert_eq!((failure.class, failure.stage), (FailureClass::EnvironmentUnproven, FailureStage::Verify));
    assert_eq!(failure.check, Some(Check::SameTree.into()));
    let lines: Vec<&str> = failure.evidence.iter().filter_map(|line| line.text.split(": ").next()).collect();
    assert_eq!(lines, ["earlier", "in the cache", "made again"]);
    assert!(failure.evidence[0].text.ends_with(first.manifest.tree.as_str()), "{failure:?}");
}
