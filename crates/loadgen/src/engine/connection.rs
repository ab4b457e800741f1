//! One connection: its socket, what is still to be sent on it, and the request that it carries.

use std::io;

use super::flight::Flight;
use super::socket::Socket;

/// Whether a connection has carried a request before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// It carries its first one.
    Fresh,
    /// It has carried another request.
    Reused,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It isn't there yet: the address at this place of the endpoint's is tried, after so many others.
    Connecting { place: usize, tried: usize },
    /// It is there.
    Open,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) age: Age,
    pub(crate) stage: Stage,
    /// What is sent, and how much of it the operating system has.
    pub(crate) out: Vec<u8>,
    pub(crate) taken: usize,
    /// Whether the socket is watched for room too.
    pub(crate) watches_room: bool,
    /// The request under way.
    pub(crate) flight: Option<Flight>,
    /// The time of the last read: times of one connection never go back, though the kernel's clock may be set.
    pub(crate) last_read_ns: u64,
}

/// How far sending has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The operating system has everything.
    Done,
    /// It has no room for the rest.
    Full,
}

impl Connection {
    pub(crate) fn new(socket: Socket, stage: Stage, flight: Option<Flight>) -> Self {
        Self { socket, age: Age::Fresh, stage, out: Vec::new(), taken: 0, watches_room: false, flight, last_read_ns: 0 }
    }

    /// Hands what is left of `out` to the operating system.
    pub(crate) fn flush(&mut self) -> io::Result<Sending> {
        while let Some(rest) = self.out.get(self.taken..).filter(|rest| !rest.is_empty()) {
            match self.socket.send(rest)? {
                0 => return Ok(Sending::Full),
                taken => self.taken += taken,
            }
        }
        self.out.clear();
        self.taken = 0;
        Ok(Sending::Done)
    }
}
