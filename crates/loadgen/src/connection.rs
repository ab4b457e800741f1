//! Connections to the server, and those that are kept for the next request.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::clock::Clock;
use crate::target::Endpoint;

/// How much one read takes at most, in bytes.
const READ_SIZE: usize = 16 * 1024;

/// Whether a connection has carried a request before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// It was opened for this request.
    Fresh,
    /// It has carried another request.
    Reused,
}

/// One connection, with the buffer that its reads go into.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    age: Age,
}

/// What one read brought.
#[derive(Debug)]
pub(crate) struct Read<'a> {
    /// The bytes; none if the server has closed its side.
    pub(crate) bytes: &'a [u8],
    /// When the read returned, in nanoseconds of the clock.
    pub(crate) at_ns: u64,
}

impl Connection {
    /// Opens a connection to the first address of `endpoint` that takes one, from place `preferred` on; returns it with
    /// its place.
    async fn open(endpoint: &Endpoint, preferred: usize) -> io::Result<(Self, usize)> {
        let addresses = endpoint.addresses();
        let mut refused = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
        for (place, address) in addresses.iter().enumerate().cycle().skip(preferred).take(addresses.len()) {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    let buffer = vec![0; READ_SIZE].into_boxed_slice();
                    return Ok((Self { stream, buffer, age: Age::Fresh }, place));
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Returns whether it has carried a request before.
    pub(crate) fn age(&self) -> Age {
        self.age
    }

    /// Hands all of `bytes` to the operating system.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Waits for bytes and reads them once. The time is taken when the read returns, before anything else.
    pub(crate) async fn read(&mut self, clock: &Clock) -> io::Result<Read<'_>> {
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut self.buffer) {
                Ok(length) => {
                    let at_ns = clock.now_ns();
                    return Ok(Read { bytes: self.buffer.get(..length).unwrap_or_default(), at_ns });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether the server has neither closed it nor sent anything unasked.
    fn is_quiet(&self) -> bool {
        match self.stream.try_read(&mut [0]) {
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

/// The connections to one server that wait for another request.
#[derive(Debug)]
pub(crate) struct Pool {
    endpoint: Endpoint,
    preferred: AtomicUsize,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// Returns an empty pool.
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, preferred: AtomicUsize::new(0), idle: Mutex::new(Vec::new()) }
    }

    /// Returns the server.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the connection that was used last and is still quiet; those that aren't are closed.
    pub(crate) fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if connection.is_quiet() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn keep(&self, mut connection: Connection) {
        connection.age = Age::Reused;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// Opens a connection.
    pub(crate) async fn open(&self) -> io::Result<Connection> {
        let preferred = self.preferred.load(Ordering::Relaxed);
        let (connection, place) = Connection::open(&self.endpoint, preferred).await?;
        self.preferred.store(place, Ordering::Relaxed);
        Ok(connection)
    }
}
