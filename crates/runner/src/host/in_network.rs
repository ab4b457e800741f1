//! A thread that is for a while in the network of another process, so that it can reach what listens on the loopback
//! address there.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd as _;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The calling thread is in another process's network until this is dropped. Threads that it starts meanwhile stay there.
#[derive(Debug)]
pub struct InNetwork {
    own: File,
    /// It belongs to the thread that entered.
    thread: PhantomData<*const ()>,
}

impl InNetwork {
    /// Lets the calling thread into the network of a process.
    ///
    /// # Errors
    /// Returns the operating system's error: the process is gone, or this one lacks the right, which root has.
    pub fn of(process: u32) -> io::Result<Self> {
        let own = File::open("/proc/thread-self/ns/net")?;
        let other = File::open(format!("/proc/{process}/ns/net"))?;
        move_into_link_name_space(other.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(Self { own, thread: PhantomData })
    }
}

impl Drop for InNetwork {
    fn drop(&mut self) {
        // A thread that can't return ends with its launch; what it still does needs no network but sockets by path.
        let _ = move_into_link_name_space(self.own.as_fd(), Some(LinkNameSpaceType::Network));
    }
}
