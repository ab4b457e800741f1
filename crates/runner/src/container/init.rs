//! The first process of a container, of an engine or a build: this program, told over its standard input what to do.
//!
//! It waits for one line of JSON that says what to start, starts it, and ends when the engine has ended. When its standard
//! input closes, whoever watched over the container is gone, however that ended; then, and after a deadline of its own, it
//! ends at once. The kernel ends every process of a container with its first one, so that no engine outlives it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, WaitOptions, kill_process_group, set_dumpable_behavior, setrlimit, wait,
};
use serde::{Deserialize, Serialize};

use crate::host::process_table;

/// The hidden argument that makes this program the first process of a container.
pub const ARGUMENT: &str = "container-init";
/// The word that asks for a graceful end.
pub(super) const STOP: &str = "stop";
/// The exit code if the engine has ended after the kernel killed something in the container for want of memory.
pub(super) const MEMORY: u8 = 122;
/// The exit code if the engine can't be started. The reason is the last line on standard error, after [`REFUSED_LINE`].
pub(super) const REFUSED: u8 = 125;
/// The exit code when the deadline has passed.
pub(super) const TOO_LATE: u8 = 124;
/// The exit code when whoever watched over the container is gone.
pub(super) const ALONE: u8 = 123;
/// The beginning of the line that says why the engine can't be started.
pub(super) const REFUSED_LINE: &str = "isobench: the program can't be started: ";
/// Where a container sees its control groups.
const GROUPS: &str = "/sys/fs/cgroup";
/// What is added to a signal's number to make an exit code.
pub(super) const SIGNAL_BASE: i32 = 128;

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// The whole environment.
    pub(super) environment: BTreeMap<String, String>,
    /// The working folder.
    pub(super) folder: PathBuf,
}

/// Returns the deadline, in seconds, if these words of a command line make this program the first process of a container.
pub fn asked(words: &[OsString]) -> Option<u64> {
    match words {
        [_, argument, seconds] if argument == ARGUMENT => seconds.to_str()?.parse().ok(),
        _ => None,
    }
}

enum Notice {
    Start(Start),
    Stop,
    Alone,
    Ended(u8),
}

/// Runs as the first process of a container. Returns the exit code of this program.
pub fn run(deadline_s: u64) -> u8 {
    // The engine is the same user, and must not hold or read the process that watches over it.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // A core would fill the disk with the engine's memory; lowering the bound is allowed to everybody.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let deadline = Instant::now() + Duration::from_secs(deadline_s);
    let (sender, notices) = channel();
    watch_input(sender.clone());
    let mut engine = None;
    loop {
        match notices.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Notice::Start(start)) if engine.is_none() => match spawn(&start) {
                Ok(process) => {
                    engine = Some(process);
                    watch_children(process, sender.clone());
                }
                Err(error) => {
                    let _ = writeln!(io::stderr(), "{REFUSED_LINE}{error}");
                    return REFUSED;
                }
            },
            Ok(Notice::Start(_)) => {}
            Ok(Notice::Stop) => match engine.and_then(process_table::pid) {
                // One that is gone already isn't an error.
                Some(process) => drop(kill_process_group(process, Signal::TERM)),
                None => return 0,
            },
            Ok(Notice::Alone) | Err(RecvTimeoutError::Disconnected) => return ALONE,
            Ok(Notice::Ended(code)) => {
                return if code != 0 && has_lacked_memory(Path::new(GROUPS)) { MEMORY } else { code };
            }
            Err(RecvTimeoutError::Timeout) => return TOO_LATE,
        }
    }
}

/// Returns whether the kernel has killed something in the container for want of memory. Its files can only be read, also by
/// the engine.
fn has_lacked_memory(groups: &Path) -> bool {
    let kills = |file: &str| {
        let text = fs::read_to_string(groups.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
    };
    // Version 2, and version 1.
    kills("memory.events").or_else(|| kills("memory/memory.oom_control")).is_some_and(|kills| kills > 0)
}

fn spawn(start: &Start) -> io::Result<u32> {
    let [program, arguments @ ..] = start.command.as_slice() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&start.environment).current_dir(&start.folder);
    let named = |error: io::Error| io::Error::new(error.kind(), format!("`{program}`: {error}"));
    Ok(command.stdin(Stdio::null()).process_group(0).spawn().map_err(named)?.id())
}

fn watch_input(sender: Sender<Notice>) {
    thread::spawn(move || {
        for line in BufReader::new(io::stdin()).lines() {
            let Ok(line) = line else { break };
            let notice = if line.trim() == STOP {
                Notice::Stop
            } else {
                // A line that can't be read comes from nobody who watches over this container.
                let Ok(start) = serde_json::from_str(&line) else { break };
                Notice::Start(start)
            };
            if sender.send(notice).is_err() {
                return;
            }
        }
        let _ = sender.send(Notice::Alone);
    });
}

/// Reaps every process that is left to this one, and tells when it was the engine.
fn watch_children(engine: u32, sender: Sender<Notice>) {
    thread::spawn(move || {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if u32::try_from(pid.as_raw_nonzero().get()) == Ok(engine) => {
                    let by_signal = status.terminating_signal().map(|signal| SIGNAL_BASE + signal);
                    let code = status.exit_status().or(by_signal).unwrap_or(1);
                    let _ = sender.send(Notice::Ended(u8::try_from(code).unwrap_or(1)));
                    return;
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    let _ = sender.send(Notice::Ended(1));
                    return;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_for_want_of_memory_is_seen_in_either_version_of_control_groups() {
        for (file, text, expected) in [
            ("memory.events", "low 0\nmax 30\noom 1\noom_kill 1\n", true),
            ("memory.events", "oom 1\noom_kill 0\n", false),
            ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", true),
            ("other", "oom_kill 1\n", false),
        ] {
            let groups = tempfile::tempdir().unwrap();
            fs::create_dir(groups.path().join("memory")).unwrap();
            fs::write(groups.path().join(file), text).unwrap();
            assert_eq!(has_lacked_memory(groups.path()), expected, "{file}: {text}");
        }
    }

    #[test]
    fn only_its_own_words_make_it_the_first_process() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(asked(&words(&["isobench", ARGUMENT, "60"])), Some(60));
        for other in [&["isobench", ARGUMENT][..], &["isobench", ARGUMENT, "x"], &["isobench", "run", "60"]] {
            assert_eq!(asked(&words(other)), None, "{other:?}");
        }
    }
}
