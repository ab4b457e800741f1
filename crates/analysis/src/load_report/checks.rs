//! What is checked of a load beyond its numbers: the client, steadiness, and whether the server kept up.

use std::collections::BTreeMap;

use isobench_schema::load_checks::{Audit, Flow, FullLoop, Halves, LittlesLaw};
use isobench_schema::record::Phase;
use isobench_schema::workload::{Arrival, Workload};

use super::halves::{ended_in, numbers_of};
use super::numbers::in_order;
use super::{Sample, Taken, Window, completed};
use crate::load_checks::audit::{AuditInput, audit};
use crate::load_checks::steady::{Flight, LoopRequest, flow, full_loop, halves};
use crate::load_checks::sweep::littles_law;
use crate::stats::{length, real};

/// What the checks found.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) audit: Option<Audit>,
    pub(super) flow: Option<Flow>,
    pub(super) full_loop: Option<FullLoop>,
    pub(super) full_loop_metrics: BTreeMap<String, f64>,
    pub(super) littles_law: Option<LittlesLaw>,
    pub(super) halves_change: Option<Halves>,
    /// The stretch in which the load was whole.
    pub(super) whole: Window,
}

impl Checks {
    pub(super) fn of(taken: &Taken, workload: &Workload, window: Window) -> Self {
        let samples = &taken.samples.window;
        let full_loop = full(samples, &workload.arrival);
        let last_due = samples.iter().map(|sample| sample.intended_ns).max();
        let whole = match (&full_loop, last_due) {
            (Some(FullLoop::Full { from_ns, to_ns, .. }), _) => Window { start_ns: *from_ns, end_ns: *to_ns },
            (None, Some(end_ns)) if workload.arrival.is_open() => Window { end_ns, ..window },
            (Some(FullLoop::NeverFull { .. }) | None, _) => window,
        };
        Self {
            audit: self_audit(taken, workload),
            flow: last_due.filter(|_| workload.arrival.is_open()).map(|last_due| kept_up(samples, last_due)),
            full_loop_metrics: match &full_loop {
                Some(FullLoop::Full { .. }) => numbers_within(taken, whole),
                Some(FullLoop::NeverFull { .. }) | None => BTreeMap::new(),
            },
            full_loop,
            littles_law: Stretch::of(samples, whole).map(|stretch| stretch.littles_law()),
            halves_change: change(taken, &workload.arrival, whole),
            whole,
        }
    }
}

fn self_audit(taken: &Taken, workload: &Workload) -> Option<Audit> {
    let phase = taken.samples.audits.iter().find(|audit| audit.phase == Phase::Measure)?;
    Some(audit(&AuditInput {
        phase,
        requests: &taken.samples.window,
        arrival: &workload.arrival,
        max_in_flight: workload.max_in_flight,
        gaps: taken.slots.read_gaps(),
    }))
}

fn full(samples: &[Sample], arrival: &Arrival) -> Option<FullLoop> {
    let Arrival::Closed { concurrency, .. } = arrival else { return None };
    let request = |sample: &Sample| LoopRequest {
        began_ns: sample.start_ns(),
        ended_ns: sample.end_ns,
        output_tokens: sample.failure.is_none().then_some(sample.tokens),
    };
    let requests: Vec<LoopRequest> = samples.iter().map(request).collect();
    full_loop(&requests, *concurrency)
}

fn kept_up(samples: &[Sample], last_due_ns: u64) -> Flow {
    let flight = |sample: &Sample| Flight { due_ns: sample.intended_ns, ended_ns: Some(sample.end_ns) };
    flow(samples.iter().map(flight), last_due_ns)
}

/// Returns the numbers of a stretch: latencies of the requests that began and ended in it, rates of what ended or came in it.
fn numbers_within(taken: &Taken, stretch: Window) -> BTreeMap<String, f64> {
    let mut requests = in_order(&taken.samples.window);
    // What ended at its first moment made it begin; what ended at its last moment belongs to it.
    let ended =
        ended_in(&requests, Window { start_ns: stretch.start_ns + 1, end_ns: stretch.end_ns.saturating_add(1) });
    requests.retain(|sample| sample.start_ns() >= stretch.start_ns && sample.end_ns <= stretch.end_ns);
    if requests.is_empty() { BTreeMap::new() } else { numbers_of(taken, &requests, (stretch, ended)) }
}

/// What completed in a stretch of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) seconds: f64,
    /// Completed requests that ended in it, and their tokens.
    pub(super) ended: u64,
    pub(super) tokens: u64,
    /// Their mean time from when the client turned to them, in seconds.
    pub(super) mean_s: Option<f64>,
    /// Completed requests under way, on average. Those that fail aren't counted here, as they aren't in the others.
    pub(super) in_flight: f64,
}

impl Stretch {
    /// Returns `None` if the stretch has no length.
    pub(super) fn of(samples: &[Sample], stretch: Window) -> Option<Self> {
        let seconds = Some(stretch.seconds()).filter(|seconds| *seconds > 0.0)?;
        let (mut ended, mut tokens, mut time_s, mut under_way_s) = (0, 0, 0.0, 0.0);
        for sample in completed(samples) {
            let (began_ns, end_ns) = (sample.start_ns(), sample.end_ns);
            let overlap = end_ns.min(stretch.end_ns).saturating_sub(began_ns.max(stretch.start_ns));
            under_way_s += real(overlap) / 1e9;
            if end_ns > stretch.start_ns && end_ns <= stretch.end_ns {
                ended += 1;
                tokens += sample.tokens;
                time_s += real(end_ns.saturating_sub(began_ns)) / 1e9;
            }
        }
        let mean_s = (ended > 0).then(|| time_s / real(ended));
        Some(Self { seconds, ended, tokens, mean_s, in_flight: under_way_s / seconds })
    }

    fn littles_law(&self) -> LittlesLaw {
        littles_law(self.in_flight, self.ended, self.mean_s, self.seconds)
    }
}

/// Compares the halves of the main series over the slices that lie wholly in a stretch. Where all requests are sent at once,
/// nothing is steady by design.
fn change(taken: &Taken, arrival: &Arrival, stretch: Window) -> Option<Halves> {
    let width = taken.slots.width_ns();
    let (first, end) = (stretch.start_ns.div_ceil(width), stretch.end_ns / width);
    let number = usize::try_from(end.saturating_sub(first)).ok()?;
    let place = |at_ns: u64| usize::try_from((at_ns / width).checked_sub(first)?).ok();
    let samples = &taken.samples.window;
    let values: Vec<f64> = match arrival {
        Arrival::AllAtOnce => return None,
        Arrival::Closed { .. } if completed(samples).any(|sample| sample.tokens > 0) => {
            let per_s = |place: u64| real(taken.tokens.sum(place * width, (place + 1) * width)) * 1e9 / real(width);
            (first..end).map(per_s).collect()
        }
        Arrival::Closed { .. } => {
            let mut ended = vec![0_u64; number];
            for sample in completed(samples) {
                if let Some(count) = place(sample.end_ns).and_then(|place| ended.get_mut(place)) {
                    *count += 1;
                }
            }
            ended.into_iter().map(|count| real(count) * 1e9 / real(width)).collect()
        }
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. } => {
            let mut due: Vec<(f64, usize)> = vec![(0.0, 0); number];
            for sample in completed(samples) {
                if let Some((sum, count)) = place(sample.intended_ns).and_then(|place| due.get_mut(place)) {
                    *sum += sample.e2el_ms;
                    *count += 1;
                }
            }
            due.into_iter().filter(|(_, count)| *count > 0).map(|(sum, count)| sum / length(count)).collect()
        }
    };
    halves(&values)
}
