//! A disk that becomes full in a pull, a native build and an overlay, through the real command: the step is lost and nothing
//! else, the error names the place and the next step, and the same command goes on once there is room.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod support;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use isobench_schema::outcome::Outcome;
use isobench_testkit::{FakeImage, FakeRegistry, FakeWheel, RegistryFault, RegistrySettings};
use support::{Finished, Place, Running, complete_launches, wait_until};

/// Names the small file system to a test that runs again inside the mount namespace.
const DISK: &str = "ISOBENCH_TEST_DISK";
/// The exit code of what the machine is at fault for.
const MACHINE: i32 = 3;

/// Runs a test again with a small file system of its own, and returns that file system's folder to the one that runs there.
fn small_disk(test: &str, size: &str) -> Option<PathBuf> {
    if let Some(disk) = std::env::var_os(DISK) {
        return Some(PathBuf::from(disk));
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size={size} none \"$0\"");
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(dir.path());
        command
    };
    if !unshare(&mount).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: this machine lets nobody mount a file system in a namespace of its own");
        return None;
    }
    let mut inside = unshare(&format!("{mount} && exec \"$1\" --exact {test} --nocapture"));
    let output = inside.arg(std::env::current_exe().unwrap()).env(DISK, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
    None
}

/// Fills a disk until so many bytes are left.
fn fill(disk: &Path, left: usize) -> PathBuf {
    let filler = disk.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0_u8; 4096]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(left as u64)).unwrap();
    filler
}

/// Returns the command with its cache on the small disk.
fn command(place: &Place, disk: &Path, arguments: &[&str]) -> Command {
    let mut command = place.isobench(arguments);
    command.env("ISOBENCH_CACHE", disk.join("cache")).env("XDG_CACHE_HOME", disk.join("cache"));
    command.env("ISOBENCH_DISK_FLOOR", "0").env("DOCKER_CONFIG", place.path("docker"));
    command
}

/// Runs the command with its cache on the small disk.
fn isobench(place: &Place, disk: &Path, arguments: &[&str]) -> Finished {
    Finished::of(&mut command(place, disk, arguments))
}

/// Checks that a run was stopped by the full disk, and says where and what to do.
fn check_stopped(finished: &Finished, disk: &Path) {
    assert_eq!(finished.code, Some(MACHINE), "{finished:?}");
    finished.says(&[disk.to_str().unwrap(), "the disk is full: free some room, then give the same command again"]);
}

/// Makes the demo's task short.
fn shorten(task: &Path) -> String {
    let text = fs::read_to_string(task).unwrap();
    let requests = text.lines().find(|line| line.starts_with("requests = ")).unwrap().to_owned();
    let text = text.replace(&requests, "requests = 24").replace("min-window-s = 1.0", "min-window-s = 0.001");
    text.replace("blocks = 6", "blocks = 1").replace("margin = 0.05", "margin = 0.9")
}

/// Checks that a run is sound and so many launches of it were measured.
fn check_measured(place: &Place, run: &str, count: usize) {
    place.check_sound(run);
    let launches = complete_launches(&place.path(run));
    let measured = launches.iter().filter(|record| record.outcome == Outcome::Measured).count();
    assert_eq!((measured, launches.len()), (count, count), "{launches:?}");
}

#[test]
fn a_pull_that_fills_the_disk_loses_the_blob_that_did_not_fit() {
    let Some(disk) = small_disk("a_pull_that_fills_the_disk_loses_the_blob_that_did_not_fit", "4m") else { return };
    let place = Place::new();
    fs::create_dir(place.path("docker")).unwrap();
    let image = FakeImage::new(&[b"lower", &vec![5; 24_000]]);
    let at = format!("/blobs/{}", image.layer_digest(1).unwrap());
    let slow = RegistryFault::Slow { at, gap: Duration::from_micros(100) };
    let registry = FakeRegistry::start(RegistrySettings { faults: vec![slow], ..RegistrySettings::default() });
    registry.add("a", &image);
    let out = disk.join("image");
    let arguments =
        ["images", "pull", &format!("{}:a", registry.repository()), "--out", out.to_str().unwrap(), "--json"];
    // There is room for it when it begins, and somebody else takes that meanwhile.
    let pull = Running::start(&mut command(&place, &disk, &arguments));
    wait_until("the upper layer is on its way", || {
        let blobs = fs::read_dir(out.join("blobs/sha256")).into_iter().flatten().flatten();
        blobs.filter(|entry| entry.metadata().is_ok_and(|found| found.len() > 0)).count() == 3
    });
    let filler = fill(&disk, 0);
    let stopped = pull.finish();
    assert_eq!(stopped.code, Some(MACHINE), "{stopped:?}");
    stopped.says(&[out.to_str().unwrap(), "free some room"]);
    let blobs: Vec<_> =
        fs::read_dir(out.join("blobs/sha256")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(blobs.len() == 2 && !blobs.iter().any(|name| name.to_string_lossy().starts_with(".part-")), "{blobs:?}");
    assert!(!out.join("index.json").exists());

    fs::remove_file(filler).unwrap();
    let pulled = isobench(&place, &disk, &arguments);
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    let moved: serde_json::Value = serde_json::from_str(&pulled.stdout).unwrap();
    assert_eq!((&moved["blobs"], &moved["blobs_there"]), (&1.into(), &2.into()), "{moved:#}");
}

#[test]
fn a_native_build_that_fills_the_disk_is_nobodys_failure_and_is_made_again() {
    let name = "a_native_build_that_fills_the_disk_is_nobodys_failure_and_is_made_again";
    let Some(disk) = small_disk(name, "24m") else { return };
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler `cc`");
        return;
    }
    let place = Place::new();
    place.expect(0, &["demo", "--native", "--lay-down", "--out", "demo", "--cache", "timing"]);
    let task = place.path("demo/dataset/task.toml");
    let large = r#"["mkdir", "tinyserve"], ["sh", "-c", "head -c 8000000 /dev/zero > objects && rm objects"],"#;
    fs::write(&task, shorten(&task).replace(r#"["mkdir", "tinyserve"],"#, large)).unwrap();
    let run = ["run", "demo/dataset", "--out", "run", "--quiet", "--arm", "baseline", "--arm", "human"];
    let filler = fill(&disk, 4_000_000);
    check_stopped(&isobench(&place, &disk, &run), &disk);
    let whole = fs::read_dir(disk.join("cache/native")).unwrap().flatten().filter(|entry| entry.path().is_dir());
    assert_eq!(whole.count(), 0, "nothing is left of the build");

    fs::remove_file(filler).unwrap();
    let finished = isobench(&place, &disk, &run);
    assert!(finished.code.is_some(), "{finished:?}");
    check_measured(&place, "run", 2);
}

#[test]
fn an_overlay_that_fills_the_disk_loses_the_tree_that_did_not_fit() {
    let name = "an_overlay_that_fills_the_disk_loses_the_tree_that_did_not_fit";
    let Some(disk) = small_disk(name, "160m") else { return };
    let place = Place::new();
    place.expect(0, &["demo", "--lay-down", "--out", "demo", "--cache", "timing"]);
    let data = "x".repeat(6_000_000);
    let wheel = FakeWheel::new("tinyserve", "1", "py3-none-any").with("tinyserve/__init__.py", "");
    let wheel = wheel.with("tinyserve/data.txt", data);
    let file = place.path(&wheel.file_name());
    fs::write(&file, wheel.bytes()).unwrap();
    let task = place.path("demo/dataset/task.toml");
    let installed =
        format!("python = \"venv\"\nrequirements = [{:?}]\noverlay = \"tinyserve\"", file.display().to_string());
    fs::write(&task, shorten(&task).replace("python = \"system\"", &installed)).unwrap();
    let of = |out: &'static str, arm: &'static str| ["run", "demo/dataset", "--out", out, "--quiet", "--arm", arm];
    let first = [&of("first", "baseline")[..], &["--against-itself"]].concat();
    let finished = isobench(&place, &disk, &first);
    assert!(finished.code.is_some() && disk.join("cache/venvs").is_dir(), "{finished:?}");
    let trees = || {
        let entries = fs::read_dir(disk.join("cache/environments")).unwrap().flatten();
        entries.filter(|entry| entry.path().join("manifest.json").is_file()).count()
    };
    let before = trees();
    assert_eq!(before, 1, "{finished:?}");

    let second = ["run", "demo/dataset", "--out", "second", "--quiet", "--arm", "baseline", "--arm", "human"];
    let filler = fill(&disk, 3_000_000);
    check_stopped(&isobench(&place, &disk, &second), &disk);
    assert_eq!(trees(), before, "what was there is there, and nothing in part counts");
    fs::remove_file(filler).unwrap();
    let finished = isobench(&place, &disk, &second);
    assert!(finished.code.is_some(), "{finished:?}");
    check_measured(&place, "second", 2);
    assert_eq!(trees(), 2);
    prune_to_a_floor(&place, &disk);
}

/// Checks that what no run uses goes until the floor holds, and no more than that.
fn prune_to_a_floor(place: &Place, disk: &Path) {
    let filler = fill(disk, 2_000_000);
    let free = || isobench_runner::disk::free_bytes(disk).unwrap();
    let entries = || {
        let listed = isobench(place, disk, &["environments", "list", "--json"]);
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
        listed.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = entries();
    let prune = |more: &[&str]| isobench(place, disk, &[&["environments", "prune"], more].concat());
    // 1 MiB is free already.
    let nothing = prune(&["--disk-floor", "0.001"]);
    assert_eq!((nothing.code, entries()), (Some(0), before.clone()), "{nothing:?}");
    let would = prune(&["--disk-floor", "0.006", "--dry-run"]);
    assert_eq!((would.code, entries()), (Some(0), before.clone()), "{would:?}");
    would.says(&["would go"]);
    let some = prune(&["--disk-floor", "0.006"]);
    assert_eq!(some.code, Some(0), "{some:?}");
    assert!(free() >= 6_400_000, "{some:?}");
    let after = entries();
    assert!(!after.is_empty() && after.len() < before.len(), "{before:?} {after:?}");
    let all = prune(&["--disk-floor", "1"]);
    assert_eq!((all.code, entries().len()), (Some(MACHINE), 0), "{all:?}");
    all.says(&[disk.to_str().unwrap(), "are to stay free", "nothing that no run uses is left"]);
    fs::remove_file(filler).unwrap();
}

/// Fills the disk while an installer, found by this search path, installs, and checks that nobody is blamed for it.
fn check_installer(disk: &Path, path: &std::ffi::OsStr, cache: &str) {
    let place = Place::new();
    place.expect(0, &["demo", "--lay-down", "--out", "demo", "--cache", "timing"]);
    let wheel = FakeWheel::new("tinyserve", "1", "py3-none-any").with("tinyserve/__init__.py", "");
    let wheel = wheel.with("tinyserve/data.txt", "x".repeat(48_000_000));
    let file = place.path(&wheel.file_name());
    fs::write(&file, wheel.bytes()).unwrap();
    let task = place.path("demo/dataset/task.toml");
    let installed = format!("python = \"venv\"\nrequirements = [{:?}]", file.display().to_string());
    fs::write(&task, shorten(&task).replace("python = \"system\"", &installed)).unwrap();
    let cache = disk.join(cache);
    let run = || {
        let arguments = ["run", "demo/dataset", "--out", "run", "--quiet", "--arm", "baseline", "--arm", "human"];
        let mut command = place.isobench(arguments);
        command.env("ISOBENCH_CACHE", &cache).env("XDG_CACHE_HOME", &cache).env("ISOBENCH_DISK_FLOOR", "0");
        Finished::of(command.env("PATH", path).env("HOME", place.root()))
    };
    // The installer's own parts fit, and what it installs doesn't.
    let filler = fill(disk, 32_000_000);
    check_stopped(&run(), disk);
    let launches = complete_launches(&place.path("run"));
    assert!(launches.is_empty(), "no arm is blamed: {launches:?}");
    let whole = || {
        let entries = fs::read_dir(cache.join("venvs")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().join("manifest.json").is_file()).count()
    };
    assert_eq!(whole(), 0, "nothing that is half installed is believed");

    fs::remove_file(filler).unwrap();
    let finished = run();
    assert!(finished.code.is_some(), "{finished:?}");
    check_measured(&place, "run", 2);
    assert_eq!(whole(), 1);
}

#[test]
fn an_installer_that_fills_the_disk_is_nobodys_failure() {
    let Some(disk) = small_disk("an_installer_that_fills_the_disk_is_nobodys_failure", "320m") else { return };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if folders.iter().any(|folder| folder.join("uv").is_file()) {
        check_installer(&disk, &path, "with-uv");
        fs::remove_dir_all(disk.join("with-uv")).unwrap();
    } else {
        println!("skipped: uv isn't installed");
    }
    // The interpreter's own `venv` and pip, where no uv is found.
    let plain = std::env::join_paths(folders.iter().filter(|folder| !folder.join("uv").is_file())).unwrap();
    let venv = ["-c", "import ensurepip, venv"];
    if Command::new("python3").args(venv).env("PATH", &plain).output().is_ok_and(|output| output.status.success()) {
        check_installer(&disk, &plain, "with-pip");
    } else {
        println!("skipped: this Python has no `venv` and `ensurepip` of its own");
    }
}
