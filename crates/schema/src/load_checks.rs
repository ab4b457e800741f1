//! What is checked of a load beyond its numbers: the client itself, steadiness, saturation, and what two servers differ by.
//!
//! Shares are from 0 to 1, changes are parts of what they are a change of: 0.05 is 5 % more. What the data are too few for
//! is said to be too few, or is absent.

mod audit;
mod paired;
mod steady;
mod sweep;

pub use audit::{AgainstProcess, Audit, AuditBound, AuditVerdict, BrokenBound, Lag, Pacing, Spread, TtftBias};
pub use paired::{Difference, PairedChecks, PairedMetric};
pub use steady::{Flow, FlowState, FullLoop, Halves, RateBounds, SteadyState, WarmUp};
pub use sweep::{LittlesLaw, SearchEnd, StepState, SweepBy, SweepReport, SweepStep};

use serde::{Deserialize, Serialize};

/// Two numbers that another lies between.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The lower one.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

#[cfg(test)]
mod tests;
