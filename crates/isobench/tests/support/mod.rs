//! A place of its own for each test: a repository of the fake engine, tasks, a cache, leases, and the command.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

pub(crate) mod compiler_image;
pub(crate) mod daemons;
pub(crate) mod processes;
pub(crate) mod small_disk;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use isobench_schema::event::{BlockEnd, Event, EventKind, LaunchStage};
use isobench_schema::outcome::LaunchRecord;
use isobench_schema::verdict::{ArmJudgement, Judgement, TaskJudgement};
use isobench_store::RunReader;
use isobench_testkit::{FakeRepository, Fault, Speed, TaskText};
use serde_json::Value;

/// Long enough for any machine; no test waits for it unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);
/// The variable that turns on what takes minutes.
pub(crate) const SLOW: &str = "ISOBENCH_SLOW";

/// The speed of the baseline.
const BEFORE: Speed = Speed { ttft_us: 2000, itl_us: 400 };
/// The speed of the human commit.
const AFTER: Speed = Speed { ttft_us: 1000, itl_us: 200 };

/// Returns whether tests that take minutes are wanted.
pub(crate) fn is_slow_wanted() -> bool {
    std::env::var(SLOW).is_ok_and(|value| value == "1")
}

/// A test's own folder, with its own repository, cache and leases.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) repository: FakeRepository,
}

impl Place {
    pub(crate) fn new() -> Self {
        // Not in a folder that launches share, where other tests' launches would report it.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let repository = FakeRepository::create(&dir.path().join("repository"), BEFORE, AFTER).unwrap();
        for name in ["cache", "tmp", "task"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir, repository }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a task that takes well under a second for each launch.
    pub(crate) fn task_text(&self) -> TaskText {
        TaskText::new("task", &self.repository.dir)
    }

    /// Writes a patch that gives the engine faults, and adds its agent to a task.
    pub(crate) fn with_faults(&self, text: TaskText, name: &str, faults: &[Fault]) -> TaskText {
        let patch = format!("{name}.patch");
        self.repository.write_patch(&self.path("task").join(&patch), faults).unwrap();
        text.with_agent(name, &patch)
    }

    /// Adds an agent with a patch of that text to a task.
    pub(crate) fn with_patch(&self, text: TaskText, name: &str, patch: &[u8]) -> TaskText {
        let file = format!("{name}.patch");
        fs::write(self.path("task").join(&file), patch).unwrap();
        text.with_agent(name, &file)
    }

    /// Writes a task, and returns the path of its file.
    pub(crate) fn write_task(&self, text: &TaskText) -> PathBuf {
        let path = self.path("task").join("task.toml");
        fs::write(&path, text.toml()).unwrap();
        path
    }

    /// Returns the command with these arguments, in this place alone.
    pub(crate) fn isobench<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isobench"));
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null());
        command.env("ISOBENCH_CACHE", self.path("cache")).env("ISOBENCH_LEASES", self.path("leases"));
        command.env("XDG_CACHE_HOME", self.path("cache")).env("TMPDIR", self.path("tmp")).env("NO_COLOR", "1");
        command
    }

    /// Runs the command to its end.
    pub(crate) fn finish<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Finished {
        Finished::of(&mut self.isobench(arguments))
    }

    /// Runs the command to its end, and checks its exit code.
    pub(crate) fn expect(&self, code: i32, arguments: &[&str]) -> Finished {
        let finished = self.finish(arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
        finished
    }

    /// Returns what `judge --json` says of one contrast.
    pub(crate) fn contrast(&self, run: &str, of: &str, against: &str) -> Value {
        let finished = self.finish(["judge", run, "--json"]);
        let judged: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        let contrasts = judged["tasks"][0]["contrasts"].as_array().unwrap().clone();
        let found = contrasts.into_iter().find(|contrast| contrast["of"] == of && contrast["against"] == against);
        found.unwrap_or_else(|| panic!("no contrast of {of} against {against}: {judged:#}"))
    }

    /// Returns what `report --json` says of the first task.
    pub(crate) fn judgement(&self, run: &str) -> TaskJudgement {
        let finished = self.expect(0, &["report", run, "--json"]);
        let judgement: Judgement = isobench_schema::format::from_slice(finished.stdout.as_bytes()).unwrap();
        judgement.tasks.into_iter().next().unwrap()
    }

    /// Checks that the run's record is sound, its sequence without gaps, and nothing of it is left running.
    pub(crate) fn check_sound(&self, run: &str) {
        let finished = self.finish(["verify", run, "--json"]);
        let found: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        assert_eq!((finished.code, &found["sound"]), (Some(0), &Value::Bool(true)), "{found:#}");
        for finding in found["findings"].as_array().unwrap() {
            let message = finding["message"].as_str().unwrap();
            // Evidence of attempts that were killed before their end may lie there, and a run that was stopped isn't
            // judged; nothing else is out of order.
            let usual = ["no launch that has ended refers to", "no judgement is kept"];
            assert!(usual.iter().any(|usual| message.starts_with(usual)), "{message}");
        }
        for (place, event) in events(&self.path(run)).into_iter().enumerate() {
            assert_eq!(event.sequence, place as u64);
        }
        self.check_nothing_left(run);
    }

    /// Checks that no process of a run and none of its temporary folders is left.
    pub(crate) fn check_nothing_left(&self, run: &str) {
        let left = processes::of_run(&self.path(run), self.root());
        assert!(left.is_empty(), "{left:?}");
        let left = processes::tmp_folders(&self.path(run));
        assert!(left.is_empty(), "{left:?}");
        let work = self.path(run).join("work");
        let left: Vec<_> = fs::read_dir(work).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn of(command: &mut Command) -> Self {
        Running::start(command).finish()
    }

    /// Checks that the status names all of these.
    pub(crate) fn says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` isn't in:\n{}", self.stderr);
        }
    }
}

/// A command under way, whose pipes are read. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    readers: Vec<thread::JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, readers: vec![read_all(stdout), read_all(stderr)] }
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, if it still runs.
    pub(crate) fn signal(&mut self, signal: rustix::process::Signal) {
        if self.child.try_wait().unwrap().is_none() {
            let process = rustix::process::Pid::from_child(&self.child);
            rustix::process::kill_process(process, signal).unwrap();
        }
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => panic!("it still runs after {PATIENCE:?}"),
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut read = self.readers.drain(..).map(|reader| reader.join().unwrap());
        let (stdout, stderr) = (read.next().unwrap(), read.next().unwrap());
        drop(read);
        Finished { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both are errors if it has ended, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not after {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the run's last event says that a launch has come to a stage.
pub(crate) fn wait_for_stage(run: &Path, wanted: LaunchStage) {
    wait_until(wanted.as_str(), || {
        let text = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
        let stage = format!("\"stage\":\"{wanted}\"");
        text.lines().last().is_some_and(|line| line.contains(&stage))
    });
}

/// Returns the events of a run.
pub(crate) fn events(run: &Path) -> Vec<Event> {
    RunReader::open(run).unwrap().events().unwrap().map(Result::unwrap).collect()
}

/// Returns the records of the launches of complete blocks.
pub(crate) fn complete_launches(run: &Path) -> Vec<LaunchRecord> {
    let of = |event: Event| match event.kind {
        EventKind::BlockEnded { end: BlockEnd::Complete, launches, .. } => launches,
        EventKind::BlockEnded { .. }
        | EventKind::RunStarted { .. }
        | EventKind::OrphansEnded { .. }
        | EventKind::BlockStarted { .. }
        | EventKind::LaunchStage { .. }
        | EventKind::LookTaken { .. }
        | EventKind::Confirmed { .. }
        | EventKind::ConfirmationWithdrawn { .. }
        | EventKind::RunEnded { .. } => Vec::new(),
    };
    events(run).into_iter().flat_map(of).collect()
}

/// Returns a piece of a launch's evidence.
pub(crate) fn evidence(run: &Path, record: &LaunchRecord, name: &str) -> Vec<u8> {
    let reader = RunReader::open(run).unwrap();
    reader.artifacts().read(&record.evidence[name].digest).unwrap()
}

/// Returns what is said of an arm.
pub(crate) fn arm<'t>(task: &'t TaskJudgement, name: &str) -> &'t ArmJudgement {
    task.arms.iter().find(|arm| arm.arm.to_string() == name).unwrap()
}

/// Returns the next number of a stream that a seed decides.
pub(crate) fn draw(state: &mut u64) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap()
}
