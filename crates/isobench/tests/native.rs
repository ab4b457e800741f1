//! Native builds through the real command: how often they are made, counted from the events; killed, and shared by two runs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use isobench_schema::event::{BlockEnd, EventKind, LaunchStage};
use isobench_schema::failure::FailureClass;
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_testkit::FakeWheel;
use rustix::process::Signal;
use support::{Place, Running, complete_launches, events, wait_for_stage, wait_until};

/// Returns how many native builds each arm of a run began, from its events.
fn builds(run: &Path) -> BTreeMap<String, u32> {
    let mut begun = BTreeMap::new();
    for event in events(run) {
        if let EventKind::LaunchStage { launch, stage: LaunchStage::NativeBuild } = event.kind {
            *begun.entry(launch.arm.to_string()).or_default() += 1;
        }
    }
    begun
}

fn counts(expected: &[(&str, u32)]) -> BTreeMap<String, u32> {
    expected.iter().map(|(arm, count)| ((*arm).to_owned(), *count)).collect()
}

/// Lays the demo with a part in C down, made short. Returns `None`, with the reason printed, where there is no compiler.
fn place(slowed: &str) -> Option<Place> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler `cc`");
        return None;
    }
    let place = Place::new();
    place.expect(0, &["demo", "--native", "--lay-down", "--out", "demo", "--cache", "timing"]);
    let task = place.path("demo/dataset/task.toml");
    let text = fs::read_to_string(&task).unwrap();
    let requests = text.lines().find(|line| line.starts_with("requests = ")).unwrap().to_owned();
    let text = text.replace(&requests, "requests = 24").replace("min-window-s = 1.0", "min-window-s = 0.001");
    let text = text.replace("blocks = 6", "blocks = 2").replace("margin = 0.05", "margin = 0.9");
    let text = text.replace(r#"["mkdir", "tinyserve"],"#, &format!(r#"["mkdir", "tinyserve"], {slowed}"#));
    fs::write(task, text).unwrap();
    Some(place)
}

const RUN: [&str; 6] = ["run", "demo/dataset", "--out", "run", "--allow-unisolated", "--quiet"];

fn of_arm<'a>(launches: &'a [LaunchRecord], arm: &str) -> Vec<&'a LaunchRecord> {
    launches.iter().filter(|record| record.launch.arm.to_string() == arm).collect()
}

#[test]
fn three_arms_are_one_native_build_and_a_patch_of_the_c_file_is_one_more() {
    let Some(place) = place("") else { return };
    place.finish(RUN);
    let run = place.path("run");
    place.check_sound("run");
    // The human commit and the agent `python` change Python alone; `broken` doesn't compile, and isn't tried again.
    let expected = counts(&[("baseline", 1), ("agent:native", 1), ("agent:broken", 1)]);
    let begun = builds(&run);
    let of_three = |begun: &BTreeMap<String, u32>| -> u32 {
        ["baseline", "human", "agent:python"].iter().filter_map(|arm| begun.get(*arm)).sum()
    };
    assert_eq!(of_three(&begun), 1, "{begun:?}");
    assert_eq!(begun.values().sum::<u32>(), expected.values().sum::<u32>(), "{begun:?}");
    assert_eq!((begun.get("agent:native"), begun.get("agent:broken")), (Some(&1), Some(&1)), "{begun:?}");

    let launches = complete_launches(&run);
    for arm in ["baseline", "human", "agent:python", "agent:native"] {
        let launched = of_arm(&launches, arm);
        assert_eq!(launched.len(), 2, "{arm}");
        assert!(launched.iter().all(|record| record.outcome == Outcome::Measured), "{arm}: {launched:?}");
    }
    for record in of_arm(&launches, "agent:broken") {
        let Outcome::Failed { failure } = &record.outcome else { panic!("{record:?}") };
        assert_eq!(failure.class, FailureClass::BuildFailed);
    }
    let whole = fs::read_dir(place.path("cache/native")).unwrap().flatten();
    assert_eq!(whole.filter(|entry| entry.path().join("manifest.json").is_file()).count(), 2);

    // Another run finds everything in the cache.
    place.finish(["run", "demo/dataset", "--out", "again", "--allow-unisolated", "--quiet"]);
    assert_eq!(builds(&place.path("again")), counts(&[("agent:broken", 1)]));
}

#[test]
fn a_native_build_that_is_killed_leaves_nothing_that_is_believed() {
    // The file that must come of it is there when it is killed, and isn't what it will be.
    let slowed = r#"["sh", "-c", "cp /bin/sh tinyserve/_continuations.so; touch begun; sleep 2; rm tinyserve/_continuations.so"],"#;
    let Some(place) = place(slowed) else { return };
    let run = place.path("run");
    let native = place.path("cache/native");
    let mut running = Running::start(&mut place.isobench(RUN));
    wait_for_stage(&run, LaunchStage::NativeBuild);
    let begun =
        || fs::read_dir(&native).into_iter().flatten().flatten().any(|entry| entry.path().join("tree/begun").exists());
    wait_until("the build has begun", begun);
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, None);
    assert!(begun(), "it was over before");
    let finished = place.finish(RUN);
    assert!(finished.code.is_some(), "{finished:?}");
    place.check_sound("run");
    let begun = builds(&run);
    let killed = events(&run).into_iter().find_map(|event| {
        let EventKind::LaunchStage { launch, stage: LaunchStage::NativeBuild } = event.kind else { return None };
        Some(launch.arm.to_string())
    });
    let killed = killed.unwrap();
    // The broken patch of C may come first in the design's order; whichever was killed is begun again.
    assert_eq!(begun[&killed], 2, "{begun:?}");
    assert_eq!(begun.values().sum::<u32>(), 4, "{begun:?}");
    let measured = complete_launches(&run).into_iter().filter(|record| record.outcome == Outcome::Measured).count();
    assert_eq!(measured, 8);
    let made =
        fs::read_dir(&native).unwrap().flatten().map(|entry| entry.path().join("files/tinyserve/_continuations.so"));
    let shell = fs::read("/bin/sh").unwrap();
    let made: Vec<Vec<u8>> = made.filter_map(|library| fs::read(library).ok()).collect();
    assert!(made.len() == 2 && made.iter().all(|library| *library != shell));
}

#[test]
fn two_coordinators_on_one_cache_build_once() {
    let Some(place) = place(r#"["sleep", "0.5"],"#) else { return };
    thread::scope(|scope| {
        let runs = ["one", "two"].map(|name| {
            let mut command = place.isobench(["run", "demo/dataset", "--out", name, "--allow-unisolated", "--quiet"]);
            command.env("ISOBENCH_LEASES", place.path(&format!("leases-{name}")));
            scope.spawn(move || Running::start(&mut command).finish())
        });
        for run in runs {
            run.join().unwrap();
        }
    });
    let mut begun = BTreeMap::new();
    for name in ["one", "two"] {
        for (arm, count) in builds(&place.path(name)) {
            *begun.entry(arm).or_insert(0) += count;
        }
        for event in events(&place.path(name)) {
            let EventKind::BlockEnded { end, .. } = event.kind else { continue };
            assert_eq!(end, BlockEnd::Complete);
        }
    }
    let shared: u32 = ["baseline", "human", "agent:python"].iter().filter_map(|arm| begun.get(*arm)).sum();
    assert_eq!((shared, begun["agent:native"], begun["agent:broken"]), (1, 1, 2), "{begun:?}");
}

/// Lets the demo's engine be laid over what a wheel installs, and makes it short.
fn install(place: &Place, wheel: &FakeWheel) {
    let file = place.path(&wheel.file_name());
    fs::write(&file, wheel.bytes()).unwrap();
    let task = place.path("demo/dataset/task.toml");
    let text = fs::read_to_string(&task).unwrap();
    let requests = text.lines().find(|line| line.starts_with("requests = ")).unwrap().to_owned();
    let installed =
        format!("python = \"venv\"\nrequirements = [{:?}]\noverlay = \"tinyserve\"", file.display().to_string());
    let text = text.replace(&requests, "requests = 24").replace("min-window-s = 1.0", "min-window-s = 0.001");
    let text = text.replace("blocks = 6", "blocks = 1").replace("margin = 0.05", "margin = 0.9");
    fs::write(task, text.replace("python = \"system\"", &installed)).unwrap();
}

/// Returns the search path with a program before it that writes down each time that uv is started, if there is uv.
fn counted_uv(place: &Place, log: &Path) -> Option<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let uv = std::env::split_paths(&path).map(|folder| folder.join("uv")).find(|uv| uv.is_file())?;
    let bin = place.path("bin");
    fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\necho \"$1 $2\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), uv.display());
    fs::write(bin.join("uv"), script).unwrap();
    fs::set_permissions(bin.join("uv"), fs::Permissions::from_mode(0o755)).unwrap();
    Some(std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).unwrap())
}

#[test]
fn two_coordinators_on_one_cache_install_once_and_lay_each_tree_whole() {
    let place = Place::new();
    place.expect(0, &["demo", "--lay-down", "--out", "demo", "--cache", "timing"]);
    // Many files, so that installing and laying them takes a while.
    let mut wheel = FakeWheel::new("tinyserve", "1", "py3-none-any").with("tinyserve/__init__.py", "");
    for number in 0..1500 {
        wheel = wheel.with(&format!("tinyserve/made/m{number}_pb2.py"), format!("VALUE = {number}\n"));
    }
    install(&place, &wheel);
    let log = place.path("uv.log");
    let Some(path) = counted_uv(&place, &log) else {
        println!("skipped: uv isn't installed");
        return;
    };
    thread::scope(|scope| {
        let runs = ["one", "two"].map(|name| {
            let arguments = ["run", "demo/dataset", "--out", name, "--quiet", "--arm", "baseline", "--arm", "human"];
            let mut command = place.isobench(arguments);
            command.env("ISOBENCH_LEASES", place.path(&format!("leases-{name}"))).env("PATH", &path);
            scope.spawn(move || Running::start(&mut command).finish())
        });
        for run in runs {
            let finished = run.join().unwrap();
            assert!(finished.code.is_some(), "{finished:?}");
        }
    });
    let started = fs::read_to_string(&log).unwrap();
    let count = |what: &str| started.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!((count("venv"), count("pip install")), (1, 1), "one installed, the other waited: {started}");
    let whole = |folder: &str| {
        let entries = fs::read_dir(place.path("cache").join(folder)).unwrap().flatten();
        entries.map(|entry| entry.path()).filter(|entry| entry.join("manifest.json").is_file()).collect::<Vec<_>>()
    };
    assert_eq!((whole("venvs").len(), whole("environments").len()), (1, 2));
    for tree in whole("environments") {
        assert_eq!(fs::read_dir(tree.join("tree/tinyserve/made")).unwrap().count(), 1500, "{}", tree.display());
    }
    let mut proofs = BTreeSet::new();
    for name in ["one", "two"] {
        place.check_sound(name);
        let run = place.path(name);
        for event in events(&run) {
            let EventKind::BlockEnded { end, .. } = event.kind else { continue };
            assert_eq!(end, BlockEnd::Complete);
        }
        let launches = complete_launches(&run);
        assert!(launches.len() == 2 && launches.iter().all(|record| record.outcome == Outcome::Measured));
        for record in launches {
            let proof: serde_json::Value =
                serde_json::from_slice(&support::evidence(&run, &record, evidence::STATIC_PROOF)).unwrap();
            proofs.insert((record.launch.arm.to_string(), proof["modules"]["tinyserve"].to_string()));
        }
    }
    assert_eq!(proofs.len(), 2, "each arm ran from one tree in both runs: {proofs:?}");
}

#[test]
fn an_overlay_that_is_killed_is_laid_again_whole() {
    let place = Place::new();
    place.expect(0, &["demo", "--lay-down", "--out", "demo", "--cache", "timing"]);
    // Many files that only an installed package has, so that laying them takes a while.
    let mut wheel = FakeWheel::new("tinyserve", "1", "py3-none-any").with("tinyserve/__init__.py", "");
    for number in 0..4000 {
        wheel = wheel.with(&format!("tinyserve/made/m{number}_pb2.py"), format!("VALUE = {number}\n"));
    }
    install(&place, &wheel);
    let command = ["run", "demo/dataset", "--out", "run", "--quiet", "--arm", "baseline", "--arm", "human"];
    let environments = place.path("cache/environments");
    let count = || {
        let trees = fs::read_dir(&environments).into_iter().flatten().flatten();
        trees
            .map(|tree| fs::read_dir(tree.path().join("tree/tinyserve/made")).map_or(0, Iterator::count))
            .max()
            .unwrap_or(0)
    };
    let mut running = Running::start(&mut place.isobench(command));
    wait_until("files are being laid", || count() > 10);
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, None);
    let laid = count();
    let is_whole = |path: &Path| path.join("manifest.json").is_file();
    let whole = fs::read_dir(&environments).unwrap().flatten().filter(|entry| is_whole(&entry.path())).count();
    assert_eq!(whole, 0, "it was over before: {laid} files");
    let finished = place.finish(command);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    place.check_sound("run");
    let launches = complete_launches(&place.path("run"));
    assert!(launches.len() == 2 && launches.iter().all(|record| record.outcome == Outcome::Measured), "{launches:?}");
    for entry in fs::read_dir(&environments).unwrap().flatten().filter(|entry| is_whole(&entry.path())) {
        assert_eq!(fs::read_dir(entry.path().join("tree/tinyserve/made")).unwrap().count(), 4000);
    }
}
