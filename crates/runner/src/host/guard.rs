//! The guard: a small process between the coordinator and an engine that ends the engine, whatever happens.
//!
//! The guard is the engine's parent and the reaper of all its descendants, also of those that leave their group or their
//! parent. It ends them all when it is told to, and at once when its standard input closes, which is what happens when
//! the coordinator dies in whatever way. It is this same program, started with one hidden argument.
//!
//! The coordinator writes one JSON line ([`Launch`]), then `stop` when it wants the end. The guard answers with JSON
//! lines ([`Report`]).

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, kill_process_group, set_child_subreaper, wait};
use serde::{Deserialize, Serialize};

use super::process_table::{self, ProcessInfo};

/// The hidden argument that makes this program a guard.
pub const ARGUMENT: &str = "guard";
/// How long descendants may take to follow an engine that has ended.
const FOLLOW: Duration = Duration::from_secs(5);
/// How long the killed may take to be gone.
const DEATH: Duration = Duration::from_secs(30);
/// How often the process table is looked at while the end is awaited.
const STEP: Duration = Duration::from_millis(10);

/// What a guard is told to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: BTreeMap<String, String>,
    /// The working folder.
    pub folder: PathBuf,
    /// The file that standard output is appended to.
    pub stdout: PathBuf,
    /// The file that standard error is appended to.
    pub stderr: PathBuf,
    /// From SIGTERM until the engine is killed, in milliseconds.
    pub grace_ms: u64,
}

/// What a guard reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// The engine runs.
    Started {
        /// Its process.
        process: u32,
    },
    /// The engine can't be started.
    Refused {
        /// The operating system's error.
        error: String,
    },
    /// The engine's first process has ended.
    Exited {
        /// How, in words: `exit status 1`, `signal 9`.
        status: String,
        /// What shows that it was killed for the memory that it used, if it was and anybody can tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<String>,
    },
    /// Every process is gone; the last report.
    Ended {
        /// Whether the engine had to be killed, because it ignored SIGTERM.
        forced: bool,
        /// Processes that outlived the engine, as `name (id)`.
        survivors: Vec<String>,
        /// Processes that can't be killed.
        unkillable: Vec<String>,
    },
}

/// The coordinator's side of a guard. Dropping it ends the engine.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    input: Option<ChildStdin>,
    reports: Receiver<Report>,
}

/// Why a guard can't be started.
#[derive(Debug, thiserror::Error)]
#[error("failed to start the guard process `{program}`")]
pub struct StartGuardError {
    /// This program.
    pub program: PathBuf,
    /// The operating system's error.
    #[source]
    pub source: io::Error,
}

/// No report will ever come again: the guard has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the guard process has ended")]
pub struct GuardGoneError;

/// What a guard that was asked to stop has told until its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    /// Its last reports. Without a [`Report::Ended`] it was killed.
    pub reports: Vec<Report>,
    /// Whether a signal held it, so that it couldn't watch the engine.
    pub was_held: bool,
}

/// Returns whether a process is a guard of this program, by its arguments.
pub fn is_guard(process: u32) -> bool {
    matches!(process_table::arguments(process).as_slice(), [_, argument] if argument == ARGUMENT)
}

impl Guard {
    /// Starts a guard by `program` (this very program) and has it start the engine.
    ///
    /// # Errors
    /// Returns an error if the guard itself can't be started; that the engine can't be is a [`Report::Refused`].
    pub fn start(program: &Path, launch: &Launch) -> Result<Self, StartGuardError> {
        let failed = |source| StartGuardError { program: program.to_owned(), source };
        let mut child = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            // A marked guard is found, and ended, with the rest of its run.
            .envs(launch.environment.get(process_table::RUN_MARKER).map(|run| (process_table::RUN_MARKER, run)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (sender, reports) = channel();
        let mut input = child.stdin.take();
        let output = child.stdout.take();
        let written = input.as_mut().map_or(Ok(()), |input| {
            let mut line = serde_json::to_vec(launch)?;
            line.push(b'\n');
            input.write_all(&line)?;
            input.flush()
        });
        let reader = thread::Builder::new().name("guard-reports".to_owned()).spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let report = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                let Some(report) = report else { return };
                if sender.send(report).is_err() {
                    return;
                }
            }
        });
        let guard = Self { child, input, reports };
        // From here on, dropping the guard ends whatever was started.
        written.map_err(failed)?;
        reader.map_err(failed)?;
        Ok(guard)
    }

    /// Returns the guard's process: the ancestor of every process of the engine.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next report, or `None` when there is none within `patience`.
    ///
    /// # Errors
    /// Returns an error if the guard has ended. Its last report was [`Report::Ended`], or it was killed.
    pub fn next_report(&self, patience: Duration) -> Result<Option<Report>, GuardGoneError> {
        match self.reports.recv_timeout(patience) {
            Ok(report) => Ok(Some(report)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(GuardGoneError),
        }
    }

    /// Lets a guard that is held go on, and returns whether it was.
    fn let_go(&self) -> bool {
        let is_held = process_table::is_held(self.process());
        if is_held {
            process_table::let_go(self.process());
        }
        is_held
    }

    /// Asks for a graceful stop, and returns what the guard tells until every process is gone.
    pub fn ask_to_stop(&mut self, grace: Duration) -> Farewell {
        let deadline = Instant::now() + grace + FOLLOW + DEATH + FOLLOW;
        let mut was_held = self.let_go();
        if let Some(input) = self.input.as_mut() {
            // A guard that is gone has closed the pipe; its reports say how it ended.
            let _ = input.write_all(b"stop\n").and_then(|()| input.flush());
        }
        let mut reports = Vec::new();
        while Instant::now() < deadline {
            match self.next_report(STEP) {
                Ok(Some(report)) => {
                    let last = matches!(report, Report::Ended { .. });
                    reports.push(report);
                    if last {
                        break;
                    }
                }
                Ok(None) => was_held |= self.let_go(),
                Err(GuardGoneError) => break,
            }
        }
        Farewell { reports, was_held }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The closed input makes the guard end everything.
        drop(self.input.take());
        let deadline = Instant::now() + DEATH + FOLLOW;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            // One that an engine holds can't end it.
            self.let_go();
            thread::sleep(STEP);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the guard's own threads tell its main loop.
enum Notice {
    /// The coordinator wants the end.
    Stop,
    /// The coordinator is gone.
    Alone,
    /// A descendant ended.
    Reaped(u32, String),
    /// No descendant is left.
    Gone,
}

/// Runs as a guard until every process of the engine is gone. Returns the exit code of this program.
pub fn run() -> u8 {
    // A signal to the coordinator's group isn't one to the guard; it lives until the engine is gone.
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    let launch: Launch = match input.read_line(&mut line).map(|_| serde_json::from_str(&line)) {
        Ok(Ok(launch)) => launch,
        Ok(Err(_)) | Err(_) => return 2,
    };
    let subreaper = set_child_subreaper(Some(rustix::process::getpid()));
    let started = subreaper.map_err(io::Error::from).and_then(|()| spawn(&launch));
    let engine = match started {
        Ok(engine) => engine,
        Err(error) => {
            report(&Report::Refused { error: error.to_string() });
            report(&Report::Ended { forced: false, survivors: Vec::new(), unkillable: Vec::new() });
            return 0;
        }
    };
    report(&Report::Started { process: engine });
    let (sender, notices) = channel();
    watch_input(input, sender.clone());
    watch_children(sender);
    let ended = oversee(engine, Duration::from_millis(launch.grace_ms), &notices);
    report(&ended);
    0
}

fn spawn(launch: &Launch) -> io::Result<u32> {
    let append = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
    let [program, arguments @ ..] = launch.command.as_slice() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(&launch.environment)
        .current_dir(&launch.folder)
        .stdin(Stdio::null())
        .stdout(append(&launch.stdout)?)
        .stderr(append(&launch.stderr)?)
        .process_group(0)
        .spawn()?;
    // The handle is dropped without waiting: one thread reaps every descendant alike.
    Ok(child.id())
}

/// Writes a report. A coordinator that is gone can't read it, which changes nothing.
fn report(report: &Report) {
    let Ok(mut line) = serde_json::to_vec(report) else { return };
    line.push(b'\n');
    let mut output = io::stdout().lock();
    let _ = output.write_all(&line).and_then(|()| output.flush());
}

fn watch_input(mut input: BufReader<io::Stdin>, sender: Sender<Notice>) {
    thread::spawn(move || {
        let mut line = String::new();
        let read = input.read_line(&mut line).unwrap_or(0);
        let told = read > 0 && line.trim() == "stop";
        if sender.send(if told { Notice::Stop } else { Notice::Alone }).is_err() || !told {
            return;
        }
        line.clear();
        let _ = input.read_line(&mut line);
        let _ = sender.send(Notice::Alone);
    });
}

fn watch_children(sender: Sender<Notice>) {
    thread::spawn(move || {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => {
                    let words = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => format!("exit status {code}"),
                        (None, Some(signal)) => format!("signal {signal}"),
                        (None, None) => "an unknown status".to_owned(),
                    };
                    let pid = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or_default();
                    if sender.send(Notice::Reaped(pid, words)).is_err() {
                        return;
                    }
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    let _ = sender.send(Notice::Gone);
                    return;
                }
            }
        }
    });
}

/// Where the end of an engine stands.
struct End {
    /// The engine's first process still lives.
    engine_lives: bool,
    /// No descendant is left.
    gone: bool,
    /// When the engine is killed.
    kill_at: Option<Instant>,
    /// When descendants that didn't follow the engine are killed.
    follow_until: Option<Instant>,
    forced: bool,
    survivors: Vec<ProcessInfo>,
}

/// Waits for the end, brings it about when asked, and returns the last report.
fn oversee(engine: u32, grace: Duration, notices: &Receiver<Notice>) -> Report {
    let mut end = End {
        engine_lives: true,
        gone: false,
        kill_at: None,
        follow_until: None,
        forced: false,
        survivors: Vec::new(),
    };
    let mut killed_at: Option<Instant> = None;
    loop {
        let wait = if end.kill_at.is_some() || end.follow_until.is_some() { STEP } else { Duration::from_secs(3600) };
        match notices.recv_timeout(wait) {
            Ok(Notice::Stop) => {
                terminate(engine);
                if end.engine_lives {
                    end.kill_at = Some(Instant::now() + grace);
                } else {
                    end.follow_until.get_or_insert(Instant::now());
                }
            }
            Ok(Notice::Alone) => end.kill_at = Some(Instant::now()),
            Ok(Notice::Reaped(pid, status)) if pid == engine => {
                end.engine_lives = false;
                report(&Report::Exited { status, memory: None });
                let follow = if end.kill_at.is_some() { FOLLOW.min(grace) } else { FOLLOW };
                end.follow_until = Some(Instant::now() + follow);
                end.kill_at = None;
            }
            Ok(Notice::Reaped(..)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Notice::Gone) | Err(RecvTimeoutError::Disconnected) => end.gone = true,
        }
        if end.gone {
            return ended(&end, &[]);
        }
        let now = Instant::now();
        let force = end.kill_at.is_some_and(|at| now >= at);
        let late = end.follow_until.is_some_and(|at| now >= at);
        if force || late {
            let alive = process_table::descendants(std::process::id());
            if killed_at.is_none() {
                end.forced = force && end.engine_lives;
                end.survivors = alive.iter().filter(|process| process.pid != engine && !end.forced).cloned().collect();
            }
            let since = *killed_at.get_or_insert(now);
            for process in &alive {
                process_table::kill(process);
            }
            if now.duration_since(since) > DEATH {
                return ended(&end, &alive);
            }
        }
    }
}

/// Sends SIGTERM to the engine's group. One that is gone already isn't an error.
fn terminate(engine: u32) {
    if let Some(pid) = process_table::pid(engine) {
        let _ = kill_process_group(pid, Signal::TERM);
    }
}

fn ended(end: &End, unkillable: &[ProcessInfo]) -> Report {
    let name = |process: &ProcessInfo| format!("{} ({})", process.command, process.pid);
    Report::Ended {
        forced: end.forced,
        survivors: end.survivors.iter().map(name).collect(),
        unkillable: unkillable.iter().map(name).collect(),
    }
}
