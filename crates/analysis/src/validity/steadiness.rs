//! Whether the server was steady over the window, and whether it kept up.

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::{EvidenceLine, Failure};
use isobench_schema::load_checks::{Flow, FlowState};
use isobench_schema::measurement::MetricName;
use isobench_schema::outcome::evidence;
use isobench_schema::workload::Arrival;

use super::{LaunchRules, completed, failure};
use crate::measure::{Sample, Samples};
use crate::stats::{Trend, length, mann_kendall, mean, real};

/// A trend counts from this p on.
const SIGNIFICANT: f64 = 0.001;
/// Drift is a fitted change over the window of more than so many margins.
const MARGINS: f64 = 3.0;
/// The window is cut into at most this many slices of equal time.
const MOST_SLICES: usize = 20;
/// Below this many slices a trend isn't tested.
const FEWEST_SLICES: usize = 10;
/// A slice must hold at least this many requests on average.
const REQUESTS_IN_SLICE: usize = 4;
/// An open loop is saturated if less than this share of the offered rate was completed.
const COMPLETED_SHARE: f64 = 0.95;

/// What is followed over the window.
#[derive(Debug, Clone, Copy)]
enum Quantity {
    OutputTokens,
    Ttft,
    Tpot,
    E2el,
}

impl Quantity {
    fn of(metric: MetricName) -> Self {
        match metric {
            MetricName::RequestThroughput | MetricName::OutputThroughput | MetricName::TotalTokenThroughput => {
                Self::OutputTokens
            }
            MetricName::MeanTtftMs | MetricName::MedianTtftMs | MetricName::P90TtftMs | MetricName::P99TtftMs => {
                Self::Ttft
            }
            MetricName::MeanTpotMs
            | MetricName::MedianTpotMs
            | MetricName::P90TpotMs
            | MetricName::P99TpotMs
            | MetricName::MeanItlMs
            | MetricName::MedianItlMs
            | MetricName::P90ItlMs
            | MetricName::P99ItlMs => Self::Tpot,
            // What a script says of itself is followed by nothing, since its requests aren't seen.
            MetricName::MeanE2elMs
            | MetricName::MedianE2elMs
            | MetricName::P90E2elMs
            | MetricName::P99E2elMs
            | MetricName::AvgLatencyS
            | MetricName::P50LatencyS
            | MetricName::P90LatencyS
            | MetricName::P99LatencyS
            | MetricName::CostTimeS => Self::E2el,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::OutputTokens => "output throughput",
            Self::Ttft => "mean TTFT",
            Self::Tpot => "mean TPOT",
            Self::E2el => "mean E2EL",
        }
    }
}

/// Checks that the metric didn't move with time: a Mann–Kendall trend over slices of equal time with p < 0.001 *and* a
/// fitted change over the window of more than three margins.
///
/// For throughputs a slice has the output tokens of the requests that ended in it, for latencies the mean over the
/// requests that were due in it (those that end early in a window are the quick ones, so that ends would show a trend
/// where there is none). Where all requests are sent at once nothing is steady by design, and with under 10 slices
/// nothing is tested.
pub(super) fn drift(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    // Where the arrivals themselves change with time, so do the numbers.
    if matches!(rules.arrival, Arrival::Stages { .. } | Arrival::Trace { .. }) {
        return None;
    }
    let quantity = Quantity::of(rules.primary);
    let slices = slices(rules, samples, quantity)?;
    let trend = mann_kendall(&slices)?;
    let message = format!(
        "the {} changed by {:+.1} % over the window (p = {:.1e}), more than three times the margin of {:.1} %",
        quantity.name(),
        100.0 * trend.change,
        trend.p,
        100.0 * rules.margin
    );
    let drifts = trend.p < SIGNIFICANT && trend.change.abs() > MARGINS * rules.margin;
    let check = Check::NoDrift.above(trend.change.abs(), MARGINS * rules.margin, CheckUnit::Share);
    drifts.then(|| failure(check, message).with_evidence([series(&slices)]).transient())
}

/// Checks that the server kept up with an open loop: over-saturated is one whose latency grows with time (p < 0.001)
/// *and* that completed less than 95 % of the offered rate, both rates as they came about.
///
/// The launch would only repeat it, so the block isn't replaced.
pub(super) fn saturation(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    if !rules.arrival.is_open() {
        return None;
    }
    let slices = slices(rules, samples, Quantity::E2el)?;
    let Trend { p, change } = mann_kendall(&slices)?;
    let done: Vec<&Sample> = completed(samples).collect();
    let start = samples.window.iter().map(|sample| sample.intended_ns).min()?;
    let last_due = samples.window.iter().map(|sample| sample.intended_ns).max()?;
    let last_end = done.iter().map(|sample| sample.end_ns).max()?;
    // n requests have n − 1 gaps between their intended times.
    let offered = (length(samples.window.len()) - 1.0) / real(last_due - start);
    let achieved = length(done.len()) / real(last_end.saturating_sub(start));
    let share = achieved / offered;
    let message = format!(
        "the latency grew by {:.0} % over the window (p = {p:.1e}) and {:.1} % of the offered rate were completed; a \
         lower rate in `workload.arrival` lets the server keep up",
        100.0 * change,
        100.0 * share
    );
    let saturated = p < SIGNIFICANT && change > 0.0 && share < COMPLETED_SHARE;
    let check = Check::ServerKeepsUp.below(share, COMPLETED_SHARE, CheckUnit::Share);
    saturated.then(|| failure(check, message).with_evidence([series(&slices)]))
}

/// Returns the finding that the flow of requests of an open loop makes.
pub(super) fn saturation_of(flow: &Flow) -> Option<Failure> {
    let Flow { state, due, ended, .. } = *flow;
    let message = format!(
        "{ended} requests ended in the later half of the time in which {due} were due, more and more of them were under way, \
         and later ones took longer than earlier ones"
    );
    (state == FlowState::OverSaturated).then(|| failure(Check::ServerKeepsUp.into(), message))
}

fn series(slices: &[f64]) -> EvidenceLine {
    let values: Vec<String> = slices.iter().map(|value| format!("{value:.3}")).collect();
    EvidenceLine::new(evidence::REQUESTS, None, &format!("by slice of the window: {}", values.join(" ")))
}

/// Returns the quantity in slices of equal time, or `None` if there are too few requests for ten of them.
fn slices(rules: &LaunchRules, samples: &Samples, quantity: Quantity) -> Option<Vec<f64>> {
    // In a closed loop requests may run in step, so a slice must hold a whole round of them.
    let in_slice = match &rules.arrival {
        Arrival::AllAtOnce => return None,
        Arrival::Closed { concurrency, .. } => usize::try_from(*concurrency).ok()?.max(REQUESTS_IN_SLICE),
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. } => REQUESTS_IN_SLICE,
    };
    let count = (completed(samples).count() / in_slice).min(MOST_SLICES);
    if count < FEWEST_SLICES {
        return None;
    }
    let at = |sample: &Sample| match quantity {
        Quantity::OutputTokens => sample.end_ns,
        Quantity::Ttft | Quantity::Tpot | Quantity::E2el => sample.intended_ns,
    };
    let start = samples.window.iter().map(|sample| sample.intended_ns).min()?;
    let span = completed(samples).map(at).max()?.checked_sub(start).filter(|span| *span > 0)?;
    let mut slices: Vec<Vec<f64>> = vec![Vec::new(); count];
    for sample in completed(samples) {
        let value = match quantity {
            Quantity::OutputTokens => Some(real(sample.tokens)),
            Quantity::Ttft => sample.ttft_ms,
            Quantity::Tpot => sample.tpot_ms,
            Quantity::E2el => Some(sample.e2el_ms),
        };
        let slice = slices.get_mut(place(at(sample).saturating_sub(start), span, count));
        if let (Some(slice), Some(value)) = (slice, value) {
            slice.push(value);
        }
    }
    Some(match quantity {
        // The sum of no numbers at all is -0.
        Quantity::OutputTokens => slices.iter().map(|tokens| 0.0 + tokens.iter().sum::<f64>()).collect(),
        Quantity::Ttft | Quantity::Tpot | Quantity::E2el => slices.iter().filter_map(|slice| mean(slice)).collect(),
    })
}

/// Returns the slice that a moment falls into; the last moment belongs to the last slice.
fn place(moment: u64, span: u64, count: usize) -> usize {
    let slices = u128::try_from(count).unwrap_or(u128::MAX);
    let place = u128::from(moment) * slices / u128::from(span.max(1));
    usize::try_from(place).unwrap_or(usize::MAX).min(count.saturating_sub(1))
}
