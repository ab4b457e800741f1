//! Inputs on a disk that is really full, or becomes full in the middle of a file: a small file system in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isobench_schema::ids::Revision;
use isobench_schema::input::{FoundInput, HubKind, HubReference, HubRepository, InputRole, PlannedInput, digest_of};
use isobench_testkit::{FakeHub, HubFault, HubFile};

use super::{AskHub, Hub, HubSettings, Patience, Wanted};
use crate::cache_entries::{self, Removed};
use crate::environment::{EnvironmentError, PrepareContext};

/// Names the small file system to the test that runs again inside the mount namespace.
const DISK: &str = "ISOBENCH_TEST_DISK";
/// What each model's weights take.
const WEIGHTS: usize = 600_000;

#[test]
fn a_full_disk_costs_the_file_that_is_fetched_and_nothing_else() {
    if let Some(disk) = std::env::var_os(DISK) {
        return on_the_small_disk(&PathBuf::from(disk));
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=1536k none \"$0\"";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(dir.path());
        command
    };
    if !unshare(mount).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine lets nobody mount a file system in a namespace of its own");
        return;
    }
    let name = "inputs::disk_tests::a_full_disk_costs_the_file_that_is_fetched_and_nothing_else";
    let mut inside = unshare(&format!("{mount} && exec \"$1\" --exact {name} --nocapture"));
    let output = inside.arg(std::env::current_exe().unwrap()).env(DISK, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn settings(hub: &FakeHub, floor_bytes: u64) -> HubSettings {
    HubSettings {
        endpoint: hub.endpoint(),
        token: None,
        hub_cache: None,
        folders: Vec::new(),
        ask: AskHub::Allowed,
        patience: Patience { read: Duration::from_secs(5), pause: Duration::from_millis(10), ..Patience::default() },
        floor_bytes,
    }
}

fn planned(hub: &Hub, name: &str, context: &PrepareContext<'_>) -> PlannedInput {
    let source = HubReference {
        kind: HubKind::Model,
        repository: HubRepository::new(name).unwrap(),
        revision: Revision::new("main").unwrap(),
    };
    let found = hub.find(&Wanted { reference: &source, is_enough: &|_files| true }, context).unwrap();
    let FoundInput::Found { commit, origin, folder, files } = found else { panic!("{found:?}") };
    let bytes = files.iter().map(|file| file.bytes).sum();
    PlannedInput { role: InputRole::Model, source, commit, origin, folder, bytes, digest: digest_of(&files), files }
}

fn on_the_small_disk(disk: &Path) {
    let server = FakeHub::start().unwrap();
    for (name, byte) in [("org/one", 1_u8), ("org/two", 2), ("org/three", 3)] {
        server.add_model(name, &[("model.safetensors", &vec![byte; WEIGHTS], HubFile::Large)]);
    }
    let (cache, cancel) = (disk.join("cache"), AtomicBool::new(false));
    fs::create_dir(&cache).unwrap();
    let context = PrepareContext {
        cache: &cache,
        scratch: disk,
        log: disk,
        timeout: Duration::from_secs(60),
        cancel: &cancel,
        reaper: None,
        steps: None,
    };
    let ensure = |hub: &Hub, input: &PlannedInput| hub.ensure(input, &context, &mut |_line| {});
    let first = Hub::new(settings(&server, 0));
    let one = planned(&first, "org/one", &context);
    let held = ensure(&first, &one).unwrap().unwrap();
    held.note_use("first");

    // The disk fills up in the middle of the second model: its part is gone, the first model is as it was.
    let second = Hub::new(settings(&server, 0));
    let two = planned(&second, "org/two", &context);
    server.break_model("org/two", Some("model.safetensors"), HubFault::Slow { bytes: 60_000, pause_ms: 60 });
    let error: EnvironmentError = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            // As much as fits, as others on the disk would.
            let mut filler = fs::File::create(disk.join("filler")).unwrap();
            while std::io::Write::write_all(&mut filler, &[0_u8; 4096]).is_ok() {}
        });
        ensure(&second, &two).unwrap_err()
    });
    assert!(error.is_disk_full(), "{error}");
    let left = fs::read_dir(cache.join("inputs/blobs")).unwrap().flatten();
    let parts: Vec<_> =
        left.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "part")).collect();
    assert!(parts.is_empty(), "{parts:?}");
    fs::remove_file(disk.join("filler")).unwrap();
    server.mend();
    assert_eq!(fs::read(held.folder.join("model.safetensors")).unwrap(), vec![1; WEIGHTS]);
    drop(ensure(&second, &two).unwrap().unwrap());

    // Both are held, so that nothing can go for the third.
    let third = Hub::new(settings(&server, 0));
    let three = planned(&third, "org/three", &context);
    let error = ensure(&third, &three).unwrap_err();
    assert!(matches!(error, EnvironmentError::NoRoom { .. }) && error.is_disk_full(), "{error}");
    for entry in cache_entries::list(&cache).unwrap() {
        assert!(entry.is_used && entry.is_whole, "{entry:?}");
        assert_eq!(cache_entries::remove(&cache, &entry).unwrap(), Removed::InUse);
    }

    // Nobody uses the first any more: it goes, and only it.
    drop((held, first));
    let again = Hub::new(settings(&server, 100_000));
    ensure(&again, &three).unwrap().unwrap();
    let left: Vec<String> = cache_entries::list(&cache).unwrap().into_iter().map(|entry| entry.what).collect();
    assert!(left.len() == 2 && !left.iter().any(|what| what.contains("org/one")), "{left:?}");
    assert!(crate::disk::free_bytes(&cache).unwrap() >= 100_000);
    for entry in cache_entries::list(&cache).unwrap() {
        assert_eq!(cache_entries::prove(&cache, &entry).unwrap(), None, "{entry:?}");
    }
}
