//! Whether an arm is as fast as can be believed: against the baseline, and against what its devices allow.
//!
//! Both speak against the arm until a person has looked and confirms it. Slow-downs are believed.

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::ArmId;
use isobench_schema::measurement::MetricName;
use isobench_schema::task::{Ceiling, MetricSpec};

use super::blocks::{Block, Launch};

/// Returns what is beyond belief of an arm's launch.
pub(super) fn check(metric: &MetricSpec, block: &Block<'_>, arm: &ArmId) -> Vec<Failure> {
    let roofline = metric.ceiling.as_ref().and_then(|ceiling| roofline(ceiling, block, arm));
    ratio(metric, block, arm).into_iter().chain(roofline).collect()
}

/// Checks that the arm isn't so many times as fast as the baseline of its block that it must be a mistake.
fn ratio(metric: &MetricSpec, block: &Block<'_>, arm: &ArmId) -> Option<Failure> {
    let believed = metric.believed();
    let ratio = block.log_ratio(metric, arm, &ArmId::Baseline)?.exp();
    let message = format!(
        "it seems {ratio:.1} times as fast as the baseline, beyond the {believed} times that are believed without a person's word"
    );
    let check = Check::BelievableRatio.above(ratio, believed, CheckUnit::Times);
    let failure = || Failure::new(FailureStage::Validity, FailureClass::Implausible, message).breaking(check);
    (ratio > believed).then(failure)
}

/// Checks that the arm isn't faster than its devices could be. Where the baseline of the block is too, the ceiling is wrong,
/// and nobody is held to it.
fn roofline(ceiling: &Ceiling, block: &Block<'_>, arm: &ArmId) -> Option<Failure> {
    let of = |launch: &Launch<'_>| beyond(ceiling, launch);
    if block.launch(&ArmId::Baseline).and_then(of).is_some() {
        return None;
    }
    block.launch(arm).and_then(of)
}

/// Returns the failure of a launch that is beyond the ceiling in output tokens per second, or in the time of its steps.
fn beyond(ceiling: &Ceiling, launch: &Launch<'_>) -> Option<Failure> {
    let values = &launch.valid()?.measurement.values;
    let rate = values.get(&MetricName::OutputThroughput).copied().filter(|rate| *rate > ceiling.output_tok_per_s);
    let step = values.get(&MetricName::MeanTpotMs).copied().filter(|step| *step < ceiling.step_ms);
    let (check, told) = match (rate, step) {
        (Some(rate), _) => (
            Check::Roofline.above(rate, ceiling.output_tok_per_s, CheckUnit::TokensPerSecond),
            format!("it put out {rate:.0} tokens per second, where {:.0} are possible", ceiling.output_tok_per_s),
        ),
        (None, Some(step)) => (
            Check::Roofline.below(step, ceiling.step_ms, CheckUnit::Milliseconds),
            format!("it took {step:.3} ms for each token, where {:.3} ms are possible", ceiling.step_ms),
        ),
        (None, None) => return None,
    };
    let message = format!("{told}: {}", ceiling.because);
    Some(Failure::new(FailureStage::Validity, FailureClass::Implausible, message).breaking(check))
}
