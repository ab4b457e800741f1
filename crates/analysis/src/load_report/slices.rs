//! The load over time.

use isobench_schema::load_result::LoadSlice;

use super::in_flight::InFlight;
use super::{Taken, Window, completed};
use crate::stats::{Ordered, real, summarise};

/// A slice should hold at least so many requests on average, and there are at least so many slices.
const REQUESTS_IN_SLICE: usize = 4;
const FEWEST: usize = 10;

/// Returns how many slices a load of so many completed requests has at most.
pub(super) fn most(completed: usize) -> u64 {
    let most = (completed / REQUESTS_IN_SLICE).clamp(FEWEST, LoadSlice::MOST);
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// What falls into one slice.
#[derive(Debug, Default, Clone)]
struct Filled {
    completed: u64,
    failed: u64,
    ttft_ms: Vec<f64>,
}

/// Returns the window in slices. They are cut at multiples of their length since the clock's zero, so that the first and the
/// last one may be shorter.
pub(super) fn series(taken: &Taken, window: Window, in_flight: &InFlight) -> Vec<LoadSlice> {
    let samples = &taken.samples.window;
    if samples.is_empty() {
        return Vec::new();
    }
    let width = taken.slots.width_ns();
    let (first, last) = (window.start_ns / width, window.end_ns / width);
    let place = |at_ns: u64| usize::try_from((at_ns / width).clamp(first, last) - first).unwrap_or(0);
    let mut filled = vec![Filled::default(); place(window.end_ns) + 1];
    let mut fill = |at_ns: u64, change: &mut dyn FnMut(&mut Filled)| {
        if let Some(slice) = filled.get_mut(place(at_ns)) {
            change(slice);
        }
    };
    for sample in samples.iter().filter(|sample| sample.failure.is_some()) {
        fill(sample.end_ns, &mut |slice| slice.failed += 1);
    }
    for sample in completed(samples) {
        fill(sample.end_ns, &mut |slice| slice.completed += 1);
        fill(sample.intended_ns, &mut |slice| slice.ttft_ms.extend(sample.ttft_ms));
    }
    let stretch = |place: u64| Window {
        start_ns: (place * width).max(window.start_ns),
        end_ns: (place + 1).saturating_mul(width).min(window.end_ns),
    };
    let means = in_flight.means((first..=last).map(stretch));
    (first..=last)
        .zip(filled)
        .zip(means)
        .map(|((place, filled), in_flight)| slice(taken, window, (place, stretch(place)), (filled, in_flight)))
        .collect()
}

fn slice(
    taken: &Taken,
    window: Window,
    (place, stretch): (u64, Window),
    (filled, in_flight): (Filled, f64),
) -> LoadSlice {
    let length_s = stretch.seconds();
    // Token counts are to the millisecond, which a slice begins and ends at.
    let width = taken.slots.width_ns();
    let tokens = taken.tokens.sum(place * width, (place + 1).saturating_mul(width));
    let ttft = summarise(&Ordered::new(filled.ttft_ms), &[0.5, 0.99], |_, _| {});
    let ttft = ttft.map(|summary| summary.quantiles).unwrap_or_default();
    LoadSlice {
        t_s: real(stretch.start_ns - window.start_ns) / 1e9,
        length_s,
        completed: filled.completed,
        failed: filled.failed,
        in_flight,
        output_throughput: if length_s > 0.0 { real(tokens) / length_s } else { 0.0 },
        median_ttft_ms: ttft.first().copied(),
        p99_ttft_ms: ttft.get(1).copied(),
        median_itl_ms: taken.slots.token_quantile(place, 0.5),
        p99_itl_ms: taken.slots.token_quantile(place, 0.99),
    }
}
