//! Whether the numbers of a load are the server's or the client's.
//!
//! | bound | limit | why so much |
//! | --- | --- | --- |
//! | busy | 70 % of the window | beyond it reads queue behind each other, whatever the processor is |
//! | lag, most reads stamped by the kernel | the median gap between reads of an answer, or 2 % of the 99th percentile of those gaps, or 0.5 ms, the longest | reported times are the kernel's; a longer lag merges the chunks of two reads into one, which then have the later one's stamp; tokens that are written back to back are read together by any client |
//! | lag, else | 2 % of the median TTFT or of the 99th percentile of the gaps, the shorter; at least 0.1 ms | reported times are late by the lag |
//! | waited, most reads not stamped | 1 % of the window | a larger share of late reads reaches the 99th percentiles |
//! | lateness (open loop) | 5 ms, or 1 % of the 99th percentile of the latency | as for a launch |
//! | TTFT bias | 2 % of the mean, 3 % of the 99th percentile, where it is over 0.1 ms | the smallest difference that is judged by default |
//! | idle slots (closed loop) | 1 % of the slots' time | by so much the offered load is too low |
//! | rate (open loop) | 1 % below the rate that was due | the same |
//!
//! Where the kernel stamps reads, a late client doesn't make reported times late, and its lateness shows where it does harm:
//! in what it sends.

mod lag;
mod pacing;
mod places;
mod verdict;

pub(crate) use lag::lag as read_lag;

use isobench_schema::load_checks::{Audit, Spread, TtftBias};
use isobench_schema::record::PhaseAudit;
use isobench_schema::workload::Arrival;

use self::places::Turn;
use crate::measure::Sample;
use crate::stats::{Weighted, mean, real};

const NS_PER_MS: f64 = 1e6;

/// The gaps between reads that brought chunks of one answer, in milliseconds: those above zero of all completed requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReadGaps {
    /// The median.
    pub(crate) median_ms: f64,
    /// The 99th percentile.
    pub(crate) p99_ms: f64,
}

/// What an audit looks at: one phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditInput<'a> {
    /// What the client saw of itself.
    pub(crate) phase: &'a PhaseAudit,
    /// Every request of the phase that was recorded, in any order.
    pub(crate) requests: &'a [Sample],
    /// When requests should be sent.
    pub(crate) arrival: &'a Arrival,
    /// In an open loop, the most requests under way.
    pub(crate) max_in_flight: Option<u32>,
    /// The gaps between reads, where answers came in parts.
    pub(crate) gaps: Option<ReadGaps>,
}

/// Returns what the client saw of itself, and whether that is good enough.
pub(crate) fn audit(input: &AuditInput) -> Audit {
    let phase = input.phase;
    let wall_ns = Some(real(phase.ended_ns.saturating_sub(phase.began_ns))).filter(|wall| *wall > 0.0);
    let share = |part: u64| wall_ns.map(|wall| real(part) / wall);
    let turns = places::turns(input.requests, input.arrival, input.max_in_flight);
    let is_open = input.arrival.is_open();
    let is_closed = matches!(input.arrival, Arrival::Closed { .. });
    let numbers = Numbers {
        busy_share: share(phase.busiest_ns),
        waited_share: phase.waited_ns.and_then(share),
        stamped_share: (phase.reads > 0).then(|| real(phase.stamped_reads) / real(phase.reads)),
        lag: lag::lag(&phase.lag_ns, phase.longest_lag_ns),
        lateness_ms: spread(turns.iter().filter(|_| is_open).filter_map(Turn::lateness_ms)),
        latency_p99_ms: quantile(
            input.requests.iter().map(|request| since_ms(request.intended_ns, request.end_ns)),
            0.99,
        ),
        turnaround_ms: spread(turns.iter().filter(|_| is_closed).filter_map(Turn::turnaround_ms)),
        idle_share: if is_closed { places::idle_share(&turns) } else { None },
        ttft: Ttft::of(&turns),
        pacing: if is_open { pacing::pacing(&turns, input.arrival) } else { None },
        sent: turns.iter().filter(|turn| turn.request.out.ns().is_some()).count(),
    };
    let (broken, unknown) = (verdict::broken(input, &numbers), verdict::unknown(input, &numbers));
    Audit {
        verdict: verdict::verdict(&broken, &unknown),
        broken,
        unknown,
        workers: phase.workers,
        busy_share: numbers.busy_share,
        waited_share: numbers.waited_share,
        stamped_share: numbers.stamped_share,
        lag: numbers.lag,
        lateness_ms: numbers.lateness_ms,
        turnaround_ms: numbers.turnaround_ms,
        idle_share: numbers.idle_share,
        ttft_bias: numbers.ttft.map(|ttft| ttft.bias),
        pacing: numbers.pacing,
        retransmits: phase.retransmits,
        reconnects: phase.reconnects,
        connections: phase.connections,
    }
}

/// What the bounds are checked with.
struct Numbers {
    busy_share: Option<f64>,
    waited_share: Option<f64>,
    stamped_share: Option<f64>,
    lag: Option<isobench_schema::load_checks::Lag>,
    lateness_ms: Option<Spread>,
    latency_p99_ms: Option<f64>,
    turnaround_ms: Option<Spread>,
    idle_share: Option<f64>,
    ttft: Option<Ttft>,
    pacing: Option<isobench_schema::load_checks::Pacing>,
    sent: usize,
}

/// The reported TTFT and what the client's delay adds to it.
#[derive(Clone, Copy)]
struct Ttft {
    median_ms: f64,
    bias: TtftBias,
    /// What is added, in milliseconds.
    mean_added_ms: f64,
    p99_added_ms: f64,
}

impl Ttft {
    /// Returns it over the requests with a first token whose way out is known. The reported TTFT runs from the intended
    /// time; opening a connection and waiting for a place are not the client's delay.
    fn of(turns: &[Turn]) -> Option<Self> {
        let both: Vec<(f64, f64)> = turns
            .iter()
            .filter_map(|turn| {
                let first_token_ns = turn.request.first_token.ns().filter(|_| turn.request.failure.is_none())?;
                let reported = since_ms(turn.request.intended_ns, first_token_ns);
                Some((reported, reported - turn.delay_ms()?))
            })
            .collect();
        let reported: Vec<f64> = both.iter().map(|(reported, _)| *reported).collect();
        let without: Vec<f64> = both.iter().map(|(_, without)| *without).collect();
        let (mean_without, p99_without) = (mean(&without)?, quantile(without.iter().copied(), 0.99)?);
        let mean_added_ms = mean(&reported)? - mean_without;
        let p99_added_ms = quantile(reported.iter().copied(), 0.99)? - p99_without;
        (mean_without > 0.0 && p99_without > 0.0).then_some(())?;
        Some(Self {
            median_ms: quantile(reported.into_iter(), 0.5)?,
            bias: TtftBias { mean: mean_added_ms / mean_without, p99: p99_added_ms / p99_without },
            mean_added_ms,
            p99_added_ms,
        })
    }
}

/// Returns the milliseconds from one time to a later one; 0 if it isn't later.
fn since_ms(from_ns: u64, to_ns: u64) -> f64 {
    real(to_ns.saturating_sub(from_ns)) / NS_PER_MS
}

fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    Weighted::plain(values).quantile(share)
}

fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let values = Weighted::plain(values);
    Some(Spread { p50: values.quantile(0.5)?, p99: values.quantile(0.99)?, max: values.quantile(1.0)? })
}

#[cfg(test)]
mod tests;
