//! One thread of the engine: its sockets, which live from phase to phase, and what it did in a phase.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::Records;
use super::connection::Connection;
use super::lag::Lag;
use super::phase::PhaseRun;
use super::releases::Releases;
use super::socket::CONTROL_SIZE;
use super::table::{Key, Table};
use super::work::{GettingReady, Work};

/// How much one read takes at most, in bytes.
const READ_SIZE: usize = 64 * 1024;
/// The mark of the timer among the sockets.
pub(crate) const TIMER: u64 = u64::MAX;

/// A worker's sockets and buffers.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) epoll: OwnedFd,
    pub(crate) releases: Releases,
    pub(crate) connections: Table<Connection>,
    /// Connections without a request, the one that was used last at the end.
    pub(crate) idle: Vec<Key>,
    pub(crate) buffer: Box<[u8]>,
    pub(crate) control: Box<[u8]>,
    /// Connections of HTTP/2, which take requests as long as they have room.
    pub(crate) multiplexed: Vec<Key>,
    /// Where a request's body is put together.
    pub(crate) scratch: Vec<u8>,
    /// Where a whole request is put together, and where TLS puts what it has decrypted.
    pub(crate) plain: Vec<u8>,
    /// The address of the endpoint that answered last.
    pub(crate) preferred: usize,
}

/// What a worker saw of itself in a phase.
#[derive(Debug)]
pub(crate) struct WorkerReport {
    pub(crate) lag: Lag,
    /// Reads that brought bytes.
    pub(crate) reads: u64,
    pub(crate) busy_ns: u64,
    pub(crate) waited_ns: Option<u64>,
    pub(crate) reconnects: u32,
    pub(crate) connections: u64,
}

impl Worker {
    /// Returns a worker without connections.
    pub(crate) fn new(number: usize) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let releases = Releases::new()?;
        epoll::add(&epoll, releases.timer(), EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            number,
            epoll,
            releases,
            connections: Table::new(),
            idle: Vec::new(),
            buffer: vec![0; READ_SIZE].into_boxed_slice(),
            control: vec![0; CONTROL_SIZE].into_boxed_slice(),
            multiplexed: Vec::new(),
            scratch: Vec::new(),
            plain: Vec::new(),
            preferred: 0,
        })
    }

    /// Returns its number among the workers, from 0.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Does its share of a phase on the current thread.
    ///
    /// # Errors
    /// Returns an error if the kernel's timer or its watch over sockets fails, or prepared bytes can't be read.
    pub(crate) fn run(
        &mut self,
        work: &Work,
        getting_ready: GettingReady<'_>,
        records: Records,
    ) -> io::Result<WorkerReport> {
        PhaseRun::new(self, work, records).run(getting_ready)
    }
}
