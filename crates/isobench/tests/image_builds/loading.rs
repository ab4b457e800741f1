//! Images of folders, loaded into real daemons: whole, without being fetched again, and nothing of them where there is no room.

use std::fs;
use std::process::Command;

use isobench_testkit::DockerRegistry;
use serde_json::Value;

use crate::bench::start;
use crate::support::daemons::{IMAGE, SYSTEM_PATH, TestDaemon};
use crate::support::small_disk::SmallDisk;
use crate::support::{Finished, Place};

fn isobench(place: &Place, daemon: &TestDaemon, arguments: &[&str]) -> Finished {
    let mut command = place.isobench(arguments);
    Finished::of(command.env("DOCKER_HOST", daemon.address()).env("DOCKER_CONFIG", place.path("docker")))
}

fn json(finished: &Finished) -> Value {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// Returns a registry, or says why there is none.
fn registry() -> Option<DockerRegistry> {
    DockerRegistry::start(None).map_err(|why| println!("skipped: {why}")).ok()
}

/// Sends an image of a daemon to a registry, and forgets it there.
fn send_away(daemon: &TestDaemon, image: &str, name: &str) {
    daemon.docker_says(&["tag", image, name]);
    daemon.docker_says(&["push", name]);
    daemon.docker_says(&["rmi", name, image]);
}

#[test]
fn what_a_pull_has_left_is_loaded_into_docker_and_podman_without_being_fetched_again() {
    let Some(daemon) = start(TestDaemon::docker) else { return };
    let Some(mut registry) = registry() else { return };
    let place = Place::new();
    let python = daemon.make_image();
    let id = daemon.docker_says(&["inspect", "--format", "{{.Id}}", IMAGE]);
    let name = format!("{}/team/engine:a", registry.address());
    send_away(&daemon, IMAGE, &name);
    assert_eq!(daemon.docker_says(&["images", "--quiet"]), "");

    let pulled =
        json(&isobench(&place, &daemon, &["images", "pull", &name, "--out", "stored", "--into-daemon", "--json"]));
    assert_eq!((pulled["id"].as_str(), pulled["name"].as_str()), (Some(&*id), Some(&*name)), "{pulled:#}");
    let by_digest = format!("{}/team/engine@{}", registry.address(), pulled["digest"].as_str().unwrap());
    daemon.docker_says(&["rmi", &name]);
    // From here on nothing can be fetched.
    assert!(registry.end());
    let load = |daemon: &TestDaemon, image: &str| {
        json(&isobench(&place, daemon, &["images", "load", "stored", image, "--json"]))
    };
    let loaded = load(&daemon, &name);
    assert_eq!((&loaded["id"], &loaded["was_there"]), (&id.clone().into(), &false.into()));
    assert_eq!(load(&daemon, &name)["was_there"], true);
    let says = ["run", "--rm", "--network=none", &name, &python, "-c", "print(6 * 7)"];
    assert_eq!(daemon.docker_says(&says), "42");
    let other = isobench(&place, &daemon, &["images", "load", "stored", "team/copy:b", "--tag", "a", "--json"]);
    assert_eq!(json(&other)["name"], "docker.io/team/copy:b");
    assert!(!daemon.docker_says(&["images", "--quiet", "team/copy:b"]).is_empty());

    match TestDaemon::podman() {
        Ok(podman) => {
            let loaded = load(&podman, &name);
            assert_eq!((&loaded["id"], &loaded["was_there"]), (&id.clone().into(), &false.into()));
            assert_eq!(podman.docker_says(&says), "42");
            assert_eq!(load(&podman, &name)["was_there"], true);
        }
        Err(why) => println!("skipped: loading into Podman: {why}"),
    }

    // By its digest, which folders know it by only if they were asked for it by that.
    let missing = isobench(&place, &daemon, &["images", "load", "stored", "team/engine:none"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    missing.says(&["it has no image `none`"]);
    let loaded = load(&daemon, &by_digest);
    assert!(loaded["name"].as_str().unwrap().contains(":sha256-"), "{loaded:#}");
    daemon.docker_says(&["rmi", "--force", &id]);
    let room = isobench(&place, &daemon, &["images", "load", "stored", &name, "--disk-floor", "900000"]);
    assert_eq!(room.code, Some(3), "{room:?}");
    room.says(&["are to stay free when", "--disk-floor"]);
    // A piece of it that is damaged never comes to the daemon.
    let largest = fs::read_dir(place.path("stored/blobs/sha256")).unwrap().flatten();
    let largest = largest.max_by_key(|entry| entry.metadata().unwrap().len()).unwrap().path();
    fs::write(&largest, "damaged").unwrap();
    let damaged = isobench(&place, &daemon, &["images", "load", "stored", &name]);
    assert_eq!(damaged.code, Some(2), "{damaged:?}");
    damaged.says(&["isn't what its name says"]);
    assert_eq!(daemon.docker_says(&["images", "--quiet"]), "");
}

#[test]
fn a_daemon_whose_disk_becomes_full_has_nothing_of_an_image() {
    let Some(maker) = start(TestDaemon::docker) else { return };
    let Some(registry) = registry() else { return };
    let place = Place::new();
    let files = place.path("files");
    fs::create_dir(&files).unwrap();
    // It is small to fetch, and large when it is unpacked.
    fs::write(files.join("zeros"), vec![0; 150_000_000]).unwrap();
    let archive = place.path("large.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(&files).arg("zeros").env("PATH", SYSTEM_PATH);
    assert!(tar.status().unwrap().success());
    maker.docker_says(&["import", &archive.to_string_lossy(), "large:a"]);
    let name = format!("{}/team/engine:a", registry.address());
    send_away(&maker, "large:a", &name);
    let disk = place.path("disk");
    let Some(disk) = SmallDisk::mount(&disk, "64m") else { return };
    let daemon = match TestDaemon::docker_on(disk.path()) {
        Ok(daemon) => daemon,
        Err(why) => {
            println!("skipped: a daemon on a small disk: {why}");
            return;
        }
    };
    let pull = |floor: &str| {
        let arguments = ["images", "pull", &name, "--out", "stored", "--into-daemon", "--disk-floor", floor];
        isobench(&place, &daemon, &arguments)
    };
    let full = pull("0");
    assert_eq!(full.code, Some(3), "{full:?}");
    full.says(&["no space left on device", "free some room"]);
    assert_eq!(daemon.docker_says(&["images", "--all", "--quiet"]), "");
    // A floor ends it before the disk is full.
    let floor = pull("0.03");
    assert_eq!(floor.code, Some(3), "{floor:?}");
    floor.says(&["are to stay free", disk.path().to_str().unwrap()]);
    assert_eq!(daemon.docker_says(&["images", "--all", "--quiet"]), "");
    disk.grow("600m");
    let whole = pull("0");
    assert_eq!(whole.code, Some(0), "{whole:?}");
    whole.says(&["0 pieces", "loaded into the daemon"]);
    assert_eq!(daemon.docker_says(&["images", "--format", "{{.Repository}}:{{.Tag}}"]), name);
}
