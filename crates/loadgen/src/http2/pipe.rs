//! A connection in memory: what the library reads and writes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What both ends of the pipe share.
#[derive(Debug, Default)]
struct Shared {
    incoming: Vec<u8>,
    /// How much of `incoming` was read.
    read: usize,
    outgoing: Vec<u8>,
    is_closed: bool,
    is_over: bool,
}

/// An end of the pipe. Nothing wakes anybody: the library is asked after every change.
#[derive(Debug, Default, Clone)]
pub(super) struct Pipe(Arc<Mutex<Shared>>);

impl Pipe {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings bytes for the library.
    pub(super) fn bring(&self, bytes: &[u8]) {
        self.shared().incoming.extend_from_slice(bytes);
    }

    /// Lets the library find the end behind what was brought.
    pub(super) fn close(&self) {
        self.shared().is_closed = true;
    }

    /// Puts what the library wrote behind `out`.
    pub(super) fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut self.shared().outgoing);
    }

    /// Returns whether the library wrote something.
    pub(super) fn has_output(&self) -> bool {
        !self.shared().outgoing.is_empty()
    }

    /// Returns whether the library has ended the connection, after which it must not be asked again.
    pub(super) fn is_over(&self) -> bool {
        self.shared().is_over
    }

    /// Notes that the library has ended the connection.
    pub(super) fn set_over(&self) {
        self.shared().is_over = true;
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let shared = &mut *self.shared();
        let rest = shared.incoming.get(shared.read..).unwrap_or_default();
        if rest.is_empty() {
            shared.incoming.clear();
            shared.read = 0;
            return if shared.is_closed { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        let (taken, _) = rest.split_at(rest.len().min(to.remaining()));
        to.put_slice(taken);
        shared.read += taken.len();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.shared().outgoing.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
