//! Programs that run to their end: an argument list, a clean environment, a process group, a deadline, and a log.

mod environment;
mod log;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use log::Log;

pub use environment::{Environment, clean_environment, find_program, pass_package_variables, pass_variables};
pub use log::Tail;

/// From SIGTERM until the group is killed.
const GRACE: Duration = Duration::from_secs(3);
/// How long the output of a program that has ended is still read, if a process outside its group holds the pipe.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// The longest wait before the cancel flag is looked at again.
const TICK: Duration = Duration::from_millis(50);
/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// What to run.
#[derive(Debug)]
pub struct Invocation {
    /// The program: a path, or a name that is searched in the environment's `PATH`.
    pub program: PathBuf,
    /// Its arguments. No shell reads them.
    pub arguments: Vec<OsString>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Its whole environment.
    pub environment: Environment,
    /// What it reads; nothing if absent.
    pub stdin: Option<File>,
}

impl Invocation {
    /// Returns an invocation without input.
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>, environment: Environment) -> Self {
        Self { program: program.into(), arguments: Vec::new(), folder: folder.into(), environment, stdin: None }
    }

    /// Adds arguments.
    #[must_use]
    pub fn with<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Returns the program and its arguments in one line, for people.
    pub fn line(&self) -> String {
        let mut line = self.program.display().to_string();
        for argument in &self.arguments {
            let text = argument.to_string_lossy();
            let plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
            line.push(' ');
            let shown = if plain { text.into_owned() } else { format!("{text:?}") };
            line.push_str(&shown);
        }
        line
    }
}

/// How long a program may run, who may end it, and where its output goes.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// The file that the command line and all output are appended to.
    pub log: &'a Path,
    /// When the program is ended.
    pub deadline: Instant,
    /// Set from elsewhere to end the program.
    pub cancel: &'a AtomicBool,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit status.
    Exited(i32),
    /// By this signal, which wasn't ours.
    Signalled(i32),
    /// By us, at its deadline.
    DeadlinePassed,
    /// By us, because the cancel flag was set.
    Cancelled,
}

impl Ending {
    /// Returns whether the program ended by itself with status 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(formatter, "ended with exit status {status}"),
            Self::Signalled(signal) => write!(formatter, "was ended by signal {signal}"),
            Self::DeadlinePassed => formatter.write_str("was still running at its deadline"),
            Self::Cancelled => formatter.write_str("was cancelled"),
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub ending: Ending,
    /// How long it ran.
    pub duration: Duration,
    /// The end of its output.
    pub tail: Tail,
}

/// Why a program couldn't be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunCommandError {
    /// It can't be started.
    #[error("failed to start `{program}`")]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its output can't be written to the log.
    #[error("failed to write the log `{path}`")]
    Log {
        /// The log.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What takes its output refused it.
    #[error("failed to take the output of `{program}`")]
    Sink {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The operating system refused to watch or end it.
    #[error("failed to watch `{program}`")]
    Watch {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Runs a program to its end; stdout and stderr go to the log.
///
/// # Errors
/// Returns an error if the program can't be started or watched, or its log can't be written. A program that fails is no
/// error.
pub fn run(invocation: &Invocation, watch: &Watch<'_>) -> Result<Finished, RunCommandError> {
    start(invocation, watch, None)
}

/// Runs a program to its end; stdout goes to `sink`, stderr to the log.
///
/// # Errors
/// As [`run`], and if `sink` refuses the output; the program is then ended.
pub fn run_into(invocation: &Invocation, watch: &Watch<'_>, sink: &mut dyn Write) -> Result<Finished, RunCommandError> {
    start(invocation, watch, Some(sink))
}

fn start(
    invocation: &Invocation,
    watch: &Watch<'_>,
    sink: Option<&mut dyn Write>,
) -> Result<Finished, RunCommandError> {
    let log_error = |source| RunCommandError::Log { path: watch.log.to_owned(), source };
    let mut log = Log::open(watch.log).map_err(log_error)?;
    log.take(format!("$ {}\n", invocation.line()).as_bytes()).map_err(log_error)?;
    log.begin_tail();
    let start_error = |source| RunCommandError::Start { program: invocation.program.clone(), source };
    let stdin = match &invocation.stdin {
        Some(file) => Stdio::from(file.try_clone().map_err(start_error)?),
        None => Stdio::null(),
    };
    let (messages, writer) = io::pipe().map_err(start_error)?;
    let mut command = std::process::Command::new(&invocation.program);
    command.args(&invocation.arguments).current_dir(&invocation.folder).env_clear().envs(&invocation.environment);
    command.stdin(stdin).process_group(0);
    let output = if sink.is_some() {
        let (output, output_writer) = io::pipe().map_err(start_error)?;
        command.stdout(output_writer);
        Some(output)
    } else {
        command.stdout(writer.try_clone().map_err(start_error)?);
        None
    };
    command.stderr(writer);
    let begun = Instant::now();
    let child = command.spawn().map_err(start_error)?;
    // The command holds our copies of the pipes' write ends; while it lives no pipe ever ends.
    drop(command);
    let mut running = Running { child, invocation, log, sink, ends: [Some(messages), output], watch, ended: None };
    let ending = match running.watch_to_end() {
        Ok(ending) => ending,
        Err(error) => {
            running.kill_and_reap();
            return Err(error);
        }
    };
    Ok(Finished { ending, duration: begun.elapsed(), tail: running.log.tail })
}

/// A program, its pipes and their readers.
struct Running<'a, 'b> {
    child: Child,
    invocation: &'a Invocation,
    log: Log,
    sink: Option<&'a mut (dyn Write + 'b)>,
    /// The read ends for the log and for the sink, until each has ended.
    ends: [Option<PipeReader>; 2],
    watch: &'a Watch<'a>,
    /// Why we asked the program to end, and when it is killed.
    ended: Option<(Ending, Instant)>,
}

impl Running<'_, '_> {
    fn watch_to_end(&mut self) -> Result<Ending, RunCommandError> {
        let pid = self.pid()?;
        let exit = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|e| self.watch_error(e.into()))?;
        loop {
            let now = Instant::now();
            self.end_if_due(now, pid);
            let [log_ready, sink_ready, exited] = self.wait_for(&exit)?;
            self.read_ready([log_ready, sink_ready])?;
            if exited {
                break;
            }
        }
        // The leader isn't reaped yet, so its group's number can't have been given to anybody else.
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        let status = self.child.wait().map_err(|e| self.watch_error(e))?;
        self.read_rest()?;
        Ok(match (self.ended, status.code(), status.signal()) {
            (Some((ending, _)), _, _) => ending,
            (None, Some(code), _) => Ending::Exited(code),
            (None, None, signal) => Ending::Signalled(signal.unwrap_or_default()),
        })
    }

    fn pid(&self) -> Result<Pid, RunCommandError> {
        let raw = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        raw.ok_or_else(|| self.watch_error(io::ErrorKind::InvalidData.into()))
    }

    /// Asks the group to end when it is time, and kills it when it doesn't.
    fn end_if_due(&mut self, now: Instant, pid: Pid) {
        // A group that is gone already needs no signal.
        match self.ended {
            None => {
                let ending = if self.watch.cancel.load(Ordering::Relaxed) {
                    Ending::Cancelled
                } else if now >= self.watch.deadline {
                    Ending::DeadlinePassed
                } else {
                    return;
                };
                self.ended = Some((ending, now + GRACE));
                let _ = rustix::process::kill_process_group(pid, Signal::TERM);
            }
            Some((_, kill_at)) if now >= kill_at => {
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            }
            Some(_) => {}
        }
    }

    /// Waits at most one tick; says whether the log's pipe and the sink's pipe have something, and whether the program
    /// has ended.
    fn wait_for(&self, exit: &impl std::os::fd::AsFd) -> Result<[bool; 3], RunCommandError> {
        let [messages, output] = &self.ends;
        let mut descriptors = vec![PollFd::new(exit, PollFlags::IN)];
        descriptors.extend([messages, output].into_iter().flatten().map(|end| PollFd::new(end, PollFlags::IN)));
        let timeout = Timespec::try_from(TICK).ok();
        match rustix::event::poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(self.watch_error(error.into())),
        }
        let mut ready = descriptors.iter().map(|descriptor| !descriptor.revents().is_empty());
        let exited = ready.next().unwrap_or(false);
        let log_ready = messages.is_some() && ready.next().unwrap_or(false);
        let sink_ready = output.is_some() && ready.next().unwrap_or(false);
        Ok([log_ready, sink_ready, exited])
    }

    fn read_ready(&mut self, ready: [bool; 2]) -> Result<(), RunCommandError> {
        let [log_ready, sink_ready] = ready;
        let [messages, output] = &mut self.ends;
        let read_error = |source| RunCommandError::Watch { program: self.invocation.program.clone(), source };
        let mut buffer = vec![0; READ_BYTES];
        if let Some(bytes) = read_some(messages, log_ready, &mut buffer).map_err(read_error)? {
            self.log.take(bytes).map_err(|source| RunCommandError::Log { path: self.watch.log.to_owned(), source })?;
        }
        if let (Some(bytes), Some(sink)) =
            (read_some(output, sink_ready, &mut buffer).map_err(read_error)?, self.sink.as_mut())
        {
            let program = &self.invocation.program;
            sink.write_all(bytes).map_err(|source| RunCommandError::Sink { program: program.clone(), source })?;
        }
        Ok(())
    }

    /// Reads what is still in the pipes, but doesn't wait for ever for a process that left the group with one.
    fn read_rest(&mut self) -> Result<(), RunCommandError> {
        let until = Instant::now() + LAST_OUTPUT;
        while self.ends.iter().any(Option::is_some) && Instant::now() < until {
            // Nothing but the pipes is waited for; the first stands in for the program, which is gone.
            let Some(stand_in) = self.ends.iter().flatten().next() else { break };
            let [log_ready, sink_ready, _] = self.wait_for(stand_in)?;
            self.read_ready([log_ready, sink_ready])?;
        }
        Ok(())
    }

    fn kill_and_reap(&mut self) {
        if let Ok(pid) = self.pid() {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    fn watch_error(&self, source: io::Error) -> RunCommandError {
        RunCommandError::Watch { program: self.invocation.program.clone(), source }
    }
}

/// Reads once if the pipe has something; forgets the pipe when it has ended.
fn read_some<'a>(end: &mut Option<PipeReader>, ready: bool, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    let Some(reader) = end.as_mut().filter(|_| ready) else { return Ok(None) };
    let length = match reader.read(buffer) {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
        Err(error) => return Err(error),
    };
    if length == 0 {
        *end = None;
        return Ok(None);
    }
    Ok(buffer.get(..length))
}
