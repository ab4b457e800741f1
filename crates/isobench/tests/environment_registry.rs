//! Arms whose images come from a registry that wants a password, on a real daemon: with it, with a wrong one and without.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod support;

use std::fs;
use std::process::Command;

use base64::Engine as _;
use isobench_schema::outcome::Outcome;
use isobench_testkit::{DockerRegistry, RegistryUser};
use support::daemons::{IMAGE, SYSTEM_PATH, TestDaemon};
use support::{Finished, Place, complete_launches};

/// The native file that only the images have: what a build of the engine would leave.
const NATIVE: &str = "tinyserve/_made.so";

#[test]
fn images_come_from_a_registry_that_wants_a_password() {
    if !support::is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return;
    }
    let user = RegistryUser { user: "bench".to_owned(), password: "s3cret".to_owned() };
    let started = DockerRegistry::start(Some(&user)).and_then(|registry| Ok((registry, TestDaemon::docker()?)));
    let (registry, daemon) = match started {
        Ok(both) => both,
        Err(why) => {
            println!("skipped: images of a real registry: {why}");
            return;
        }
    };
    daemon.make_image();
    let repository = format!("{}/team/engine", registry.address());
    let place = demo(&daemon, &repository);
    shorten(&place);
    let [baseline, human] = ["baseline", "human"].map(|revision| commit(&place, revision));
    let names = [format!("{repository}:baseline-{}", &baseline[..12]), format!("{repository}:{human}")];
    daemon.docker_says(&["login", "--username", "bench", "--password", "s3cret", registry.address()]);
    for (revision, name) in ["baseline", "human"].iter().zip(&names) {
        make_image(&daemon, &place, revision, name);
        daemon.docker_says(&["push", name]);
        daemon.docker_says(&["rmi", name]);
    }
    let arms = ["--arm", "baseline", "--arm", "human"];
    let config = place.path("docker/config.json");
    let login = format!("docker login {}", registry.address());
    for (credentials, told) in [(None, "no basic auth credentials"), (Some("bench:wr0ngpass"), "unauthorized")] {
        if let Some(credentials) = credentials {
            fs::write(&config, login_text(registry.address(), credentials)).unwrap();
        }
        let refused = isobench(&daemon, &place, "refused", &arms);
        assert_eq!(refused.code, Some(4), "{refused:?}");
        // Lines are broken for the page.
        let page = refused.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [names[0].as_str(), told, &login, "(input-missing)"] {
            assert!(page.contains(part), "`{part}` isn't in {page}");
        }
        assert!(!format!("{refused:?}").contains("wr0ngpass"), "{refused:?}");
        assert!(!place.path("refused").exists(), "nothing is run that has no environment");
    }
    fs::write(&config, login_text(registry.address(), "bench:s3cret")).unwrap();
    let finished = isobench(&daemon, &place, "run", &arms);
    assert!(finished.code.is_some(), "{finished:?}");
    let launches = complete_launches(&place.path("run"));
    assert!(launches.len() == 2 && launches.iter().all(|record| record.outcome == Outcome::Measured), "{launches:?}");
    for entry in [place.path("run/plan.json"), place.path("run/events.jsonl")] {
        let text = fs::read_to_string(entry).unwrap();
        assert!(!text.contains("s3cret") && !text.contains("YmVuY2g6czNjcmV0"));
    }
}

/// Makes the demo's task short.
fn shorten(place: &Place) {
    let task = place.path("demo/dataset/task.toml");
    let text = fs::read_to_string(&task).unwrap();
    let requests = text.lines().find(|line| line.starts_with("requests = ")).unwrap().to_owned();
    let text = text.replace(&requests, "requests = 24").replace("min-window-s = 1.0", "min-window-s = 0.001");
    fs::write(task, text.replace("blocks = 6", "blocks = 1").replace("margin = 0.05", "margin = 0.9")).unwrap();
}

/// Returns Docker's configuration with a user and a password for a registry.
fn login_text(registry: &str, credentials: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
    format!(r#"{{"auths": {{"{registry}": {{"auth": "{encoded}"}}}}}}"#)
}

/// The demo, made short, whose arms come from images.
fn demo(daemon: &TestDaemon, repository: &str) -> Place {
    let place = Place::new();
    fs::create_dir(place.path("docker")).unwrap();
    let mut lay_down = place.isobench(["demo", "--lay-down", "--out", "demo", "--cache", "timing"]);
    let laid = Finished::of(lay_down.env("DOCKER_HOST", daemon.address()).env("PATH", SYSTEM_PATH));
    assert_eq!(laid.code, Some(0), "{laid:?}");
    let task = place.path("demo/dataset/task.toml");
    let text = fs::read_to_string(&task).unwrap();
    let images = "image = \"NAME:{commit}\"\nbaseline-image = \"NAME:baseline-{commit12}\"\noverlay = \"tinyserve\"";
    let changed = text.replace("python = \"system\"", &images.replace("NAME", repository));
    assert_ne!(text, changed);
    fs::write(task, changed).unwrap();
    place
}

fn isobench(daemon: &TestDaemon, place: &Place, out: &str, more: &[&str]) -> Finished {
    let arguments = ["run", "demo/dataset", "--out", out, "--isolation", "container"];
    let mut command = place.isobench([&arguments[..], more].concat());
    command.env("DOCKER_HOST", daemon.address()).env("PATH", SYSTEM_PATH);
    Finished::of(command.env("DOCKER_CONFIG", place.path("docker")))
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
