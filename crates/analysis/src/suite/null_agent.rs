//! What an agent with an empty patch would score by each rule, from the run's own launches.
//!
//! An empty patch leaves the baseline, so that its launches are launches of the baseline.
//!
//! - Against the human commit by single runs: the baseline's launch of a block stands for the agent's. Each task counts with
//!   the share of its blocks in which the rule would have called that a success.
//! - Against the baseline by single runs: two launches of the baseline in neighbouring blocks, each once as the agent's. They
//!   had prompts of their own, so that their difference has a little more noise than that of two launches in one block.
//! - `better` than the baseline by isobench's rule: how often runs of the task's design end so if there is no difference and
//!   block differences spread as the task's did. What a verdict says depends on the margin in units of the spread alone, so
//!   that it is simulated once for each ratio of the two, rounded down by at most 5 %.
//! - Against the human commit by isobench's rule: the verdict is that on the human commit, the other way round. Tasks are
//!   counted where that is `better`, and there an empty patch is `worse`.

use std::collections::BTreeMap;

use isobench_schema::ids::ArmId;
use isobench_schema::measurement::Direction;
use isobench_schema::order::derive_seed;
use isobench_schema::plan::Look;
use isobench_schema::suite::{NullBasis, NullScore};
use isobench_schema::verdict::{Standing, TaskJudgement};

use super::{Row, Tasks, counted};
use crate::stats::sequential::{Truth, simulate};
use crate::stats::{length, mean, standard_deviation};

/// A spread is taken from so many blocks on.
const FEWEST_BLOCKS: usize = 5;

/// Simulated runs for each ratio of margin and spread.
const RUNS: u32 = 10_000;

/// Ratios of margin and spread are rounded down to powers of this.
const STEP: f64 = 1.05;

/// Returns the score by a rule on single runs against the human commit; `is_success` takes a log ratio.
pub(super) fn against_human(tasks: &Tasks<'_>, is_success: impl Fn(f64, Direction) -> bool) -> Option<NullScore> {
    let share = |row: &Row<'_>| {
        let contrast = row.contrast(&ArmId::Human, &ArmId::Baseline)?;
        let direction = row.judged.direction;
        let hits: Vec<f64> = contrast
            .differences
            .iter()
            .map(|difference| if is_success(-difference.log_ratio, direction) { 1.0 } else { 0.0 })
            .collect();
        mean(&hits)
    };
    let shares: Vec<f64> = tasks.rows.iter().filter_map(share).collect();
    Some(NullScore { expected: mean(&shares)?, trials: counted(shares.len()), basis: NullBasis::SingleRuns })
}

/// Returns the score by a rule on single runs against the baseline.
pub(super) fn against_baseline(tasks: &Tasks<'_>, is_success: impl Fn(f64, Direction) -> bool) -> Option<NullScore> {
    let share = |row: &Row<'_>| {
        let direction = row.judged.direction;
        let hits: Vec<f64> = neighbours(row.judged)
            .into_iter()
            .flat_map(|log_ratio| [log_ratio, -log_ratio])
            .map(|log_ratio| if is_success(log_ratio, direction) { 1.0 } else { 0.0 })
            .collect();
        mean(&hits)
    };
    let shares: Vec<f64> = tasks.rows.iter().filter_map(share).collect();
    Some(NullScore { expected: mean(&shares)?, trials: counted(shares.len()), basis: NullBasis::NeighbouringBaselines })
}

/// Returns the log ratios of the baseline's launches in blocks 0 and 1, 2 and 3, and so on.
fn neighbours(task: &TaskJudgement) -> Vec<f64> {
    let values: BTreeMap<u32, f64> = task
        .arms
        .iter()
        .filter(|arm| arm.arm == ArmId::Baseline)
        .flat_map(|arm| &arm.values)
        .map(|value| (value.block, value.value))
        .collect();
    let pair = |(block, value): (&u32, &f64)| {
        let other = values.get(&(block + 1))?;
        (block % 2 == 0).then(|| (value / other).ln()).filter(|log_ratio| log_ratio.is_finite())
    };
    values.iter().filter_map(pair).collect()
}

/// Shares of `better` by the looks, their levels as bits, and the step of margin over spread.
type Known = BTreeMap<(Vec<(u32, u64, u64)>, i32), Option<f64>>;

/// Returns how often isobench's rule would call an empty patch `better` than the baseline.
pub(super) fn better_than_baseline(tasks: &Tasks<'_>) -> Option<NullScore> {
    let mut known = Known::new();
    let mut shares = Vec::new();
    for row in &tasks.rows {
        let Some(spread) = spread(row.judged) else { continue };
        let looks = &row.planned.design.looks;
        let step = steps(row.judged.margin.ln_1p() / spread);
        let key = looks.iter().map(|look| (look.blocks, look.level.to_bits(), look.equivalence_level.to_bits()));
        let share = *known
            .entry((key.collect(), step))
            .or_insert_with(|| simulated(looks, step, derive_seed(tasks.plan.seed, "suite: an empty patch")));
        shares.extend(share);
    }
    Some(NullScore { expected: mean(&shares)?, trials: counted(shares.len()), basis: NullBasis::Simulated })
}

fn simulated(looks: &[Look], step: i32, seed: u64) -> Option<f64> {
    let nothing = Truth { effect: 0.0, deviation: 1.0 };
    simulate(looks, STEP.powi(step), nothing, RUNS, seed).map(|rates| rates.better)
}

/// Returns which power of the step a ratio is, rounded down. Beyond these bounds nothing changes: the margin is nothing, or is
/// never reached.
#[expect(clippy::cast_possible_truncation, reason = "it is between -100 and 100")]
fn steps(ratio: f64) -> i32 {
    (ratio.ln() / STEP.ln()).floor().clamp(-100.0, 100.0) as i32
}

/// Returns the standard deviation of a task's block differences to the baseline, of the first contrast with enough of them.
fn spread(task: &TaskJudgement) -> Option<f64> {
    let contrasts = task.contrasts.iter().filter(|contrast| contrast.against == ArmId::Baseline);
    let mut spreads = contrasts.filter(|contrast| contrast.differences.len() >= FEWEST_BLOCKS).filter_map(|contrast| {
        let differences: Vec<f64> = contrast.differences.iter().map(|difference| difference.log_ratio).collect();
        standard_deviation(&differences)
    });
    spreads.find(|spread| spread.is_finite() && *spread > 0.0)
}

/// Returns the score by isobench's rules against the human commit, of the tasks that can rank agents.
pub(super) fn by_human_verdict(tasks: &Tasks<'_>) -> Option<NullScore> {
    let rankable = tasks.rows.iter().filter(|row| row.judged.standing == Standing::Rankable).count();
    let score = NullScore { expected: 0.0, trials: counted(rankable), basis: NullBasis::HumanVerdict };
    (length(rankable) > 0.0).then_some(score)
}
