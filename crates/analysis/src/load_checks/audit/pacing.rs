//! How well the arrivals of an open loop were kept.

use isobench_schema::load_checks::{AgainstProcess, Pacing};
use isobench_schema::workload::Arrival;
use statrs::function::gamma::checked_gamma_lr;

use super::places::Turn;
use crate::stats::{length, mean, real, standard_deviation};

const NS_PER_S: f64 = 1e9;
/// Gaps below this many seconds are short.
const SHORT_S: f64 = 50e-6;
/// The length of the intervals that requests are counted in, in seconds and in nanoseconds.
const COUNTED_S: f64 = 0.1;
const COUNTED_NS: u64 = 100_000_000;
/// With fewer gaps or intervals than these a shape isn't stated: its sampling error would be over 10 % or 30 %.
const FEWEST_GAPS: usize = 100;
const FEWEST_INTERVALS: usize = 20;

/// The gaps of the process asked for.
#[derive(Clone, Copy)]
enum Process {
    /// Gamma-distributed with this shape; Poisson at 1.
    Gamma { rate_per_s: f64, shape: f64 },
    /// All equal.
    Even { rate_per_s: f64 },
}

/// Returns how the sends relate to when they were due; `None` below two requests that were sent, or if all were due at once.
pub(super) fn pacing(turns: &[Turn], arrival: &Arrival) -> Option<Pacing> {
    let sent = turns.iter().filter_map(|turn| Some((turn.could_ns, turn.request.out.ns()?)));
    let (mut due, mut out): (Vec<u64>, Vec<u64>) = sent.unzip();
    due.sort_unstable();
    out.sort_unstable();
    let process = match arrival {
        Arrival::Open { rate_per_s, burstiness } => {
            Some(Process::Gamma { rate_per_s: *rate_per_s, shape: *burstiness })
        }
        Arrival::Constant { rate_per_s } => Some(Process::Even { rate_per_s: *rate_per_s }),
        Arrival::Bursts { size, period_s } => return shapes(&due, &out, None, Some(f64::from(*size) / period_s)),
        Arrival::Closed { .. } | Arrival::Stages { .. } | Arrival::Trace { .. } | Arrival::AllAtOnce => None,
    };
    let asked = process.map(|process| match process {
        Process::Gamma { rate_per_s, .. } | Process::Even { rate_per_s } => rate_per_s,
    });
    shapes(&due, &out, process, asked)
}

fn shapes(due: &[u64], out: &[u64], process: Option<Process>, asked_per_s: Option<f64>) -> Option<Pacing> {
    let (drawn_per_s, sent_per_s) = (rate(due)?, rate(out)?);
    let (due_gaps, out_gaps) = (gaps(due), gaps(out));
    let many = due_gaps.len() >= FEWEST_GAPS;
    let of_gaps = |shape: fn(&[f64]) -> Option<f64>, expected: Option<(f64, Option<f64>)>| {
        against(shape(&due_gaps).filter(|_| many)?, shape(&out_gaps)?, expected)
    };
    let dispersion = dispersion(due).zip(dispersion(out)).and_then(|((drawn, _), (sent, intervals))| {
        against(drawn, sent, process.and_then(|process| expected_dispersion(process, intervals)))
    });
    Some(Pacing {
        asked_per_s,
        drawn_per_s,
        sent_per_s,
        rate_error: sent_per_s / drawn_per_s - 1.0,
        gap_cv: of_gaps(variation, process.map(|process| expected_variation(process, due_gaps.len()))),
        dispersion,
        short_gaps: of_gaps(short_share, process.and_then(|process| expected_short(process, due_gaps.len()))),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "it ends a chain of options")]
fn against(drawn: f64, sent: f64, expected: Option<(f64, Option<f64>)>) -> Option<AgainstProcess> {
    let (expected, standard_error) = expected.map_or((None, None), |(expected, error)| (Some(expected), error));
    Some(AgainstProcess { drawn, sent, expected, standard_error })
}

/// Returns (n − 1) over the time from the first to the last.
fn rate(times: &[u64]) -> Option<f64> {
    let span = times.last()?.checked_sub(*times.first()?).filter(|span| *span > 0)?;
    Some((length(times.len()) - 1.0) * NS_PER_S / real(span))
}

/// Returns the gaps in seconds.
fn gaps(times: &[u64]) -> Vec<f64> {
    times.iter().zip(times.iter().skip(1)).map(|(one, next)| real(next - one) / NS_PER_S).collect()
}

/// Returns the coefficient of variation.
fn variation(gaps: &[f64]) -> Option<f64> {
    Some(standard_deviation(gaps)? / mean(gaps).filter(|mean| *mean > 0.0)?)
}

fn short_share(gaps: &[f64]) -> Option<f64> {
    let short = gaps.iter().filter(|gap| **gap < SHORT_S).count();
    (!gaps.is_empty()).then(|| length(short) / length(gaps.len()))
}

/// Returns the variance over the mean of the counts in whole intervals of 100 ms, and how many there are.
///
/// The first begins half a mean gap before the first request: equal gaps that fit into an interval a whole number of times
/// would else have requests on its very edges, where a microsecond decides which interval counts them.
fn dispersion(times: &[u64]) -> Option<(f64, usize)> {
    let (first, last) = (*times.first()?, *times.last()?);
    let gaps = u64::try_from(times.len()).ok()?.checked_sub(1).filter(|gaps| *gaps > 0)?;
    let half_ns = (last - first) / gaps / 2;
    let intervals =
        usize::try_from((last - first + half_ns) / COUNTED_NS).ok().filter(|count| *count >= FEWEST_INTERVALS)?;
    let mut counts = vec![0.0; intervals];
    for at in times {
        let place = usize::try_from((at - first + half_ns) / COUNTED_NS).ok();
        if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
            *count += 1.0;
        }
    }
    let mean = mean(&counts).filter(|mean| *mean > 0.0)?;
    Some((standard_deviation(&counts)?.powi(2) / mean, intervals))
}

/// Returns the coefficient of variation of the gaps, 1/√k for a gamma distribution of shape k, and the standard error of n
/// gaps' by the delta method: relative √((1 + 1/k)/2n).
fn expected_variation(process: Process, gaps: usize) -> (f64, Option<f64>) {
    match process {
        Process::Even { .. } => (0.0, None),
        Process::Gamma { shape, .. } => {
            let expected = 1.0 / shape.sqrt();
            (expected, Some(expected * ((1.0 + 1.0 / shape) / (2.0 * length(gaps))).sqrt()))
        }
    }
}

/// Returns the index of dispersion of counts, and its standard error over so many intervals.
///
/// For equal gaps counts are one of two neighbouring whole numbers. For gamma-distributed gaps of shape k and μ requests
/// in an interval it is 1/k + (1 − 1/k²)/6μ, the two leading terms of renewal theory (Cox 1962, "Renewal theory", section
/// 4.5), exact for Poisson's; where μ is too small for them nothing is stated. The standard error is that of a sample
/// variance of normal numbers, relative √(2/(N − 1)).
fn expected_dispersion(process: Process, intervals: usize) -> Option<(f64, Option<f64>)> {
    match process {
        Process::Even { rate_per_s } => {
            let count = rate_per_s * COUNTED_S;
            let part = count.fract();
            Some((part * (1.0 - part) / count, None))
        }
        Process::Gamma { rate_per_s, shape } => {
            let count = rate_per_s * COUNTED_S;
            let is_poisson = (shape - 1.0).abs() < 1e-9;
            let expected = 1.0 / shape + (1.0 - shape.powi(-2)) / (6.0 * count);
            let error = expected * (2.0 / (length(intervals) - 1.0)).sqrt();
            (is_poisson || count >= 2.0 && count * shape >= 1.0).then_some((expected, Some(error)))
        }
    }
}

/// Returns the share of short gaps, the gamma distribution's at 50 µs, and its binomial standard error.
fn expected_short(process: Process, gaps: usize) -> Option<(f64, Option<f64>)> {
    match process {
        Process::Even { rate_per_s } => Some((f64::from(u8::from(1.0 / rate_per_s < SHORT_S)), None)),
        Process::Gamma { rate_per_s, shape } => {
            let share = checked_gamma_lr(shape, SHORT_S * rate_per_s * shape).ok()?;
            Some((share, Some((share * (1.0 - share) / length(gaps)).sqrt())))
        }
    }
}

#[cfg(test)]
mod tests;
