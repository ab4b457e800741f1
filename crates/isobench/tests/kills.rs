//! A coordinator that is killed at any moment: the same command goes on, and nothing is lost, told twice or left running.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isobench_schema::event::{EventKind, LaunchStage, RunEnd};
use isobench_schema::outcome::Outcome;
use isobench_testkit::{Fault, Speed};
use rustix::process::Signal;
use serde_json::Value;
use support::{
    Finished, Place, Running, complete_launches, draw, events, is_slow_wanted, processes, wait_for_stage, wait_until,
};

/// Kill points of the fast suite, and of the slow one.
const SEEDS: [u32; 2] = [6, 50];
/// How many are under way at once.
const AT_ONCE: usize = 4;
const COMMAND: &[&str] = &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"];

/// What a run gives: for each launch of a complete block its outcome.
type Outcomes = BTreeMap<String, String>;

fn outcomes(run: &Path) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for record in complete_launches(run) {
        let outcome = match &record.outcome {
            Outcome::Measured => "measured".to_owned(),
            Outcome::Failed { failure } => failure.class.to_string(),
            Outcome::Interrupted => "interrupted".to_owned(),
        };
        let launch = format!("{} block {} {}", record.launch.block.task, record.launch.block.block, record.launch.arm);
        let before = outcomes.insert(launch, outcome);
        assert_eq!(before, None, "a block is complete twice: {}", record.launch);
    }
    outcomes
}

/// The agents of the runs that are killed: what each leaves behind is another way to go wrong.
#[derive(Debug, Clone, Copy)]
enum Agent {
    Faster,
    /// Leaves a process of a session of its own.
    Survivor,
    /// Changes its own files, so that its environment in the cache is no longer what it was.
    Writer,
}

const AGENTS: [Agent; 3] = [Agent::Faster, Agent::Survivor, Agent::Writer];

/// Returns a place with a task of three arms and two blocks that takes a few seconds.
fn place(agent: Agent) -> Place {
    let place = Place::new();
    let mut text = place.task_text();
    text.requests = 60;
    text = match agent {
        Agent::Faster => {
            let patch = place.path("task").join("agent.patch");
            place.repository.write_speed_patch(&patch, Speed { ttft_us: 1500, itl_us: 300 }).unwrap();
            text.with_agent("agent", "agent.patch")
        }
        Agent::Survivor => place.with_faults(text, "agent", &[Fault::Survivor]),
        Agent::Writer => place.with_faults(text, "agent", &[Fault::WriteOwnTree("faults.txt".into())]),
    };
    let text = text.toml().replace("stop-s = 5", "stop-s = 0.3");
    std::fs::write(place.path("task/task.toml"), text).unwrap();
    place
}

/// What an undisturbed run gives.
struct Undisturbed {
    code: Option<i32>,
    outcomes: Outcomes,
    took: Duration,
}

fn undisturbed(agent: Agent) -> Undisturbed {
    let place = place(agent);
    let begun = Instant::now();
    let finished = place.finish(COMMAND);
    let took = begun.elapsed();
    check(&place, &finished);
    Undisturbed { code: finished.code, outcomes: outcomes(&place.path("run")), took }
}

/// Checks everything that must hold of a run that has ended, however often it was killed.
fn check(place: &Place, finished: &Finished) {
    let run = place.path("run");
    assert!(run.join("events.jsonl").is_file(), "{finished:?}");
    place.check_sound("run");
    let mut told = BTreeSet::new();
    let mut begun = BTreeSet::new();
    let mut end = None;
    for event in events(&run) {
        match event.kind {
            EventKind::BlockStarted { id, order } => {
                assert!(begun.insert(id.clone()), "{id} has begun twice");
                assert_eq!(order.len(), 3);
            }
            EventKind::BlockEnded { id, launches, .. } => {
                assert!(begun.contains(&id), "{id} has ended before it began");
                assert_eq!(launches.len(), 3, "{id}");
                for record in launches {
                    assert!(told.insert(record.launch.clone()), "{} has two outcomes", record.launch);
                }
            }
            EventKind::RunEnded { end: found, .. } => end = Some(found),
            EventKind::RunStarted { .. } => end = None,
            EventKind::OrphansEnded { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::LookTaken { .. }
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. } => {}
        }
    }
    assert_eq!(told.len(), 3 * begun.len(), "an attempt has no end");
    assert_eq!(end, Some(RunEnd::Finished));
    check_cache(&place.path("cache"));
}

/// Checks that every whole environment holds exactly the files that its manifest names, with their bytes.
fn check_cache(cache: &Path) {
    let mut environments = 0;
    for entry in std::fs::read_dir(cache.join("environments")).unwrap().flatten() {
        let Ok(text) = std::fs::read(entry.path().join("manifest.json")) else { continue };
        let manifest: Value = serde_json::from_slice(&text).unwrap();
        let files = manifest["files"].as_object().unwrap();
        let tree = entry.path().join("tree");
        assert_eq!(std::fs::read_dir(&tree).unwrap().count(), files.len(), "{}", tree.display());
        for (name, planned) in files {
            let found = isobench_schema::ids::Digest::of(&std::fs::read(tree.join(name)).unwrap());
            assert_eq!(planned["sha256"].as_str(), Some(found.to_string().as_str()), "{name} in {}", tree.display());
        }
        environments += 1;
    }
    assert!(environments >= 2, "{environments}");
}

/// Returns the next number of the stream as one from 0 to 1.
fn draw_share(state: &mut u64) -> f64 {
    f64::from(draw(state)) / f64::from(u32::MAX)
}

/// Kills a run at the points that a seed decides, ends it, and holds it against the undisturbed one.
fn kill_and_resume(seed: u32, seeds: u32, agent: Agent, undisturbed: &Undisturbed) {
    let place = place(agent);
    let mut state = u64::from(seed);
    let kills = 1 + seed / 3 % 3;
    for kill in 0..kills {
        let mut running = Running::start(&mut place.isobench(COMMAND));
        // The first kills of all seeds are spread evenly over the run; the others fall where they fall.
        let share = if kill == 0 {
            (f64::from(seed) + draw_share(&mut state)) / f64::from(seeds)
        } else {
            draw_share(&mut state)
        };
        thread::sleep(undisturbed.took.mul_f64(share));
        running.signal(Signal::KILL);
        // One that was over before is no kill, which is as good a point as any.
        running.finish();
    }
    let finished = place.finish(COMMAND);
    assert_eq!(finished.code, undisturbed.code, "seed {seed}: {finished:?}");
    check(&place, &finished);
    assert_eq!(outcomes(&place.path("run")), undisturbed.outcomes, "seed {seed}");
}

#[test]
fn a_run_that_is_killed_anywhere_goes_on_to_the_same_outcomes() {
    let seeds = SEEDS[usize::from(is_slow_wanted())];
    let undisturbed = thread::scope(|scope| {
        AGENTS.map(|agent| scope.spawn(move || undisturbed(agent))).map(|running| running.join().unwrap())
    });
    let next = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    let agent = usize::try_from(seed).unwrap() % AGENTS.len();
                    kill_and_resume(seed, seeds, AGENTS[agent], &undisturbed[agent]);
                }
            });
        }
    });
}

#[test]
fn one_interrupt_ends_a_run_cleanly_and_the_same_command_goes_on() {
    let place = Place::new();
    let mut text = place.task_text();
    text.requests = 400;
    text.blocks = 1;
    place.write_task(&text);
    let mut running = Running::start(&mut place.isobench(["run", "task", "--out", "run"]));
    wait_for_stage(&place.path("run"), LaunchStage::Measuring);
    running.signal(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code, Some(5), "{finished:?}");
    finished.says(&["interrupted; go on with: isobench run run"]);
    place.check_sound("run");
    let told = events(&place.path("run"));
    assert!(matches!(told.last().unwrap().kind, EventKind::RunEnded { end: RunEnd::Interrupted, .. }), "{told:?}");
    place.expect(0, &["run", "run"]);
    place.check_sound("run");
    assert_eq!(outcomes(&place.path("run")).len(), 2);
    let attempts =
        events(&place.path("run")).into_iter().filter(|event| matches!(&event.kind, EventKind::BlockStarted { .. }));
    assert_eq!(attempts.count(), 2);
}

#[test]
fn a_second_interrupt_ends_a_run_at_once_and_nothing_is_left_running() {
    let place = Place::new();
    let mut text = place.with_faults(place.task_text(), "deaf", &[Fault::IgnoreSigterm]);
    text.requests = 100_000;
    let text = text.toml().replace("stop-s = 5", "stop-s = 250");
    std::fs::write(place.path("task/task.toml"), text).unwrap();
    let command = ["run", "task", "--out", "run", "--allow-unisolated", "--arm", "agent:deaf"];
    let mut running = Running::start(&mut place.isobench(command));
    let run = place.path("run");
    wait_for_stage(&run, LaunchStage::Measuring);
    running.signal(Signal::INT);
    wait_for_stage(&run, LaunchStage::Stopping);
    let begun = Instant::now();
    running.signal(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code, Some(5), "{finished:?}");
    assert!(begun.elapsed() < Duration::from_secs(200), "it waited for the engine");
    wait_until("no process is left", || processes::of_run(&run, place.root()).is_empty());
    // The next command would remove it.
    for folder in processes::tmp_folders(&run) {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_run_that_is_killed_before_its_last_event_gets_it() {
    let place = place(Agent::Faster);
    let finished = place.finish(COMMAND);
    let run = place.path("run");
    let path = run.join("events.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let (kept, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(last.contains("run-ended"), "{last}");
    std::fs::write(&path, format!("{kept}\n")).unwrap();
    let left = run.join("work/task.block-1.attempt-1/scratch");
    std::fs::create_dir_all(&left).unwrap();
    let before = outcomes(&run);
    let again = place.finish(COMMAND);
    assert_eq!(again.code, finished.code, "{again:?}");
    check(&place, &again);
    assert_eq!(outcomes(&run), before);
}

#[test]
fn an_interrupted_demo_that_is_still_timing_its_engine_keeps_nothing() {
    let place = Place::new();
    let mut running = Running::start(&mut place.isobench(["demo", "--out", "demo"]));
    let timed = || std::fs::read_dir(place.path("demo")).into_iter().flatten().flatten().next();
    wait_until("the engine is timed", || {
        timed().is_some_and(|folder| folder.path().join("run/events.jsonl").is_file())
    });
    running.signal(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code, Some(5), "{finished:?}");
    finished.says(&["interrupted while the engine was timed"]);
    assert!(timed().is_none(), "{:?}", timed());
    let left = processes::of_run(&place.path("demo"), place.root());
    assert!(left.is_empty(), "{left:?}");
}
