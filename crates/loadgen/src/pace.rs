//! Waiting for a moment more exactly than the runtime's timer, which has steps of a millisecond.

use std::io;
use std::time::Instant;

pub(crate) use platform::Pacer;

#[cfg(target_os = "linux")]
mod platform {
    use super::{Instant, io};
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel's, exact to some ten microseconds.
    #[derive(Debug)]
    pub(crate) struct Pacer(AsyncFd<OwnedFd>);

    impl Pacer {
        /// Returns a timer.
        pub(crate) fn new() -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            #[expect(
                deprecated,
                reason = "its successor is unsafe for types that may name a descriptor that isn't theirs; an OwnedFd can't"
            )]
            let registered = AsyncFd::with_interest(timer, Interest::READABLE)?;
            Ok(Self(registered))
        }

        /// Waits until `moment`; not at all if it has passed.
        pub(crate) async fn until(&self, moment: Instant) -> io::Result<()> {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let it_value = Timespec::try_from(left).map_err(|_overflow| io::ErrorKind::InvalidInput)?;
            let once = Itimerspec { it_interval: Timespec::default(), it_value };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            let mut expirations = [0; 8];
            self.0
                .async_io(Interest::READABLE, |timer| Ok(rustix::io::read(timer, &mut expirations)?))
                .await
                .map(|_length| ())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::{Instant, io};

    /// The runtime's timer.
    #[derive(Debug)]
    pub(crate) struct Pacer;

    impl Pacer {
        /// Returns a timer.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Waits until `moment`; not at all if it has passed.
        pub(crate) async fn until(&self, moment: Instant) -> io::Result<()> {
            tokio::time::sleep_until(moment.into()).await;
            Ok(())
        }
    }
}
