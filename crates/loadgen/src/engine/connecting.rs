//! How a worker's connections come about: addresses, TLS, and what is spoken on them.

use std::io;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::connection::{Connection, Multiplex, Stage};
use super::exchange::READS;
use super::flight::Flight;
use super::phase::PhaseRun;
use super::socket::{Connecting, Socket};
use super::table::Key;
use crate::failing::connection_class;
use crate::http2;
use crate::target::HttpVersion;
use crate::tls::{self, Protocol};

impl PhaseRun<'_> {
    /// Opens a connection, for a request or to be kept until there is one.
    pub(super) fn open(&mut self, flight: Option<Flight>) -> io::Result<()> {
        let place = self.worker.preferred;
        self.connect(flight, place, 0)
    }

    /// Connects to the address at `place`, and where that fails at once to those that come after it, until all were tried.
    fn connect(&mut self, flight: Option<Flight>, first: usize, tried: usize) -> io::Result<()> {
        let addresses = self.work.context.target.endpoint().addresses();
        let mut refused = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
        for tried in tried..addresses.len() {
            let place = (first + tried) % addresses.len();
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

    /// Ends the request that a connection was made for which doesn't come about.
    pub(super) fn unconnected(&mut self, flight: Option<Flight>, error: &io::Error) -> io::Result<()> {
        let Some(mut flight) = flight else { return Ok(()) };
        let place = self.work.context.target.endpoint().place();
        flight.state.answer.fail_by(connection_class(error), format!("can't connect to `{place}`: {error}"));
        self.land(flight)
    }

    /// Adds a connection that is being made.
    fn watch(&mut self, mut connection: Connection, connecting: Connecting) -> io::Result<()> {
        let flags = match connecting {
            Connecting::Done => READS,
            Connecting::UnderWay => EventFlags::OUT | EventFlags::ET,
        };
        connection.watches_room = connecting == Connecting::UnderWay;
        let key = self.worker.connections.insert(connection);
        if let Some(connection) = self.worker.connections.get_mut(key) {
            epoll::add(&self.worker.epoll, &connection.socket, EventData::new_u64(key.to_bits()), flags)?;
        }
        match connecting {
            Connecting::Done => self.connected(key),
            Connecting::UnderWay => Ok(()),
        }
    }

    /// Takes a socket that has room, or has come to an end of connecting.
    pub(super) fn writable(&mut self, key: Key) -> io::Result<()> {
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        let Stage::Connecting { place, tried } = connection.stage else { return self.flush(key) };
        match connection.socket.connected() {
            Ok(()) => self.connected(key),
            Err(error) => {
                let flight = self.close(key).into_iter().next();
                let count = self.work.context.target.endpoint().addresses().len();
                if tried + 1 < count {
                    // `place` is the one that was tried last, so the first is as many before it.
                    return self.connect(flight, place + count - tried, tried + 1);
                }
                self.unconnected(flight, &error)
            }
        }
    }

    /// Takes a connection to an address: TLS begins, or requests can be sent.
    fn connected(&mut self, key: Key) -> io::Result<()> {
        let endpoint = self.work.context.target.endpoint();
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        if let Stage::Connecting { place, .. } = connection.stage {
            self.worker.preferred = place;
        }
        self.opened += 1;
        let Some(secure) = endpoint.secure() else {
            let protocol = match endpoint.http() {
                HttpVersion::Auto | HttpVersion::Http1 => Protocol::Http1,
                HttpVersion::Http2 => Protocol::Http2,
            };
            return self.establish(key, Some(protocol));
        };
        match tls::Session::new(&secure.load, &secure.name) {
            Ok(session) => {
                connection.stage = Stage::Securing;
                connection.tls = Some(Box::new(session));
                connection.put(&[]);
                self.watch_room(key, false)?;
                self.flush(key)
            }
            Err(error) => {
                let flight = self.close(key).into_iter().next();
                self.unconnected(flight, &io::Error::other(error))
            }
        }
    }

    /// Takes a connection on which requests can be sent, in this protocol: it is kept, or its request is sent.
    pub(super) fn establish(&mut self, key: Key, protocol: Option<Protocol>) -> io::Result<()> {
        let now_ns = self.now_ns();
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        connection.stage = Stage::Open;
        let mut flight = connection.flight.take();
        if let Some(flight) = &mut flight {
            flight.state.record.connected_ns = Some(now_ns);
        }
        if protocol == Some(Protocol::Http2) {
            match http2::Session::new() {
                Ok(session) => connection.multiplex = Some(Box::new(Multiplex { session, flights: Vec::new() })),
                Err(error) => {
                    self.close(key);
                    return self.unconnected(flight, &io::Error::other(error));
                }
            }
            connection.put_frames(&mut self.worker.scratch);
            self.worker.multiplexed.push(key);
            self.flush(key)?;
            return match flight {
                Some(flight) => self.send_frames(key, flight),
                None => Ok(()),
            };
        }
        if let Some(flight) = flight {
            return self.send(key, flight);
        }
        self.watch_room(key, false)?;
        self.worker.idle.push(key);
        Ok(())
    }
}
