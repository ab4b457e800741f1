//! The intended times of a phase's requests.

use std::time::Duration;

use isobench_schema::workload::Arrival;

use super::draw::Draws;
use super::stages::Stages;
use crate::clock::nanoseconds;

/// The intended times, one after the other.
#[derive(Debug)]
pub(crate) struct Arrivals {
    draws: Draws,
    process: Process,
    index: u32,
}

#[derive(Debug)]
enum Process {
    Now,
    Gamma { at_s: f64, shape: f64, mean_s: f64 },
    Equal { rate_per_s: f64 },
    Stages { stages: Stages, due: f64, shape: Option<f64> },
    Bursts { size: u32, period_s: f64 },
    Trace { speed: f64 },
}

impl Arrivals {
    /// Returns the times by `arrival`, drawn from a seeded stream of their own.
    pub(crate) fn new(arrival: Arrival, draws: Draws) -> Self {
        let process = match arrival {
            Arrival::Closed { .. } | Arrival::AllAtOnce => Process::Now,
            Arrival::Open { rate_per_s, burstiness } => {
                Process::Gamma { at_s: 0.0, shape: burstiness, mean_s: 1.0 / rate_per_s }
            }
            Arrival::Constant { rate_per_s } => Process::Equal { rate_per_s },
            Arrival::Stages { stages, burstiness } => {
                Process::Stages { stages: Stages::new(stages), due: 0.0, shape: burstiness }
            }
            Arrival::Bursts { size, period_s } => Process::Bursts { size: size.max(1), period_s },
            Arrival::Trace { speed } => Process::Trace { speed },
        };
        Self { draws, process, index: 0 }
    }

    /// Returns the next intended time in nanoseconds since the phase's start; `traced` is the time in the trace.
    ///
    /// - Gaps of an open loop are gamma-distributed with shape `burstiness` and mean 1 / rate, as in `vllm bench serve`,
    ///   and the first request waits for the first gap. Unlike there, the times are not stretched afterwards to end at
    ///   exactly requests / rate: that would make the counts of a Poisson process too even.
    /// - Equal gaps, and bursts, begin at once.
    /// - In stages the same gaps have mean 1, and a request is sent when the integral of the rate reaches their sum. With
    ///   shape 1 that is the Poisson process of the changing rate (Cinlar 1975, Introduction to stochastic processes, 4.7);
    ///   without a shape the integral goes up by exactly 1 from request to request.
    pub(crate) fn next_ns(&mut self, traced: Option<u64>) -> u64 {
        let index = self.index;
        self.index = index.saturating_add(1);
        let at_s = match &mut self.process {
            Process::Now => return 0,
            Process::Gamma { at_s, shape, mean_s } => {
                *at_s += self.draws.gamma(*shape, *mean_s);
                *at_s
            }
            Process::Equal { rate_per_s } => f64::from(index) / *rate_per_s,
            Process::Stages { stages, due, shape } => {
                match shape {
                    Some(shape) => *due += self.draws.gamma(*shape, 1.0),
                    None => *due = f64::from(index),
                }
                stages.time_of(*due)
            }
            Process::Bursts { size, period_s } => f64::from(index / *size) * *period_s,
            Process::Trace { speed } => Duration::from_nanos(traced.unwrap_or(0)).as_secs_f64() / *speed,
        };
        Duration::try_from_secs_f64(at_s).map_or(u64::MAX, nanoseconds)
    }
}

#[cfg(test)]
mod tests;
