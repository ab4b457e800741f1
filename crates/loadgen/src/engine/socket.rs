//! A socket that never blocks, read with the kernel's receive stamp.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt as nix_sockopt};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};

use crate::target::Address;

/// The receive buffer that is asked for. Many small segments shrink the window that a smaller one announces, until the
/// server's kernel holds data back for 200 ms.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Room for the control message that carries a stamp.
pub(crate) const CONTROL_SIZE: usize = 128;

/// A connection's socket.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connecting {
    /// It is there.
    Done,
    /// The socket becomes writable when it is.
    UnderWay,
}

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// Bytes; 0 if the server has closed its side.
    pub(crate) length: usize,
    /// When the kernel received the last of them, in nanoseconds since 1970-01-01 UTC.
    pub(crate) stamped_unix_ns: Option<u64>,
}

impl Socket {
    /// Begins to connect.
    pub(crate) fn connect(address: &Address) -> io::Result<(Self, Connecting)> {
        let family = match address {
            Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
            Address::Tcp(_) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        // Both help and neither is needed: without the right to exceed the system's bound it stays as it is, and a
        // kernel that gives no stamps leaves the time at which the read returned.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER);
        let _ = setsockopt(&socket, nix_sockopt::ReceiveTimestampns, &true);
        let connected = match address {
            Address::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true)?;
                net::connect(&socket, address)
            }
            Address::Unix(path) => net::connect(&socket, &net::SocketAddrUnix::new(path)?),
        };
        match connected {
            Ok(()) => Ok((Self(socket), Connecting::Done)),
            Err(Errno::INPROGRESS) => Ok((Self(socket), Connecting::UnderWay)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns what came of connecting, once the socket is writable.
    pub(crate) fn connected(&self) -> io::Result<()> {
        Ok(sockopt::socket_error(&self.0)??)
    }

    /// Reads once. Without anything to read the error is of the kind `WouldBlock`.
    pub(crate) fn receive(&self, buffer: &mut [u8], control: &mut [u8]) -> io::Result<Received> {
        let mut pieces = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(self.0.as_raw_fd(), &mut pieces, Some(control), MsgFlags::empty())?;
        let mut stamped_unix_ns = None;
        for message in message.cmsgs()? {
            if let ControlMessageOwned::ScmTimestampns(stamp) = message {
                let nanoseconds = u64::try_from(stamp.tv_nsec()).ok();
                let seconds = u64::try_from(stamp.tv_sec()).ok();
                stamped_unix_ns = seconds.zip(nanoseconds).map(|(s, ns)| s.saturating_mul(1_000_000_000) + ns);
            }
        }
        Ok(Received { length: message.bytes, stamped_unix_ns })
    }

    /// Hands bytes to the operating system; returns how many it took.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match net::send(&self.0, bytes, SendFlags::NOSIGNAL) {
            Ok(taken) => Ok(taken),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
