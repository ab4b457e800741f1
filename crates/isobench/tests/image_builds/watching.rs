//! `isobench images push --watch`: what is built and proven is sent as it comes, also after a kill in the middle of a push, and
//! nothing else is.

use std::fs;
use std::path::Path;

use isobench_runner::images::{Patience, Registry, Repository, Target};
use isobench_schema::ids::ImageTag;
use isobench_testkit::DockerRegistry;
use rustix::process::Signal;
use serde_json::Value;

use crate::bench::{Bench, GENERATE, commits, make_base, start};
use crate::support::daemons::TestDaemon;
use crate::support::{Place, Running, wait_until};

/// Makes a layer that takes seconds to send: it can't be compressed.
const LARGE: &str =
    "python3 -c \"import os; f = open('engine/large', 'wb'); [f.write(os.urandom(1 << 20)) for _ in range(100)]\"";

/// Returns the digest that a registry has under a tag.
fn digest(images: &str, tag: &str) -> Option<String> {
    let repository = Repository::parse(images).unwrap();
    let client = Registry::new(repository, None, Patience::default(), Box::new(|_| ())).unwrap();
    let found = client.head(&Target::Tag(ImageTag::new(tag).unwrap())).unwrap();
    found.map(|head| head.digest.unwrap().to_string())
}

/// Returns whether a registry is taking in a layer of more than a few bytes.
fn is_taking_in(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        let is_upload = path.file_name().is_some_and(|name| name == "data")
            && path.components().any(|part| part.as_os_str() == "_uploads");
        path.is_dir() && is_taking_in(&path)
            || is_upload && path.metadata().is_ok_and(|metadata| metadata.len() > 1 << 20)
    })
}

#[test]
fn what_is_proven_is_sent_as_it_comes_and_a_kill_loses_nothing() {
    let Some(daemon) = start(TestDaemon::docker) else { return };
    let registry = match DockerRegistry::start(None) {
        Ok(registry) => registry,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let place = Place::new();
    make_base(&daemon, &place);
    let [first, second] = commits(&place);
    let bench = Bench { place, daemon: &daemon, images: format!("{}/team/engine", registry.address()) };
    let large = format!("{GENERATE}; {LARGE}");
    bench.built(0, &[&first], &["--run", &large]);
    let watch = ["images", "push", "--watch", &bench.images, "--until-idle", "600"];

    let mut killed = Running::start(&mut bench.command(&watch));
    wait_until("the registry takes in a layer", || is_taking_in(&registry.data()));
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().code, None);
    let half = digest(&bench.images, &first);
    println!("after the kill the registry has {half:?}");

    let mut watching = Running::start(&mut bench.command(&watch));
    wait_until("the first image is sent", || digest(&bench.images, &first).is_some());
    // Another one is built while it is watched for.
    bench.built(0, &[&second], &["--run", GENERATE]);
    wait_until("the second image is sent", || digest(&bench.images, &second).is_some());
    // It may still be reading back what it has sent.
    std::thread::sleep(std::time::Duration::from_secs(2));
    watching.signal(Signal::INT);
    let ended = watching.finish();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let names: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(names.len(), 2, "{ended:?}");
    for (line, commit) in names.iter().zip([&first, &second]) {
        assert_eq!(*line, format!("{}  {}:{commit}", digest(&bench.images, commit).unwrap(), bench.images));
    }
    ended.says(&["0 failed"]);
    // What stands there is whole: every piece is what its digest says.
    bench.run(0, &["images", "pull", &format!("{}:{first}", bench.images), "--out", "fetched"]);

    // An image that claims to be built here, and that nobody has proven, isn't sent.
    let container = daemon.docker_says(&["create", &format!("{}:{second}", bench.images), "none"]);
    daemon.docker_says(&["commit", "--change", "ENV A=b", &container, &format!("{}:claimed", bench.images)]);
    daemon.docker_says(&["rm", &container]);
    let again = bench.run(0, &["images", "push", "--watch", &bench.images, "--until-idle", "2", "--json"]);
    again.says(&["claimed isn't sent: nobody has proven it"]);
    let told: Vec<Value> = serde_json::from_str(&again.stdout).unwrap();
    assert!(told.len() == 2 && told.iter().all(|told| told["was_there"] == true), "{told:#?}");
    assert_eq!(digest(&bench.images, "claimed"), None);
    bench.run(2, &["images", "push", "--watch", &bench.images, "--tag", "a"]).says(&["--tag"]);
    bench.run(2, &["images", "push"]).says(&["<FOLDER>"]);
}

#[test]
fn a_registry_that_is_gone_is_tried_again_and_then_told() {
    let Some(daemon) = start(TestDaemon::docker) else { return };
    let place = Place::new();
    make_base(&daemon, &place);
    let [first, _] = commits(&place);
    // Nothing listens at the port of discard.
    let bench = Bench { place, daemon: &daemon, images: "127.0.0.1:9/team/engine".to_owned() };
    bench.built(0, &[&first], &["--run", GENERATE]);
    let ended = bench.run(100, &["images", "push", "--watch", &bench.images, "--until-idle", "1", "--json"]);
    ended.says(&["trying again in 2 s", "1 failed"]);
    let told: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    assert!(told[0]["problem"].as_str().unwrap().contains("can't be reached"), "{told:#?}");
}
