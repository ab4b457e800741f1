//! Connections: what is read from them and written to them, with TLS or without.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustls::ServerConnection;

use crate::clock;
use crate::stream::Stream;

/// Which connection: its place and how many there were before it in that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    place: u32,
    generation: u32,
}

impl Key {
    /// Returns the key as the kernel keeps it.
    pub(crate) fn token(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.place)
    }

    /// Returns the key that the kernel kept.
    pub(crate) fn of_token(token: u64) -> Self {
        let half = |half: u64| u32::try_from(half).unwrap_or(u32::MAX);
        Self { place: half(token & 0xffff_ffff), generation: half(token >> 32) }
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    places: Vec<(u32, Option<Connection>)>,
    free: Vec<u32>,
}

impl Connections {
    /// Takes a connection in.
    pub(crate) fn insert(&mut self, connection: Connection) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = self.places.get_mut(place as usize).expect("free places exist");
        slot.1 = Some(connection);
        Key { place, generation: slot.0 }
    }

    /// Returns a connection; `None` if it is gone.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut Connection> {
        let (generation, connection) = self.places.get_mut(key.place as usize)?;
        connection.as_mut().filter(|_| *generation == key.generation)
    }

    /// Takes a connection out.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Connection> {
        let (generation, connection) = self.places.get_mut(key.place as usize)?;
        let connection = connection.take_if(|_| *generation == key.generation)?;
        // The first bit stays free for what isn't a connection.
        *generation = (*generation + 1) & 0x7fff_ffff;
        self.free.push(key.place);
        Some(connection)
    }
}

/// What became of bytes that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    /// The client doesn't read; the rest is kept.
    Blocked,
}

/// How a connection ends once all is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should be.
    Close,
    /// Without a word of TLS.
    Abort,
    /// With a reset.
    Reset,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Bytes {
        /// When the last of them arrived at this machine, in nanoseconds.
        arrived: u64,
    },
    Nothing,
    /// The client has ended the connection.
    End,
}

/// A connection.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    tls: Option<Box<ServerConnection>>,
    /// Counted from 1 up.
    pub(crate) number: u64,
    /// When it was accepted, in nanoseconds.
    pub(crate) accepted: u64,
    /// Bytes of requests that weren't answered yet.
    pub(crate) inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// How much of the outbox is sent.
    sent: usize,
    /// The client doesn't read.
    pub(crate) blocked: bool,
    /// A step was due meanwhile.
    pub(crate) overdue: bool,
    /// Parts that follow at times of their own.
    pub(crate) pieces: VecDeque<Vec<u8>>,
    /// When the next step is due, in nanoseconds.
    pub(crate) due: u64,
    pub(crate) stream: Option<Box<Stream>>,
    /// The answers that were given.
    pub(crate) answers: u64,
    /// The client wants it closed after the answer, or the answer ends with it.
    pub(crate) close_after: bool,
    pub(crate) ending: Option<Ending>,
    /// The connection closes at its next step, unless a request comes.
    pub(crate) idle_close: bool,
    /// Nothing more is answered.
    pub(crate) hung: bool,
    /// The client was told to send its body.
    pub(crate) continued: bool,
    /// All bytes go to this connection.
    pub(crate) relay: Option<Key>,
}

impl Connection {
    /// Makes one of a socket.
    pub(crate) fn new(socket: OwnedFd, tls: Option<Box<ServerConnection>>, number: u64, accepted: u64) -> Self {
        Self {
            socket,
            tls,
            number,
            accepted,
            inbox: Vec::new(),
            outbox: Vec::new(),
            sent: 0,
            blocked: false,
            overdue: false,
            pieces: VecDeque::new(),
            due: 0,
            stream: None,
            answers: 0,
            close_after: false,
            ending: None,
            idle_close: false,
            hung: false,
            continued: false,
            relay: None,
        }
    }

    /// Reads what is there into the inbox, by way of `buffer`.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        let (count, arrived) = match receive_stamped(&self.socket, buffer) {
            Ok((0, _)) => return Ok(Got::End),
            Ok((count, stamp)) => (count, clock::at_wall(stamp)),
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(Got::Nothing),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = buffer.get(..count).unwrap_or_default();
        let Some(tls) = &mut self.tls else {
            self.inbox.extend_from_slice(bytes);
            return Ok(Got::Bytes { arrived });
        };
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            let (before, more) = (self.inbox.len(), state.plaintext_bytes_to_read());
            self.inbox.resize(before + more, 0);
            tls.reader().read_exact(self.inbox.get_mut(before..).unwrap_or_default())?;
        }
        Ok(Got::Bytes { arrived })
    }

    /// Returns whether TLS has something to say by itself.
    pub(crate) fn has_tls_to_send(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Returns whether TLS has agreed on HTTP/2.
    pub(crate) fn chose_http2(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.alpn_protocol() == Some(b"h2"))
    }

    /// Sends bytes, as far as the client takes them, and counts the writes.
    pub(crate) fn send(&mut self, bytes: &[u8], writes: &mut u64) -> io::Result<Sent> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            while tls.wants_write() {
                tls.write_tls(&mut self.outbox)?;
            }
            return self.flush(writes);
        }
        if !self.outbox.is_empty() {
            self.outbox.extend_from_slice(bytes);
            return self.flush(writes);
        }
        // The usual way, without a copy.
        let taken = send_some(&self.socket, bytes, writes)?;
        let rest = bytes.get(taken..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(Sent::All);
        }
        self.outbox.extend_from_slice(rest);
        self.blocked = true;
        Ok(Sent::Blocked)
    }

    /// Sends what is kept, as far as the client takes it.
    pub(crate) fn flush(&mut self, writes: &mut u64) -> io::Result<Sent> {
        let rest = self.outbox.get(self.sent..).unwrap_or_default();
        self.sent += send_some(&self.socket, rest, writes)?;
        self.blocked = self.sent < self.outbox.len();
        if self.blocked {
            return Ok(Sent::Blocked);
        }
        self.outbox.clear();
        self.sent = 0;
        Ok(Sent::All)
    }

    /// Says goodbye where TLS does.
    pub(crate) fn say_goodbye(&mut self, writes: &mut u64) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // The connection ends anyhow.
            self.send(b"", writes).ok();
        }
    }
}

/// Reads once; returns the number of bytes with the kernel's stamp of their arrival, in nanoseconds of the wall clock. A
/// server that is busy reads late, and that wait is no part of what a client does.
fn receive_stamped(socket: &OwnedFd, buffer: &mut [u8]) -> nix::Result<(usize, Option<u64>)> {
    let mut control = [0; 128];
    let mut pieces = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::empty())?;
    let mut stamp = None;
    for item in message.cmsgs()? {
        if let ControlMessageOwned::ScmTimestampns(at) = item {
            let seconds = u64::try_from(at.tv_sec()).unwrap_or(0);
            stamp = Some(seconds * 1_000_000_000 + u64::try_from(at.tv_nsec()).unwrap_or(0));
        }
    }
    Ok((message.bytes, stamp))
}

/// Sends bytes until all are sent or the client takes no more, and returns how many were.
fn send_some(socket: &OwnedFd, bytes: &[u8], writes: &mut u64) -> io::Result<usize> {
    let mut taken = 0;
    while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
        *writes += 1;
        match send(socket, rest, SendFlags::NOSIGNAL) {
            Ok(count) => taken += count,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}
