//! The checks that one launch must pass before its numbers count, each with its cause and its class.
//!
//! | order | check | class | charged to |
//! | --- | --- | --- | --- |
//! | 1 | no more requests failed than allowed, and no probe | the most frequent class of the failures | by class |
//! | 2 | every request of the workload and every probe is recorded | `evidence-unreadable` | infrastructure |
//! | 3 | the times of each request are in order | `implausible` | the arm |
//! | 4 | the server's token counts are the client's | `token-count-mismatch` | the arm |
//! | 5 | answers are as long as asked | `output-length` | the arm |
//! | 6 | the window is long enough | `window-too-short` | infrastructure |
//! | 7 | in an open loop, requests were sent on time | `client-bound` | infrastructure |
//! | 8 | in an open loop, the server kept up | `over-saturated` | infrastructure |
//! | 9 | the metric didn't move with time | `drift` | infrastructure |
//!
//! All that are broken are reported; the first one is the launch's failure. A server that returns too little and claims
//! all of it breaks 4 and 5, and the claim weighs more.
//!
//! Of a load alone more is known: there 4 is also of the lengths of prompts, 7 has a finding for each bound of the client's audit that is broken, in any loop, and
//! 8 is also broken where the flow of requests shows it.

mod counts;
mod lengths;
mod steadiness;
mod timing;

use isobench_schema::block::BlockSpec;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::load_checks::{Audit, Flow};
use isobench_schema::measurement::{Measurement, MetricName};
use isobench_schema::plan::PlannedTask;
use isobench_schema::task::{Limits, MetricSpec};
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Arrival, Workload};

use crate::measure::{Sample, Samples, evidence_line};

/// The default shortest window in seconds. A plan that asks for less deviates.
pub const DEFAULT_MIN_WINDOW_S: f64 = 30.0;

/// Lines of evidence that a finding shows.
const EVIDENCE_LINES: usize = 5;

/// What a launch is checked against: the same for every arm.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchRules {
    /// Requests of the window.
    pub requests: u32,
    /// Probes before the window, and as many after it.
    pub probes: u32,
    /// Whether every answer must have exactly the length asked; else it must only not be longer.
    pub exact_length: bool,
    /// By which part the client's counts of tokens may differ from what they are compared with: 0 but where a tokenizer
    /// counts, which needn't give back the tokens that the server put out.
    pub count_tolerance: f64,
    /// When requests are sent.
    pub arrival: Arrival,
    /// Requests of the window that may fail.
    pub failed_requests: u32,
    /// The shortest window.
    pub min_window_s: Seconds,
    /// The primary metric.
    pub primary: MetricName,
    /// The smallest relative difference that matters.
    pub margin: f64,
}

impl LaunchRules {
    /// Returns the rules of a planned task.
    pub fn of_task(task: &PlannedTask) -> Self {
        Self::new(&task.workload, &task.limits, &task.metric, task.design.min_window_s)
    }

    /// Returns the rules of a block, which are those of its task.
    pub fn of_block(spec: &BlockSpec) -> Self {
        Self::new(&spec.workload, &spec.limits, &spec.metric, spec.min_window_s)
    }

    fn new(workload: &Workload, limits: &Limits, metric: &MetricSpec, min_window_s: Seconds) -> Self {
        Self {
            requests: workload.requests,
            probes: workload.probes.count,
            exact_length: workload.ignore_eos,
            count_tolerance: 0.0,
            arrival: workload.arrival.clone(),
            failed_requests: limits.failed_requests,
            min_window_s,
            primary: metric.primary,
            margin: metric.margin,
        }
    }
}

/// Returns every check that the launch breaks, the one that counts first.
pub(crate) fn findings(rules: &LaunchRules, samples: &Samples, measurement: &Measurement) -> Vec<Failure> {
    let client = timing::client(rules, samples).into_iter().collect();
    in_order(rules, samples, (measurement, None), (client, steadiness::saturation(rules, samples)))
}

/// Returns the same of a load alone. Where the client's audit is known, it stands for the check of its lateness, with a
/// finding for each broken bound; what is known of prompts' lengths comes beside that of answers; and the server is
/// over-saturated too if the flow of requests shows it.
pub(crate) fn load_findings(
    rules: &LaunchRules,
    samples: &Samples,
    measurement: &Measurement,
    ((audit, flow), prompts): ((Option<&Audit>, Option<&Flow>), Option<Failure>),
) -> Vec<Failure> {
    let client = match audit {
        Some(audit) => timing::client_of(audit),
        None => timing::client(rules, samples).into_iter().collect(),
    };
    let saturation = steadiness::saturation(rules, samples).or_else(|| steadiness::saturation_of(flow?));
    in_order(rules, samples, (measurement, prompts), (client, saturation))
}

fn in_order(
    rules: &LaunchRules,
    samples: &Samples,
    (measurement, prompts): (&Measurement, Option<Failure>),
    (client, saturation): (Vec<Failure>, Option<Failure>),
) -> Vec<Failure> {
    let before = [
        counts::failed_requests(rules, samples),
        counts::missing_records(rules, samples),
        timing::order(samples),
        lengths::claims(rules, samples),
        prompts,
        lengths::lengths(rules, samples),
        timing::window(rules, samples, measurement),
    ];
    let after = [saturation, steadiness::drift(rules, samples)];
    before.into_iter().flatten().chain(client).chain(after.into_iter().flatten()).collect()
}

fn failure(class: FailureClass, message: String) -> Failure {
    Failure::new(FailureStage::Validity, class, message)
}

/// Returns lines of evidence for the first requests that break a check.
fn lines<'a>(broken: &[&'a Sample], text: impl Fn(&'a Sample) -> String) -> Vec<EvidenceLine> {
    broken.iter().take(EVIDENCE_LINES).map(|sample| evidence_line(sample.line, &text(sample))).collect()
}

/// Returns the completed requests of the window.
fn completed(samples: &Samples) -> impl Iterator<Item = &Sample> {
    samples.window.iter().filter(|sample| sample.failure.is_none())
}

/// Returns the completed requests of the window and the completed probes.
fn answered(samples: &Samples) -> impl Iterator<Item = &Sample> {
    completed(samples).chain(samples.probes.iter().filter(|sample| sample.failure.is_none()))
}

#[cfg(test)]
mod tests;
