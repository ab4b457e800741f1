//! Stopping a load from outside, with the cause that goes into the records.

use std::sync::Arc;

use isobench_schema::failure::FailureClass;
use tokio::sync::watch;

/// Why a load is stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// Somebody asked for it.
    Interrupted,
    /// The deadline for warm-up, probes and window together has passed.
    WorkloadTimeout,
    /// The server's process has ended.
    ServerDied,
}

impl StopCause {
    /// Returns the failure class of the requests that it cuts short.
    pub fn class(self) -> FailureClass {
        match self {
            Self::Interrupted => FailureClass::Interrupted,
            Self::WorkloadTimeout => FailureClass::WorkloadTimeout,
            Self::ServerDied => FailureClass::ServerDied,
        }
    }

    /// Returns what the record of such a request says.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Interrupted => "the load was interrupted while this request was under way",
            Self::WorkloadTimeout => "the workload's deadline passed while this request was under way",
            Self::ServerDied => "the server ended while this request was under way",
        }
    }
}

/// A switch that stops a load at once. Clones are the same switch; any thread may throw it.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<Option<StopCause>>>);

impl Cancel {
    /// Returns a switch that isn't thrown.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Stops every load that has this switch. Only the first cause counts.
    pub fn stop(&self, cause: StopCause) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(cause);
            }
            first
        });
    }

    /// Returns the cause if the switch was thrown.
    pub fn cause(&self) -> Option<StopCause> {
        *self.0.borrow()
    }

    /// Waits until the switch is thrown.
    pub async fn stopped(&self) -> StopCause {
        let mut receiver = self.0.subscribe();
        loop {
            if let Some(cause) = *receiver.borrow_and_update() {
                return cause;
            }
            if receiver.changed().await.is_err() {
                // The sender lives in `self`, so this can't be; waiting for ever is what an unthrown switch means.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}
