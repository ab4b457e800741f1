//! Whether a server keeps up with an open loop.
//!
//! At the beginning of any load more requests are due than end, because the first ones are still under way: for as long as
//! their latency. A growing number in flight alone says nothing then. So four things are asked together, of the requests
//! known at one moment: less than 95 % of what was due in the later half of the time ended in it; that is more than chance;
//! the number in flight grew over that half; and requests that were due later took longer than earlier ones, where both are
//! followed for the same time, so that those still under way count as what they are. Filling a server up changes the first
//! three, but not the last.
//!
//! (sim) Of servers without a queue, with exponential, lognormal and mixed latencies of up to half the time looked at, and of
//! 32 slots at 80, 90 and 95 % of their capacity, at most one in 20 was called over-saturated at any of 50 single looks, and
//! none at the end; at 130 % all were, and at 200 % within three mean latencies in the median. At 110 % it needs some thousand requests:
//! that nothing shows it doesn't mean that it isn't so.

use isobench_schema::load_checks::{Flow, FlowState};
use statrs::function::erf::erfc;

use crate::stats::{length, mann_kendall};

/// With fewer requests due nothing is said.
const FEWEST_DUE: usize = 50;
/// Nor with fewer in the first or the second third of the time.
const FEWEST_IN_THIRD: usize = 20;
/// Less than this share of what was due ended, as for a launch.
const ENDED_SHARE: f64 = 0.95;
/// What is short is more than so many standard errors: one-sided 0.05 %.
const EXCESS: f64 = 3.3;
/// The number in flight is looked at so many times over the later half.
const LOOKS: usize = 20;
/// It grows with a one-sided p below this.
const GROWTH_P: f64 = 0.01;
/// Requests take longer with a one-sided p below this: neighbours wait together, which makes p smaller than it should be.
const SLOWER_P: f64 = 1e-4;

/// A request of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flight {
    /// When it was due, in nanoseconds of the clock.
    pub due_ns: u64,
    /// When it ended, if it has.
    pub ended_ns: Option<u64>,
}

/// Returns whether the server keeps up, by what is known at `now_ns`. Afterwards `now_ns` is when the last request was due:
/// what ends later doesn't count. A load that is to be stopped early should ask each second, and stop when two answers in a
/// row say so.
pub fn flow(flights: impl IntoIterator<Item = Flight>, now_ns: u64) -> Flow {
    let mut known: Vec<Flight> = flights.into_iter().filter(|flight| flight.due_ns <= now_ns).collect();
    known.sort_by_key(|flight| flight.due_ns);
    let start_ns = known.first().map_or(now_ns, |flight| flight.due_ns);
    let time_ns = now_ns - start_ns;
    let half_ns = start_ns + time_ns / 2;
    let ends: Vec<u64> = {
        let mut ends: Vec<u64> =
            known.iter().filter_map(|flight| flight.ended_ns).filter(|ended| *ended <= now_ns).collect();
        ends.sort_unstable();
        ends
    };
    let due_until = |at: u64| known.partition_point(|flight| flight.due_ns <= at);
    let ended_until = |at: u64| ends.partition_point(|ended| *ended <= at);
    let due = known.len() - due_until(half_ns);
    let ended = ends.len() - ended_until(half_ns);
    let share = (due > 0).then(|| length(ended) / length(due));
    let excess = (due > 0).then(|| (length(due) - length(ended)) / length(due + ended).sqrt());
    let in_flight: Vec<f64> =
        moments(half_ns, now_ns).map(|at| length(due_until(at).saturating_sub(ended_until(at)))).collect();
    let growth_p =
        mann_kendall(&in_flight).map(|trend| if trend.change > 0.0 { trend.p / 2.0 } else { 1.0 - trend.p / 2.0 });
    let (early, late) = thirds(&known, start_ns, time_ns);
    let is_enough = known.len() >= FEWEST_DUE && early.len().min(late.len()) >= FEWEST_IN_THIRD;
    let slower_p = if is_enough { larger_p(&late, &early) } else { None };
    let is_saturated = share.is_some_and(|share| share < ENDED_SHARE)
        && excess.is_some_and(|excess| excess > EXCESS)
        && growth_p.is_some_and(|p| p < GROWTH_P)
        && slower_p.is_some_and(|p| p < SLOWER_P);
    // Where most of the early ones are still under way after a third of the time, nothing can be said for the server.
    let is_followed = early.iter().filter(|latency| **latency < time_ns / 3).count() * 2 >= early.len();
    let state = match (is_enough, is_saturated, is_followed) {
        (true, true, _) => FlowState::OverSaturated,
        (true, false, true) => FlowState::KeepsUp,
        (false, _, _) | (true, false, false) => FlowState::TooFew,
    };
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Flow { state, due: number(due), ended: number(ended), share, excess, growth_p, slower_p }
}

/// Returns the ends of [`LOOKS`] equal parts of a time.
fn moments(from_ns: u64, to_ns: u64) -> impl Iterator<Item = u64> {
    let looks = u64::try_from(LOOKS).unwrap_or(1);
    (1..=looks).map(move |look| {
        let part = u128::from(to_ns - from_ns) * u128::from(look) / u128::from(looks);
        from_ns + u64::try_from(part).unwrap_or(0)
    })
}

/// Returns the latencies of the requests due in the first and in the second third of the time, each cut off at a third.
fn thirds(known: &[Flight], start_ns: u64, time_ns: u64) -> (Vec<u64>, Vec<u64>) {
    let third_ns = time_ns / 3;
    let cut =
        |flight: &Flight| flight.ended_ns.map_or(third_ns, |ended| ended.saturating_sub(flight.due_ns).min(third_ns));
    let between = |from: u64, to: u64| {
        let due = |flight: &&Flight| flight.due_ns - start_ns >= from && flight.due_ns - start_ns < to;
        known.iter().filter(due).map(cut).collect()
    };
    (between(0, third_ns), between(third_ns, 2 * third_ns))
}

/// Returns the one-sided p of `values` not being larger than `others`: the Mann–Whitney test by its normal approximation
/// with corrections for ties and continuity (Mann and Whitney 1947). `None` if all are equal.
fn larger_p(values: &[u64], others: &[u64]) -> Option<f64> {
    let mut all: Vec<(u64, bool)> =
        values.iter().map(|value| (*value, true)).chain(others.iter().map(|value| (*value, false))).collect();
    all.sort_unstable();
    let (n, m) = (length(values.len()), length(others.len()));
    let total = n + m;
    let (mut before, mut ranks, mut ties) = (0.0, 0.0, 0.0);
    for tied in all.chunk_by(|one, next| one.0 == next.0) {
        let size = length(tied.len());
        let ours = length(tied.iter().filter(|(_, is_ours)| *is_ours).count());
        ranks += ours * (before + f64::midpoint(size, 1.0));
        ties += size.powi(3) - size;
        before += size;
    }
    let score = ranks - n * (n + 1.0) / 2.0;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    (variance > 0.0).then(|| 0.5 * erfc((score - n * m / 2.0 - 0.5) / variance.sqrt() / std::f64::consts::SQRT_2))
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;
    use crate::load_checks::draws::Draws;

    /// Poisson arrivals at a server whose requests take `latency`; with slots, the others wait.
    fn load(draws: &mut Draws, rate_per_s: f64, slots: Option<usize>, latency: fn(&mut Draws) -> f64) -> Vec<Flight> {
        let ns = |seconds: f64| std::time::Duration::from_secs_f64(seconds).as_nanos().try_into().unwrap();
        let mut free: BinaryHeap<Reverse<u64>> = (0..slots.unwrap_or(0)).map(|_| Reverse(0)).collect();
        let mut at = 0.0;
        let mut all = Vec::new();
        loop {
            at += draws.exponential(1.0 / rate_per_s);
            if at >= 120.0 {
                return all;
            }
            let due_ns: u64 = ns(at);
            let began = free.pop().map_or(due_ns, |Reverse(free)| free.max(due_ns));
            let took: u64 = ns(latency(draws));
            let ended = began + took;
            if slots.is_some() {
                free.push(Reverse(ended));
            }
            all.push(Flight { due_ns, ended_ns: Some(ended) });
        }
    }

    /// Returns how many of 20 loads are over-saturated at two looks in a row, one each four seconds, and at the end.
    fn looks(rate_per_s: f64, slots: Option<usize>, latency: fn(&mut Draws) -> f64) -> (u32, u32) {
        let mut draws = Draws::new(6);
        let (mut early, mut late) = (0, 0);
        for _ in 0..20 {
            let flights = load(&mut draws, rate_per_s, slots, latency);
            let mut row = 0;
            let mut stopped = false;
            for second in (10..=120).step_by(4) {
                let now_ns = u64::from(u32::try_from(second).unwrap()) * 1_000_000_000;
                let is = flow(flights.iter().copied(), now_ns).state == FlowState::OverSaturated;
                row = if is { row + 1 } else { 0 };
                stopped |= row == 2;
            }
            early += u32::from(stopped);
            late += u32::from(flow(flights.iter().copied(), 120_000_000_000).state == FlowState::OverSaturated);
        }
        (early, late)
    }

    #[test]
    fn filling_a_server_is_not_saturation() {
        assert_eq!(looks(20.0, None, |draws| draws.exponential(20.0)), (0, 0));
        assert_eq!(looks(20.0, None, |draws| draws.exponential(60.0)), (0, 0));
        assert_eq!(looks(20.0, None, |_| 30.0), (0, 0));
        let mixed =
            |draws: &mut Draws| if draws.uniform() < 0.2 { draws.exponential(100.0) } else { draws.exponential(3.0) };
        assert_eq!(looks(20.0, None, mixed), (0, 0));
    }

    #[test]
    fn a_queue_that_grows_is_saturation() {
        assert_eq!(looks(8.0 * 0.9, Some(32), |draws| draws.exponential(4.0)), (0, 0));
        let (early, late) = looks(8.0 * 1.4, Some(32), |draws| draws.exponential(4.0));
        assert!(early >= 19 && late >= 19, "{early} {late}");
        assert_eq!(looks(8.0 * 2.0, Some(32), |draws| draws.exponential(4.0)), (20, 20));
    }

    #[test]
    fn ranks_are_those_of_scipy() {
        // scipy.stats.mannwhitneyu(a, b, alternative="greater", method="asymptotic").pvalue
        let p = larger_p(&[5, 7, 7, 9, 12, 3], &[1, 4, 5, 5, 6, 2, 7]).unwrap();
        assert!((p - 0.048_335_271_703_350_446).abs() < 1e-9, "{p}");
        assert_eq!(larger_p(&[2, 2], &[2, 2]), None);
    }

    #[test]
    fn too_few_requests_say_nothing() {
        let flights: Vec<Flight> = (0..40).map(|at| Flight { due_ns: at * 1_000_000_000, ended_ns: None }).collect();
        assert_eq!(flow(flights, 40_000_000_000).state, FlowState::TooFew);
        assert_eq!(flow([], 5).state, FlowState::TooFew);
        // None ever ends: that no later one is slower can't be told from a latency longer than the load.
        let silent: Vec<Flight> = (0..400).map(|at| Flight { due_ns: at * 1_000_000_000, ended_ns: None }).collect();
        let found = flow(silent, 400_000_000_000);
        assert_eq!((found.state, found.share, found.slower_p), (FlowState::TooFew, Some(0.0), None));
    }
}
