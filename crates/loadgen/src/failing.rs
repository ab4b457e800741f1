//! How a failed request is described: its class, and the bytes as people can read them.

use std::io;

use isobench_schema::failure::FailureClass;
use isobench_schema::record::RequestFailure;

/// How many characters of a server's bytes are shown.
const SHOWN: usize = 300;

/// Returns a failure.
pub(crate) fn failure(class: FailureClass, message: impl Into<String>) -> RequestFailure {
    RequestFailure { class, message: message.into() }
}

/// Returns the first 300 characters of `bytes` without control characters, for messages only.
pub(crate) fn shown(bytes: &[u8]) -> String {
    // Four bytes are the most that one character has.
    let head = bytes.get(..SHOWN * 4).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    let mut shown: String =
        text.chars().take(SHOWN).map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect();
    if shown.len() < text.len() || head.len() < bytes.len() {
        shown.push('…');
    }
    shown.replace('\n', "\\n")
}

/// Returns the class of a connection that failed by `error`: this machine's fault if it has run out of something, else the
/// server's.
pub(crate) fn connection_class(error: &io::Error) -> FailureClass {
    use rustix::io::Errno;
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
    let own = error.raw_os_error().is_some_and(|code| exhausted.iter().any(|errno| errno.raw_os_error() == code));
    if own { FailureClass::HostError } else { FailureClass::ConnectionFailed }
}
