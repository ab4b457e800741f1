//! One connection: its socket, what is still to be sent on it, and the requests that it carries.

use std::io;

use super::flight::Flight;
use super::socket::Socket;
use crate::http2::{self, StreamId};
use crate::tls;

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
    /// It is there, and the two sides agree on keys.
    Securing,
    /// Requests can be sent.
    Open,
}

/// HTTP/2 on a connection, and the requests that it carries at the same time.
#[derive(Debug)]
pub(crate) struct Multiplex {
    pub(crate) session: http2::Session,
    pub(crate) flights: Vec<(StreamId, Flight)>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) age: Age,
    pub(crate) stage: Stage,
    pub(crate) tls: Option<Box<tls::Session>>,
    /// Bytes for the socket, and how much of them the operating system has.
    pub(crate) out: Vec<u8>,
    pub(crate) taken: usize,
    /// Whether the socket is watched for room too.
    pub(crate) watches_room: bool,
    /// The request under way in HTTP/1.1, or the one that the connection is made for.
    pub(crate) flight: Option<Flight>,
    /// HTTP/2, where it is spoken.
    pub(crate) multiplex: Option<Box<Multiplex>>,
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
        Self {
            socket,
            age: Age::Fresh,
            stage,
            tls: None,
            out: Vec::new(),
            taken: 0,
            watches_room: false,
            flight,
            multiplex: None,
            last_read_ns: 0,
        }
    }

    /// Puts `plain` behind what is to be sent, encrypted where TLS is spoken, and whatever TLS itself has to say.
    pub(crate) fn put(&mut self, plain: &[u8]) {
        match &mut self.tls {
            Some(session) => session.seal(plain, &mut self.out),
            None => self.out.extend_from_slice(plain),
        }
    }

    /// Puts what HTTP/2 has to say behind what is to be sent; `scratch` is used on the way.
    pub(crate) fn put_frames(&mut self, scratch: &mut Vec<u8>) {
        let Some(multiplex) = &mut self.multiplex else { return };
        if !multiplex.session.has_output() {
            return;
        }
        scratch.clear();
        multiplex.session.take_output(scratch);
        self.put(scratch);
    }

    /// Hands what is left to be sent to the operating system.
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

    /// Returns every request that it carries.
    pub(crate) fn into_flights(self) -> Vec<Flight> {
        let multiplexed = self.multiplex.into_iter().flat_map(|multiplex| multiplex.flights).map(|(_, flight)| flight);
        self.flight.into_iter().chain(multiplexed).collect()
    }

    /// Returns every request that it carries.
    pub(crate) fn flights(&self) -> impl Iterator<Item = &Flight> {
        let multiplexed = self.multiplex.iter().flat_map(|multiplex| &multiplex.flights).map(|(_, flight)| flight);
        self.flight.iter().chain(multiplexed)
    }
}
