//! What each arm did, and whether it failed by itself.

use std::collections::BTreeMap;

use isobench_schema::cause::Cause;
use isobench_schema::failure::{Charge, Failure, FailureClass};
use isobench_schema::ids::ArmId;
use isobench_schema::measurement::MetricName;
use isobench_schema::plan::PlannedTask;
use isobench_schema::verdict::{ArmJudgement, BlockValue, CountedFailure};

use super::blocks::{Block, TaskBlocks};
use crate::block::common_class;
use crate::classify::arms::{ArmOutcome, ArmRole, blame};
use crate::stats::mean;

/// An arm failed by itself from this many blocks on.
const BLOCKS: u32 = 2;
/// Or from one block in so many on.
const ONE_IN: u32 = 10;

/// An arm's own failure that decides its contrasts.
#[derive(Debug, Clone)]
pub(super) struct OwnFailure {
    /// The first failure of the most frequent class.
    pub(super) failure: Failure,
    /// In how many blocks the arm failed by itself.
    pub(super) failed: u32,
    /// Of how many that were complete.
    pub(super) blocks: u32,
}

/// Every arm of a task.
#[derive(Debug)]
pub(super) struct Arms {
    pub(super) judgements: Vec<ArmJudgement>,
    own: BTreeMap<ArmId, OwnFailure>,
}

impl Arms {
    pub(super) fn of(task: &PlannedTask, blocks: &TaskBlocks<'_>) -> Self {
        let mut judgements: Vec<ArmJudgement> =
            task.arms.iter().map(|planned| judgement(task, blocks, &planned.arm)).collect();
        say_whom_causes_speak_against(&mut judgements);
        let own = task
            .arms
            .iter()
            .filter_map(|planned| Some((planned.arm.clone(), own_failure(task, blocks, &planned.arm)?)));
        Self { own: own.collect(), judgements }
    }

    /// Returns the failure for which the arm answers, if it failed by itself.
    pub(super) fn own(&self, arm: &ArmId) -> Option<&OwnFailure> {
        self.own.get(arm)
    }

    /// Returns what the arm did.
    pub(super) fn judgement(&self, arm: &ArmId) -> Option<&ArmJudgement> {
        self.judgements.iter().find(|judgement| judgement.arm == *arm)
    }
}

fn judgement(task: &PlannedTask, blocks: &TaskBlocks<'_>, arm: &ArmId) -> ArmJudgement {
    let launches = || blocks.blocks.iter().filter_map(|block| Some((block.block, block.launch(arm)?)));
    let mut values = Vec::new();
    let mut metrics: BTreeMap<MetricName, Vec<f64>> = BTreeMap::new();
    let (mut failures, mut incidents) = (Counts::default(), Counts::default());
    let (mut all, mut valid) = (0, 0);
    for (block, launch) in launches() {
        all += 1;
        failures.add(launch.failure.iter().map(|failure| (failure, launch.input.cause.as_ref())));
        incidents.add(launch.input.record.incidents.iter().map(|incident| (incident, None)));
        let Some(digest) = launch.valid() else { continue };
        valid += 1;
        let position = launch.input.record.position;
        values.extend(launch.value(&task.metric).map(|value| BlockValue { block, position, value }));
        for (name, value) in &digest.measurement.values {
            metrics.entry(*name).or_default().push(*value);
        }
    }
    ArmJudgement {
        arm: arm.clone(),
        launches: all,
        valid,
        values,
        means: metrics.iter().filter_map(|(name, values)| Some((*name, mean(values)?))).collect(),
        failures: failures.sorted(),
        incidents: incidents.sorted(),
    }
}

/// Fills in which arms have the cause of each arm's most frequent failure, and whom that speaks against. Logs are claims: no
/// verdict rests on it.
fn say_whom_causes_speak_against(judgements: &mut [ArmJudgement]) {
    let outcome = |arm: &ArmJudgement| ArmOutcome {
        arm: arm.arm.clone(),
        role: if arm.arm == ArmId::Baseline { ArmRole::Control } else { ArmRole::Changed },
        cause: arm.failures.iter().find_map(|counted| counted.cause.clone()),
    };
    let mut outcomes: Vec<ArmOutcome> = judgements.iter().map(outcome).collect();
    blame(&mut outcomes);
    for (judgement, outcome) in judgements.iter_mut().zip(outcomes) {
        let Some(named) = outcome.cause else { continue };
        for cause in judgement.failures.iter_mut().filter_map(|counted| counted.cause.as_mut()) {
            if cause.signature == named.signature {
                cause.arms.clone_from(&named.arms);
                cause.blame = named.blame;
            }
        }
    }
}

/// Returns the arm's own failure if it hit at least two blocks, or at least 10 % of them. Before the first look is
/// complete, the share is of that look's blocks.
fn own_failure(task: &PlannedTask, blocks: &TaskBlocks<'_>, arm: &ArmId) -> Option<OwnFailure> {
    let mut counts = Counts::default();
    let mut complete = 0;
    for block in &blocks.blocks {
        let Some(launch) = block.launch(arm) else { continue };
        complete += 1;
        let common = common_to_all(block);
        let own = |failure: &&Failure| failure.class.charge() == Charge::Arm && common != Some(failure.class);
        counts.add(launch.failure.iter().filter(own).map(|failure| (failure, None)));
    }
    let failed: u32 = counts.0.values().map(|counted| counted.launches).sum();
    let first_look = task.design.looks.first().map_or(0, |look| look.blocks);
    let share_of = u32::max(complete, first_look);
    let decides = failed >= BLOCKS || (failed > 0 && failed.saturating_mul(ONE_IN) >= share_of);
    let most = counts.sorted().into_iter().next().filter(|_| decides)?;
    Some(OwnFailure { failure: most.failure, failed, blocks: complete })
}

/// Returns the class by which every arm of the block failed: infrastructure, with the baseline as control.
fn common_to_all(block: &Block<'_>) -> Option<FailureClass> {
    let failures: Vec<Option<Failure>> = block.launches.iter().map(|launch| launch.failure.clone()).collect();
    common_class(&failures)
}

/// Failures by class and the signature of their cause, each with the first that was seen.
#[derive(Debug, Default)]
struct Counts(BTreeMap<(FailureClass, Option<String>), CountedFailure>);

impl Counts {
    fn add<'f>(&mut self, failures: impl Iterator<Item = (&'f Failure, Option<&'f Cause>)>) {
        for (failure, cause) in failures {
            let signature = cause.and_then(|cause| cause.signature.clone());
            let counted = self.0.entry((failure.class, signature));
            let first = || CountedFailure { launches: 0, failure: failure.clone(), cause: cause.cloned() };
            counted.or_insert_with(first).launches += 1;
        }
    }

    /// Returns the failures, most frequent first; those seen equally often in the order of the list of classes.
    fn sorted(self) -> Vec<CountedFailure> {
        let mut counted: Vec<CountedFailure> = self.0.into_values().collect();
        counted.sort_by_key(|counted| std::cmp::Reverse(counted.launches));
        counted
    }
}
