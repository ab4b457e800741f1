//! The checks that one launch must pass before its numbers count, each with its cause and its class.
//!
//! Their order is that in which they weigh; what each of them says is told by [`isobench_schema::check::Check`]:
//!
//! 1. `requests-succeed` and `probes-succeed`, `warm-up-finished`, `all-recorded`
//! 2. `times-in-order`, `numbers-agree`, `littles-law`
//! 3. `token-counts`, `prompt-counts`, `answer-lengths`
//! 4. `window-length`, `drained`
//! 5. `client-lateness`, `client-lag`
//! 6. `server-keeps-up`, `no-drift`
//!
//! All that are broken are reported; the first one is the launch's failure. A server that returns too little and claims
//! all of it breaks `token-counts` and `answer-lengths`, and the claim weighs more.
//!
//! Of a load alone more is known: there `prompt-counts` is also of prompts that a template may lengthen, the client has a finding
//! for each bound of its audit that is broken, in any loop, and `server-keeps-up` is also broken where the flow of requests shows
//! it. What concerns phases and identities is a launch's.

mod agreement;
mod counts;
mod lengths;
pub(crate) mod phases;
mod steadiness;
mod timing;

use isobench_schema::block::BlockSpec;
use isobench_schema::check::BrokenCheck;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::load_checks::{Audit, Flow};
use isobench_schema::measurement::{Measurement, MetricName};
use isobench_schema::plan::PlannedTask;
use isobench_schema::task::{Limits, MetricSpec};
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Api, Arrival, Prompts, TokenCounter, Workload};

use crate::measure::{Sample, Samples, evidence_line};
use crate::script::ScriptRules;

/// The default shortest window in seconds. A plan that asks for less deviates.
pub const DEFAULT_MIN_WINDOW_S: f64 = 30.0;

/// By how much counts of a tokenizer may differ from the server's: text that is tokenised again needn't give the same
/// tokens.
pub const TOKENIZER_TOLERANCE: f64 = 0.02;

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
    /// How the server's counts of prompt tokens compare with the client's.
    pub prompt_counts: PromptCounts,
    /// What a benchmark script was asked, if one measures instead of the client.
    pub script: Option<ScriptRules>,
}

/// How the server's counts of prompt tokens compare with the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptCounts {
    /// They are equal: prompts are sent as token ids.
    Equal,
    /// Nothing is known: the server makes tokens of words, and may add some.
    Unknown,
}

impl PromptCounts {
    fn of(workload: &Workload) -> Self {
        match (&workload.prompts, workload.api) {
            (Prompts::TokenIds { .. }, Api::Completions) => Self::Equal,
            (Prompts::TokenIds { .. } | Prompts::Words { .. } | Prompts::Dataset { .. }, _) => Self::Unknown,
        }
    }
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
            count_tolerance: if workload.counter == TokenCounter::Tokenizer { TOKENIZER_TOLERANCE } else { 0.0 },
            arrival: workload.arrival.clone(),
            failed_requests: limits.failed_requests,
            min_window_s,
            primary: metric.primary,
            margin: metric.margin,
            prompt_counts: PromptCounts::of(workload),
            script: ScriptRules::of(workload),
        }
    }
}

/// Returns every check that the launch breaks, the one that counts first.
pub(crate) fn findings(rules: &LaunchRules, samples: &Samples, measurement: &Measurement) -> Vec<Failure> {
    let client = timing::client(rules, samples).into_iter().chain(timing::lag(samples)).collect();
    let own = Own {
        warm_up: phases::warm_up(rules, samples),
        identities: [agreement::throughputs(samples, measurement), agreement::littles_law(rules, samples, measurement)],
        drained: phases::drained(samples),
        prompts: None,
    };
    in_order(rules, samples, measurement, (client, steadiness::saturation(rules, samples), own))
}

/// What is only checked of a launch, not of a load alone.
#[derive(Debug, Default)]
struct Own {
    warm_up: Option<Failure>,
    identities: [Option<Failure>; 2],
    drained: Option<Failure>,
    /// Of a load alone: what its prompts' lengths show beside the strict rule.
    prompts: Option<Failure>,
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
    in_order(rules, samples, measurement, (client, saturation, Own { prompts, ..Own::default() }))
}

fn in_order(
    rules: &LaunchRules,
    samples: &Samples,
    measurement: &Measurement,
    (client, saturation, own): (Vec<Failure>, Option<Failure>, Own),
) -> Vec<Failure> {
    let [numbers, little] = own.identities;
    let before = [
        counts::failed_requests(rules, samples),
        own.warm_up,
        counts::missing_records(rules, samples),
        timing::order(samples),
        numbers,
        little,
        lengths::claims(rules, samples),
        own.prompts.or_else(|| lengths::prompts(rules, samples)),
        lengths::lengths(rules, samples),
        timing::window(rules, samples, measurement),
        own.drained,
    ];
    let after = [saturation, steadiness::drift(rules, samples)];
    before.into_iter().flatten().chain(client).chain(after.into_iter().flatten()).collect()
}

/// Returns the failure that breaks a check with a class of its own.
fn failure(check: BrokenCheck, message: String) -> Failure {
    let class = check.name.class().unwrap_or(FailureClass::Implausible);
    Failure::new(FailureStage::Validity, class, message).breaking(check)
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
