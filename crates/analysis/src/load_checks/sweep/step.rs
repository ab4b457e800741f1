//! What one step of a sweep shows.

use isobench_schema::load_checks::{FlowState, LittlesLaw, StepState, SweepBy, SweepStep};

use crate::stats::real;

/// With fewer completed requests a step says nothing.
const FEWEST_COMPLETED: u64 = 20;
/// The window must hold so many mean latencies, or its edges weigh too much for Little's law.
const LATENCIES_IN_WINDOW: f64 = 10.0;
/// How far Little's law may be off: half a latency of ten at the edge that starts empty.
const TOLERANCE: f64 = 0.05;

/// What one step gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepResult {
    /// The level that was run.
    pub level: f64,
    /// The length of its window in seconds.
    pub seconds: f64,
    /// Completed requests of the window.
    pub completed: u64,
    /// Their output tokens, where tokens are counted.
    pub output_tokens: Option<u64>,
    /// Their mean latency in seconds.
    pub mean_latency_s: Option<f64>,
    /// The mean time to first token and per output token of all completed requests, in milliseconds.
    pub mean_ttft_ms: Option<f64>,
    /// See `mean_ttft_ms`.
    pub mean_tpot_ms: Option<f64>,
    /// Requests under way, on average over the window.
    pub mean_in_flight: f64,
    /// The share of requests that met the objective, where there is one; a failed one doesn't.
    pub objective_share: Option<f64>,
    /// In an open loop: whether the server kept up.
    pub flow: Option<FlowState>,
    /// Whether the client was the bottleneck.
    pub is_client_bound: bool,
}

impl StepResult {
    /// Returns what the step shows; with an objective, so large a share of its requests must meet it.
    pub(super) fn step(&self, by: SweepBy, objective_share: Option<f64>) -> SweepStep {
        let per_s = |count: u64| if self.seconds > 0.0 { real(count) / self.seconds } else { 0.0 };
        SweepStep {
            level: self.level,
            state: self.state(by, objective_share),
            completed_per_s: per_s(self.completed),
            output_tok_per_s: self.output_tokens.map(per_s),
            mean_ttft_ms: self.mean_ttft_ms,
            mean_tpot_ms: self.mean_tpot_ms,
            littles_law: littles_law(self.mean_in_flight, self.completed, self.mean_latency_s, self.seconds),
        }
    }

    fn state(&self, by: SweepBy, objective_share: Option<f64>) -> StepState {
        // A queue that grew was shown by its own test, however few requests ended.
        let flow = match by {
            SweepBy::Concurrency => FlowState::KeepsUp,
            SweepBy::Rate => self.flow.unwrap_or(FlowState::TooFew),
        };
        let is_met = objective_share.map(|asked| self.objective_share.map(|share| share >= asked));
        match (self.is_client_bound, flow, is_met) {
            (true, _, _) => StepState::ClientBound,
            (false, FlowState::OverSaturated, _) => StepState::OverSaturated,
            (false, FlowState::TooFew, _) | (false, FlowState::KeepsUp, Some(None)) => StepState::TooFew,
            (false, FlowState::KeepsUp, _) if self.completed < FEWEST_COMPLETED => StepState::TooFew,
            (false, FlowState::KeepsUp, Some(Some(false))) => StepState::ObjectiveMissed,
            (false, FlowState::KeepsUp, None | Some(Some(true))) => StepState::Sustained,
        }
    }
}

/// Checks Little's law, L = λW (Little 1961), which holds for whatever is steady: the mean number under way is the rate of
/// those completed times their mean latency. Numbers that break it by over 5 % aren't of one steady server.
pub fn littles_law(mean_in_flight: f64, completed: u64, mean_latency_s: Option<f64>, seconds: f64) -> LittlesLaw {
    match mean_latency_s {
        Some(latency)
            if completed >= FEWEST_COMPLETED
                && mean_in_flight > 0.0
                && latency > 0.0
                && seconds >= LATENCIES_IN_WINDOW * latency =>
        {
            let ratio = real(completed) / seconds * latency / mean_in_flight;
            LittlesLaw::Checked { ratio, holds: (ratio - 1.0).abs() <= TOLERANCE }
        }
        Some(_) | None => LittlesLaw::TooFew,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_rate_times_latency() {
        assert_eq!(littles_law(8.0, 240, Some(1.0), 30.0), LittlesLaw::Checked { ratio: 1.0, holds: true });
        assert_eq!(littles_law(10.0, 240, Some(1.0), 30.0), LittlesLaw::Checked { ratio: 0.8, holds: false });
        assert_eq!(littles_law(8.0, 240, Some(4.0), 30.0), LittlesLaw::TooFew);
        assert_eq!(littles_law(8.0, 19, Some(1.0), 30.0), LittlesLaw::TooFew);
        assert_eq!(littles_law(8.0, 240, None, 30.0), LittlesLaw::TooFew);
    }
}
