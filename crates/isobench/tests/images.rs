//! `isobench images` from the command line, against a registry that lies as told and Debian's real one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "all of it is test code")]

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use isobench_runner::images::{HUB, Repository};
use isobench_schema::format;
use isobench_schema::images::{ImageAudit, ImageList, ImageState, ListedBy};
use isobench_testkit::{
    DockerRegistry, Entry, FakeImage, FakeRegistry, RegistryFault, RegistrySettings, RegistryUser, TestCertificate,
};
use rustix::process::Signal;
use support::{Finished, Place, Running, wait_until};

/// Two rows of the public dataset: the commit of the second is named by 8 digits, and its parent isn't named.
const ROWS: &str = r#"{"project": "vllm", "commit": "015069b01741e9ecb9e604c7fe87fbdfc306ebe5", "parent": "fbefc8a78d22b20eac042c586805c7dcbfc66b1c", "subject": "one", "perf_command": "x"}
{"project": "vllm", "commit": "22d33bac", "subject": "two", "perf_command": "x"}
"#;
const FIRST: &str = "015069b01741e9ecb9e604c7fe87fbdfc306ebe5";
/// A commit of the public dataset whose own script measures it, and whose baseline has an equal native tree.
const RUNNABLE: &str = "98f47f2a4032f8c395268de80858c64ffcfc60fa";
const DATASET: &str = "../../examples/iso-bench/vllm-96.jsonl";
const FIRST_BASELINE: &str = "baseline-fbefc8a78d22";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("rows.jsonl"), ROWS).unwrap();
    fs::create_dir(place.path("docker")).unwrap();
    place
}

/// Runs the command with Docker's configuration in a folder of the test.
fn run(place: &Place, code: i32, arguments: &[&str]) -> Finished {
    let mut command = place.isobench(arguments);
    command.env("DOCKER_CONFIG", place.path("docker"));
    let finished = Finished::of(&mut command);
    assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
    finished
}

fn log_in(place: &Place, registry: &str, user: &str, password: &str) {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    let text = format!(r#"{{"auths": {{"{registry}": {{"auth": "{encoded}"}}}}}}"#);
    fs::write(place.path("docker/config.json"), text).unwrap();
}

fn with_faults(faults: &[RegistryFault]) -> FakeRegistry {
    FakeRegistry::start(RegistrySettings { faults: faults.to_vec(), ..RegistrySettings::default() })
}

fn audit(finished: &Finished) -> ImageAudit {
    format::from_slice(finished.stdout.as_bytes()).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

#[test]
fn an_audit_says_what_is_there_what_is_missing_and_what_it_takes() {
    let place = place();
    let registry = with_faults(&[]);
    let base = vec![1; 40_000];
    registry.add(FIRST, &FakeImage::of("linux/amd64", Some(FIRST), &[&base, b"human"]));
    registry.add(FIRST_BASELINE, &FakeImage::new(&[&base, b"baseline"]));
    registry.add("latest", &FakeImage::new(&[b"other"]));
    registry.add("22d33bac", &FakeImage::new(&[b"short"]));
    let name = registry.repository();
    let found = run(&place, 100, &["images", "audit", "rows.jsonl", "--images", &name, "--out", "images.md"]);
    for part in [
        "1 of 2 tasks of rows have both images",
        "vllm-015069b0",
        "✓ there",
        "✗ missing",
        "1 of 2 human images are there",
    ] {
        assert!(found.stdout.contains(part), "`{part}` isn't in:\n{}", found.stdout);
    }
    let page = fs::read_to_string(place.path("images.md")).unwrap();
    for part in ["# Images of rows", FIRST_BASELINE, "sha256:", "## What can't be had"] {
        assert!(page.contains(part), "`{part}` isn't in:\n{page}");
    }
    let found = audit(&run(&place, 100, &["images", "audit", "rows.jsonl", "--images", &name, "--json"]));
    assert_eq!((found.counts.both, found.counts.neither, found.tags_listed), (1, 1, Some(4)));
    assert_eq!((found.storage.images, found.storage.shared_layers, found.shared[0].images), (2, 1, 2));
    let missing = &found.tasks[1].human.found;
    assert_eq!(missing.state, ImageState::Missing);
    assert!(missing.reason.ends_with("; `22d33bac` may be of the same commit"), "{}", missing.reason);
    assert_eq!(found.other_tags, ["22d33bac", "latest"]);
    let named = ["images", "audit", "rows.jsonl", "--images", &name, "--human-tag", "{commit8}", "--json"];
    let found = audit(&run(&place, 100, &named));
    assert_eq!((found.counts.human_only, found.counts.baseline_only), (1, 1));
}

#[test]
fn an_audit_that_finds_everything_succeeds_and_one_of_no_commits_has_nothing_to_do() {
    let place = place();
    let registry = with_faults(&[]);
    let first = ROWS.lines().next().unwrap();
    fs::write(place.path("one.jsonl"), first).unwrap();
    registry.add(FIRST, &FakeImage::new(&[b"human"]));
    registry.add(FIRST_BASELINE, &FakeImage::new(&[b"baseline"]));
    let name = registry.repository();
    run(&place, 0, &["images", "audit", "one.jsonl", "--images", &name]);
    let found = run(&place, 0, &["images", "audit", "one.jsonl", "--images", &name, "--without-sizes", "--json"]);
    assert_eq!(audit(&found).storage.images, 0);
    let task = place.write_task(&place.task_text());
    run(&place, 4, &["images", "audit", task.to_str().unwrap(), "--images", &name]).says(&["names no commits"]);
}

#[test]
fn pulls_are_kept_for_those_who_will_pull() {
    let place = place();
    let registry = with_faults(&[RegistryFault::Pulls { limit: 2 }]);
    registry.add(FIRST, &FakeImage::new(&[b"human"]));
    registry.add(FIRST_BASELINE, &FakeImage::new(&[b"baseline"]));
    let found = run(&place, 100, &["images", "audit", "rows.jsonl", "--images", &registry.repository(), "--json"]);
    let found = audit(&found);
    let (human, baseline) = (&found.tasks[0].human.found, &found.tasks[0].baseline.found);
    assert_eq!((human.state, baseline.state), (ImageState::Present, ImageState::Present));
    assert!(human.layers.len() == 1 && baseline.layers.is_empty());
    assert!(baseline.reason.contains("half of the pulls are left"), "{}", baseline.reason);
    assert_eq!(found.pulls.unwrap().remaining, Some(1));
}

#[test]
fn a_repository_that_lets_nobody_list_it_is_asked_image_by_image() {
    let place = place();
    let registry = with_faults(&[RegistryFault::NoListing]);
    registry.add(FIRST, &FakeImage::new(&[b"human"]));
    let found = run(&place, 100, &["images", "audit", "rows.jsonl", "--images", &registry.repository()]);
    found.says(&["the tags can't be listed, so that each image is asked for"]);
    assert!(found.stdout.contains("lets nobody list its tags"), "{}", found.stdout);
}

#[test]
fn every_tag_is_listed_by_the_registry_and_by_docker_hub() {
    let place = place();
    let registry = with_faults(&[]);
    let image = FakeImage::new(&[b"layer"]);
    for number in 0..250 {
        registry.add(&format!("t{number:03}"), &image);
    }
    let name = registry.repository();
    let list = |arguments: &[&str]| -> ImageList {
        let arguments = [&["images", "list", &name, "--json"], arguments].concat();
        format::from_slice(run(&place, 0, &arguments).stdout.as_bytes()).unwrap()
    };
    let plain = list(&[]);
    assert_eq!((plain.tags.len(), plain.pages, plain.listed_by), (250, 3, ListedBy::Registry));
    let hub = registry.hub();
    let of_hub = list(&["--hub-api", &hub]);
    assert_eq!((of_hub.tags.len(), of_hub.announced, of_hub.listed_by), (250, Some(250), ListedBy::Hub));
    assert!(of_hub.tags.iter().all(|tag| tag.bytes.is_some() && tag.digest.is_some()));
    let digests = list(&["--digests"]);
    assert!(digests.tags.iter().all(|tag| tag.digest.is_some() && tag.bytes.is_none()));
    let sizes = list(&["--sizes"]);
    assert!(sizes.tags.iter().all(|tag| tag.bytes.is_some() && tag.platforms == ["linux/amd64"]));
    let page = run(&place, 0, &["images", "list", &name]);
    assert!(page.stdout.contains("t249") && page.stdout.contains("250 tags in"), "{}", page.stdout);
    assert_eq!(HUB, "https://hub.docker.com/v2");
    assert!(Repository::parse("team/engine").unwrap().is_hub());
}

#[test]
fn errors_name_the_object_and_the_next_step_and_hide_what_is_secret() {
    let place = place();
    let entry = Entry::PasswordToken { user: "ann".to_owned(), password: "s3cret".to_owned() };
    let registry = FakeRegistry::start(RegistrySettings { entry, ..RegistrySettings::default() });
    registry.add("a", &FakeImage::new(&[b"layer"]));
    let name = registry.repository();
    run(&place, 2, &["images", "list", &name]).says(&["refuses", "docker login"]);
    log_in(&place, registry.address(), "ann", "wr0ngpass");
    let refused = run(&place, 2, &["images", "list", &name]);
    refused.says(&["to show", "`ann`", "incorrect username or password"]);
    assert!(!refused.stderr.contains("wr0ngpass") && !refused.stderr.contains("YW5u"), "{}", refused.stderr);
    log_in(&place, registry.address(), "ann", "s3cret");
    assert!(run(&place, 0, &["images", "list", &name]).stdout.contains("1 tag in"));
    run(&place, 2, &["images", "list", "Team/engine"]).says(&["is no name of a repository", "hint: "]);
    run(&place, 2, &["images", "list", "http://registry.example/x"]).says(&["can't be asked", "`https` only"]);
    run(&place, 2, &["images", "list", &name.replace("engine", "none")]).says(&["has no repository", "hint: "]);
    fs::write(place.path("docker/config.json"), "{").unwrap();
    run(&place, 2, &["images", "list", &name]).says(&["isn't a configuration of Docker", "DOCKER_CONFIG"]);
    fs::remove_file(place.path("docker/config.json")).unwrap();
    let template = ["images", "audit", "rows.jsonl", "--images", &name, "--human-tag", "latest"];
    run(&place, 2, &template).says(&["has no `{commit}`", "hint: "]);
    drop(registry);
    run(&place, 3, &["images", "list", &name]).says(&["can't be reached", "hint: "]);
    let throttled = with_faults(&[RegistryFault::Throttle { times: 100, header: None }]);
    let waits = ["images", "list", &throttled.repository(), "--wait", "0"];
    run(&place, 3, &waits).says(&["lets one ask no more", "--wait SECONDS"]);
    let endless = with_faults(&[RegistryFault::LoopingPages]);
    endless.add("a", &FakeImage::new(&[b"layer"]));
    run(&place, 1, &["images", "list", &endless.repository()]).says(&["its pages go round"]);
}

#[test]
fn an_image_of_another_platform_is_refused_and_what_it_says_moves_no_cursor() {
    let place = place();
    let registry = with_faults(&[]);
    registry.add("arm", &FakeImage::of("linux/arm64", None, &[b"layer"]));
    registry.add_list("list", &[FakeImage::of("plan9/\u{1b}[2Jx", None, &[b"layer"])]);
    let name = registry.repository();
    for platform in ["linux/amd64", "linux/arm64"] {
        let image = format!("{name}:arm");
        let arguments = ["images", "pull", &image, "--out", "image", "--platform", platform];
        if platform == "linux/arm64" {
            run(&place, 0, &arguments);
        } else {
            run(&place, 2, &arguments).says(&["is for linux/arm64", "linux/amd64 is asked for", "--platform"]);
            assert!(!place.path("image/index.json").exists());
        }
    }
    let refused = run(&place, 1, &["images", "pull", &format!("{name}:list"), "--out", "image"]);
    assert!(refused.stderr.contains("plan9") && !refused.stderr.contains('\u{1b}'), "{refused:?}");
}

#[test]
fn an_image_that_the_disk_has_no_room_for_is_not_begun() {
    let place = place();
    let (config, layer) = ("a".repeat(64), "b".repeat(64));
    let kind = "application/vnd.oci.image";
    let body = format!(
        r#"{{"schemaVersion":2,"mediaType":"{kind}.manifest.v1+json",
            "config":{{"mediaType":"{kind}.config.v1+json","digest":"sha256:{config}","size":2}},
            "layers":[{{"mediaType":"{kind}.layer.v1.tar","digest":"sha256:{layer}","size":1152921504606846976}}]}}"#
    );
    let (at, content_type) = ("/manifests/huge".to_owned(), format!("{kind}.manifest.v1+json"));
    let registry = with_faults(&[RegistryFault::Instead { at, status: 200, content_type, body }]);
    let image = format!("{}:huge", registry.repository());
    run(&place, 3, &["images", "pull", &image, "--out", "image"]).says(&["are to be fetched into", "free", "hint: "]);
    assert_eq!(registry.count("/blobs/"), 0);
}

#[test]
fn a_folder_of_images_goes_without_what_is_somebody_elses() {
    let place = place();
    let registry = with_faults(&[]);
    registry.add("a", &FakeImage::new(&[b"layer"]));
    let pull = ["images", "pull", &format!("{}:a", registry.repository()), "--out", "image"];
    run(&place, 0, &pull);
    fs::write(place.path("image/notes.txt"), "mine").unwrap();
    // A link in the place of the lock is neither followed nor emptied.
    fs::remove_file(place.path("image/.lock")).unwrap();
    fs::write(place.path("victim"), "precious").unwrap();
    std::os::unix::fs::symlink(place.path("victim"), place.path("image/.lock")).unwrap();
    run(&place, 3, &pull).says(&["cannot write", ".lock"]);
    assert_eq!(fs::read_to_string(place.path("victim")).unwrap(), "precious");
    fs::remove_file(place.path("image/.lock")).unwrap();
    let pruned = run(&place, 0, &["images", "prune", "--folder", "image"]);
    pruned.says(&["1 folder removed", "holds other things than images"]);
    let left: Vec<_> = fs::read_dir(place.path("image")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
}

#[test]
fn an_authority_of_ones_own_is_named_or_kept_where_docker_looks() {
    let place = place();
    let certificate = TestCertificate::make();
    let tls = Some(certificate.clone());
    let registry = FakeRegistry::start(RegistrySettings { tls, ..RegistrySettings::default() });
    registry.add("a", &FakeImage::new(&[b"layer"]));
    let name = registry.repository();
    run(&place, 3, &["images", "list", &name]).says(&["can't be reached", "--ca FILE.pem", "certs.d/HOST:PORT"]);
    run(&place, 2, &["images", "list", &name, "--ca", "rows.jsonl"]).says(&["rows.jsonl` holds no certificate"]);
    fs::write(place.path("ca.pem"), certificate.authority()).unwrap();
    run(&place, 0, &["images", "list", &name, "--ca", "ca.pem"]);
    let image = format!("{name}:a");
    run(&place, 0, &["images", "pull", &image, "--out", "image", "--ca", "ca.pem"]);
    let kept = place.path("settings/containers/certs.d").join(registry.address());
    fs::create_dir_all(&kept).unwrap();
    fs::write(kept.join("own.crt"), certificate.authority()).unwrap();
    let mut command = place.isobench(["images", "push", "image", &image]);
    command.env("DOCKER_CONFIG", place.path("docker")).env("XDG_CONFIG_HOME", place.path("settings"));
    let sent = Finished::of(&mut command);
    assert_eq!(sent.code, Some(0), "{sent:?}");
}

#[test]
fn a_plan_runs_arms_from_images_that_it_pins_where_containers_are_asked_for() {
    let place = place();
    let dataset = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(DATASET)).unwrap();
    let rows: Vec<&str> = dataset.lines().filter(|row| row.contains(RUNNABLE)).collect();
    fs::write(place.path("rows.jsonl"), rows.join("\n")).unwrap();
    let registry = with_faults(&[]);
    let image = FakeImage::new(&[&vec![1; 40_000], b"human"]);
    registry.add(RUNNABLE, &image);
    let name = registry.repository();
    let bare = ["plan", "rows.jsonl", "--images", &name, "--device", "h100-sxm"];
    let story = |more: &[&str]| -> serde_json::Value {
        let arguments = [&bare[..], &["--explain", "98f47f2a", "--json"], more].concat();
        serde_json::from_str(&run(&place, 0, &arguments).stdout).unwrap()
    };
    let told = story(&[]);
    let rung = |arm: &str| told["assessment"]["ladder"][arm][0].clone();
    assert!(rung("human")["artifact"].as_str().unwrap().contains("@sha256:"), "{told:#}");
    assert!(rung("human")["reason"].as_str().unwrap().contains("`--isolation container` runs them"), "{told:#}");
    assert!(rung("baseline")["reason"].as_str().unwrap().contains("it has no such tag"), "{told:#}");
    let told = story(&["--isolation", "container"]);
    let taken = |arm: &str| {
        let rungs = told["assessment"]["ladder"][arm].as_array().unwrap();
        rungs.iter().find(|rung| rung["answer"] == "taken").unwrap()["rung"].clone()
    };
    assert_eq!((taken("human"), taken("baseline")), ("image".into(), "native-tree".into()), "{told:#}");
    let environments = told["task"]["environments"].as_object().unwrap();
    assert_eq!(environments.len(), 2);
    for environment in environments.values() {
        let python = &environment["python"];
        assert_eq!((&python["kind"], &python["holds"]), (&"image".into(), &RUNNABLE.into()));
        assert_eq!(python["image"], format!("{name}:{RUNNABLE}"));
        assert_eq!(python["pinned"]["repo_digests"][0], format!("{name}@{}", image.digest()));
        assert_eq!(environment["overlay"], "vllm");
    }
    let planned = &told["task"]["images"];
    assert_eq!((planned.as_array().unwrap().len(), &planned[0]["bytes"]), (1, &image.bytes().into()), "{planned:#}");
    assert_eq!(planned[0]["layers"][1]["digest"].as_str(), image.layer_digest(1).as_deref());
    // The same again from what was written down, and once more from the registry.
    for out in ["one", "two"] {
        run(&place, 0, &[&bare[..], &["--isolation", "container", "--out", out]].concat());
    }
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    assert_eq!((read("one/plan.json"), read("one/facts.json")), (read("two/plan.json"), read("two/facts.json")));
}

#[test]
fn a_pull_that_is_killed_leaves_nothing_in_part_for_the_next_one() {
    let place = place();
    let image = FakeImage::new(&[b"lower", &vec![5; 40_000]]);
    let at = format!("/blobs/{}", image.layer_digest(1).unwrap());
    let slow = with_faults(&[RegistryFault::Slow { at, gap: Duration::from_millis(20) }]);
    slow.add("a", &image);
    let mut command = place.isobench(["images", "pull", &format!("{}:a", slow.repository()), "--out", "image"]);
    command.env("DOCKER_CONFIG", place.path("docker"));
    let mut pull = Running::start(&mut command);
    let blobs = place.path("image/blobs/sha256");
    let parts = || {
        let entries = fs::read_dir(&blobs).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".part-")).collect::<Vec<_>>()
    };
    let in_part = || parts().len();
    // Configuration and lower layer are there, and the upper one is on its way.
    wait_until("the upper layer is on its way", || {
        let has_come = parts().iter().any(|part| part.metadata().is_ok_and(|metadata| metadata.len() > 10));
        in_part() == 1 && has_come && fs::read_dir(&blobs).is_ok_and(|entries| entries.count() == 3)
    });
    pull.signal(Signal::KILL);
    assert_eq!(pull.finish().code, None);
    assert!(in_part() == 1 && !place.path("image/index.json").exists());
    // Such a folder can be pruned, too.
    fs::create_dir_all(place.path("killed/blobs/sha256")).unwrap();
    fs::copy(place.path("image/oci-layout"), place.path("killed/oci-layout")).unwrap();
    run(&place, 0, &["images", "prune", "--folder", "killed"]);
    assert!(!place.path("killed").exists());
    let sound = with_faults(&[]);
    sound.add("a", &image);
    let arguments = ["images", "pull", &format!("{}:a", sound.repository()), "--out", "image", "--json"];
    let moved: serde_json::Value = serde_json::from_str(&run(&place, 0, &arguments).stdout).unwrap();
    assert_eq!((&moved["blobs"], &moved["blobs_there"]), (&1.into(), &2.into()), "{moved:#}");
    assert!(in_part() == 0 && place.path("image/index.json").exists());
    // What had come of the upper layer wasn't fetched again.
    let asked = sound.asked();
    let of_layer = asked.iter().find(|asked| asked.target.contains(&image.layer_digest(1).unwrap())).unwrap();
    assert!(of_layer.range.as_ref().is_some_and(|range| range != "bytes=0-"), "{of_layer:?}");
}

#[test]
fn an_image_goes_from_one_real_registry_to_another() {
    if !support::is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return;
    }
    let user = RegistryUser { user: "bench".to_owned(), password: "s3cret".to_owned() };
    let started = DockerRegistry::start(None).and_then(|open| Ok((open, DockerRegistry::start(Some(&user))?)));
    let (open, closed) = match started {
        Ok(both) => both,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let place = place();
    let fake = with_faults(&[]);
    fake.add("seed", &FakeImage::new(&[&vec![3; 100_000]]));
    let first = format!("{}/team/engine:{FIRST}", open.address());
    let second = format!("{}/copies/engine:{FIRST}", closed.address());
    let digest = run(&place, 0, &["images", "pull", &format!("{}:seed", fake.repository()), "--out", "image"]).stdout;
    assert_eq!(run(&place, 0, &["images", "push", "image", &first, "--tag", "seed"]).stdout, digest);
    assert_eq!(run(&place, 0, &["images", "pull", &first, "--out", "fetched"]).stdout, digest);
    run(&place, 2, &["images", "push", "fetched", &second]).says(&["refuses", "docker login"]);
    log_in(&place, closed.address(), "bench", "wr0ng");
    run(&place, 2, &["images", "push", "fetched", &second]).says(&["refuses", "`bench`"]);
    log_in(&place, closed.address(), "bench", "s3cret");
    assert_eq!(run(&place, 0, &["images", "push", "fetched", &second]).stdout, digest);
    let repository = format!("{}/copies/engine", closed.address());
    let found = audit(&run(&place, 100, &["images", "audit", "rows.jsonl", "--images", &repository, "--json"]));
    assert_eq!((found.counts.human_only, found.counts.neither), (1, 1));
    let missing = format!("{}/copies/engine:none", closed.address());
    run(&place, 2, &["images", "pull", &missing, "--out", "none"]).says(&["has no image `none`", "images list"]);
}
