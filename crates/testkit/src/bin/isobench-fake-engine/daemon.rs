//! Processes that get away from their parent, and what they do then.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, setsid, test_kill_process};

use crate::args::Args;
use crate::log::log;

/// How long a survivor lives if nobody ends it, in seconds.
const SURVIVOR_S: &str = "600";
/// How often a thief looks whether the engine is still there.
const LOOK: Duration = Duration::from_millis(20);

/// Starts a daemon that sleeps. It keeps the engine's environment, working folder, output and errors.
pub(crate) fn start_survivor() -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--daemonise", "--sleep-for-s", SURVIVOR_S]).status().map(drop)
}

/// Starts a daemon that owns the engine's port as long as the engine lives. It has nothing else of the engine's.
pub(crate) fn start_thief(args: &Args) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    let (port, process) = (args.port.to_string(), std::process::id().to_string());
    let listen = ["--daemonise", "--just-listen", "--host", &args.host, "--port", &port, "--while-alive", &process];
    command.env_clear().current_dir("/").args(listen).status().map(drop)
}

/// Leaves the parent's session, starts the program again with the rest of its options, and ends, so that the new process
/// belongs to nobody.
pub(crate) fn start_the_rest() -> ExitCode {
    let rest = std::env::args_os().skip(1).filter(|argument| argument != "--daemonise");
    let started = setsid().map_err(io::Error::from).and_then(|_| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(rest).spawn().map(drop)
    });
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("cannot become a daemon: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Listens, and says that everything is fine, until the process named by `--while-alive` is gone.
pub(crate) fn just_listen(args: &Args) -> ExitCode {
    let listener = match TcpListener::bind((args.host.as_str(), args.port)) {
        Ok(listener) => listener,
        Err(error) => {
            log(&format!("cannot listen on {}:{}: {error}", args.host, args.port));
            return ExitCode::FAILURE;
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || say_yes(stream).ok());
        }
    });
    let watched = args.while_alive.and_then(Pid::from_raw);
    while watched.is_none_or(|process| test_kill_process(process).is_ok()) {
        thread::sleep(LOOK);
    }
    ExitCode::SUCCESS
}

fn say_yes(mut stream: TcpStream) -> io::Result<()> {
    let mut head = [0; 4096];
    if stream.read(&mut head)? == 0 {
        return Ok(());
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
    )
}
