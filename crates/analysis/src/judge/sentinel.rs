//! The baseline under another name: how often a difference of nothing looks like something.
//!
//! A sentinel has too few blocks of its own for a test of its mean. But the block differences of any contrast spread as its
//! do, so each of its differences is held against the spread of one of them over the *other* blocks: if nothing is wrong,
//! difference over spread is Student's t, and one in twenty has a p below 0.05. Over a suite that is a rate which shows
//! whether launches of one program are really alike.

use isobench_schema::ids::ArmId;
use isobench_schema::plan::PlannedTask;
use isobench_schema::verdict::{BlockDifference, Contrast, SentinelJudgement};

use super::blocks::TaskBlocks;
use crate::stats::{OneSample, two_sided_p};

/// A spread is taken from this many blocks on.
const FEWEST_BLOCKS: usize = 5;

/// A p below this is a rejection.
const LEVEL: f64 = 0.05;

/// Returns what the task's sentinel shows, if it has one.
pub(super) fn judge(task: &PlannedTask, blocks: &TaskBlocks<'_>, contrasts: &[Contrast]) -> Option<SentinelJudgement> {
    let arm = &task.design.sentinel.as_ref()?.arm;
    let difference = |block: &super::blocks::Block<'_>| {
        let log_ratio = block.log_ratio(&task.metric, arm, &ArmId::Baseline)?;
        Some(BlockDifference { block: block.block, log_ratio })
    };
    let differences: Vec<BlockDifference> = blocks.blocks.iter().filter_map(difference).collect();
    // The human arm's contrast comes first in the plan.
    let noise = contrasts
        .iter()
        .filter(|contrast| contrast.against == ArmId::Baseline)
        .find(|contrast| contrast.differences.len() > FEWEST_BLOCKS);
    let p = |of: &BlockDifference| {
        let others = noise?.differences.iter().filter(|other| other.block != of.block);
        let sample = OneSample::of(&others.map(|other| other.log_ratio).collect::<Vec<_>>())?;
        (sample.deviation > 0.0).then(|| two_sided_p(of.log_ratio / sample.deviation, sample.degrees_of_freedom()))?
    };
    let found: Vec<f64> = differences.iter().filter_map(p).collect();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Some(SentinelJudgement {
        arm: arm.clone(),
        tested: count(found.len()),
        rejected: count(found.iter().filter(|p| **p < LEVEL).count()),
        differences,
    })
}
