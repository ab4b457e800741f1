//! `isobench images build` and `prune` on real daemons, with a real registry. Each starts its own, and ends it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod bench;
mod crashes;
mod loading;
#[path = "../support/mod.rs"]
mod support;
mod watching;

use std::fs;

use base64::Engine as _;
use bench::{BASE, Bench, GENERATE, commits, make_base, start};
use isobench_testkit::{DockerRegistry, RegistryUser};
use rustix::process::Signal;
use serde_json::Value;
use support::daemons::TestDaemon;
use support::{Place, Running, wait_until};

#[test]
fn images_are_built_proven_sent_and_pruned_with_a_real_docker_and_registry() {
    let Some(daemon) = start(TestDaemon::docker) else { return };
    let user = RegistryUser { user: "bench".to_owned(), password: "s3cret".to_owned() };
    let registry = match DockerRegistry::start(Some(&user)) {
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
    wrong_builds_leave_nothing(&bench, &first);
    a_killed_build_goes_on(&bench, &first);
    // Two at once, named as a human commit and as a baseline; the first is there and is proven again.
    let names = ["--run", GENERATE, "--name", "{commit}", "--name", "baseline-{commit12}"];
    let built = bench.built(0, &[&first, &second], &names);
    assert_eq!((&built[0]["is_new"], &built[1]["is_new"]), (&false.into(), &true.into()), "{built:#?}");
    assert_eq!(built[0]["names"][1], format!("{}:baseline-{}", bench.images, &first[..12]));
    let labels = daemon.docker_says(&["inspect", "--format", "{{json .Config}}", built[1]["id"].as_str().unwrap()]);
    let config: Value = serde_json::from_str(&labels).unwrap();
    assert_eq!(config["Labels"]["org.opencontainers.image.revision"], second);
    assert_eq!(config["Labels"]["io.isobench.coordinator"], "", "its containers are nobody's to sweep");
    images_are_sent(&bench, &first);
    images_are_pruned(&bench, &second);
}

fn wrong_builds_leave_nothing(bench: &Bench<'_>, commit: &str) {
    for (command, why) in [
        ("echo so far; exit 7", "exit code 7"),
        // A marker of success that is none.
        ("echo done", "can't be imported"),
        ("echo x >> engine/__init__.py", "isn't the commit's"),
        ("python3 -c 'import os; os.remove(\"engine/__init__.py\")'", "is missing"),
    ] {
        let built = bench.built(100, &[commit], &["--run", command]);
        let problem = built[0]["problem"].as_str().unwrap_or_else(|| panic!("{built:#?}"));
        assert!(problem.contains(why), "{command}: {problem}");
        assert_eq!(bench.names(), "", "{command}");
        assert_eq!(bench.daemon.docker_says(&["ps", "--all", "--quiet"]), "", "{command}");
        let log = fs::read_to_string(built[0]["log"].as_str().unwrap()).unwrap();
        assert!(log.contains(&format!("command 1 of 1: {command}")), "{log}");
    }
    let late = bench.built(100, &[commit], &["--timeout", "3", "--run", "python3 -c 'import time; time.sleep(600)'"]);
    assert!(late[0]["problem"].as_str().unwrap().contains("within 3 s"), "{late:#?}");
}

fn a_killed_build_goes_on(bench: &Bench<'_>, commit: &str) {
    let slow = format!("{GENERATE}; python3 -c 'import time; time.sleep(4)'");
    let arguments = bench.build(&[commit], &["--run", &slow]);
    let mut killed = Running::start(&mut bench.command(&arguments));
    wait_until("the build runs", || !bench.daemon.docker_says(&["ps", "--quiet"]).is_empty());
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().code, None);
    // Nobody ends it but its own first process, whose input has closed.
    wait_until("the build has followed", || bench.daemon.docker_says(&["ps", "--quiet"]).is_empty());
    let left = bench.daemon.docker_says(&["ps", "--all", "--format", "{{.Status}}"]);
    assert!(left.starts_with("Exited (123)"), "{left}");
    assert_eq!(bench.names(), "");
    let built = bench.built(0, &[commit], &["--run", GENERATE]);
    assert_eq!(built[0]["is_new"], true);
    let again = bench.built(0, &[commit], &["--run", &slow]);
    assert_eq!(again[0]["is_new"], true, "what the killed build left is swept, and no part of this");
    assert_eq!(bench.daemon.docker_says(&["ps", "--all", "--quiet"]), "");
}

fn images_are_sent(bench: &Bench<'_>, commit: &str) {
    let arguments = ["--run", GENERATE, "--push"];
    bench.run(2, &bench.build(&[commit], &arguments)).says(&["refuses", "docker login"]);
    let encoded = base64::engine::general_purpose::STANDARD.encode("bench:s3cret");
    let registry = bench.images.split('/').next().unwrap();
    let text = format!(r#"{{"auths": {{"{registry}": {{"auth": "{encoded}"}}}}}}"#);
    fs::write(bench.place.path("docker/config.json"), text).unwrap();
    let sent = bench.built(0, &[commit], &arguments);
    let digest = sent[0]["digest"].as_str().unwrap();
    let image = format!("{}:{commit}", bench.images);
    assert_eq!(bench.run(0, &["images", "pull", &image, "--out", "fetched"]).stdout.trim(), digest);
    assert_eq!(bench.built(0, &[commit], &arguments)[0]["digest"], digest, "it is there and isn't sent again");
    bench.run(0, &["images", "prune", "--folder", "fetched"]);
    assert!(!bench.place.path("fetched").exists());
}

fn images_are_pruned(bench: &Bench<'_>, kept: &str) {
    let kept = format!("{}:{kept}", bench.images);
    bench.run(2, &["images", "prune"]).says(&["--max-size"]);
    bench.run(0, &["images", "prune", "--disk-floor", "0"]).says(&["nothing removed"]);
    let never = bench.run(3, &["images", "prune", "--disk-floor", "900000", "--dry-run"]);
    never.says(&["would go", "are to stay free", "nothing that may go is left"]);
    let low = bench.run(3, &bench.build(&["HEAD"], &["--disk-floor", "900000"]));
    low.says(&["the daemon's folder", "are to stay free", "isobench images prune"]);
    let before = bench.names();
    bench.run(0, &["images", "prune", "--max-size", "0", "--dry-run"]).says(&["would go"]);
    assert_eq!(bench.names(), before);
    let typo = bench.run(2, &["images", "prune", "--max-size", "0", "--keep", "team/engin:x"]);
    typo.says(&["team/engin:x", "nothing is removed"]);
    assert_eq!(bench.names(), before);
    bench.run(0, &["images", "prune", "--max-size", "0", "--keep", &kept]).says(&["removed"]);
    assert!(bench.names().lines().any(|name| name == kept));
    assert!(!bench.names().contains("<none>"));
    bench.run(0, &["images", "prune", "--older-days", "0"]);
    assert_eq!(bench.names(), "");
    assert!(!bench.daemon.docker_says(&["images", "--quiet", BASE]).is_empty(), "the base is nobody's to remove");
}
