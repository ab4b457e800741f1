//! What a worker does with its sockets: sending, reading, and what follows from it in HTTP/1.1.

use std::io;

use isobench_schema::failure::FailureClass;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::connection::{Age, Sending, Stage};
use super::flight::Flight;
use super::phase::PhaseRun;
use super::reading::{Next, Reading};
use super::table::Key;
use crate::failing::connection_class;

/// By how much a stamp may be off, in nanoseconds: the clocks are compared now and then.
const EARLY_NS: u64 = 50_000;

/// What a read of a socket brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brought {
    /// Nothing yet.
    Nothing,
    /// The end, in order.
    End,
    /// Bytes, at this time.
    Bytes { length: usize, at_ns: u64, lag_ns: Option<u64> },
}

/// What may be left in a socket after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// The end, if the server has sent it already.
    TheEnd,
    More,
}

/// What a socket is watched for: bytes and the server's end of them, told once when they come. Told as long as they are
/// there, each socket would be looked at twice.
pub(super) const READS: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

impl PhaseRun<'_> {
    /// Sends the request of `flight` on an open connection of HTTP/1.1.
    pub(super) fn send(&mut self, key: Key, flight: Flight) -> io::Result<()> {
        let Some(connection) = self.worker.connections.get_mut(key) else {
            return self.open(Some(flight));
        };
        let mut plain = std::mem::take(&mut self.worker.plain);
        plain.clear();
        let written = flight.write_request(self.work, &mut self.worker.scratch, &mut plain);
        connection.put(&plain);
        self.worker.plain = plain;
        connection.flight = Some(flight);
        written?;
        self.flush(key)
    }

    /// Sends what is left to be sent.
    pub(super) fn flush(&mut self, key: Key) -> io::Result<()> {
        let clock = self.work.context.clock;
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        // Before the call, as an answer may be there before it returns.
        let out_ns = clock.now_ns();
        let is_first = connection.taken == 0;
        let is_open = connection.stage == Stage::Open;
        if let Some(flight) = connection.flight.as_mut().filter(|_| is_open && is_first) {
            flight.state.record.first_out_ns.get_or_insert(out_ns);
        }
        match connection.flush() {
            Ok(Sending::Done) => {
                if let Some(flight) = connection.flight.as_mut().filter(|_| is_open) {
                    flight.state.record.sent_ns.get_or_insert(out_ns);
                }
                self.watch_room(key, false)
            }
            Ok(Sending::Full) => self.watch_room(key, true),
            Err(error) => {
                let age = connection.age;
                for mut flight in self.close(key) {
                    if age == Age::Reused && flight.state.record.first_byte_ns.is_none() {
                        self.again(flight)?;
                        continue;
                    }
                    let message = format!("the connection failed while sending: {error}");
                    flight.state.answer.fail_by(connection_class(&error), message);
                    self.land(flight)?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn watch_room(&mut self, key: Key, wanted: bool) -> io::Result<()> {
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        if connection.watches_room == wanted {
            return Ok(());
        }
        connection.watches_room = wanted;
        let flags = if wanted { READS | EventFlags::OUT } else { READS };
        Ok(epoll::modify(&self.worker.epoll, &connection.socket, EventData::new_u64(key.to_bits()), flags)?)
    }

    /// Sends a request again whose kept connection turned out to be closed.
    pub(super) fn again(&mut self, mut flight: Flight) -> io::Result<()> {
        self.reconnects += 1;
        flight.reading = Reading::new(self.work.schedule.api());
        flight.state.record.first_out_ns = None;
        flight.state.record.sent_ns = None;
        // Other kept connections may be closed too, so it goes on one that isn't.
        self.open(Some(flight))
    }

    /// Closes a connection; returns its requests.
    pub(super) fn close(&mut self, key: Key) -> Vec<Flight> {
        self.worker.multiplexed.retain(|other| *other != key);
        self.worker.connections.remove(key).map_or_else(Vec::new, super::connection::Connection::into_flights)
    }

    /// Reads a socket until there is nothing more in it, or its end if that `is_near`; returns when the last read returned.
    pub(super) fn readable(&mut self, key: Key, is_near: bool) -> io::Result<u64> {
        loop {
            let (read_ns, left) = self.read(key)?;
            match left {
                Left::Nothing => return Ok(read_ns),
                Left::TheEnd if !is_near => return Ok(read_ns),
                Left::TheEnd | Left::More => {}
            }
        }
    }

    /// Reads a socket once; returns when the read returned, and what may be left to be read.
    fn read(&mut self, key: Key) -> io::Result<(u64, Left)> {
        let clock = self.work.context.clock;
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok((clock.now_ns(), Left::Nothing)) };
        if matches!(connection.stage, Stage::Connecting { .. }) {
            // The failure of connecting makes the socket writable too.
            return Ok((clock.now_ns(), Left::Nothing));
        }
        let received = connection.socket.receive(&mut self.worker.buffer, &mut self.worker.control);
        let read_ns = clock.now_ns();
        // A read that doesn't fill the buffer has emptied the socket; what comes after it is told anew.
        let left = match &received {
            Ok(received) if received.length == self.worker.buffer.len() => Left::More,
            Ok(received) if received.length > 0 => Left::TheEnd,
            Ok(_) | Err(_) => Left::Nothing,
        };
        let brought = match received {
            Ok(received) if received.length == 0 => Ok(Brought::End),
            Ok(received) => {
                let stamped_ns = received.stamped_unix_ns.and_then(|stamp| self.realtime.at(stamp, read_ns));
                let at_ns = stamped_ns.unwrap_or(read_ns).max(connection.last_read_ns);
                connection.last_read_ns = at_ns;
                let lag_ns = stamped_ns.map(|stamped_ns| read_ns - stamped_ns);
                Ok(Brought::Bytes { length: received.length, at_ns, lag_ns })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Brought::Nothing),
            Err(error) => Err(error),
        };
        if connection.flight.is_none() && connection.multiplex.is_none() && connection.stage == Stage::Open {
            self.take_unasked(key, brought.ok())?;
            return Ok((read_ns, left));
        }
        let brought = match brought {
            Ok(brought) => self.decrypt(key, brought)?,
            Err(error) => Err(error),
        };
        match brought {
            Ok(Brought::Nothing) => {}
            brought => self.take(key, brought, read_ns)?,
        }
        Ok((read_ns, left))
    }

    /// Takes what came on a connection that carries no request: TLS may have something to say; anything else ends it.
    fn take_unasked(&mut self, key: Key, brought: Option<Brought>) -> io::Result<()> {
        let still = match brought {
            Some(Brought::Nothing) => true,
            Some(brought @ Brought::Bytes { .. }) => {
                let is_secure = self.worker.connections.get_mut(key).is_some_and(|connection| connection.tls.is_some());
                is_secure && matches!(self.decrypt(key, brought)?, Ok(Brought::Nothing))
            }
            Some(Brought::End) | None => false,
        };
        if !still {
            self.close(key);
            self.worker.idle.retain(|idle| *idle != key);
        }
        Ok(())
    }

    /// Takes what was read through TLS, where it is spoken: the plain bytes are then where the read ones were.
    fn decrypt(&mut self, key: Key, brought: Brought) -> io::Result<io::Result<Brought>> {
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(Ok(Brought::Nothing)) };
        let Some(session) = &mut connection.tls else { return Ok(Ok(brought)) };
        let (length, at_ns, lag_ns) = match brought {
            Brought::Nothing => return Ok(Ok(brought)),
            Brought::End => return Ok(session.end().map(|()| brought).map_err(io::Error::other)),
            Brought::Bytes { length, at_ns, lag_ns } => (length, at_ns, lag_ns),
        };
        self.worker.plain.clear();
        let fed = session.feed(self.worker.buffer.get(..length).unwrap_or_default(), &mut self.worker.plain);
        let is_agreed = fed.is_ok() && connection.stage == Stage::Securing && !session.is_handshaking();
        let (is_closed, protocol) = (session.is_closed(), session.protocol());
        if session.has_output() {
            connection.put(&[]);
            self.flush(key)?;
        }
        if let Err(error) = fed {
            return Ok(Err(io::Error::other(error)));
        }
        if is_agreed {
            let plain = std::mem::take(&mut self.worker.plain);
            self.establish(key, protocol)?;
            self.worker.plain = plain;
        }
        let length = self.worker.plain.len();
        if length == 0 {
            return Ok(Ok(if is_closed { Brought::End } else { Brought::Nothing }));
        }
        if self.worker.buffer.len() < length {
            self.worker.buffer = vec![0; length].into_boxed_slice();
        }
        if let Some(room) = self.worker.buffer.get_mut(..length) {
            room.copy_from_slice(&self.worker.plain);
        }
        Ok(Ok(Brought::Bytes { length, at_ns, lag_ns }))
    }

    /// Takes what was read, as HTTP.
    fn take(&mut self, key: Key, brought: io::Result<Brought>, read_ns: u64) -> io::Result<()> {
        if let Ok(Brought::Bytes { lag_ns, .. }) = brought {
            self.reads += 1;
            if let Some(lag_ns) = lag_ns {
                self.lag.take(lag_ns);
            }
        }
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        if connection.multiplex.is_some() {
            return match brought {
                Ok(Brought::Bytes { length, at_ns, lag_ns }) => self.take_frames(key, length, at_ns, lag_ns),
                Ok(Brought::Nothing) => Ok(()),
                Ok(Brought::End) => self.end_frames(key, "the server closed the connection", read_ns),
                Err(error) => self.end_frames(key, &format!("the connection failed ({error})"), read_ns),
            };
        }
        if connection.stage == Stage::Securing {
            let error = match brought {
                Err(error) => error,
                Ok(_) => io::Error::other("the server closed the connection while keys were agreed on"),
            };
            for flight in self.close(key) {
                self.unconnected(Some(flight), &error)?;
            }
            return Ok(());
        }
        let Some(flight) = &mut connection.flight else { return Ok(()) };
        let state = &mut flight.state;
        let next = match brought {
            Ok(Brought::Nothing) => Next::Read,
            Ok(Brought::End) => flight.reading.close(state, "the server closed the connection", read_ns),
            Ok(Brought::Bytes { length, at_ns, lag_ns }) => {
                state.record.lag_ns = state.record.lag_ns.max(lag_ns);
                let out_ns = state.record.first_out_ns.unwrap_or(at_ns);
                if lag_ns.is_some() && at_ns.saturating_add(EARLY_NS) < out_ns {
                    let message = "bytes of an answer were there before its request was sent";
                    state.answer.fail_by(FailureClass::StreamMalformed, message);
                    return self.go_on(key, Next::DropConnection);
                }
                let at_ns = at_ns.max(state.record.intended_ns);
                state.record.first_byte_ns.get_or_insert(at_ns);
                let bytes = self.worker.buffer.get(..length).unwrap_or_default();
                flight.reading.take(state, bytes, at_ns)
            }
            Err(error) => flight.reading.fail(state, &error, read_ns),
        };
        self.go_on(key, next)
    }

    fn go_on(&mut self, key: Key, next: Next) -> io::Result<()> {
        match next {
            Next::Read => Ok(()),
            Next::KeepConnection => {
                let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
                let flight = connection.flight.take();
                connection.age = Age::Reused;
                // One that answers before it has read the whole request can't carry another one.
                if connection.out.is_empty() {
                    self.worker.idle.push(key);
                } else {
                    self.close(key);
                }
                flight.map_or(Ok(()), |flight| self.land(flight))
            }
            Next::DropConnection => self.close(key).into_iter().try_for_each(|flight| self.land(flight)),
            Next::Unanswered(how) => {
                let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
                let age = connection.age;
                for mut flight in self.close(key) {
                    if age == Age::Reused && flight.state.record.first_byte_ns.is_none() {
                        self.again(flight)?;
                        continue;
                    }
                    flight.state.answer.fail_by(FailureClass::ConnectionFailed, how.as_str());
                    self.land(flight)?;
                }
                Ok(())
            }
        }
    }
}
