//! The first half of the window against the second one.

use std::collections::BTreeMap;

use super::latencies::Table;
use super::numbers::in_order;
use super::{Sample, Taken, Window};
use crate::stats::{length, real};

/// Returns the numbers of both halves: latencies of the requests that were due in each, rates of what came in each. `None`
/// if one of them has no request.
pub(super) fn halves(taken: &Taken, window: Window) -> Option<[BTreeMap<String, f64>; 2]> {
    let middle_ns = window.start_ns.midpoint(window.end_ns);
    let requests = in_order(&taken.samples.window);
    let (first, second) = requests.split_at(requests.partition_point(|sample| sample.intended_ns < middle_ns));
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let earlier = Window { start_ns: window.start_ns, end_ns: middle_ns };
    // The last end belongs to the window.
    let later = Window { start_ns: middle_ns, end_ns: window.end_ns + 1 };
    let half = |part: &[&Sample], stretch: Window| numbers_of(taken, part, (stretch, ended_in(&requests, stretch)));
    Some([half(first, earlier), half(second, later)])
}

/// Returns how many requests ended in a stretch of time.
pub(super) fn ended_in(requests: &[&Sample], stretch: Window) -> usize {
    requests.iter().filter(|sample| (stretch.start_ns..stretch.end_ns).contains(&sample.end_ns)).count()
}

/// Returns the numbers of a part of the window: latencies of these requests, rates of what ended or came in the stretch.
pub(super) fn numbers_of(
    taken: &Taken,
    requests: &[&Sample],
    (stretch, ended): (Window, usize),
) -> BTreeMap<String, f64> {
    let mut table = Table::new(&[]);
    table.requests("ttft", requests, |sample| sample.ttft_ms);
    table.requests("tpot", requests, |sample| sample.tpot_ms);
    table.requests("e2el", requests, |sample| Some(sample.e2el_ms));
    let mut metrics = table.metrics;
    let (sum, count) =
        requests.iter().filter_map(|sample| sample.token_gaps()).fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    if count > 0 {
        metrics.insert("mean_itl_ms".to_owned(), sum / real(count));
    }
    let seconds = stretch.seconds();
    if seconds > 0.0 {
        metrics.insert("request_throughput".to_owned(), length(ended) / seconds);
        let tokens = taken.tokens.sum(stretch.start_ns, stretch.end_ns.saturating_add(999_999));
        if taken.samples.window.iter().any(|sample| sample.tokens > 0) {
            metrics.insert("output_throughput".to_owned(), real(tokens) / seconds);
        }
    }
    metrics
}
