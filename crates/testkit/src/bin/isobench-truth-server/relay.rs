//! The serving thread's side of HTTP/2: whole connections go to the gateway's thread, and their requests come back.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::connection::{Connection, Key};
use crate::gateway::{self, Inbound, Origin, Outbound};
use crate::server::Server;

/// What every HTTP/2 client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The way to the gateway's thread and back.
pub(crate) struct Gateway {
    connections: tokio::sync::mpsc::UnboundedSender<Inbound>,
    requests: Receiver<Outbound>,
    /// Readable when there are requests.
    pub(crate) bell: UnixStream,
}

impl Gateway {
    /// Starts the gateway's thread, which ends with the process.
    pub(crate) fn start() -> io::Result<Self> {
        let (connections, inbound) = tokio::sync::mpsc::unbounded_channel();
        let (outbound, requests) = channel();
        let (bell, rope) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("http2".to_owned()).spawn(move || {
            runtime.block_on(gateway::serve(inbound, outbound, rope));
        })?;
        Ok(Self { connections, requests, bell })
    }
}

impl Server {
    /// Takes in the requests that came by HTTP/2.
    pub(crate) fn take_requests(&mut self) -> io::Result<()> {
        let Some(gateway) = &mut self.gateway else { return Ok(()) };
        // How often it rang doesn't matter.
        while gateway.bell.read(&mut [0; 256]).is_ok_and(|count| count > 0) {}
        let requests: Vec<Outbound> = gateway.requests.try_iter().collect();
        for Outbound { socket, origin } in requests {
            self.take_in(Connection::new(socket.into(), None, origin.connection, origin.accepted))?;
        }
        Ok(())
    }

    /// Hands bytes of HTTP/2 on, in either direction; returns whether the connection is of that kind.
    pub(crate) fn relays(&mut self, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        if connection.relay.is_none() && self.gateway.is_some() && connection.answers == 0 {
            if !connection.chose_http2() && !connection.inbox.starts_with(PREFACE) {
                // Nothing else begins like it for long.
                return PREFACE.starts_with(&connection.inbox);
            }
            if self.begin_relay(key).is_err() {
                self.close(key);
                return true;
            }
        }
        let Some(connection) = self.connections.get_mut(key) else { return true };
        let Some(other) = connection.relay else { return false };
        let bytes = std::mem::take(&mut connection.inbox);
        self.transmit(other, &bytes);
        true
    }

    fn begin_relay(&mut self, key: Key) -> io::Result<()> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        let Some(outer) = self.connections.get_mut(key) else { return Ok(()) };
        let origin = Origin { connection: outer.number, accepted: outer.accepted };
        let mut inner = Connection::new(near.into(), None, origin.connection, origin.accepted);
        inner.relay = Some(key);
        let inner = self.take_in(inner)?;
        if let Some(outer) = self.connections.get_mut(key) {
            outer.relay = Some(inner);
        }
        let Some(gateway) = &self.gateway else { return Ok(()) };
        gateway.connections.send(Inbound { socket: far, origin }).map_err(io::Error::other)
    }
}
