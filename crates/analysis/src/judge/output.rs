//! What only shows beside the baseline: wrong answers here, and what is beyond belief in [`super::belief`].
//!
//! The output check compares an arm's probes with the baseline's of the same block. Two answers agree as far as their
//! common start reaches, over the longer one's length; probes agree by the mean. The arm must agree with the baseline
//! as well as the baseline agrees with itself, less the task's margin. The baseline's agreement with itself is the
//! lower of two: before against after the window within its launches, and between its launches of different blocks (the
//! probes are the same in all). It is the lower one because an arm is a different launch too. Where the baseline has no
//! launch of the same block that counts, its nearest one stands in.
//!
//! An engine could recognise probes. So, where answers are greedy and the baseline agrees with itself exactly, an
//! agent's measured answers are compared with the baseline's, request by request within the block: those of requests that
//! the seed draws from the whole window in the same way, and all of them by whether they are equal. The baseline can't be
//! compared with itself in these, as each block has its own prompts, and batching may change answers that a lone probe
//! doesn't; the human arm is the control for that: if its drawn answers agree less than the margin allows, or if any of all
//! its answers isn't equal, batching changes answers in this engine, and an agent must only agree half as well as the
//! human arm does. One changed token makes two answers unequal, so that where there is no launch of the human arm to tell,
//! half as many equal ones as the margin asks suffice.

use isobench_schema::check::{BrokenCheck, Check, CheckUnit};
use isobench_schema::comparability::KeyField;
use isobench_schema::confirmation::Confirmations;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::ArmId;
use isobench_schema::outcome::evidence;
use isobench_schema::record::Phase;
use isobench_schema::task::MetricSpec;
use isobench_schema::workload::Workload;

use super::belief;
use super::blocks::{Block, Launch, is_confirmed};
use crate::measure::{Answer, LaunchDigest, agreement};
use crate::stats::mean;

/// Tokens that evidence shows of each side.
const EXCERPT: usize = 12;

/// What was asked of the launches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'t> {
    pub(super) metric: &'t MetricSpec,
    pub(super) workload: &'t Workload,
    pub(super) confirmations: &'t Confirmations,
}

/// Adds to each launch the failure that shows beside the baseline's launches. It comes before one that isn't charged to
/// the arm.
pub(super) fn check(asked: Asked<'_>, blocks: &mut [Block<'_>]) {
    let failures: Vec<Vec<Vec<Failure>>> = match Reference::of(blocks) {
        None => return,
        Some(reference) => blocks
            .iter()
            .map(|block| block.launches.iter().map(|launch| found(asked, &reference, block, launch)).collect())
            .collect(),
    };
    for (block, failures) in blocks.iter_mut().zip(failures) {
        for (launch, found) in block.launches.iter_mut().zip(failures) {
            let id = &launch.input.record.launch;
            let decides = found.iter().find(|failure| !is_confirmed(asked.confirmations, id, failure)).cloned();
            launch.failure = decides.or(launch.failure.take());
            launch.broken = [found, std::mem::take(&mut launch.broken)].concat();
        }
    }
}

/// The baseline's launches that count, and how well they agree with themselves.
struct Reference<'b, 'a> {
    launches: Vec<(u32, &'b Launch<'a>)>,
    itself: Option<f64>,
}

impl<'b, 'a> Reference<'b, 'a> {
    fn of(blocks: &'b [Block<'a>]) -> Option<Self> {
        let launches: Vec<(u32, &Launch<'a>)> = blocks
            .iter()
            .filter_map(|block| Some((block.block, block.launch(&ArmId::Baseline)?)))
            .filter(|(_, launch)| launch.valid().is_some())
            .collect();
        let digests: Vec<&LaunchDigest> = launches.iter().filter_map(|(_, launch)| launch.valid()).collect();
        let within: Vec<f64> =
            digests.iter().filter_map(|own| agreement(&own.probes_before, &own.probes_after)).collect();
        let across: Vec<f64> = digests
            .iter()
            .enumerate()
            .flat_map(|(place, one)| digests.iter().skip(place + 1).map(move |other| (one, other)))
            .filter_map(|(one, other)| agreement(&one.probes_before, &other.probes_before))
            .collect();
        let itself = mean(&within).into_iter().chain(mean(&across)).reduce(f64::min);
        (!launches.is_empty()).then_some(Self { launches, itself })
    }

    /// Returns the launch of the nearest block.
    fn nearest(&self, block: u32) -> Option<&'b Launch<'a>> {
        self.launches.iter().min_by_key(|(other, _)| other.abs_diff(block)).map(|(_, launch)| *launch)
    }
}

/// Returns what is found of a launch, the failure that counts first.
fn found(asked: Asked<'_>, reference: &Reference<'_, '_>, block: &Block<'_>, launch: &Launch<'_>) -> Vec<Failure> {
    let Some((digest, baseline)) = launch.uncharged().zip(reference.nearest(block.block)) else { return Vec::new() };
    let others = launch.input.record.key.differences(&baseline.input.record.key);
    if *launch.arm() == ArmId::Baseline || others.iter().any(|other| other.field != KeyField::Seed) {
        return Vec::new();
    }
    let wrong = wrong_answers(asked, reference.itself, (block, launch), (digest, baseline));
    wrong.into_iter().chain(belief::check(asked.metric, block, launch.arm())).collect()
}

fn wrong_answers(
    asked: Asked<'_>,
    itself: Option<f64>,
    (block, launch): (&Block<'_>, &Launch<'_>),
    (digest, baseline): (&LaunchDigest, &Launch<'_>),
) -> Option<Failure> {
    let probes = itself.and_then(|itself| probes(asked.metric.output_margin, itself, digest, baseline.valid()?));
    let exact = itself.is_some_and(|itself| itself >= 1.0) && asked.workload.temperature == 0.0;
    let measured = || if exact { measured(asked.metric.output_margin, block, launch.arm(), digest) } else { None };
    probes.or_else(measured)
}

fn probes(margin: f64, itself: f64, digest: &LaunchDigest, baseline: &LaunchDigest) -> Option<Failure> {
    let before = agreement(&baseline.probes_before, &digest.probes_before);
    let after = agreement(&baseline.probes_after, &digest.probes_after);
    let both: Vec<f64> = before.into_iter().chain(after).collect();
    let found = mean(&both)?;
    if found >= itself - margin {
        return None;
    }
    let evidence = first_difference(Phase::ProbeBefore, &baseline.probes_before, &digest.probes_before)
        .or_else(|| first_difference(Phase::ProbeAfter, &baseline.probes_after, &digest.probes_after));
    let message = format!(
        "the probes' answers agree with the baseline's by {:.1} %, and the baseline's with themselves by {:.1} % (the margin is {:.1} %)",
        100.0 * found,
        100.0 * itself,
        100.0 * margin
    );
    Some(mismatch(Check::ProbeAnswers.below(found, itself - margin, CheckUnit::Share), message, evidence))
}

fn measured(margin: f64, block: &Block<'_>, arm: &ArmId, digest: &LaunchDigest) -> Option<Failure> {
    match arm {
        ArmId::Agent(_) => {}
        ArmId::Baseline | ArmId::Human => return None,
    }
    let baseline = block.launch(&ArmId::Baseline)?.valid()?;
    if baseline.seed != digest.seed || baseline.workload != digest.workload {
        return None;
    }
    let human = block.launch(&ArmId::Human).and_then(Launch::valid);
    drawn_answers(margin, [baseline, digest], human).or_else(|| all_answers(margin, [baseline, digest], human))
}

/// Compares the answers that the seed drew from the window, by how far they agree.
fn drawn_answers(margin: f64, [baseline, digest]: [&LaunchDigest; 2], human: Option<&LaunchDigest>) -> Option<Failure> {
    let found = agreement(&baseline.answers, &digest.answers)?;
    let control = human.and_then(|human| agreement(&baseline.answers, &human.answers));
    let bound = control.filter(|control| *control < 1.0 - margin).map_or(1.0 - margin, |control| control / 2.0);
    let message = format!(
        "the answers of the window agree with the baseline's by {:.1} %, less than {:.1} %, though probes agree",
        100.0 * found,
        100.0 * bound
    );
    let check = Check::DrawnAnswers.below(found, bound, CheckUnit::Share);
    let evidence = || first_difference(Phase::Measure, &baseline.answers, &digest.answers);
    (found < bound).then(|| mismatch(check, message, evidence()))
}

/// Compares all answers of the window, by how many are equal.
fn all_answers(margin: f64, [baseline, digest]: [&LaunchDigest; 2], human: Option<&LaunchDigest>) -> Option<Failure> {
    let found = baseline.answer_digests.equal_share(&digest.answer_digests)?;
    let control = human.and_then(|human| baseline.answer_digests.equal_share(&human.answer_digests));
    let bound = if control.is_some_and(|control| control >= 1.0) {
        1.0 - margin
    } else {
        control.unwrap_or(1.0 - margin) / 2.0
    };
    if found >= bound {
        return None;
    }
    let message = format!(
        "{:.1} % of the window's answers are the baseline's, less than {:.1} %, though probes agree",
        100.0 * found,
        100.0 * bound
    );
    let unlike = || {
        let index = baseline.answer_digests.first_difference(&digest.answer_digests)?;
        let text = format!("{} {index}: the answer isn't the baseline's", Phase::Measure);
        Some(EvidenceLine::new(evidence::REQUESTS, None, &text))
    };
    let evidence = first_difference(Phase::Measure, &baseline.answers, &digest.answers).or_else(unlike);
    Some(mismatch(Check::AllAnswers.below(found, bound, CheckUnit::Share), message, evidence))
}

fn mismatch(check: BrokenCheck, message: String, evidence: Option<EvidenceLine>) -> Failure {
    let failure = Failure::new(FailureStage::Validity, FailureClass::OutputMismatch, message);
    failure.breaking(check).with_evidence(evidence)
}

/// Returns the place where the first answer differs, with the tokens from there on.
fn first_difference(phase: Phase, expected: &[Answer], found: &[Answer]) -> Option<EvidenceLine> {
    let pairs = expected.iter().filter_map(|answer| Some((answer, found.iter().find(|f| f.index == answer.index)?)));
    let (expected, found) = { pairs }.find(|(expected, found)| expected.agreement(found) < 1.0)?;
    let place = expected.common(found);
    let text = format!(
        "{phase} {}, from token {place} on: expected {}, got {}",
        found.index,
        expected.excerpt(place, EXCERPT),
        found.excerpt(place, EXCERPT)
    );
    Some(EvidenceLine::new(evidence::REQUESTS, Some(found.line), &text))
}
