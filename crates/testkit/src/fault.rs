//! The ways in which the fake engine misbehaves.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// One way in which the fake engine misbehaves. Requests are counted from 1, over everything that asks for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// `die-at-start`: prints a Python traceback and ends with status 1 before it listens.
    DieAtStart,
    /// `never-ready`: its health endpoint says 503 for ever.
    NeverReady,
    /// `slow-start=MS`: listens only after so many milliseconds.
    SlowStart(u64),
    /// `die-after=N`: ends with status 1 when request N + 1 comes in.
    DieAfter(u64),
    /// `stall=N`: the stream of request N stops half-way and stays open.
    Stall(u64),
    /// `malformed=N`: the stream of request N holds an event that is no JSON.
    Malformed(u64),
    /// `error-event=N`: the stream of request N holds an error event half-way, and ends.
    ErrorEvent(u64),
    /// `close-early=N`: the connection of request N is closed half-way.
    CloseEarly(u64),
    /// `http-500=N`: request N is answered with status 500.
    Http500(u64),
    /// `short`: half of the tokens asked, finish reason `stop`.
    Short,
    /// `liar`: half of the tokens asked, finish reason `length`, and a usage that claims all of them.
    Liar,
    /// `garbage`: the right number of wrong words.
    Garbage,
    /// `drift` or `drift=PERCENT`: the time between tokens grows by so many percent (100) each second.
    Drift(u64),
    /// `ignore-sigterm`: goes on when it is asked to end.
    IgnoreSigterm,
    /// `survivor`: starts a daemon (a process of a session of its own, whose parent is gone) that outlives it.
    Survivor,
    /// `flood=BYTES`: writes so many bytes to its standard error, half of them before it listens.
    Flood(u64),
    /// `wrong-port`: goes on without listening.
    WrongPort,
    /// `steal-port`: a daemon listens on its port and says that it is ready, and it itself doesn't listen.
    StealPort,
    /// `write-own-tree` or `write-own-tree=FILE`: appends to a file of its folder, `written-by-engine.txt` by default.
    WriteOwnTree(PathBuf),
    /// `leave-file=PATH`: writes that file. A path that starts with `$NAME/` starts in the folder of that variable.
    LeaveFile(PathBuf),
    /// `ask-network`: asks the proxy of its environment for a name that doesn't exist. Without a proxy on this machine it
    /// asks nobody.
    AskNetwork,
    /// `leave-folder=N`: goes to another working folder when request N comes in.
    LeaveFolder(u64),
    /// `shell=N COMMAND`: gives `COMMAND` to `/bin/sh` when request N comes in (0: before it listens) and waits for its end.
    Shell(u64, String),
}

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a fault: {rule}")]
pub struct InvalidFaultError {
    text: String,
    rule: &'static str,
}

impl FromStr for Fault {
    type Err = InvalidFaultError;

    fn from_str(text: &str) -> Result<Self, InvalidFaultError> {
        let error = |rule| InvalidFaultError { text: text.to_owned(), rule };
        let (name, argument) = match text.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let plain = |fault| match argument {
            None => Ok(fault),
            Some(_) => Err(error("it takes no value")),
        };
        let number = || argument.and_then(|text| text.parse().ok()).ok_or_else(|| error("it needs a whole number"));
        match name {
            "die-at-start" => plain(Self::DieAtStart),
            "never-ready" => plain(Self::NeverReady),
            "slow-start" => number().map(Self::SlowStart),
            "die-after" => number().map(Self::DieAfter),
            "stall" => number().map(Self::Stall),
            "malformed" => number().map(Self::Malformed),
            "error-event" => number().map(Self::ErrorEvent),
            "close-early" => number().map(Self::CloseEarly),
            "http-500" => number().map(Self::Http500),
            "short" => plain(Self::Short),
            "liar" => plain(Self::Liar),
            "garbage" => plain(Self::Garbage),
            "drift" if argument.is_none() => Ok(Self::Drift(100)),
            "drift" => number().map(Self::Drift),
            "ignore-sigterm" => plain(Self::IgnoreSigterm),
            "survivor" => plain(Self::Survivor),
            "flood" => number().map(Self::Flood),
            "wrong-port" => plain(Self::WrongPort),
            "steal-port" => plain(Self::StealPort),
            "write-own-tree" => Ok(Self::WriteOwnTree(argument.unwrap_or("written-by-engine.txt").into())),
            "leave-file" => argument.map(|path| Self::LeaveFile(path.into())).ok_or_else(|| error("it needs a path")),
            "ask-network" => plain(Self::AskNetwork),
            "leave-folder" => number().map(Self::LeaveFolder),
            "shell" => {
                let parts = argument.and_then(|argument| argument.split_once(' '));
                let shell = parts.and_then(|(request, text)| Some(Self::Shell(request.parse().ok()?, text.to_owned())));
                shell.ok_or_else(|| error("it needs a whole number, a space and a command"))
            }
            _ => Err(error("there is none of that name")),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DieAtStart => formatter.write_str("die-at-start"),
            Self::NeverReady => formatter.write_str("never-ready"),
            Self::SlowStart(ms) => write!(formatter, "slow-start={ms}"),
            Self::DieAfter(n) => write!(formatter, "die-after={n}"),
            Self::Stall(n) => write!(formatter, "stall={n}"),
            Self::Malformed(n) => write!(formatter, "malformed={n}"),
            Self::ErrorEvent(n) => write!(formatter, "error-event={n}"),
            Self::CloseEarly(n) => write!(formatter, "close-early={n}"),
            Self::Http500(n) => write!(formatter, "http-500={n}"),
            Self::Short => formatter.write_str("short"),
            Self::Liar => formatter.write_str("liar"),
            Self::Garbage => formatter.write_str("garbage"),
            Self::Drift(percent) => write!(formatter, "drift={percent}"),
            Self::IgnoreSigterm => formatter.write_str("ignore-sigterm"),
            Self::Survivor => formatter.write_str("survivor"),
            Self::Flood(bytes) => write!(formatter, "flood={bytes}"),
            Self::WrongPort => formatter.write_str("wrong-port"),
            Self::StealPort => formatter.write_str("steal-port"),
            Self::WriteOwnTree(file) => write!(formatter, "write-own-tree={}", file.display()),
            Self::LeaveFile(path) => write!(formatter, "leave-file={}", path.display()),
            Self::AskNetwork => formatter.write_str("ask-network"),
            Self::LeaveFolder(n) => write!(formatter, "leave-folder={n}"),
            Self::Shell(request, command) => write!(formatter, "shell={request} {command}"),
        }
    }
}

impl Fault {
    /// Returns the faults of a `faults.txt`: one on each line; empty lines and lines that start with `#` count for nothing.
    ///
    /// # Errors
    /// Returns the first line that is no fault.
    pub fn parse_lines(text: &str) -> Result<Vec<Self>, InvalidFaultError> {
        let lines = text.lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_back_as_it_is_written() {
        let faults = "die-at-start never-ready slow-start=5 die-after=2 stall=1 malformed=1 error-event=1 close-early=1 \
                      http-500=3 short liar garbage drift=50 ignore-sigterm survivor flood=1000 wrong-port steal-port \
                      write-own-tree=a.txt leave-file=/tmp/x ask-network leave-folder=2";
        for text in faults.split(' ').chain(["shell=0 echo a  b=c"]) {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_fault_is_refused() {
        for (text, expected) in [
            ("crash", "`crash` is not a fault: there is none of that name"),
            ("stall", "`stall` is not a fault: it needs a whole number"),
            ("stall=x", "`stall=x` is not a fault: it needs a whole number"),
            ("short=1", "`short=1` is not a fault: it takes no value"),
            ("shell=true", "`shell=true` is not a fault: it needs a whole number, a space and a command"),
            ("leave-file", "`leave-file` is not a fault: it needs a path"),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_file_holds_one_fault_on_each_line() {
        let text = "# Faults.\n\nshort\n  stall=2\n";
        assert_eq!(Fault::parse_lines(text).unwrap(), [Fault::Short, Fault::Stall(2)]);
        assert!(Fault::parse_lines("short\noops").is_err());
    }
}
