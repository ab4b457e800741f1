//! The same command goes on; another one is refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use isobench_schema::event::{Event, EventKind, LaunchStage};
use isobench_schema::failure::FailureClass;
use isobench_schema::outcome::{Outcome, evidence};
use isobench_testkit::Fault;
use rustix::process::Signal;

use crate::support::{Place, Running, complete_launches, events, wait_for_stage, wait_until};

#[test]
fn a_finished_run_is_left_as_it_is_by_the_same_command() {
    let place = Place::new();
    place.write_task(&place.task_text());
    let first = place.expect(0, &["run", "task", "--out", "run"]);
    let log = std::fs::read(place.path("run/events.jsonl")).unwrap();
    for again in [["run", "task", "--out", "run"].as_slice(), &["run", "run"]] {
        let again = place.expect(0, again);
        assert_eq!(again.stdout, first.stdout);
        assert_eq!(std::fs::read(place.path("run/events.jsonl")).unwrap(), log);
    }
    let listed = place.expect(0, &["runs", ".", "--json"]);
    assert!(listed.stdout.contains(r#""state": "finished""#), "{listed:?}");
}

#[test]
fn a_second_run_in_the_same_folder_is_refused_while_the_first_lives() {
    let place = Place::new();
    let mut text = place.task_text();
    text.requests = 100_000;
    place.write_task(&text);
    let command = ["run", "task", "--out", "run"];
    let mut first = Running::start(&mut place.isobench(command));
    wait_for_stage(&place.path("run"), LaunchStage::Measuring);
    let told = events(&place.path("run")).len();
    let holder = format!("`run` is in use by process {}", first.process());
    for second in [command.as_slice(), &["run", "run"], &["run", "run", "--take-in", "nowhere"]] {
        place.expect(2, second).says(&[&holder, "hint: wait for it"]);
    }
    let listed = place.expect(0, &["runs", "."]);
    assert!(listed.stdout.contains("under way"), "{listed:?}");
    assert_eq!(events(&place.path("run")).len(), told, "a refused run writes nothing");
    first.signal(Signal::INT);
    assert_eq!(first.finish().code, Some(5));
    let listed = place.expect(0, &["runs", "."]);
    assert!(listed.stdout.contains("interrupted; can be resumed"), "{listed:?}");
    place.check_sound("run");
}

#[test]
fn an_environment_that_is_built_into_another_tree_after_the_run_went_on_is_unproven() {
    let place = Place::new();
    let mut text = place.task_text();
    text.blocks = 6;
    let built = "python = \"absent\"\nbuild = [[\"cp\", \"/proc/sys/kernel/random/uuid\", \"built\"]]\n";
    let built = text.toml().replacen("python = \"absent\"\n", built, 1);
    fs::write(place.path("task/task.toml"), built).unwrap();
    let mut first = Running::start(&mut place.isobench(["run", "task", "--out", "run", "--quiet"]));
    wait_until("the first block is done", || {
        place.path("run/events.jsonl").is_file() && !complete_launches(&place.path("run")).is_empty()
    });
    first.signal(Signal::INT);
    assert_eq!(first.finish().code, Some(5));
    let before = complete_launches(&place.path("run"));
    assert!(before.iter().all(|launch| launch.outcome == Outcome::Measured), "{before:?}");
    // What a build gives is no longer known anywhere but in the run's own evidence.
    fs::remove_dir_all(place.path("cache/environments")).unwrap();
    place.expect(100, &["run", "run", "--quiet"]);
    for launch in complete_launches(&place.path("run")).iter().skip(before.len()) {
        let Outcome::Failed { failure } = &launch.outcome else { panic!("{launch:?}") };
        assert_eq!(failure.class, FailureClass::EnvironmentUnproven, "{failure}");
    }
    place.check_sound("run");
}

#[test]
fn a_link_in_the_place_of_evidence_does_not_keep_a_killed_run_from_going_on() {
    let place = Place::new();
    let mut text = place.task_text();
    text.requests = 100_000;
    place.write_task(&text);
    let mut killed = Running::start(&mut place.isobench(["run", "task", "--out", "run"]));
    wait_for_stage(&place.path("run"), LaunchStage::Measuring);
    killed.signal(Signal::KILL);
    killed.finish();
    let only = |folder: &Path| fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let launch = only(&only(&place.path("run/work")).join("scratch"));
    fs::remove_file(launch.join(evidence::REQUESTS)).unwrap();
    fs::remove_file(launch.join(evidence::SERVER_STDERR)).unwrap();
    symlink("/etc/hostname", launch.join(evidence::SERVER_STDERR)).unwrap();
    let mut resumed = Running::start(&mut place.isobench(["run", "run"]));
    let ended = |events: Vec<Event>| {
        events.into_iter().find_map(|event| match event.kind {
            EventKind::BlockEnded { launches, .. } => Some(launches),
            EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::LookTaken { .. }
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. }
            | EventKind::RunEnded { .. } => None,
        })
    };
    let told = || fs::read_to_string(place.path("run/events.jsonl")).unwrap();
    wait_until("the next attempt has begun", || told().matches("block-started").count() == 2);
    resumed.signal(Signal::INT);
    assert_eq!(resumed.finish().code, Some(5));
    let launches = ended(events(&place.path("run"))).unwrap();
    let kept: Vec<_> = launches.iter().flat_map(|record| record.evidence.keys()).collect();
    assert!(kept.iter().any(|name| *name == evidence::LAUNCH), "{kept:?}");
    assert!(!kept.iter().any(|name| *name == evidence::SERVER_STDERR || *name == evidence::REQUESTS), "{kept:?}");
    place.check_sound("run");
}

#[test]
fn another_plan_or_dataset_in_the_folder_of_a_run_is_refused() {
    let place = Place::new();
    let mut text = place.task_text();
    text.blocks = 1;
    place.write_task(&text);
    place.expect(0, &["run", "task", "--out", "run", "--arm", "baseline"]);
    let log = std::fs::read(place.path("run/events.jsonl")).unwrap();
    for other in [["--seed", "2"], ["--arm", "human"], ["--set", "workload.requests=17"]] {
        let command = ["run", "task", "--out", "run"].into_iter().chain(other);
        let refused = place.finish(command);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        refused.says(&["`run` holds the plan", "`--out` names another folder"]);
    }
    std::fs::create_dir(place.path("mine")).unwrap();
    std::fs::write(place.path("mine/thesis.txt"), "years of work").unwrap();
    place.expect(2, &["run", "task", "--out", "mine"]).says(&["`mine` isn't empty and holds no run", "thesis.txt"]);
    assert_eq!(std::fs::read(place.path("run/events.jsonl")).unwrap(), log);
}

#[test]
fn a_plan_that_was_written_runs_as_it_was_written() {
    let place = Place::new();
    let mut text = place.task_text();
    text.blocks = 1;
    place.write_task(&text);
    place.expect(0, &["plan", "task", "--out", "plan"]);
    // What the plan was made from no longer matters, and no option changes it.
    std::fs::write(place.path("task/task.toml"), "rubbish").unwrap();
    place.expect(0, &["run", "plan", "--out", "run"]);
    let read = |path| std::fs::read(place.path(path)).unwrap();
    assert_eq!(read("plan/plan.json"), read("run/plan.json"));
    place.check_sound("run");
    let facts = String::from_utf8(read("plan/facts.json")).unwrap();
    let altered = facts.replacen("\"fingerprint\": \"", "\"fingerprint\": \"x", 1);
    assert_ne!(altered, facts);
    std::fs::write(place.path("plan/facts.json"), altered).unwrap();
    place.expect(2, &["run", "plan", "--out", "other"]).says(&["aren't those that it was made from"]);
}

#[test]
fn an_engine_is_given_the_same_private_folders_whatever_folder_the_command_was_given_in() {
    let place = Place::new();
    // Engines run in their own tree: a name relative to the command's folder would lead into it.
    let own = ["$HOME", "$TMPDIR"].map(|folder| Fault::LeaveFile(format!("{folder}/note").into()));
    let mut text = place.with_faults(place.task_text(), "noting", &own);
    text.blocks = 1;
    place.write_task(&text);
    place.expect(0, &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
    for record in complete_launches(&place.path("run")) {
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
    }
    place.check_sound("run");
}

#[test]
fn a_run_waits_for_a_device_that_another_one_holds_and_can_be_interrupted_meanwhile() {
    let place = Place::new();
    let mut text = place.task_text();
    text.requests = 100_000;
    place.write_task(&text);
    let mut first = Running::start(&mut place.isobench(["run", "task", "--out", "first"]));
    wait_for_stage(&place.path("first"), LaunchStage::Measuring);
    let mut second = Running::start(&mut place.isobench(["run", "task", "--out", "second"]));
    let begun = || std::fs::read_to_string(place.path("second/events.jsonl")).unwrap_or_default();
    wait_until("the second run's block has begun", || begun().contains("block-started"));
    second.signal(Signal::INT);
    let second = second.finish();
    assert_eq!(second.code, Some(5), "{second:?}");
    second
        .says(&[&format!("waiting for the cpu, which process {}, `", first.process()), "run task --out first`, holds"]);
    assert!(!begun().contains("\"stage\":"), "nothing was launched meanwhile");
    first.signal(Signal::INT);
    assert_eq!(first.finish().code, Some(5));
    place.check_sound("second");
}

#[test]
fn runs_that_share_a_cache_at_the_same_time_do_not_disturb_each_other() {
    let place = Place::new();
    let mut text = place.with_faults(place.task_text(), "writer", &[Fault::WriteOwnTree("note".into())]);
    text.blocks = 1;
    place.write_task(&text);
    let runs = ["one", "two", "three"];
    let started = runs
        .map(|out| Running::start(&mut place.isobench(["run", "task", "--out", out, "--allow-unisolated", "--quiet"])));
    for (running, out) in started.into_iter().zip(runs) {
        let finished = running.finish();
        assert_eq!(finished.code, Some(100), "{out}: {finished:?}");
        let measured = complete_launches(&place.path(out)).iter().filter(|r| r.outcome == Outcome::Measured).count();
        assert_eq!(measured, 2, "{out}");
    }
    for out in runs {
        place.check_sound(out);
    }
}
