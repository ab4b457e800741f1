//! Every way in which an engine can misbehave: its own class, its stage, and the lines that show it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use isobench_schema::check::Check;
use isobench_schema::event::{BlockEnd, EventKind, LaunchStage};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_testkit::{Fault, TaskText};
use serde_json::Value;
use support::{Place, Running, arm, complete_launches, events, wait_for_stage, wait_until};

/// Where a fault shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// The launch has failed.
    Failed,
    /// The launch was measured and doesn't count.
    Discounted,
    /// The launch was measured and counts, with an incident.
    Incident,
}

/// One row of the fault table.
struct Row {
    agent: &'static str,
    fault: &'static str,
    shows: Shows,
    class: FailureClass,
    stage: FailureStage,
    /// A part of a line of evidence.
    line: &'static str,
    verdict: &'static str,
    /// The check that is broken, if the failure comes from one.
    check: Option<Check>,
}

impl Row {
    /// Names the check that is broken.
    fn breaking(self, check: &str) -> Self {
        Self { check: Some(Check::parse(check).unwrap()), ..self }
    }
}

/// Returns a row of the table.
fn row(fault: &'static str, shows: Shows, class: &str, stage: &str, line: &'static str, verdict: &'static str) -> Row {
    let class = FailureClass::parse(class).unwrap();
    let agent = fault.split('=').next().unwrap();
    Row { agent, fault, shows, class, stage: FailureStage::parse(stage).unwrap(), line, verdict, check: None }
}

/// Runs the baseline and one agent for each row in one block, and checks what is said of each.
fn check(place: &Place, mut text: TaskText, rows: &[Row], settings: &[&str]) -> Vec<LaunchRecord> {
    for row in rows {
        text = place.with_faults(text, row.agent, &[row.fault.parse().unwrap()]);
    }
    place.write_task(&text);
    let set = settings.iter().flat_map(|setting| ["--set", *setting]);
    let run = ["run", "task", "--out", "run", "--allow-unisolated", "--quiet"].into_iter().chain(set);
    let finished = place.finish(run);
    let expected = if rows.iter().all(|row| row.shows == Shows::Incident) { 0 } else { 100 };
    assert_eq!(finished.code, Some(expected), "{finished:?}");
    let task = place.judgement("run");
    let baseline = arm(&task, "baseline");
    assert_eq!((baseline.launches, baseline.valid), (1, 1), "{baseline:?}");
    let launches = complete_launches(&place.path("run"));
    for row in rows {
        let agent = format!("agent:{}", row.agent);
        let contrast = place.contrast("run", &agent, "baseline");
        assert_eq!(contrast["verdict"], row.verdict, "{agent}: {contrast}");
        let charged = if row.verdict == "invalid" { Some(agent.as_str()) } else { None };
        assert_eq!(contrast["charged_to"].as_str(), charged, "{contrast}");
        let judged = arm(&task, &agent);
        let counted = if row.shows == Shows::Incident { &judged.incidents } else { &judged.failures };
        let found = counted.iter().map(|counted| &counted.failure);
        check_failure(row, found);
        assert_eq!(judged.valid, u32::from(row.shows == Shows::Incident), "{judged:?}");
        check_failure(row, in_events(place, row, &launches).iter());
    }
    place.check_sound("run");
    launches
}

/// Checks that one of the failures is the row's, with the line that shows it.
fn check_failure<'f>(row: &Row, found: impl Iterator<Item = &'f Failure>) {
    let found: Vec<_> = found.collect();
    let fits = |failure: &&&Failure| failure.class == row.class && failure.stage == row.stage;
    let failure = found.iter().find(fits).unwrap_or_else(|| panic!("{}: {found:#?}", row.fault));
    let shows = failure.evidence.iter().any(|line| line.text.contains(row.line));
    assert!(shows, "{}: `{}` isn't in {:#?}", row.fault, row.line, failure.evidence);
    assert_eq!(failure.check.map(|broken| broken.name), row.check, "{}: {failure}", row.fault);
}

/// Returns what the events say of a row's agent.
fn in_events(place: &Place, row: &Row, launches: &[LaunchRecord]) -> Vec<Failure> {
    let agent = format!("agent:{}", row.agent);
    let record = launches.iter().find(|record| record.launch.arm.to_string() == agent).unwrap();
    match (row.shows, &record.outcome) {
        (Shows::Failed, Outcome::Failed { failure }) => vec![failure.clone()],
        (Shows::Incident, Outcome::Measured) => record.incidents.clone(),
        (Shows::Discounted, Outcome::Measured) => {
            let charged = events(&place.path("run")).into_iter().filter_map(|event| match event.kind {
                EventKind::BlockEnded { charged, .. } => charged.get(&record.launch.arm).cloned(),
                EventKind::RunStarted { .. }
                | EventKind::OrphansEnded { .. }
                | EventKind::BlockStarted { .. }
                | EventKind::LaunchStage { .. }
                | EventKind::LookTaken { .. }
                | EventKind::Confirmed { .. }
                | EventKind::ConfirmationWithdrawn { .. }
                | EventKind::RunEnded { .. } => None,
            });
            charged.collect()
        }
        (shows, outcome) => panic!("{}: {shows:?}, but {outcome:?}", row.fault),
    }
}

/// A small task of one block without a human arm.
fn text(place: &Place) -> TaskText {
    let mut text = place.task_text();
    text.human = isobench_testkit::HumanArm::Absent;
    text.blocks = 1;
    text
}

#[test]
fn an_engine_that_ends_answers_wrongly_or_touches_what_it_must_not_is_told_apart() {
    use Shows::{Discounted, Failed, Incident};
    let place = Place::new();
    let mut text = text(&place);
    text.more = "log-bytes = 1000000\n".to_owned();
    let [failed, invalid, none] = ["agent-failed", "invalid", "inconclusive"];
    let rows = [
        row("die-at-start", Failed, "start-crashed", "start", "ValueError: No available memory", failed),
        // The first request, two probes and two of warm-up come before the window.
        row("die-after=7", Failed, "server-died", "workload", "ERROR the engine core died", failed),
        row("malformed=8", Discounted, "stream-malformed", "workload", "an event can't be read", failed)
            .breaking("requests-succeed"),
        row("error-event=8", Discounted, "stream-error", "workload", "the engine core failed", failed)
            .breaking("requests-succeed"),
        row(
            "close-early=8",
            Discounted,
            "stream-truncated",
            "workload",
            "closed the connection after 8 chunks",
            failed,
        )
        .breaking("requests-succeed"),
        row("http-500=8", Discounted, "http-error", "workload", "answered with status 500", failed)
            .breaking("requests-succeed"),
        row("http-500=1", Failed, "first-request-failed", "ready", "answered with status 500", failed),
        row("short", Discounted, "output-length", "validity", "16 tokens asked, 8 came", invalid)
            .breaking("answer-lengths"),
        row("liar", Discounted, "token-count-mismatch", "validity", "usage says 16 tokens, 8 came", invalid)
            .breaking("token-counts"),
        row("garbage", Discounted, "output-mismatch", "validity", "expected `", invalid).breaking("probe-answers"),
        row("survivor", Incident, "process-survived", "workload", "isobench-fake-e", none),
        row("flood=40000000", Incident, "log-flood", "workload", "one of very many lines", none),
        row("write-own-tree", Failed, "environment-modified", "verify", "written-by-engine.txt", invalid)
            .breaking("tree-unmodified"),
        row("steal-port", Failed, "environment-unproven", "verify", "/tree", invalid).breaking("live-proof"),
        row("leave-file=$HOME/../requests.jsonl", Failed, "evidence-altered", "validity", "found: ", invalid)
            .breaking("evidence-intact"),
        row("ask-network", Failed, "network-asked", "validity", "example.invalid", invalid).breaking("no-network"),
    ];
    // Two rows of one fault are two agents.
    let (once, again): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.fault != "http-500=1");
    let launches = check(&place, text.clone(), &once, &[]);
    let record = |agent: &str| launches.iter().find(|record| record.launch.arm.to_string() == agent).unwrap();
    let log = |agent: &str| support::evidence(&place.path("run"), record(agent), evidence::SERVER_STDERR);
    let crash = String::from_utf8(log("agent:die-at-start")).unwrap();
    assert!(crash.contains("Traceback (most recent call last):") && crash.ends_with("cache blocks\n"), "{crash}");
    let flood = log("agent:flood");
    let noise = flood.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"INFO fake engine")).count();
    // Half of it is written before the engine listens, which is surely whole, and the rest as long as it lives.
    assert!(flood.len() > 20_000_000 && noise >= 20_000_000 / 71, "{} bytes, {noise} lines", flood.len());
    let changed = place.path("cache/environments").join(record("agent:write-own-tree").environment.as_str());
    assert!(!changed.exists(), "a changed environment is used again");

    let other = Place::new();
    text.repository = other.repository.dir.display().to_string();
    check(&other, text, &again, &[]);
}

#[test]
fn an_engine_that_is_never_ready_stalls_or_goes_on_at_the_end_is_told_apart() {
    use Shows::{Discounted, Failed, Incident};
    let place = Place::new();
    let rows = [
        row("never-ready", Failed, "never-ready", "ready", "listening on", "agent-failed"),
        row("wrong-port", Failed, "never-ready", "ready", "loading the model", "agent-failed"),
        row("stall=8", Discounted, "stream-stalled", "workload", "brought no event for 2 s", "agent-failed")
            .breaking("requests-succeed"),
        row("ignore-sigterm", Incident, "stop-forced", "workload", "signal 15 is ignored", "inconclusive"),
    ];
    check(&place, text(&place), &rows, &["limits.ready-s=5", "limits.stall-s=2", "limits.stop-s=1"]);
}

/// A file that is removed when the test is over.
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        // It isn't there if the test failed before.
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_left_in_a_shared_folder_is_seen() {
    let place = Place::new();
    let name = place.root().file_name().unwrap().to_str().unwrap().replace('.', "");
    let left = Left(PathBuf::from(format!("/var/tmp/isobench-test-{name}")));
    let fault: &'static str = format!("leave-file={}", left.0.display()).leak();
    let line: &'static str = left.0.display().to_string().leak();
    let rows = [row(fault, Shows::Incident, "shared-folder-written", "workload", line, "inconclusive")];
    check(&place, text(&place), &rows, &[]);
    assert!(left.0.is_file(), "what isn't surely the engine's isn't removed");
}

/// Listens on the port of each launch of the agent `slow` before its engine does, and says that it is ready.
fn steal_ports(run: &Path, over: &AtomicBool) {
    let mut stolen = BTreeMap::new();
    while !over.load(Ordering::Relaxed) {
        let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let launches = files(&run.join("work")).flat_map(|attempt| files(&attempt.join("scratch")).collect::<Vec<_>>());
        for launch in launches.filter(|launch| launch.to_string_lossy().contains("slow")) {
            let text = fs::read_to_string(launch.join(evidence::LAUNCH)).unwrap_or_default();
            let port = serde_json::from_str::<Value>(&text).ok().and_then(|launched| launched["port"].as_u64());
            if let Some(port) = port {
                stolen.entry(port).or_insert_with(|| TcpListener::bind(format!("127.0.0.1:{port}")).unwrap());
            }
        }
        for listener in stolen.values() {
            listener.set_nonblocking(true).unwrap();
            if let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_port_that_a_process_outside_the_engine_owns_spoils_the_block_and_at_last_the_task() {
    let place = Place::new();
    place.write_task(&place.with_faults(text(&place), "slow", &[Fault::SlowStart(60_000)]));
    let run = place.path("run");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| steal_ports(&run, &over));
        let finished = place.finish(["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
        over.store(true, Ordering::Relaxed);
        assert_eq!(finished.code, Some(100), "{finished:?}");
    });
    let row = row("slow", Shows::Failed, "port-owned-by-other", "ready", "is listened on by `faults", "inconclusive")
        .breaking("port-owner");
    let mut spoilt = 0;
    for event in events(&run) {
        if let EventKind::BlockEnded { end, launches, .. } = event.kind {
            let BlockEnd::Spoilt { failure } = end else { panic!("{end:?}") };
            check_failure(&row, [&failure].into_iter());
            let baseline = launches.iter().find(|record| record.launch.arm.to_string() == "baseline").unwrap();
            assert_eq!(baseline.outcome, Outcome::Measured);
            spoilt += 1;
        }
    }
    assert_eq!(spoilt, 3, "the block and its two replacements");
    let contrast = place.contrast("run", "agent:slow", "baseline");
    assert_eq!(contrast["verdict"], row.verdict, "{contrast}");
    place.check_sound("run");
}

/// What the shell calls the guard of the engine that has started it.
const GUARD: &str = "$(cut -d ' ' -f 4 /proc/$PPID/stat)";

#[test]
fn an_engine_that_ends_or_holds_its_guard_or_becomes_another_is_charged_and_ended() {
    let place = Place::new();
    let shell = |command: &str| -> &'static str { format!("shell=7 {command}").leak() };
    let kill = shell(&format!("env -i setsid sleep 300 & kill -9 {GUARD}"));
    let hold = shell(&format!("kill -STOP {GUARD}"));
    let (failed, died) = ("agent-failed", "server-died");
    let rows = [
        Row { agent: "kill", ..row(kill, Shows::Failed, died, "workload", "engine, was killed", failed) },
        Row { agent: "hold", ..row(hold, Shows::Failed, died, "workload", "engine, was held by a signal", failed) },
        row("leave-folder=23", Shows::Failed, "environment-unproven", "verify", "/tree", "invalid")
            .breaking("live-proof"),
    ];
    let launches = check(&place, text(&place), &rows, &[]);
    let killed = launches.iter().find(|record| record.launch.arm.to_string() == "agent:kill").unwrap();
    let survived = killed.incidents.iter().find(|incident| incident.class == FailureClass::ProcessSurvived).unwrap();
    // The sleeper may not have become that program yet.
    assert!(survived.message.contains("isobench-fake-e") && survived.evidence.len() >= 2, "{survived:?}");
}

#[test]
fn an_engine_that_removes_the_lease_costs_its_own_launch_alone() {
    let place = Place::new();
    let fault = format!("shell=7 rm {}", place.path("leases/cpu.lock").display());
    let mut text = place.with_faults(text(&place), "thief", &[fault.parse().unwrap()]);
    for name in ["first", "second"] {
        text = place.with_faults(text, name, &[Fault::SlowStart(1)]);
    }
    place.write_task(&text);
    place.finish(["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
    let mut blocks = 0;
    for event in events(&place.path("run")) {
        if let EventKind::BlockEnded { launches, .. } = event.kind {
            blocks += 1;
            for record in launches {
                match record.outcome {
                    Outcome::Failed { failure } => {
                        assert_eq!(failure.class, FailureClass::LeaseLost);
                        assert_eq!(failure.check, Some(Check::LeaseHeld.into()));
                        assert_eq!(record.launch.arm.to_string(), "agent:thief");
                    }
                    Outcome::Measured => assert_ne!(record.launch.arm.to_string(), "agent:thief"),
                    Outcome::Interrupted => panic!("{record:?}"),
                }
            }
        }
    }
    assert!(blocks > 0);
    place.check_sound("run");
}

#[test]
fn folders_that_no_path_can_name_are_removed_and_cost_nothing() {
    let place = Place::new();
    let name = "deep".repeat(50);
    let dig = format!("for level in $(seq 60); do mkdir {name} && cd -P {name}; done; chmod 0 . ..");
    let dig = format!("shell=7 for place in $TMPDIR $HOME; do cd $place; {dig}; done");
    place.write_task(&place.with_faults(text(&place), "digger", &[dig.parse().unwrap()]));
    place.expect(0, &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
    let launches = complete_launches(&place.path("run"));
    let digger = launches.iter().find(|record| record.launch.arm.to_string() == "agent:digger").unwrap();
    let refused = digger.incidents.iter().any(|incident| incident.class == FailureClass::HostError);
    assert!(digger.outcome == Outcome::Measured && !refused, "{digger:?}");
    let log = String::from_utf8(support::evidence(&place.path("run"), digger, evidence::SERVER_STDERR)).unwrap();
    assert!(log.contains("the shell ended with exit status: 0") && !log.contains("mkdir"), "{log}");
    place.check_sound("run");
}

/// Writes a task whose environments are built by a command of the shell.
fn write_built(place: &Place, command: &str) {
    let build = format!("python = \"absent\"\nbuild = [[\"/bin/sh\", \"-c\", {}]]\n", Value::from(command));
    let built = text(place).toml().replacen("python = \"absent\"\n", &build, 1);
    assert!(built.contains("build = "));
    fs::write(place.path("task/task.toml"), built).unwrap();
}

#[test]
fn what_a_build_leaves_running_is_ended_before_the_engine_starts() {
    let place = Place::new();
    let seen = place.path("seen");
    write_built(&place, &format!("env -i setsid sleep 300 >/dev/null 2>&1 & echo $! >> {}", seen.display()));
    let mut running = Running::start(&mut place.isobench(["run", "task", "--out", "run", "--quiet"]));
    wait_for_stage(&place.path("run"), LaunchStage::Measuring);
    // The sleeper's working folder is the environment.
    let sleeper = fs::read_to_string(&seen).unwrap();
    let cwd = fs::read_link(format!("/proc/{}/cwd", sleeper.trim()));
    assert!(!cwd.is_ok_and(|folder| folder.starts_with(place.root())), "process {sleeper} still runs");
    running.signal(rustix::process::Signal::INT);
    running.finish();
    place.check_sound("run");
}

#[test]
fn a_build_that_outlives_a_killed_run_is_ended_by_the_next_command() {
    let place = Place::new();
    let begun = place.path("begun").display().to_string();
    write_built(&place, &format!("test -e {begun} || {{ touch {begun}; setsid sleep 300 & sleep 300; }}"));
    let mut running = Running::start(&mut place.isobench(["run", "task", "--out", "run", "--quiet"]));
    wait_until("the build has begun", || Path::new(&begun).exists());
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    place.expect(0, &["run", "task", "--out", "run", "--quiet"]);
    let ended = events(&place.path("run")).into_iter().find_map(|event| match event.kind {
        EventKind::OrphansEnded { processes } => Some(processes.len()),
        EventKind::RunStarted { .. }
        | EventKind::BlockStarted { .. }
        | EventKind::LaunchStage { .. }
        | EventKind::LookTaken { .. }
        | EventKind::BlockEnded { .. }
        | EventKind::Confirmed { .. }
        | EventKind::ConfirmationWithdrawn { .. }
        | EventKind::RunEnded { .. } => None,
    });
    assert!(ended.is_some_and(|ended| ended >= 1), "{ended:?}");
    place.check_sound("run");
}

#[test]
fn two_hundred_megabytes_of_log_are_kept_whole() {
    if !support::is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return;
    }
    let place = Place::new();
    // Half of it is surely written: before the engine listens.
    let rows = [row("flood=400000000", Shows::Incident, "log-flood", "workload", "very many lines", "inconclusive")];
    let launches = check(&place, text(&place), &rows, &[]);
    let record = launches.iter().find(|record| record.launch.arm.to_string() == "agent:flood").unwrap();
    let kept = &record.evidence[evidence::SERVER_STDERR];
    assert!(kept.bytes > 200_000_000, "{kept:?}");
}
