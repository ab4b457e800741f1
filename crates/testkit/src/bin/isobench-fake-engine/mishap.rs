//! What goes wrong, and when.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use isobench_testkit::Fault;

use crate::daemon;
use crate::engine::Engine;
use crate::log::log;

/// How long a proxy may take.
const PROXY: Duration = Duration::from_secs(2);

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    Die,
    Stall,
    Malformed,
    ErrorEvent,
    CloseEarly,
    Http500,
}

/// Returns what goes wrong with the request of that number.
pub(crate) fn of_request(engine: &Engine, number: u64) -> Option<Mishap> {
    engine.faults.iter().find_map(|fault| match fault {
        Fault::DieAfter(n) if number > *n => Some(Mishap::Die),
        Fault::Stall(n) if number == *n => Some(Mishap::Stall),
        Fault::Malformed(n) if number == *n => Some(Mishap::Malformed),
        Fault::ErrorEvent(n) if number == *n => Some(Mishap::ErrorEvent),
        Fault::CloseEarly(n) if number == *n => Some(Mishap::CloseEarly),
        Fault::Http500(n) if number == *n => Some(Mishap::Http500),
        Fault::DieAfter(_)
        | Fault::Stall(_)
        | Fault::Malformed(_)
        | Fault::ErrorEvent(_)
        | Fault::CloseEarly(_)
        | Fault::Http500(_)
        | Fault::DieAtStart
        | Fault::NeverReady
        | Fault::SlowStart(_)
        | Fault::Short
        | Fault::Liar
        | Fault::Garbage
        | Fault::Drift(_)
        | Fault::IgnoreSigterm
        | Fault::Survivor
        | Fault::Flood(_)
        | Fault::WrongPort
        | Fault::StealPort
        | Fault::WriteOwnTree(_)
        | Fault::LeaveFile(_)
        | Fault::AskNetwork
        | Fault::LeaveFolder(_)
        | Fault::Shell(..) => None,
    })
}

/// Does what the faults ask when the request of that number comes in.
pub(crate) fn at_request(engine: &Engine, number: u64) {
    for fault in &engine.faults {
        let done = if let Fault::Shell(at, command) = fault
            && *at == number
        {
            shell(command)
        } else if *fault == Fault::LeaveFolder(number) {
            std::env::set_current_dir("/")
        } else {
            Ok(())
        };
        if let Err(error) = done {
            log(&format!("cannot do `{fault}`: {error}"));
        }
    }
}

/// Does what the faults ask before the engine listens. Returns the status to end with if it can't go on.
pub(crate) fn before_listening(engine: &Engine) -> Result<(), u8> {
    for fault in &engine.faults {
        let done = match fault {
            Fault::DieAtStart => {
                log(TRACEBACK);
                return Err(1);
            }
            Fault::SlowStart(ms) => {
                thread::sleep(Duration::from_millis(*ms));
                Ok(())
            }
            Fault::Survivor => daemon::start_survivor(),
            Fault::StealPort => daemon::start_thief(&engine.args),
            Fault::Flood(bytes) => flood(bytes / 2),
            Fault::WriteOwnTree(file) => append(&engine.args.folder.join(file)),
            Fault::LeaveFile(path) => append(&expand(path)),
            Fault::AskNetwork => {
                ask_proxies();
                Ok(())
            }
            Fault::Shell(0, command) => shell(command),
            Fault::Shell(..)
            | Fault::LeaveFolder(_)
            | Fault::NeverReady
            | Fault::DieAfter(_)
            | Fault::Stall(_)
            | Fault::Malformed(_)
            | Fault::ErrorEvent(_)
            | Fault::CloseEarly(_)
            | Fault::Http500(_)
            | Fault::Short
            | Fault::Liar
            | Fault::Garbage
            | Fault::Drift(_)
            | Fault::IgnoreSigterm
            | Fault::WrongPort => Ok(()),
        };
        if let Err(error) = done {
            log(&format!("cannot do `{fault}`: {error}"));
            return Err(3);
        }
    }
    Ok(())
}

/// Starts what the faults ask for once the engine listens.
pub(crate) fn while_serving(engine: &Engine) {
    for fault in &engine.faults {
        if let Fault::Flood(bytes) = fault {
            let rest = bytes - bytes / 2;
            thread::spawn(move || flood(rest));
        }
    }
}

/// What a crash at start looks like.
const TRACEBACK: &str = "Traceback (most recent call last):
  File \"/engine/__main__.py\", line 12, in <module>
    main()
  File \"/engine/worker.py\", line 87, in load_model
    raise ValueError(\"No available memory for the cache blocks\")
ValueError: No available memory for the cache blocks";

/// Writes so many bytes of lines to the standard error.
fn flood(bytes: u64) -> io::Result<()> {
    let lines = "INFO fake engine: one of very many lines that nobody will ever read\n".repeat(1000);
    let mut lines = Lines { lines: lines.as_bytes(), place: 0 }.take(bytes);
    io::copy(&mut lines, &mut io::stderr()).map(drop)
}

/// The same lines again and again.
struct Lines<'l> {
    lines: &'l [u8],
    place: usize,
}

impl io::Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.lines.get(self.place..).filter(|left| !left.is_empty()).unwrap_or(self.lines);
        let read = (&mut &*left).read(buffer)?;
        self.place = self.lines.len() - left.len() + read;
        Ok(read)
    }
}

/// Gives a command to the shell, whose parent is the engine.
fn shell(command: &str) -> io::Result<()> {
    let status = Command::new("/bin/sh").args(["-c", command]).status()?;
    log(&format!("INFO the shell ended with {status}"));
    Ok(())
}

fn append(path: &Path) -> io::Result<()> {
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(b"# written by the fake engine\n")
}

/// Returns a path whose first part may be the name of a variable, such as `$TMPDIR`.
fn expand(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let first = parts.next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    match first.as_deref().and_then(|first| first.strip_prefix('$')).and_then(std::env::var_os) {
        Some(folder) => PathBuf::from(folder).join(parts.as_path()),
        None => path.to_owned(),
    }
}

/// Asks the proxies of the environment for a name that doesn't exist. Only proxies on this machine are asked.
fn ask_proxies() {
    let asks = [
        (["HTTP_PROXY", "http_proxy"], "GET http://example.invalid/ HTTP/1.1"),
        (["HTTPS_PROXY", "https_proxy"], "CONNECT example.invalid:443 HTTP/1.1"),
    ];
    for (names, line) in asks {
        let Some(proxy) =
            names.iter().find_map(|name| std::env::var(name).ok()).and_then(|text| on_this_machine(&text))
        else {
            log(&format!("WARNING no proxy of this machine in {}", names.join(" or ")));
            continue;
        };
        match ask(proxy, line) {
            Ok(answer) => log(&format!("INFO the proxy said: {}", answer.lines().next().unwrap_or_default())),
            Err(error) => log(&format!("WARNING the proxy didn't answer: {error}")),
        }
    }
}

fn on_this_machine(proxy: &str) -> Option<SocketAddr> {
    let address = proxy.strip_prefix("http://").unwrap_or(proxy).trim_end_matches('/');
    let address = address.replace("localhost:", "127.0.0.1:");
    address.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback())
}

fn ask(proxy: SocketAddr, line: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&proxy, PROXY)?;
    stream.set_read_timeout(Some(PROXY))?;
    stream.write_all(format!("{line}\r\nhost: example.invalid\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proxies_of_this_machine_are_asked() {
        for (proxy, expected) in [
            ("http://127.0.0.1:3128", true),
            ("http://localhost:3128/", true),
            ("[::1]:3128", true),
            ("http://192.0.2.1:3128", false),
            ("http://proxy.example:3128", false),
            ("", false),
        ] {
            assert_eq!(on_this_machine(proxy).is_some(), expected, "{proxy}");
        }
    }

    #[test]
    fn lines_go_on_for_as_long_as_they_are_read() {
        let mut text = String::new();
        Lines { lines: b"ab\n", place: 0 }.take(8).read_to_string(&mut text).unwrap();
        assert_eq!(text, "ab\nab\nab");
    }
}
