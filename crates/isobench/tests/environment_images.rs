//! Arms whose environments come from images, on a real daemon: each runs in its own, and the engine's package is copied out of
//! each once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use isobench_schema::environment::{LiveProof, StaticProof};
use isobench_schema::failure::FailureClass;
use isobench_schema::ids::Digest;
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use support::daemons::{IMAGE, SYSTEM_PATH, TestDaemon};
use support::{Finished, Place, complete_launches};

/// The native file that only the images have: what a build of the engine would leave.
const NATIVE: &str = "tinyserve/_made.so";
/// A repository of a registry that refuses to be asked, so that nothing but this machine has its images.
const REPOSITORY: &str = "127.0.0.1:9/demo";
const ARMS: [&str; 6] = ["--arm", "baseline", "--arm", "human", "--arm", "agent:optimised"];

#[test]
fn arms_run_from_their_own_images() {
    if !support::is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return;
    }
    let daemon = match TestDaemon::docker() {
        Ok(daemon) => daemon,
        Err(why) => {
            println!("skipped: images on a real daemon: {why}");
            return;
        }
    };
    daemon.make_image();
    let place = demo(&daemon);
    let [baseline, human] = ["baseline", "human"].map(|revision| commit(&place, revision));
    let short = &baseline[..12];
    let names = [format!("{REPOSITORY}:baseline-{short}"), format!("{REPOSITORY}:{human}")];
    let missing = isobench(&daemon, &place, "missing", &ARMS);
    assert_eq!(missing.code, Some(4), "{missing:?}");
    assert!(missing.stdout.contains(&names[0]) && missing.stdout.contains("connection refused"), "{missing:?}");

    let ids = BTreeMap::from([
        ("baseline", make_image(&daemon, &place, "baseline", &names[0])),
        ("human", make_image(&daemon, &place, "human", &names[1])),
    ]);
    assert_ne!(ids["baseline"], ids["human"]);
    let finished = isobench(&daemon, &place, "run", &ARMS);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for arm in ["human", "agent:optimised"] {
        let contrast = place.contrast("run", arm, "baseline");
        assert_eq!(contrast["verdict"], "better", "{contrast:#}");
    }
    let run = place.path("run");
    let native = Digest::of(native_file().as_slice());
    for record in complete_launches(&run) {
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
        let arm = record.launch.arm.to_string();
        let image = &ids[if arm == "human" { "human" } else { "baseline" }];
        let proven: StaticProof = read(&run, &record, evidence::STATIC_PROOF);
        assert_eq!(&proven.image.as_ref().unwrap().id, image, "{arm}");
        assert_eq!(proven.native.get(NATIVE), Some(&native));
        assert!(proven.packages.iter().any(|package| package.starts_with("tinyserve==")), "{proven:?}");
        assert!(proven.modules["tinyserve"].starts_with(place.path("cache").to_str().unwrap()), "{proven:?}");
        assert_eq!(proven.changed.is_empty(), arm != "agent:optimised");
        let live: LiveProof = read(&run, &record, evidence::LIVE_PROOF);
        assert_eq!(&live.container.unwrap().image_id, image, "{arm}");
        assert_eq!(Some(live.executable), proven.executable);
    }
    place.check_sound("run");
    let copies = copies(&place);
    assert_eq!(copies.len(), 2, "one for each image: {copies:?}");

    // Another run finds them as they were left.
    let once = [&ARMS[..4], &["--set", "design.blocks=1"]].concat();
    let finished = isobench(&daemon, &place, "again", &once);
    assert!(matches!(finished.code, Some(0 | 100)), "{finished:?}");
    assert_eq!(self::copies(&place), copies);

    // An image that isn't of the revision that its name says.
    daemon.docker_says(&["tag", &names[0], &names[1]]);
    let finished = isobench(&daemon, &place, "wrong", &once);
    assert_eq!(finished.code, Some(100), "{finished:?}");
    let launches = complete_launches(&place.path("wrong"));
    let human = launches.iter().find(|record| record.launch.arm.to_string() == "human").unwrap();
    let Outcome::Failed { failure } = &human.outcome else { panic!("{human:?}") };
    assert_eq!(failure.class, FailureClass::EnvironmentUnproven, "{failure:?}");
    assert!(failure.message.contains("`tinyserve` isn't of the revision"), "{failure:?}");
    assert!(failure.evidence[0].text.starts_with("another file in the image: "), "{failure:?}");
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
}

fn read<T: serde::de::DeserializeOwned>(run: &Path, record: &LaunchRecord, name: &str) -> T {
    serde_json::from_slice(&support::evidence(run, record, name)).unwrap()
}

/// Returns the copies of packages in the cache, with what changes when one is made again.
fn copies(place: &Place) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(place.path("cache/image-packages")).unwrap().flatten().map(|entry| entry.path());
    let mut records: Vec<_> = entries
        .map(|folder| folder.join("manifest.json"))
        .filter_map(|record| Some((record.clone(), record.metadata().ok()?.ino())))
        .collect();
    records.sort();
    records
}

/// The demo, made short, whose arms come from images.
fn demo(daemon: &TestDaemon) -> Place {
    let place = Place::new();
    let mut lay_down = place.isobench(["demo", "--lay-down", "--out", "demo", "--cache", "timing"]);
    let laid = Finished::of(lay_down.env("DOCKER_HOST", daemon.address()).env("PATH", SYSTEM_PATH));
    assert_eq!(laid.code, Some(0), "{laid:?}");
    let task = place.path("demo/dataset/task.toml");
    let text = fs::read_to_string(&task).unwrap();
    let images = "image = \"NAME:{commit}\"\nbaseline-image = \"NAME:baseline-{commit12}\"\noverlay = \"tinyserve\"";
    let changed = text.replace("python = \"system\"", &images.replace("NAME", REPOSITORY));
    assert_ne!(text, changed);
    fs::write(task, changed).unwrap();
    place
}

fn isobench(daemon: &TestDaemon, place: &Place, out: &str, more: &[&str]) -> Finished {
    let arguments = ["run", "demo/dataset", "--out", out, "--isolation", "container"];
    let mut command = place.isobench([&arguments[..], more].concat());
    Finished::of(command.env("DOCKER_HOST", daemon.address()).env("PATH", SYSTEM_PATH))
}

fn git(place: &Place, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git").arg("-C").arg(place.path("demo/dataset/repository")).args(arguments).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

fn commit(place: &Place, revision: &str) -> String {
    String::from_utf8(git(place, &["rev-parse", &format!("{revision}^{{commit}}")])).unwrap().trim().to_owned()
}

fn native_file() -> Vec<u8> {
    [b"\x7fELF".as_slice(), b" native"].concat()
}

/// Makes an image in which the engine of a revision is installed, and returns its id.
fn make_image(daemon: &TestDaemon, place: &Place, revision: &str, name: &str) -> String {
    let ask = "import sys; print([path for path in sys.path if path.endswith('-packages')][0])";
    let output = Command::new("python3").args(["-I", "-c", ask]).env("PATH", SYSTEM_PATH).output().unwrap();
    let site = String::from_utf8(output.stdout).unwrap();
    let files = place.path(&format!("image-{revision}"));
    let site = files.join(site.trim().trim_start_matches('/'));
    fs::create_dir_all(&site).unwrap();
    let archive = place.path("engine.tar");
    fs::write(&archive, git(place, &["archive", revision, "tinyserve"])).unwrap();
    assert!(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&site).status().unwrap().success());
    fs::write(site.join(NATIVE), native_file()).unwrap();
    let about = site.join("tinyserve-1.0.dist-info");
    fs::create_dir(&about).unwrap();
    fs::write(about.join("METADATA"), "Metadata-Version: 2.1\nName: tinyserve\nVersion: 1.0\n").unwrap();
    fs::write(about.join("RECORD"), "tinyserve/__init__.py,,\n").unwrap();
    daemon.docker_says(&["create", "--name", revision, IMAGE, "/nothing"]);
    daemon.docker_says(&["cp", &format!("{}/.", files.display()), &format!("{revision}:/")]);
    let id = daemon.docker_says(&["commit", revision, name]);
    daemon.docker_says(&["rm", revision]);
    id
}
