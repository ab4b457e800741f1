//! A search for the load at which a server saturates.

use serde::{Deserialize, Serialize};

use super::Bounds;
use crate::failure::spelt_enum;

spelt_enum!(
    /// What is raised from step to step.
    SweepBy {
        /// Requests under way in a closed loop.
        Concurrency = "concurrency",
        /// Requests per second of an open loop.
        Rate = "rate",
    }
);

spelt_enum!(
    /// What one step shows.
    StepState {
        /// The level is sustained.
        Sustained = "sustained",
        /// The queue grew, or less was completed than offered.
        OverSaturated = "over-saturated",
        /// Fewer requests met the objective than asked.
        ObjectiveMissed = "objective-missed",
        /// The client was the bottleneck: it says nothing of the server.
        ClientBound = "client-bound",
        /// Too few requests ended to say anything.
        TooFew = "too-few",
    }
);

/// Little's law: requests in flight are arrival rate times latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LittlesLaw {
    /// Too few requests, or a window too short for its latency.
    TooFew,
    /// It was checked.
    Checked {
        /// Rate times mean latency over the mean in flight: near 1.
        ratio: f64,
        /// Whether that is within the tolerance. If not, the step was not steady, or its numbers don't belong together.
        holds: bool,
    },
}

/// One step of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepStep {
    /// The level: requests under way, or requests per second.
    pub level: f64,
    /// What it shows.
    pub state: StepState,
    /// Completed requests per second of the stretch in which the load was whole: ramp and drain are left out.
    pub completed_per_s: f64,
    /// Output tokens of completed requests per second of the same stretch, where tokens are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tok_per_s: Option<f64>,
    /// The mean time to first token of all completed requests of the window, ramp and drain included, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ttft_ms: Option<f64>,
    /// The same of the time per output token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_tpot_ms: Option<f64>,
    /// The self-check.
    pub littles_law: LittlesLaw,
}

spelt_enum!(
    /// Why a search ended.
    SearchEnd {
        /// The levels were given beforehand.
        Given = "given",
        /// The answer is as fine as asked.
        Refined = "refined",
        /// The highest level allowed is still sustained, and still gains: the server saturates above it.
        HighestLevel = "highest-level",
        /// Not even the lowest level allowed is sustained.
        LowestLevel = "lowest-level",
        /// The most steps allowed were run.
        MostSteps = "most-steps",
        /// The client became the bottleneck below the server's limit.
        ClientBound = "client-bound",
        /// A step had too few requests to go on.
        TooFew = "too-few",
        /// The load was stopped before its end; the level under way doesn't count.
        Stopped = "stopped",
    }
);

/// What a search found. It is of one launch: another may saturate elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepReport {
    /// What was raised.
    pub by: SweepBy,
    /// Why it ended.
    pub end: SearchEnd,
    /// The highest level sustained below the lowest one that wasn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_sustained: Option<f64>,
    /// The lowest level that wasn't sustained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_not_sustained: Option<f64>,
    /// The knee lies between these levels: the lowest one whose throughput was at least 95 % of the highest seen in a valid
    /// step, and the next lower one that was run (the same one, if none was). Absent where the throughput still gained at the
    /// highest level run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Bounds>,
    /// The highest throughput of a valid step, in output tokens per second where tokens are counted, else in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_per_s: Option<f64>,
    /// Every step, by level.
    pub steps: Vec<SweepStep>,
}
