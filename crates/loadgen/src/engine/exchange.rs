//! What a worker does with its sockets: connecting, sending, reading.

use std::io;

use isobench_schema::failure::FailureClass;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::connection::{Age, Connection, Sending, Stage};
use super::flight::Flight;
use super::phase::PhaseRun;
use super::reading::{Next, Reading};
use super::socket::{Connecting, Socket};
use super::table::Key;
use crate::failing::connection_class;

impl PhaseRun<'_> {
    /// Opens a connection, for a request or to be kept until there is one.
    pub(super) fn open(&mut self, flight: Option<Flight>) -> io::Result<()> {
        let place = self.worker.preferred;
        self.connect(flight, place, 0)
    }

    /// Connects to the address at `place`, and where that fails at once to those that come after it, until all were tried.
    fn connect(&mut self, flight: Option<Flight>, place: usize, tried: usize) -> io::Result<()> {
        let addresses = self.work.context.target.endpoint().addresses();
        let mut refused = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
        for tried in tried..addresses.len() {
            let place = (place + tried) % addresses.len();
            let Some(address) = addresses.get(place) else { break };
            match Socket::connect(address) {
                Ok((socket, connecting)) => {
                    return self.watch(Connection::new(socket, Stage::Connecting { place, tried }, flight), connecting);
                }
                Err(error) => refused = error,
            }
        }
        self.unconnected(flight, &refused)
    }

    fn unconnected(&mut self, flight: Option<Flight>, error: &io::Error) -> io::Result<()> {
        let Some(mut flight) = flight else { return Ok(()) };
        let host = self.work.context.target.endpoint().host();
        flight.state.answer.fail_by(connection_class(error), format!("can't connect to `{host}`: {error}"));
        self.land(flight)
    }

    /// Adds a connection that is being made.
    fn watch(&mut self, connection: Connection, connecting: Connecting) -> io::Result<()> {
        let key = self.worker.connections.insert(connection);
        if let Some(connection) = self.worker.connections.get_mut(key) {
            let flags = match connecting {
                Connecting::Done => EventFlags::IN,
                Connecting::UnderWay => EventFlags::OUT,
            };
            connection.watches_room = connecting == Connecting::UnderWay;
            epoll::add(&self.worker.epoll, &connection.socket, EventData::new_u64(key.to_bits()), flags)?;
        }
        match connecting {
            Connecting::Done => self.connected(key),
            Connecting::UnderWay => Ok(()),
        }
    }

    /// Takes a connection that is there: it is kept, or its request is sent.
    fn connected(&mut self, key: Key) -> io::Result<()> {
        let now_ns = self.now_ns();
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        if let Stage::Connecting { place, .. } = connection.stage {
            self.worker.preferred = place;
        }
        connection.stage = Stage::Open;
        self.opened += 1;
        if let Some(mut flight) = connection.flight.take() {
            flight.state.record.connected_ns = Some(now_ns);
            return self.send(key, flight);
        }
        self.watch_room(key, false)?;
        self.worker.idle.push(key);
        Ok(())
    }

    /// Takes a socket that has room, or has come to an end of connecting.
    pub(super) fn writable(&mut self, key: Key) -> io::Result<()> {
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        match connection.stage {
            Stage::Open => self.flush(key),
            Stage::Connecting { place, tried } => match connection.socket.connected() {
                Ok(()) => self.connected(key),
                Err(error) => {
                    let flight = self.close(key);
                    if tried + 1 < self.work.context.target.endpoint().addresses().len() {
                        // `place` is the one that was tried, so the first is as many before it.
                        let first = place + self.work.context.target.endpoint().addresses().len() - tried;
                        return self.connect(flight, first, tried + 1);
                    }
                    self.unconnected(flight, &error)
                }
            },
        }
    }

    /// Sends the request of `flight` on an open connection.
    pub(super) fn send(&mut self, key: Key, flight: Flight) -> io::Result<()> {
        let Some(connection) = self.worker.connections.get_mut(key) else {
            return self.open(Some(flight));
        };
        connection.out.clear();
        connection.taken = 0;
        flight.write_request(self.work, &mut self.worker.scratch, &mut connection.out)?;
        connection.flight = Some(flight);
        self.flush(key)
    }

    /// Sends what is left of a request.
    fn flush(&mut self, key: Key) -> io::Result<()> {
        let clock = self.work.context.clock;
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        // Before the call, as an answer may be there before it returns.
        let out_ns = clock.now_ns();
        if connection.taken == 0
            && let Some(flight) = &mut connection.flight
        {
            flight.state.record.first_out_ns = Some(out_ns);
        }
        match connection.flush() {
            Ok(Sending::Done) => {
                if let Some(flight) = &mut connection.flight {
                    flight.state.record.sent_ns.get_or_insert(out_ns);
                }
                self.watch_room(key, false)
            }
            Ok(Sending::Full) => self.watch_room(key, true),
            Err(error) => {
                let age = connection.age;
                let Some(mut flight) = self.close(key) else { return Ok(()) };
                if age == Age::Reused {
                    return self.again(flight);
                }
                let message = format!("the connection failed while sending: {error}");
                flight.state.answer.fail_by(connection_class(&error), message);
                self.land(flight)
            }
        }
    }

    fn watch_room(&mut self, key: Key, wanted: bool) -> io::Result<()> {
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        if connection.watches_room == wanted {
            return Ok(());
        }
        connection.watches_room = wanted;
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&self.worker.epoll, &connection.socket, EventData::new_u64(key.to_bits()), flags)?)
    }

    /// Sends a request again whose kept connection turned out to be closed.
    fn again(&mut self, mut flight: Flight) -> io::Result<()> {
        self.reconnects += 1;
        flight.reading = Reading::new(self.work.schedule.api());
        flight.state.record.sent_ns = None;
        // Other kept connections may be closed too, so it goes on one that isn't.
        self.open(Some(flight))
    }

    /// Closes a connection; returns its request.
    pub(super) fn close(&mut self, key: Key) -> Option<Flight> {
        self.worker.connections.remove(key)?.flight
    }

    /// Reads a socket once; returns when the read returned.
    pub(super) fn readable(&mut self, key: Key) -> io::Result<u64> {
        let clock = self.work.context.clock;
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(clock.now_ns()) };
        if connection.stage != Stage::Open {
            // The failure of connecting makes the socket writable too.
            return Ok(clock.now_ns());
        }
        let received = connection.socket.receive(&mut self.worker.buffer, &mut self.worker.control);
        let read_ns = clock.now_ns();
        let Some(flight) = &mut connection.flight else {
            // A connection without a request is closed by the server, or sends what nobody asked for.
            if !matches!(&received, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                self.close(key);
                self.worker.idle.retain(|idle| *idle != key);
            }
            return Ok(read_ns);
        };
        let next = match received {
            Ok(received) if received.length == 0 => {
                flight.reading.close(&mut flight.state, "the server closed the connection", read_ns)
            }
            Ok(received) => {
                self.reads += 1;
                let stamped_ns = received.stamped_unix_ns.and_then(|stamp| self.realtime.at(stamp, read_ns));
                if let Some(stamped_ns) = stamped_ns {
                    let lag_ns = read_ns - stamped_ns;
                    self.lag.take(lag_ns);
                    let longest = &mut flight.state.record.lag_ns;
                    *longest = (*longest).max(Some(lag_ns));
                }
                let at_ns = stamped_ns.unwrap_or(read_ns).max(connection.last_read_ns);
                let at_ns = at_ns.max(flight.state.record.intended_ns);
                connection.last_read_ns = at_ns;
                flight.state.record.first_byte_ns.get_or_insert(at_ns);
                let bytes = self.worker.buffer.get(..received.length).unwrap_or_default();
                flight.reading.take(&mut flight.state, bytes, at_ns)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Next::Read,
            Err(error) => flight.reading.fail(&mut flight.state, &error, read_ns),
        };
        self.go_on(key, next)?;
        Ok(read_ns)
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
            Next::DropConnection => self.close(key).map_or(Ok(()), |flight| self.land(flight)),
            Next::Unanswered(how) => {
                let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
                let age = connection.age;
                let Some(mut flight) = self.close(key) else { return Ok(()) };
                if age == Age::Reused && flight.state.record.first_byte_ns.is_none() {
                    return self.again(flight);
                }
                flight.state.answer.fail_by(FailureClass::ConnectionFailed, how);
                self.land(flight)
            }
        }
    }
}
