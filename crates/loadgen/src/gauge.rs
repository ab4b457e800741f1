//! What can be seen of a load while it is under way, and how its sending is ended before its requests are used up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::nanoseconds;

/// What is under way at the moment. Clones are the same gauge.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Values>);

#[derive(Debug, Default)]
struct Values {
    under_way: AtomicUsize,
    /// Of the first threads, in thousandths: the others do the same.
    busy: [AtomicU64; 16],
}

impl Gauge {
    /// Returns the requests under way.
    pub fn under_way(&self) -> usize {
        self.0.under_way.load(Ordering::Relaxed)
    }

    /// Returns the share of time that the busiest thread was on a processor since its phase began, from 0 to 1.
    pub fn busy_share(&self) -> f64 {
        let busiest = self.0.busy.iter().map(|busy| busy.load(Ordering::Relaxed)).max().unwrap_or(0);
        f64::from(u32::try_from(busiest).unwrap_or(u32::MAX)) / 1e3
    }

    pub(crate) fn begin(&self) {
        self.0.under_way.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes how long the thread `number` was on a processor of the time since its phase began, both in nanoseconds.
    pub(crate) fn note_busy(&self, number: usize, busy_ns: u64, wall_ns: u64) {
        let thousandths = busy_ns.saturating_mul(1000).checked_div(wall_ns).unwrap_or(0);
        if let Some(busy) = self.0.busy.get(number) {
            busy.store(thousandths.min(1000), Ordering::Relaxed);
        }
    }
}

/// How long requests are begun in a phase. What is under way at its end is waited for. Clones are the same.
#[derive(Debug, Clone)]
pub struct Sending {
    within_ns: u64,
    is_over: Arc<AtomicBool>,
}

impl Sending {
    /// Returns one that goes on as long as there are requests.
    pub fn all() -> Self {
        Self::within(Duration::MAX)
    }

    /// Returns one that begins no request later than this after the phase's start.
    pub fn within(time: Duration) -> Self {
        Self { within_ns: nanoseconds(time), is_over: Arc::new(AtomicBool::new(false)) }
    }

    /// Ends it now.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns whether a request may be begun at a time since the phase's start.
    pub(crate) fn goes_on(&self, since_start_ns: u64) -> bool {
        since_start_ns <= self.within_ns && !self.is_over.load(Ordering::Relaxed)
    }
}
