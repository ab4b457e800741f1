//! The verdict on one contrast, by the table of [`super`].

use isobench_schema::failure::{Charge, Failure};
use isobench_schema::ids::ArmId;
use isobench_schema::order::derive_seed;
use isobench_schema::plan::{Look, PlannedContrast, PlannedTask};
use isobench_schema::verdict::{BlockDifference, Contrast, LookDecision, LookResult, Verdict};

use super::arms::{Arms, OwnFailure};
use super::blocks::TaskBlocks;
use super::levels::{self, ERROR};
use super::looks::{self, Asked, FEWEST_BLOCKS, Point, SerialTest};
use super::reason;
use crate::stats::{
    blocks_for_difference, blocks_for_equivalence, hodges_lehmann, length, mean, sign_flip_p, standard_deviation,
};

/// What the verdicts of a task's contrasts follow from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub(super) task: &'a PlannedTask,
    pub(super) blocks: &'a TaskBlocks<'a>,
    pub(super) arms: &'a Arms,
}

/// Returns the verdict on a contrast with all its numbers, but for `nothing-to-beat`, which the other contrasts decide.
pub(super) fn judge(evidence: Evidence<'_>, planned: &PlannedContrast) -> Contrast {
    let Evidence { task, blocks, arms } = evidence;
    let points: Vec<Point> =
        blocks.blocks.iter().filter_map(|block| block.point(&task.metric, &planned.of, &planned.against)).collect();
    let difference = |point: &Point| BlockDifference { block: point.block, log_ratio: point.difference };
    let mut contrast = Contrast {
        of: planned.of.clone(),
        against: planned.against.clone(),
        metric: task.metric.primary,
        verdict: Verdict::Inconclusive,
        estimate: None,
        low: None,
        high: None,
        p: None,
        blocks: u32::try_from(points.len()).unwrap_or(u32::MAX),
        reason: String::new(),
        charged_to: None,
        speedup: None,
        sign_flip_p: None,
        hodges_lehmann: None,
        equivalence_low: None,
        equivalence_high: None,
        mde: None,
        blocks_needed: None,
        look: blocks.look(),
        looks: Vec::new(),
        differences: points.iter().map(difference).collect(),
    };
    if let Some(reason) = not_run(task, &contrast) {
        (contrast.verdict, contrast.reason) = (Verdict::NotRun, reason);
    } else if let Some((arm, own)) = failed_arm(arms, &contrast) {
        (contrast.verdict, contrast.charged_to) = verdict_on_failure(&arm, own);
        contrast.reason = reason::own_failure(&arm, own);
        contrast.differences.clear();
        contrast.blocks = 0;
    } else {
        by_numbers(evidence, &points, &mut contrast);
    }
    contrast
}

fn not_run(task: &PlannedTask, contrast: &Contrast) -> Option<String> {
    let pair = || [&contrast.of, &contrast.against].into_iter();
    if let Some(arm) = pair().find(|arm| task.not_run.contains(arm)) {
        return Some(format!("no patch was given for {}", reason::name(arm)));
    }
    let missing = pair().find(|arm| !task.arms.iter().any(|planned| planned.arm == **arm))?;
    Some(format!("{} is not among the arms of the plan", reason::name(missing)))
}

/// Returns the arm whose own failure decides: a baseline that is compared with, then an agent, then the other one.
fn failed_arm<'a>(arms: &'a Arms, contrast: &Contrast) -> Option<(ArmId, &'a OwnFailure)> {
    let rank = |arm: &&ArmId| match arm {
        ArmId::Baseline => 0,
        ArmId::Agent(_) => 1,
        ArmId::Human => 2,
    };
    let mut pair = [&contrast.of, &contrast.against];
    pair.sort_by_key(rank);
    pair.into_iter().find_map(|arm| Some((arm.clone(), arms.own(arm)?)))
}

fn verdict_on_failure(arm: &ArmId, own: &OwnFailure) -> (Verdict, Option<ArmId>) {
    if own.failure.class.breaks_validity() {
        return (Verdict::Invalid, Some(arm.clone()));
    }
    match arm {
        ArmId::Agent(_) => (Verdict::AgentFailed, None),
        ArmId::Baseline | ArmId::Human => (Verdict::NotMeasured, None),
    }
}

/// Gives the verdict of the first look that decides, else of the last one, with the numbers of that look.
fn by_numbers(evidence: Evidence<'_>, points: &[Point], contrast: &mut Contrast) {
    let Evidence { task, blocks, arms } = evidence;
    let purpose = format!("{} against {}", contrast.of, contrast.against);
    let (design, margin, arms_of_block) = (&task.design, task.metric.margin, task.arms.len());
    let asked = Asked {
        design,
        margin,
        arms: arms_of_block,
        purpose: &purpose,
        reached: blocks.reached(),
        serial: SerialTest::EveryLook,
    };
    contrast.looks = looks::of(asked, points);
    let deciding = contrast.looks.iter().position(|result| result.decision.verdict().is_some());
    let place = deciding.or(contrast.looks.len().checked_sub(1));
    let result = place.and_then(|place| contrast.looks.get(place)).copied();
    let counted = result.map_or(blocks.blocks.len(), |result| usize::try_from(result.planned).unwrap_or(usize::MAX));
    let within = |point: &&Point| usize::try_from(point.block).is_ok_and(|block| block < counted) || result.is_none();
    let values: Vec<f64> = points.iter().filter(within).map(|point| point.difference).collect();
    contrast.estimate = result.and_then(|result| result.estimate).or_else(|| mean(&values));
    contrast.speedup = contrast.estimate.map(f64::exp);
    contrast.hodges_lehmann = hodges_lehmann(&values);
    let Some(result) = result.filter(|result| result.p.is_some()) else {
        (contrast.verdict, contrast.reason) = too_few(blocks, arms, contrast);
        return;
    };
    contrast.blocks = result.blocks;
    contrast.look =
        Some(Look { blocks: result.planned, level: result.level, equivalence_level: result.equivalence_level });
    (contrast.p, contrast.low, contrast.high) = (result.p, result.low, result.high);
    (contrast.equivalence_low, contrast.equivalence_high) = (result.equivalence_low, result.equivalence_high);
    contrast.sign_flip_p = sign_flip_p(&values, derive_seed(task.design.seed, &format!("sign flips of {purpose}")));
    let spread = standard_deviation(&values);
    let passed = contrast.looks.get(..=place.unwrap_or_default()).unwrap_or_default();
    contrast.mde = spread.zip(smallest_effect(passed)).map(|(spread, effect)| spread * effect);
    contrast.verdict = result.decision.verdict().unwrap_or(Verdict::Inconclusive);
    if let LookDecision::Undecided | LookDecision::Hopeless = result.decision {
        contrast.blocks_needed = blocks_needed(evidence, contrast, spread);
    }
    let drift = (result.decision == LookDecision::Drift).then(|| looks::drift(design, &purpose, &values)).flatten();
    contrast.reason = reason::of_look(task, contrast, &result, drift);
}

/// Returns the smallest difference, in standard deviations, that these looks find with a power of 80 %.
fn smallest_effect(passed: &[LookResult]) -> Option<f64> {
    let mut looks: Vec<Look> = Vec::new();
    for result in passed.iter().filter(|result| result.p.is_some()) {
        // A look without a new difference repeats the one before it.
        if looks.last().is_none_or(|look| look.blocks < result.blocks) {
            looks.push(Look {
                blocks: result.blocks,
                level: result.level,
                equivalence_level: result.equivalence_level,
            });
        }
    }
    levels::smallest_effect(&looks)
}

/// Returns the fewest blocks that would decide with a power of 80 % if the truth were as estimated: a difference at
/// least as large as the margin, or equivalence below it. `None` where no number of blocks up to 10,000 would, close to
/// the margin.
///
/// It is the number of a design with one look at 5 %, times what several looks cost: the square of the ratio of the smallest
/// effects that the two find with as many blocks (the inflation factor of Jennison and Turnbull 2000, section 2.3).
fn blocks_needed(evidence: Evidence<'_>, contrast: &Contrast, spread: Option<f64>) -> Option<u32> {
    let task = evidence.task;
    let (spread, difference, margin) = (spread?, contrast.estimate?, task.metric.margin.ln_1p());
    let needed = if difference.abs() >= margin {
        blocks_for_difference(spread, difference, ERROR)
    } else {
        blocks_for_equivalence(spread, difference, margin, ERROR)
    }?;
    let one = Look { blocks: task.design.blocks(), level: ERROR, equivalence_level: ERROR };
    let inflation = levels::smallest_effect(&task.design.looks)? / levels::smallest_effect(&[one])?;
    // A small number of blocks, far below 2^32.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a few times 10,000")]
    let blocks = (length(needed) * inflation.powi(2)).ceil() as u32;
    Some(blocks)
}

/// Returns the verdict where too few blocks can be compared, and why.
fn too_few(blocks: &TaskBlocks<'_>, arms: &Arms, contrast: &Contrast) -> (Verdict, String) {
    let pair = [&contrast.of, &contrast.against];
    let failures = || pair.iter().filter_map(|arm| arms.judgement(arm)?.failures.first());
    let most: Option<&Failure> = failures().max_by_key(|counted| counted.launches).map(|counted| &counted.failure);
    let told = reason::too_few(blocks, contrast, most);
    if contrast.differences.len() >= FEWEST_BLOCKS {
        return (Verdict::Inconclusive, told);
    }
    let unmeasured = |arm: &&&ArmId| match arm {
        ArmId::Baseline | ArmId::Human => arms.judgement(arm).is_some_and(|judgement| judgement.valid == 0),
        ArmId::Agent(_) => false,
    };
    let verdict = match most {
        Some(failure) if failure.class.breaks_validity() && failure.class.charge() == Charge::Infrastructure => {
            Verdict::Invalid
        }
        Some(_) if contrast.differences.is_empty() && pair.iter().any(|arm| unmeasured(&arm)) => Verdict::NotMeasured,
        Some(_) | None => Verdict::Inconclusive,
    };
    (verdict, told)
}
