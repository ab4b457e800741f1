//! The stretch of a closed loop in which every slot had a request.

use isobench_schema::load_checks::{Bounds, FullLoop, RateBounds};

use crate::stats::real;

const NS_PER_S: f64 = 1e9;

/// A request of a closed loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopRequest {
    /// When its slot turned to it, in nanoseconds of the clock.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Tokens of its answer; `None` if it has no whole one.
    pub output_tokens: Option<u64>,
}

/// Returns the stretch from when as many requests were under way as asked, first, until the first one that ended after the
/// last request had begun, whose slot found no more work. `None` without requests.
pub fn full_loop(requests: &[LoopRequest], concurrency: u32) -> Option<FullLoop> {
    let began_ns = requests.iter().map(|request| request.began_ns).min()?;
    let ended_ns = requests.iter().map(|request| request.ended_ns).max()?;
    let last_began_ns = requests.iter().map(|request| request.began_ns).max()?;
    let (from_ns, most) = first_full(requests, concurrency);
    let to_ns = requests.iter().map(|request| request.ended_ns).filter(|ended| *ended > last_began_ns).min();
    let (Some(from_ns), Some(to_ns)) = (from_ns, to_ns) else {
        return Some(FullLoop::NeverFull { most, concurrency });
    };
    let length_ns = to_ns.checked_sub(from_ns).filter(|length| *length > 0)?;
    let is_whole = |request: &LoopRequest| request.began_ns >= from_ns && request.ended_ns <= to_ns;
    let is_ended = |request: &LoopRequest| request.ended_ns > from_ns && request.ended_ns <= to_ns;
    let is_touched = |request: &LoopRequest| request.began_ns < to_ns && request.ended_ns > from_ns;
    let done = |is: &dyn Fn(&LoopRequest) -> bool| {
        requests
            .iter()
            .filter(|request| is(request))
            .filter_map(|request| request.output_tokens)
            .fold((0_u64, 0_u64), |(count, tokens), more| (count + 1, tokens.saturating_add(more)))
    };
    let (whole, ended, touched) = (done(&is_whole), done(&is_ended), done(&is_touched));
    let per_s = |count: u64| real(count) * NS_PER_S / real(length_ns);
    let overlap = |request: &LoopRequest| request.ended_ns.min(to_ns).saturating_sub(request.began_ns.max(from_ns));
    let rate = |whole: u64, ended: u64, touched: u64| RateBounds {
        ended_per_s: per_s(ended),
        bounds: Bounds { low: per_s(whole), high: per_s(touched) },
    };
    Some(FullLoop::Full {
        from_ns,
        to_ns,
        share: real(length_ns) / real(ended_ns - began_ns),
        whole: whole.0,
        ended: ended.0,
        filled: requests.iter().map(|request| real(overlap(request))).sum::<f64>()
            / (real(length_ns) * f64::from(concurrency)),
        requests: rate(whole.0, ended.0, touched.0),
        output_tokens: rate(whole.1, ended.1, touched.1),
    })
}

/// Returns when as many as asked were under way first, and the most that ever were.
fn first_full(requests: &[LoopRequest], concurrency: u32) -> (Option<u64>, u32) {
    // At one moment an end comes before a beginning: the slot is the same.
    let mut events: Vec<(u64, bool)> =
        requests.iter().flat_map(|request| [(request.began_ns, true), (request.ended_ns, false)]).collect();
    events.sort_unstable();
    let (mut under_way, mut most, mut full) = (0_u32, 0, None);
    for (at, begins) in events {
        under_way = if begins { under_way.saturating_add(1) } else { under_way.saturating_sub(1) };
        most = most.max(under_way);
        if under_way >= concurrency && full.is_none() {
            full = Some(at);
        }
    }
    (full, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(began_ns: u64, ended_ns: u64) -> LoopRequest {
        LoopRequest { began_ns, ended_ns, output_tokens: Some(10) }
    }

    #[test]
    fn the_loop_is_full_between_the_ramp_and_the_first_idle_slot() {
        // Two slots, the second joins at 50; the last request begins at 400, and the other slot is idle from 450 on.
        let s = |seconds: u64| seconds * 1_000_000_000;
        let all: Vec<LoopRequest> = (0..5_u64)
            .map(|round| request(s(round * 100), s(round * 100 + 100)))
            .chain((0..4_u64).map(|round| request(s(round * 100 + 50), s(round * 100 + 150))))
            .collect();
        let Some(FullLoop::Full { from_ns, to_ns, share, whole, ended, filled, requests, output_tokens }) =
            full_loop(&all, 2)
        else {
            panic!("never full");
        };
        assert_eq!((from_ns, to_ns, whole, ended), (s(50), s(450), 7, 8));
        assert!((share - 0.8).abs() < 1e-12 && (filled - 1.0).abs() < 1e-12, "{share} {filled}");
        assert!((requests.ended_per_s - 0.02).abs() < 1e-12, "{requests:?}");
        assert!(
            (requests.bounds.low - 7.0 / 400.0).abs() < 1e-12 && (requests.bounds.high - 9.0 / 400.0).abs() < 1e-12
        );
        assert!((output_tokens.ended_per_s - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_failed_request_fills_its_slot_and_completes_nothing() {
        let mut all: Vec<LoopRequest> = (0..4_u64).map(|round| request(round * 10, round * 10 + 10)).collect();
        all[1].output_tokens = None;
        let Some(FullLoop::Full { ended, filled, .. }) = full_loop(&all, 1) else { panic!("never full") };
        assert_eq!((ended, filled), (3, 1.0));
    }

    #[test]
    fn a_loop_that_never_filled_has_no_stretch() {
        let found = full_loop(&[request(0, 10), request(5, 15)], 3);
        assert_eq!(found, Some(FullLoop::NeverFull { most: 2, concurrency: 3 }));
        assert_eq!(full_loop(&[], 3), None);
    }
}
