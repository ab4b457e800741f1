//! When each request could be released, given that only so many may be under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use isobench_schema::workload::Arrival;

use super::since_ms;
use crate::measure::Sample;

/// A request with the moment from which on nothing but the client kept it back.
pub(super) struct Turn<'a> {
    pub(super) request: &'a Sample,
    /// When it could be released: its intended time or, if that is later, when a place became free.
    pub(super) could_ns: u64,
    /// In a closed loop: when the answer ended whose place it took. Absent for a slot's first request and while the loop
    /// is filled.
    freed_ns: Option<u64>,
}

impl Turn<'_> {
    /// Returns by how much it was released late.
    pub(super) fn lateness_ms(&self) -> Option<f64> {
        self.request.released.ns().map(|released| since_ms(self.could_ns, released))
    }

    /// Returns for how long its slot was empty.
    pub(super) fn turnaround_ms(&self) -> Option<f64> {
        Some(since_ms(self.freed_ns?, self.request.out.ns()?))
    }

    /// Returns the client's own delay between the moment that it could be released and its first byte on the way, less the
    /// time in which its connection was opened.
    pub(super) fn delay_ms(&self) -> Option<f64> {
        let released = self.request.released.ns().unwrap_or(self.could_ns);
        let ready = released.max(self.request.connected.ns().unwrap_or(0));
        Some(since_ms(self.could_ns, released) + since_ms(ready, self.request.out.ns()?))
    }
}

/// Returns the requests that were released or sent, in that order.
pub(super) fn turns<'a>(requests: &'a [Sample], arrival: &Arrival, max_in_flight: Option<u32>) -> Vec<Turn<'a>> {
    let mut ordered: Vec<(u64, &Sample)> =
        requests.iter().filter_map(|request| Some((request.released.ns().or(request.out.ns())?, request))).collect();
    ordered.sort_by_key(|(at, request)| (*at, request.intended_ns));
    match arrival {
        Arrival::Closed { concurrency, ramp_s } => closed(&ordered, *concurrency, ramp_s.unwrap_or(0.0)),
        Arrival::AllAtOnce
        | Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. } => open(&ordered, max_in_flight),
    }
}

/// In an open loop a request takes, once `most` are under way, the place of the one that ends first.
fn open<'a>(ordered: &[(u64, &'a Sample)], most: Option<u32>) -> Vec<Turn<'a>> {
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let mut ends = BinaryHeap::new();
    ordered
        .iter()
        .map(|(_, request)| {
            let freed = if ends.len() >= most { ends.pop() } else { None };
            if most < usize::MAX {
                ends.push(Reverse(request.end_ns));
            }
            let could_ns = request.intended_ns.max(freed.map_or(0, |Reverse(end)| end));
            Turn { request, could_ns, freed_ns: None }
        })
        .collect()
}

/// In a closed loop a request takes the place of the answer that ended first, whichever slot is whose: the sum of the
/// slots' empty times is the same for every pairing. A later turn of a conversation may wait for its reader.
fn closed<'a>(ordered: &[(u64, &'a Sample)], concurrency: u32, ramp_s: f64) -> Vec<Turn<'a>> {
    let slots = usize::try_from(concurrency).unwrap_or(usize::MAX);
    let ramp_ns = std::time::Duration::try_from_secs_f64(ramp_s)
        .map_or(u64::MAX, |ramp| u64::try_from(ramp.as_nanos()).unwrap_or(u64::MAX));
    let full_ns = ordered.first().map_or(0, |(first, _)| first.saturating_add(ramp_ns));
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    ordered
        .iter()
        .map(|(at, request)| {
            let is_reused = ends.len() >= slots || ends.peek().is_some_and(|Reverse(end)| end <= at);
            let freed = if is_reused { ends.pop() } else { None };
            ends.push(Reverse(request.end_ns));
            let waited_ns = if request.is_later_turn { request.intended_ns } else { 0 };
            let freed_ns = freed.filter(|_| *at >= full_ns).map(|Reverse(end)| end.max(waited_ns));
            Turn { request, could_ns: request.intended_ns, freed_ns }
        })
        .collect()
}

/// Returns the share of a closed loop's slots' time in which they were empty between two requests; `None` if no slot had two.
pub(super) fn idle_share(turns: &[Turn]) -> Option<f64> {
    let (mut empty, mut busy) = (0.0, 0.0);
    for turn in turns {
        if let (Some(gap), Some(out)) = (turn.turnaround_ms(), turn.request.out.ns()) {
            empty += gap;
            busy += since_ms(out, turn.request.end_ns);
        }
    }
    (empty + busy > 0.0).then(|| empty / (empty + busy))
}
