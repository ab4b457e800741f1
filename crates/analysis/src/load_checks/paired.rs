//! What two running servers differ by that were sent the same requests in turn.
//!
//! The difference is that of these two processes over this time, each launched once: no verdict follows from it. Slices of
//! time stand for repetitions, because what disturbs one request disturbs its neighbours; `series` says how
//! neighbouring slices that still depend on each other are treated.
//!
//! Power (sim, level 5 %, a true difference of 3 %, independent slices): where the log ratio of a slice has a standard
//! deviation of 8 %, 60 slices find it in 73 % of loads and 20 slices in 29 %; at 5 % in 97 % and in 63 %; at 2 % in
//! 99 % with either.

use std::collections::BTreeMap;

use isobench_schema::load_checks::{Bounds, Difference, PairedChecks, PairedMetric};
use isobench_schema::workload::Arrival;

use super::series::merged;
use crate::stats::{mean, real};

/// The most slices that a load is cut into.
const MOST_SLICES: usize = 60;
/// With fewer slices nothing is compared.
const FEWEST_SLICES: usize = 20;
/// A slice has at least this many pairs on average.
const PAIRS_IN_SLICE: usize = 4;

/// What one server gave: a sum over so much weight. A TTFT is its milliseconds over 1, gaps between tokens are their sum
/// over their number, throughput is tokens over seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The sum.
    pub sum: f64,
    /// What it is a sum over.
    pub weight: f64,
}

impl Part {
    /// Returns one value.
    pub fn one(value: f64) -> Self {
        Self { sum: value, weight: 1.0 }
    }
}

/// The same request (or stretch of time) at both servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// When it was due, in nanoseconds of the clock.
    pub at_ns: u64,
    /// What the first server gave.
    pub first: Part,
    /// What the second server gave.
    pub second: Part,
}

/// Compares a latency over the requests that both servers answered whole.
pub fn latency(pairs: &[Pair]) -> PairedMetric {
    let mut pairs: Vec<Pair> = pairs.iter().copied().filter(is_usable).collect();
    pairs.sort_by_key(|pair| pair.at_ns);
    let needed = FEWEST_SLICES * PAIRS_IN_SLICE;
    let change = change(&pairs);
    if pairs.len() < needed {
        return PairedMetric::TooFew { pairs: count(pairs.len()), needed: count(needed), change };
    }
    let most = (pairs.len() / PAIRS_IN_SLICE).min(MOST_SLICES);
    let slices = slices(&pairs, most);
    if slices.len() < FEWEST_SLICES {
        let (slices, needed) = (count(slices.len()), count(FEWEST_SLICES));
        return PairedMetric::TooFewSlices { pairs: count(pairs.len()), slices, needed, change };
    }
    let Some(by_time) = ratio_of_sums(&slices) else { return without_ratio() };
    PairedMetric::Compared { pairs: count(pairs.len()), by_time, by_pair: by_pair(&pairs, most) }
}

/// Compares a throughput over stretches of time of equal length, each one a [`Pair`] of amounts over seconds. In an open
/// loop the arrivals fix it at both servers.
pub fn throughput(stretches: &[Pair], arrival: &Arrival) -> PairedMetric {
    if !matches!(arrival, Arrival::Closed { .. }) {
        let reason = "the arrivals fix the throughput of both servers unless one can't keep up";
        return PairedMetric::Fixed { reason: reason.to_owned() };
    }
    let mut stretches = stretches.to_vec();
    stretches.retain(|pair| pair.first.weight > 0.0 && pair.second.weight > 0.0);
    stretches.sort_by_key(|pair| pair.at_ns);
    if stretches.len() < FEWEST_SLICES {
        let (slices, needed) = (count(stretches.len()), count(FEWEST_SLICES));
        return PairedMetric::TooFewSlices { pairs: slices, slices, needed, change: change(&stretches) };
    }
    let slices = stretches.len().min(MOST_SLICES);
    let groups = groups(&stretches, slices);
    match ratio_of_sums(&groups) {
        Some(by_time) => PairedMetric::Compared { pairs: count(stretches.len()), by_time, by_pair: None },
        None => without_ratio(),
    }
}

fn without_ratio() -> PairedMetric {
    PairedMetric::Fixed { reason: "all its values at one of the servers are 0".to_owned() }
}

/// Returns the report of metrics by their names.
pub fn report(metrics: BTreeMap<String, PairedMetric>) -> PairedChecks {
    PairedChecks { mark: PairedChecks::MARK.to_owned(), note: PairedChecks::NOTE.to_owned(), metrics }
}

fn is_usable(pair: &Pair) -> bool {
    [pair.first, pair.second].iter().all(|part| part.weight > 0.0 && part.sum.is_finite() && part.sum >= 0.0)
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

/// Cuts the time into equal slices; returns those that have pairs.
fn slices(pairs: &[Pair], most: usize) -> Vec<&[Pair]> {
    let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return Vec::new() };
    let (start, span) = (first.at_ns, last.at_ns.saturating_sub(first.at_ns).max(1));
    let place = |pair: &Pair| {
        let moment = u128::from(pair.at_ns.saturating_sub(start)) * u128::try_from(most).unwrap_or(1);
        (moment / u128::from(span)).min(u128::try_from(most - 1).unwrap_or(0))
    };
    pairs.chunk_by(|one, next| place(one) == place(next)).collect()
}

/// Cuts pairs in their order into groups whose sizes differ by one at most.
fn groups(pairs: &[Pair], count: usize) -> Vec<&[Pair]> {
    let border = |group: usize| group * pairs.len() / count;
    (0..count)
        .filter_map(|group| pairs.get(border(group)..border(group + 1)))
        .filter(|group| !group.is_empty())
        .collect()
}

/// Returns how much more the second server has of the mean; `None` where one has nothing.
fn change(pairs: &[Pair]) -> Option<f64> {
    let mean = |part: fn(&Pair) -> Part| {
        let (sum, weight) =
            pairs.iter().map(part).fold((0.0, 0.0), |(sum, weight), part| (sum + part.sum, weight + part.weight));
        (sum > 0.0 && weight > 0.0).then(|| sum / weight)
    };
    Some(mean(|pair| pair.second)? / mean(|pair| pair.first)? - 1.0).filter(|change| change.is_finite())
}

/// Returns the difference of the ratios of sums.
///
/// The log ratio is of the sums over the whole time. What each slice adds to its error is the first-order term of the
/// delta method, its part of each sum over the mean part: logarithms of each slice's own means would be off by half their
/// squared coefficient of variation, which differs between servers whose latencies are differently spread.
fn ratio_of_sums(groups: &[&[Pair]]) -> Option<Difference> {
    let parts: Vec<[f64; 4]> = groups
        .iter()
        .map(|group| {
            group.iter().fold([0.0; 4], |[a, b, c, d], pair| {
                [a + pair.second.sum, b + pair.second.weight, c + pair.first.sum, d + pair.first.weight]
            })
        })
        .collect();
    let column = |number: usize| mean(&parts.iter().filter_map(|part| part.get(number).copied()).collect::<Vec<_>>());
    let [sum, weight, other_sum, other_weight] = [column(0)?, column(1)?, column(2)?, column(3)?];
    if sum <= 0.0 || other_sum <= 0.0 {
        return None;
    }
    let log_ratio = (sum / weight).ln() - (other_sum / other_weight).ln();
    let terms: Vec<f64> =
        parts.iter().map(|[a, b, c, d]| a / sum - b / weight - (c / other_sum - d / other_weight)).collect();
    difference(log_ratio, &terms)
}

/// Returns the difference of the typical request: the mean over pairs of the log ratio. `None` if a value is 0.
fn by_pair(pairs: &[Pair], slices: usize) -> Option<Difference> {
    let log = |part: Part| Some((part.sum / part.weight).ln()).filter(|log| log.is_finite());
    let logs: Option<Vec<f64>> = pairs.iter().map(|pair| Some(log(pair.second)? - log(pair.first)?)).collect();
    let logs = logs?;
    let border = |group: usize| group * logs.len() / slices;
    let means: Vec<f64> = (0..slices).filter_map(|group| mean(logs.get(border(group)..border(group + 1))?)).collect();
    difference(mean(&logs)?, &means)
}

fn difference(log_ratio: f64, terms: &[f64]) -> Option<Difference> {
    let merged = merged(terms)?;
    let half = merged.half_width()?;
    let bounds = Bounds { low: (log_ratio - half).exp_m1(), high: (log_ratio + half).exp_m1() };
    let change = log_ratio.exp_m1();
    let is_finite = [change, bounds.low, bounds.high].iter().all(|value| value.is_finite());
    is_finite.then(|| Difference {
        change,
        interval: (!merged.is_dependent).then_some(bounds),
        slices: u32::try_from(merged.count).unwrap_or(u32::MAX),
        merged: merged.of,
        correlation: merged.correlation,
    })
}

/// Returns the length of the stretches that a time is cut into in which each server answered at least so many requests.
pub fn stretch_ns(time_ns: u64, answered: usize) -> u64 {
    let number = (answered / PAIRS_IN_SLICE).clamp(1, MOST_SLICES);
    time_ns / u64::try_from(number).unwrap_or(1)
}

/// Returns the pair of each stretch of `length_ns` from `from_ns` to `to_ns`: what ended in it at each server, as amounts
/// (of tokens, or 1 for each request) at times, over seconds. A last stretch that isn't whole is left out.
pub fn stretches(first: &[(u64, f64)], second: &[(u64, f64)], from_ns: u64, to_ns: u64, length_ns: u64) -> Vec<Pair> {
    let length_ns = length_ns.max(1);
    let number = to_ns.saturating_sub(from_ns) / length_ns;
    let sums = |amounts: &[(u64, f64)]| {
        let mut sums = vec![0.0; usize::try_from(number).unwrap_or(0)];
        for (at, amount) in amounts {
            let place = at.checked_sub(from_ns).and_then(|since| usize::try_from(since / length_ns).ok());
            if let Some(sum) = place.and_then(|place| sums.get_mut(place)) {
                *sum += amount;
            }
        }
        sums
    };
    let weight = real(length_ns) / 1e9;
    let pairs = sums(first).into_iter().zip(sums(second)).enumerate();
    pairs
        .map(|(place, (first, second))| Pair {
            at_ns: from_ns.saturating_add(count(place).saturating_mul(length_ns)),
            first: Part { sum: first, weight },
            second: Part { sum: second, weight },
        })
        .collect()
}

#[cfg(test)]
mod tests;
