//! The intended times of a phase's requests.

use std::time::Duration;

use isobench_schema::workload::Arrival;

use super::draw::Draws;
use crate::clock::nanoseconds;

/// The intended times, one after the other.
pub(crate) struct Arrivals {
    draws: Draws,
    arrival: Arrival,
    at_s: f64,
    index: u32,
}

impl Arrivals {
    /// Returns the times by `arrival`, drawn from a seeded stream of their own.
    pub(crate) fn new(arrival: Arrival, draws: Draws) -> Self {
        Self { draws, arrival, at_s: 0.0, index: 0 }
    }

    /// Returns the next intended time in nanoseconds since the phase's start; `traced` is the time in the trace.
    ///
    /// Gaps of an open loop are gamma-distributed with shape `burstiness` and mean 1 / rate, as in `vllm bench serve`,
    /// and the first request waits for the first gap. Unlike there, the times are not stretched afterwards to end at
    /// exactly requests / rate: that would make the counts of a Poisson process too even.
    pub(crate) fn next_ns(&mut self, traced: Option<u64>) -> u64 {
        let index = self.index;
        self.index += 1;
        match &self.arrival {
            Arrival::Closed { .. } | Arrival::AllAtOnce => return 0,
            Arrival::Open { rate_per_s, burstiness } => self.at_s += self.draws.gamma(*burstiness, 1.0 / rate_per_s),
            Arrival::Constant { rate_per_s } => self.at_s = f64::from(index) / rate_per_s,
            Arrival::Bursts { size, period_s } => self.at_s = f64::from(index / (*size).max(1)) * period_s,
            Arrival::Trace { speed } => {
                self.at_s = Duration::from_nanos(traced.unwrap_or(0)).as_secs_f64() / speed;
            }
            Arrival::Stages { .. } => {}
        }
        Duration::try_from_secs_f64(self.at_s).map_or(u64::MAX, nanoseconds)
    }
}
