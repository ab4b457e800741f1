//! Tests of native builds: made once for equal native trees, believed only by proof, and made again after whatever happened.

use std::path::PathBuf;
use std::process::Command;

use isobench_schema::environment::NativeBuild;

use super::*;
use crate::cache_entries::{EntryKind, Removed, list, prove as prove_entry, remove};

const FILES: &[(&str, &str)] = &[
    ("csrc/a.c", "int answer(void) { return 1; }\n"),
    ("engine/__init__.py", "VALUE = 1\n"),
    ("include/outside.h", "#define X 1\n"),
];

/// Makes a real library out of a real one: its bytes, and those of the source.
const MAKE: &str = "mkdir engine && cat /bin/sh csrc/a.c > engine/_C.so && echo built with $MAX_JOBS of {jobs}";

fn native(script: &str) -> NativeBuild {
    NativeBuild {
        paths: vec!["csrc".to_owned(), "setup.py".to_owned()],
        commands: vec![command(&["/bin/sh", "-c", script])],
        environment: BTreeMap::new(),
        outputs: vec!["engine/_C*.so".to_owned()],
        memory_per_job_mib: 1,
        timeout_s: None,
    }
}

fn spec(repository: &TestRepository, script: &str) -> EnvironmentSpec {
    EnvironmentSpec { native: Some(native(script)), ..repository.spec() }
}

fn with_patch(spec: &EnvironmentSpec, text: &str) -> EnvironmentSpec {
    let mut spec = spec.clone();
    spec.source.patch = Some(Patch::new("agent.patch", text.as_bytes().to_vec()));
    spec
}

fn change(path: &str, from: &str, to: &str) -> String {
    format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{from}\n+{to}\n")
}

fn python_patch() -> String {
    change("engine/__init__.py", "VALUE = 1", "VALUE = 2")
}

fn native_patch() -> String {
    change("csrc/a.c", "int answer(void) { return 1; }", "int answer(void) { return 2; }")
}

fn builds(place: &Place) -> usize {
    place.log().lines().filter(|line| line.starts_with("built with ")).count()
}

fn whole_builds(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("cache/native")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("manifest.json").is_file()).collect()
}

#[test]
fn arms_of_equal_native_trees_share_one_build_and_a_patch_of_native_files_makes_another() {
    let place = Place::new();
    let repository = place.repository(FILES);
    let baseline = spec(&repository, MAKE);
    repository.commit(&[("engine/__init__.py", "VALUE = 3\n"), ("engine/new.py", "")]);
    let human = spec(&repository, MAKE);
    let agent = with_patch(&baseline, &python_patch());
    let arms = [&baseline, &human, &agent].map(|spec| (prepared(&place, spec), spec));
    assert_eq!(builds(&place), 1, "{}", place.log());
    let compiled = with_patch(&baseline, &native_patch());
    let compiled = (prepared(&place, &compiled), &compiled);
    assert_eq!(builds(&place), 2, "{}", place.log());
    assert_eq!(whole_builds(&place).len(), 2);

    let proofs = arms.iter().chain([&compiled]).map(|(arm, spec)| prove(&place, arm, spec).unwrap());
    let proofs: Vec<StaticProof> = proofs.collect();
    let library = |proof: &StaticProof| proof.native.get("engine/_C.so").cloned().unwrap();
    assert!(proofs[..3].iter().all(|proof| library(proof) == library(&proofs[0])));
    assert!(proofs[..3].iter().all(|proof| proof.native_build == proofs[0].native_build));
    assert_ne!(library(&proofs[3]), library(&proofs[0]));
    assert_ne!(proofs[3].native_build, proofs[0].native_build);
    assert!(!arms[0].0.tree.join("engine/new.py").exists() && arms[1].0.tree.join("engine/new.py").is_file());
    let note = arms[2].0.manifest.native_build.as_ref().unwrap();
    assert!(std::fs::read_to_string(note.folder.join("build.log")).unwrap().contains("built with "));
    assert!(place.log().contains("the native files are those of the build "), "{}", place.log());
    for (arm, _) in arms.iter().chain([&compiled]) {
        assert_eq!(verify_unmodified(arm).unwrap(), Ok(()));
    }
}

#[test]
fn the_number_of_jobs_is_told_to_the_commands() {
    let place = Place::new();
    let repository = place.repository(FILES);
    prepared(&place, &spec(&repository, MAKE));
    let log = place.log();
    let line = log.lines().find(|line| line.starts_with("built with ")).unwrap();
    let (told, asked) = line.trim_start_matches("built with ").split_once(" of ").unwrap();
    assert!(told == asked && told.parse::<u32>().unwrap() >= 1, "{line}");
}

#[test]
fn a_build_sees_nothing_but_the_native_tree() {
    let place = Place::new();
    let repository = place.repository(FILES);
    let script = format!("test ! -e engine && test ! -e include && {MAKE}");
    let made = prepared(&place, &spec(&repository, &script));
    assert!(made.tree.join("include/outside.h").is_file());
}

#[test]
fn a_build_that_says_that_it_went_well_is_believed_only_by_its_files() {
    let cases = [
        ("makes nothing", "echo built with nothing", "`engine/_C*.so`: there is no such file"),
        ("makes a text", "mkdir engine; echo text > engine/_C.so", "is no native file"),
        ("is cut off", "mkdir engine; head -c 5000 /bin/sh > engine/_C.so", "is cut off"),
        ("takes an old one", "mkdir engine; cp -p /bin/sh engine/_C.so; touch -d 2020-01-01 engine/_C.so", "is older"),
        ("makes a link", "mkdir engine; ln -s /bin/sh engine/_C.so", "is no plain file"),
    ];
    for (name, script, expected) in cases {
        let place = Place::new();
        let repository = place.repository(FILES);
        for _ in 0..2 {
            let failure = failure_of(&place, &spec(&repository, script));
            assert_eq!((failure.class, failure.stage), (FailureClass::BuildFailed, FailureStage::Build), "{name}");
            assert!(failure.message.contains(expected), "{name}: {failure}");
        }
        assert!(whole_builds(&place).is_empty(), "{name}");
    }
}

#[test]
fn what_a_crash_left_of_a_build_or_an_engine_wrote_into_it_is_made_again() {
    let place = Place::new();
    let repository = place.repository(FILES);
    let one = spec(&repository, MAKE);
    let good = prepared(&place, &one);
    let note = good.manifest.native_build.clone().unwrap();
    let library = note.folder.join("files/engine/_C.so");
    let record = note.folder.join("manifest.json");
    let leftovers: [&dyn Fn(); 5] = [
        &|| std::fs::remove_file(&record).unwrap(),
        &|| std::fs::rename(&record, note.folder.join("manifest.unfinished")).unwrap(),
        &|| std::fs::remove_file(&library).unwrap(),
        &|| std::fs::write(&library, "half").unwrap(),
        &|| std::fs::write(note.folder.join("files/engine/more.so"), "").unwrap(),
    ];
    for (number, leave) in leftovers.iter().enumerate() {
        leave();
        // Only the arm's own record goes; what is left of the build must not be believed by itself.
        std::fs::remove_file(good.folder.join("manifest.json")).unwrap();
        let again = prepared(&place, &one);
        assert_eq!(again.manifest, good.manifest, "{number}");
        assert_eq!(builds(&place), number + 2, "{number}: {}", place.log());
    }
}

#[test]
fn an_engine_that_writes_into_a_shared_library_changes_no_other_arm() {
    let place = Place::new();
    let repository = place.repository(FILES);
    let [one, other] = [spec(&repository, MAKE), with_patch(&spec(&repository, MAKE), &python_patch())];
    let [first, second] = [prepared(&place, &one), prepared(&place, &other)];
    let good = second.manifest.native();
    super::super::fixture::rewrite_in_place(&first.tree.join("engine/_C.so"));
    assert_eq!(verify_unmodified(&first).unwrap().unwrap_err().class, FailureClass::EnvironmentModified);
    evict(&first).unwrap();
    let second = prepared(&place, &other);
    assert_eq!(second.manifest.native(), good);
    assert!(prove(&place, &second, &other).is_ok());
    let first = prepared(&place, &one);
    assert_eq!(first.manifest.native(), good);
    assert_eq!(verify_unmodified(&first).unwrap(), Ok(()));
}

#[test]
fn native_files_that_would_not_be_the_builds_are_refused() {
    let header = change("include/outside.h", "#define X 1", "#define X 2");
    let place = Place::new();
    let repository = place.repository(FILES);
    let unbuilt = failure_of(&place, &with_patch(&spec(&repository, MAKE), &header));
    assert_eq!(unbuilt.class, FailureClass::EnvironmentUnproven);
    assert!(unbuilt.message.contains("`include/outside.h`"), "{unbuilt}");

    let mut overwritten = spec(&repository, MAKE);
    overwritten.build =
        vec![command(&["/bin/sh", "-c", "echo other >> engine/_C.so.new; mv engine/_C.so.new engine/_C.so"])];
    let failure = failure_of(&place, &overwritten);
    assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
    assert_eq!(failure.message, "`engine/_C.so` isn't as the native build made it");

    repository.commit(&[("engine/_C.so", "committed")]);
    let committed = failure_of(&place, &spec(&repository, MAKE));
    assert_eq!(committed.message, "the revision holds `engine/_C.so`, which its native build makes");
    let nothing = EnvironmentSpec {
        native: Some(NativeBuild { paths: vec!["none".to_owned()], ..native(MAKE) }),
        ..repository.spec()
    };
    assert!(failure_of(&place, &nothing).message.starts_with("the revision has nothing of its native tree"));
}

#[test]
fn threads_with_arms_of_one_native_tree_build_it_once() {
    let place = Place::new();
    let repository = place.repository(FILES);
    let script = format!("sleep 0.2; {MAKE}");
    let [one, other] = [spec(&repository, &script), with_patch(&spec(&repository, &script), &python_patch())];
    std::thread::scope(|scope| {
        let threads = [&one, &other, &one, &other].map(|spec| scope.spawn(|| prepared(&place, spec).manifest.native()));
        let found = threads.map(|thread| thread.join().unwrap());
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    });
    assert_eq!(builds(&place), 1);
}

#[test]
fn a_native_build_has_a_deadline_of_its_own() {
    let place = Place::new();
    let repository = place.repository(FILES);
    let mut slow = spec(&repository, "echo waiting; sleep 600");
    slow.native = slow.native.map(|native| NativeBuild { timeout_s: Some(1), ..native });
    let failure = failure_of(&place, &slow);
    assert_eq!(failure.class, FailureClass::BuildTimeout);
    assert_eq!(failure.evidence.last().unwrap().text, "waiting");
    assert!(whole_builds(&place).is_empty());
}

#[test]
fn a_native_build_is_an_entry_of_the_cache_that_stays_while_its_trees_are_used() {
    let place = Place::new();
    let spec = spec(&place.repository(FILES), MAKE);
    let made = prepared(&place, &spec);
    made.note_use("some-run");
    let context = place.context();
    let cache = context.cache;
    let find = || list(cache).unwrap().into_iter().find(|entry| entry.kind == EntryKind::NativeBuild).unwrap();
    let entry = find();
    assert!(entry.is_whole && entry.is_used && entry.bytes > 0, "{entry:?}");
    assert!(entry.what.starts_with("native tree ") && entry.what.contains(", 1 files, built in "), "{}", entry.what);
    assert_eq!(entry.last_use.as_ref().unwrap().run, "some-run");
    assert_eq!(prove_entry(cache, &entry).unwrap(), None);
    assert_eq!(remove(cache, &entry).unwrap(), Removed::InUse);
    drop(made);
    // Taken from the cache, it is held as well.
    let again = prepared(&place, &spec);
    assert_eq!((remove(cache, &find()).unwrap(), builds(&place)), (Removed::InUse, 1));
    drop(again);
    std::fs::write(entry.folder(cache).join("files/engine/extra"), "").unwrap();
    assert!(prove_entry(cache, &entry).unwrap().unwrap().contains("added"));
    assert_eq!(remove(cache, &entry).unwrap(), Removed::Gone);
    assert!(whole_builds(&place).is_empty());
}

/// Names the small file system to the test that runs again inside the mount namespace.
const DISK: &str = "ISOBENCH_TEST_DISK";

#[test]
fn a_full_disk_loses_nothing_but_the_build() {
    if let Some(disk) = std::env::var_os(DISK) {
        return on_the_small_disk(&PathBuf::from(disk));
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=3m none \"$0\"";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(dir.path());
        command
    };
    if !unshare(mount).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: this machine lets nobody mount a file system in a namespace of its own");
        return;
    }
    let name = "environment::tests::native::a_full_disk_loses_nothing_but_the_build";
    let mut inside = unshare(&format!("{mount} && exec \"$1\" --exact {name} --nocapture"));
    let output = inside.arg(std::env::current_exe().unwrap()).env(DISK, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn on_the_small_disk(disk: &Path) {
    let place = Place::new();
    let repository = place.repository(FILES);
    let cache = disk.join("cache");
    let context = PrepareContext { cache: &cache, ..place.context() };
    // It fits while it is built; the arm's own copy, on a file system without clones, is a second name of its bytes.
    let script =
        "mkdir engine && head -c 2000000 /dev/zero | cat /bin/sh - > engine/_C.so && echo built with $MAX_JOBS";
    let fitting = prepare(&spec(&repository, script), &context).unwrap().unwrap();
    let filler = disk.join("filler");
    let mut bytes = vec![0_u8; 1_000_000];
    while std::fs::write(&filler, &bytes).is_err() {
        bytes.truncate(bytes.len() - 4096);
    }
    let compiled = with_patch(&spec(&repository, script), &native_patch());
    let error = prepare(&compiled, &context).unwrap_err();
    assert!(error.is_disk_full() && error.to_string().contains(disk.to_str().unwrap()), "{error}");
    assert_eq!(verify_unmodified(&fitting).unwrap(), Ok(()));
    let native = std::fs::read_dir(cache.join("native")).unwrap().flatten();
    assert_eq!(native.filter(|entry| entry.path().is_dir()).count(), 1, "nothing is left of the build that didn't fit");
    std::fs::remove_file(&filler).unwrap();
    let smaller = "mkdir engine && cat /bin/sh csrc/a.c > engine/_C.so";
    let again = prepare(&with_patch(&spec(&repository, smaller), &native_patch()), &context).unwrap();
    assert!(again.is_ok());
}

/// Compiles each file with a real `ccache`, and says how many objects were there.
const CACHED: &str = "ccache -z > /dev/null && mkdir engine && ccache cc -fPIC -c csrc/a.c -o a.o && \
    ccache cc -fPIC -c csrc/b.c -o b.o && cc -shared -o engine/_C.so a.o b.o && \
    ccache --print-stats | awk '/_cache_hit/ {hits += $2} /^cache_miss/ {misses = $2} END {print \"built with\", hits, misses}'";

#[test]
fn only_what_a_patch_changes_is_compiled_again_and_nobody_reads_what_a_strangers_build_made() {
    let has = |program: &str| crate::command::find_program(program).is_some();
    if !has("ccache") || !has("cc") || !has("awk") {
        println!("skipped: objects of earlier builds need `ccache`, `cc` and `awk`");
        return;
    }
    let place = Place::new();
    let b = ("csrc/b.c", "int other(void) { return 1; }\n");
    let repository = place.repository(&[FILES[0], b, FILES[1], FILES[2]]);
    let baseline = spec(&repository, CACHED);
    let compiled = with_patch(&baseline, &native_patch());
    // The same files again for another key: the stranger's objects would serve all of them.
    let mut again = compiled.clone();
    again.native.as_mut().unwrap().environment.insert("AGAIN".to_owned(), "1".to_owned());
    for spec in [&baseline, &compiled, &again] {
        prepared(&place, spec);
    }
    let log = place.log();
    let counts: Vec<&str> = log.lines().filter(|line| line.starts_with("built with ")).collect();
    assert_eq!(counts, ["built with 0 2", "built with 1 1", "built with 1 1"], "{log}");
    let kept: Vec<bool> = whole_builds(&place).iter().map(|folder| folder.join("objects").exists()).collect();
    assert_eq!(kept.iter().filter(|is_kept| **is_kept).count(), 1, "{kept:?}");
}
