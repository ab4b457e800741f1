//! Waits for sockets with a time-out finer than a millisecond.

use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, Result};

use crate::clock::timespec;

/// The most events that one wait gives.
const EVENTS: usize = 1024;

/// What happened to what was registered under `token`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Happened {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// The sockets that are waited for.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poller {
    /// Makes one that waits for nothing yet.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(EVENTS) })
    }

    /// Waits for a socket to be readable from now on.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token), EventFlags::IN)
    }

    /// Waits also for the socket to be writable, or no longer.
    pub(crate) fn want_write(&self, socket: impl AsFd, token: u64, wanted: bool) -> Result<()> {
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        epoll::modify(&self.epoll, socket, EventData::new_u64(token), flags)
    }

    /// Waits up to `timeout_ns` nanoseconds and adds what happened to `happened`.
    pub(crate) fn wait(&mut self, timeout_ns: u64, happened: &mut Vec<Happened>) -> Result<()> {
        if timeout_ns > 0 {
            // `epoll_pwait2` would do it in one call, but the safe interface rounds its time-out up to milliseconds on
            // kernels that may lack it. The second call costs nothing where there is time to wait.
            let mut epoll = [PollFd::new(&self.epoll, PollFlags::IN)];
            match poll(&mut epoll, Some(&timespec(timeout_ns))) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timespec(0))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        for event in &self.events {
            let flags = event.flags;
            happened.push(Happened {
                token: event.data.u64(),
                readable: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                writable: flags.contains(EventFlags::OUT),
            });
        }
        Ok(())
    }
}
