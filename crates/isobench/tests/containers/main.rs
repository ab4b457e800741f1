//! Engines in containers, on real daemons that the tests start: Docker's and Podman's. A program of its own, so that no
//! other test runs beside what it measures.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod asked;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use asked::{RealDocker, a_device_that_is_not_there_is_told, containers_do_what_they_are_asked};
use isobench_schema::environment::LiveProof;
use isobench_schema::event::LaunchStage;
use isobench_schema::failure::{Failure, FailureClass};
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use rustix::process::Signal;
use serde_json::Value;
use support::daemons::{IMAGE, SYSTEM_PATH, TestDaemon};
use support::{Place, Running, complete_launches, is_slow_wanted, processes, wait_for_stage, wait_until};

/// The memory of a container in which the demo's engine runs well.
const MEMORY: u64 = 512 << 20;

/// Returns a daemon, unless tests that take minutes aren't wanted or it can't be started here.
fn start(daemon: fn() -> Result<TestDaemon, String>) -> Option<TestDaemon> {
    if !is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return None;
    }
    match daemon() {
        Ok(daemon) => Some(daemon),
        Err(why) => {
            println!("skipped: containers on a real daemon: {why}");
            None
        }
    }
}

#[test]
fn engines_are_measured_in_containers_of_a_real_docker() {
    let Some(daemon) = start(TestDaemon::docker) else { return };
    let python = daemon.make_image();
    containers_do_what_they_are_asked(&daemon, &python, &RealDocker::Yes);
    let place = demo(&daemon);
    arms_are_judged(&daemon, &place);
    a_device_that_is_not_there_is_told(&daemon, &python);
    an_engine_ends_with_its_coordinator_and_is_swept(&daemon, &place);
    another_image_than_the_planned_one_is_refused(&daemon, &place, &python);
}

#[test]
fn containers_do_what_they_are_asked_on_a_real_podman() {
    let Some(daemon) = start(TestDaemon::podman) else { return };
    let python = daemon.make_image();
    containers_do_what_they_are_asked(&daemon, &python, &RealDocker::No);
    let place = demo(&daemon);
    let plan = ["--arm", "baseline", "--arm", "human", "--set", "design.blocks=1"];
    let finished = in_containers(&daemon, &place, "run", &plan);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for record in complete_launches(&place.path("run")) {
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
        assert_eq!(proof(&place, "run", &record).container.unwrap().daemon.engine, "podman");
    }
    place.check_sound("run");
}

/// The demo, with two more agents: one that pries, and one that takes more memory than it may.
fn demo(daemon: &TestDaemon) -> Place {
    let place = Place::new();
    let laid = support::Finished::of(&mut command(daemon, &place, &["demo", "--out", "demo", "--lay-down"]));
    assert_eq!(laid.code, Some(0), "{laid:?}");
    let dataset = place.path("demo/dataset");
    let pry = format!(
        "    import os, socket, sys\n\
         \x20   def tried(name, what):\n\
         \x20       try:\n\
         \x20           print('pried', name, what(), flush=True)\n\
         \x20       except OSError as error:\n\
         \x20           print('pried', name, error.strerror, flush=True)\n\
         \x20   tried('tree', lambda: open('tinyserve/model.py', 'a'))\n\
         \x20   tried('root', lambda: open('/etc/x', 'w'))\n\
         \x20   tried('first', lambda: os.kill(1, 9))\n\
         \x20   tried('memory', lambda: open('/proc/1/mem', 'r+b'))\n\
         \x20   tried('record', lambda: open({:?}))\n\
         \x20   tried('outside', lambda: socket.create_connection(('192.0.2.1', 80), 2))\n\
         \x20   tried('processes', lambda: len([name for name in os.listdir('/proc') if name.isdigit()]))\n",
        place.path("run/events.jsonl").to_string_lossy()
    );
    let task = dataset.join("task.toml");
    let text = std::fs::read_to_string(&task).unwrap();
    let requests = text.lines().find(|line| line.starts_with("requests = ")).unwrap();
    let text = text.replace(requests, "requests = 64").replace("min-window-s = 1.0", "min-window-s = 0.001");
    std::fs::write(&task, text).unwrap();
    add_agent(&dataset, "prying", &pry);
    add_agent(&dataset, "hungry", "    ballast = bytearray(b'x' * (1 << 30))\n");
    place
}

/// Adds an agent whose patch runs some lines before the demo's engine serves.
fn add_agent(dataset: &Path, name: &str, lines: &str) {
    let file = "tinyserve/__main__.py";
    let repository = dataset.join("repository");
    let show =
        Command::new("git").arg("-C").arg(&repository).args(["show", &format!("baseline:{file}")]).output().unwrap();
    let text = String::from_utf8(show.stdout).unwrap();
    let guard = "if __name__ == \"__main__\":";
    let at = 1 + text.lines().position(|line| line == guard).unwrap();
    let last = text.lines().nth(at).unwrap();
    let added: String = lines.lines().flat_map(|line| ["+", line, "\n"]).collect();
    let after = 2 + lines.lines().count();
    let patch = format!("--- a/{file}\n+++ b/{file}\n@@ -{at},2 +{at},{after} @@\n {guard}\n{added} {last}\n");
    std::fs::write(dataset.join(format!("patches/{name}.patch")), patch).unwrap();
    let task = dataset.join("task.toml");
    let text = std::fs::read_to_string(&task).unwrap();
    std::fs::write(task, format!("{text}\n[[agent]]\nname = \"{name}\"\npatch = \"patches/{name}.patch\"\n")).unwrap();
}

/// Returns the command, which finds this daemon, and the Python that the image has.
fn command(daemon: &TestDaemon, place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.isobench(arguments);
    command.env("DOCKER_HOST", daemon.address()).env("PATH", SYSTEM_PATH);
    command
}

/// Runs the demo's task in containers.
fn in_containers(daemon: &TestDaemon, place: &Place, out: &str, more: &[&str]) -> support::Finished {
    let memory = MEMORY.to_string();
    let mut arguments = vec!["run", "demo/dataset", "--out", out, "--isolation", "container", "--image", IMAGE];
    arguments.extend(["--container-memory", &memory, "--container-shm", "64MiB"]);
    arguments.extend(more);
    support::Finished::of(&mut command(daemon, place, &arguments))
}

fn proof(place: &Place, run: &str, record: &LaunchRecord) -> LiveProof {
    serde_json::from_slice(&support::evidence(&place.path(run), record, evidence::LIVE_PROOF)).unwrap()
}

fn failure(record: &LaunchRecord) -> &Failure {
    match &record.outcome {
        Outcome::Failed { failure } => failure,
        Outcome::Measured | Outcome::Interrupted => panic!("{record:?}"),
    }
}

/// Real arms in containers come to their verdicts, a stranger sees nothing, and one that takes too much is told so.
fn arms_are_judged(daemon: &TestDaemon, place: &Place) {
    let arms = ["baseline", "human", "agent:optimised", "agent:prying", "agent:hungry"];
    let chosen: Vec<&str> = arms.iter().flat_map(|arm| ["--arm", arm]).collect();
    let finished = in_containers(daemon, place, "run", &chosen);
    assert_eq!(finished.code, Some(100), "one arm fails: {finished:?}");
    // The test of serial correlation leaves one in a hundred sound contrasts undecided.
    for (of, verdicts) in [
        ("human", &["better", "inconclusive"][..]),
        ("agent:optimised", &["better", "inconclusive"]),
        ("agent:hungry", &["agent-failed"]),
    ] {
        let contrast = place.contrast("run", of, "baseline");
        assert!(verdicts.contains(&contrast["verdict"].as_str().unwrap()), "{contrast:#}");
        let is_faster = of == "agent:hungry" || contrast["estimate"].as_f64().unwrap() > 0.3;
        assert!(is_faster, "{contrast:#}");
    }
    let run = place.path("run");
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(run.join("plan.json")).unwrap()).unwrap();
    assert_eq!((&plan["isolation"], &plan["allow_unisolated"]), (&"container".into(), &false.into()));
    let image = daemon.docker_says(&["image", "inspect", "--format", "{{.Id}}", IMAGE]);
    assert_eq!(plan["container"]["image"]["id"], image.as_str());
    let launches = complete_launches(&run);
    assert_eq!(launches.len() % arms.len(), 0);
    for record in &launches {
        if record.launch.arm.to_string() == "agent:hungry" {
            let failure = failure(record);
            assert_eq!(failure.class, FailureClass::MemoryExceeded, "{failure:?}");
            assert!(failure.evidence[0].text.contains("for want of memory"), "{failure:?}");
            continue;
        }
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
        let proof = proof(place, "run", record);
        let container = proof.container.unwrap();
        assert_eq!((container.image_id.as_str(), container.interfaces), (image.as_str(), vec!["lo".to_owned()]));
        assert_eq!(container.limits.memory_bytes, Some(MEMORY));
        assert_eq!(container.limits.shared_memory_bytes, Some(64 << 20));
        assert_eq!(container.capabilities.trim_start_matches('0'), "");
        assert!(container.no_new_privileges && container.seccomp && container.executable.is_some());
        assert!(container.peak_memory_bytes > Some(1 << 20), "{:?}", container.peak_memory_bytes);
        assert_eq!(container.daemon.engine, "docker");
    }
    let pried = launches.iter().find(|record| record.launch.arm.to_string() == "agent:prying").unwrap();
    let said = support::evidence(&run, pried, evidence::SERVER_STDOUT);
    let said = String::from_utf8(said).unwrap();
    for line in [
        "pried tree Read-only file system",
        "pried root Read-only file system",
        // The kernel takes no such signal to the first process of a container.
        "pried first None",
        "pried memory Permission denied",
        "pried record No such file or directory",
        "pried outside Network is unreachable",
        "pried processes 2",
    ] {
        assert!(said.contains(line), "`{line}` isn't in:\n{said}");
    }
    let peeked = processes::tmp_folders(&run);
    assert!(peeked.is_empty(), "{peeked:?}");
    place.check_sound("run");
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
}

/// A coordinator that is killed takes its engine with it, and what is left of the container is swept.
fn an_engine_ends_with_its_coordinator_and_is_swept(daemon: &TestDaemon, place: &Place) {
    let memory = MEMORY.to_string();
    let arguments = ["run", "demo/dataset", "--out", "killed", "--isolation", "container", "--image", IMAGE];
    let more = ["--container-memory", &memory, "--arm", "baseline", "--arm", "human"];
    // Long enough to be killed while it is measured.
    let long = ["--set", "design.blocks=1", "--set", "workload.requests=600"];
    let arguments = [&arguments[..], &more[..], &long[..]].concat();
    let run = place.path("killed");
    let mut running = Running::start(&mut command(daemon, place, &arguments));
    wait_for_stage(&run, LaunchStage::Measuring);
    assert!(!processes::of_run(&run, place.root()).is_empty());
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, None);
    // Nobody ends it but its own first process, whose input has closed.
    wait_until("the engine has followed", || daemon.docker_says(&["ps", "--quiet"]).is_empty());
    let left = daemon.docker_says(&["ps", "--all", "--format", "{{.Status}}"]);
    assert!(left.starts_with("Exited (123)"), "{left}");
    let doctor = support::Finished::of(&mut command(daemon, place, &["doctor"]));
    assert!(doctor.stdout.contains("left containers: ended: "), "{doctor:?}");
    assert!(doctor.stdout.contains("its coordinator is gone"), "{doctor:?}");
    assert!(doctor.stdout.contains("containers: docker "), "{doctor:?}");
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
    // Killed once more, with what is left for the run itself to sweep.
    let mut running = Running::start(&mut command(daemon, place, &["run", "killed"]));
    wait_for_stage(&run, LaunchStage::Measuring);
    running.signal(Signal::KILL);
    running.finish();
    let finished = support::Finished::of(&mut command(daemon, place, &["run", "killed"]));
    assert!(matches!(finished.code, Some(0 | 100)), "{finished:?}");
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
    place.check_sound("killed");
}

/// A plan runs on the very image that it was made for, or not at all.
fn another_image_than_the_planned_one_is_refused(daemon: &TestDaemon, place: &Place, python: &str) {
    let named = "isobench-test:moved";
    let make = |message: &str| {
        daemon.docker_says(&["create", "--name", "changed", IMAGE, python]);
        let id = daemon.docker_says(&["commit", "--message", message, "changed", named]);
        daemon.docker_says(&["rm", "changed"]);
        id
    };
    let planned = make("planned");
    let plan = ["plan", "demo/dataset", "--out", "planned", "--arm", "baseline", "--arm", "human"];
    let isolated = ["--isolation", "container", "--image", named];
    let finished = support::Finished::of(&mut command(daemon, place, &[&plan[..], &isolated[..]].concat()));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(std::fs::read_to_string(place.path("planned/plan.json")).unwrap().contains(&planned));
    daemon.docker_says(&["image", "rm", "--force", named]);
    // Another image stands under the name, which changes nothing.
    assert_ne!(make("another"), planned);
    let finished = support::Finished::of(&mut command(daemon, place, &["run", "planned"]));
    assert_eq!(finished.code, Some(3), "{finished:?}");
    finished.says(&["show the image", "pull or load the image on this machine"]);
}

#[test]
fn the_first_process_of_a_container_ends_at_its_deadline_and_with_its_input() {
    let begun = Instant::now();
    let mut init = Command::new(env!("CARGO_BIN_EXE_isobench"));
    init.args(["container-init", "1"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = init.spawn().unwrap();
    // Waiting would close it.
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(124), "its input is open, and nobody says anything");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    drop(input);
    let mut child = Command::new(env!("CARGO_BIN_EXE_isobench"))
        .args(["container-init", "600"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(123));
}

#[test]
fn isolation_by_containers_needs_an_image_and_a_daemon() {
    let place = Place::new();
    place.write_task(&place.task_text());
    let mut none = place.isobench(["run", "task", "--isolation", "container", "--image", "base"]);
    let finished = support::Finished::of(none.env("DOCKER_HOST", format!("unix://{}", place.path("none").display())));
    assert_eq!(finished.code, Some(3), "{finished:?}");
    finished.says(&["no daemon of containers answers", "start docker or podman"]);
    let mut far = place.isobench(["run", "task", "--isolation", "container", "--image", "base"]);
    let finished = support::Finished::of(far.env("DOCKER_HOST", "tcp://192.0.2.1:2375"));
    assert_eq!(finished.code, Some(3), "{finished:?}");
    finished.says(&["`DOCKER_HOST` is `tcp://192.0.2.1:2375`; only a socket of this machine"]);
    place.expect(2, &["run", "task", "--isolation", "container"]).says(&["needs the image", "`--image IMAGE`"]);
    place.expect(2, &["run", "task", "--image", "base"]).says(&["give `--isolation container` as well"]);
}
