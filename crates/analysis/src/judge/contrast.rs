//! The verdict on one contrast, by the table of [`super`].

use isobench_schema::failure::{Charge, Failure};
use isobench_schema::ids::ArmId;
use isobench_schema::order::derive_seed;
use isobench_schema::plan::{Look, PlannedContrast, PlannedTask};
use isobench_schema::verdict::{BlockDifference, Contrast, Verdict};

use super::arms::{Arms, OwnFailure};
use super::blocks::TaskBlocks;
use super::reason;
use crate::stats::{
    Interval, OneSample, blocks_for_difference, blocks_for_equivalence, hodges_lehmann, mean,
    minimum_detectable_effect, serial_correlation, sign_flip_p,
};

/// An interval needs this many blocks.
pub(super) const FEWEST_BLOCKS: usize = 5;

/// Block differences with a positive serial correlation of a p below this are no independent evidence.
const SERIAL: f64 = 0.01;

/// The numbers of a look, all on the log scale.
struct Numbers {
    p: f64,
    interval: Interval,
    equivalence: Interval,
}

/// Returns the verdict on a contrast with all its numbers, but for `nothing-to-beat`, which the other contrasts decide.
pub(super) fn judge(task: &PlannedTask, blocks: &TaskBlocks<'_>, arms: &Arms, planned: &PlannedContrast) -> Contrast {
    let differences: Vec<BlockDifference> = blocks
        .blocks
        .iter()
        .filter_map(|block| {
            let log_ratio = block.log_ratio(&task.metric, &planned.of, &planned.against)?;
            Some(BlockDifference { block: block.block, log_ratio })
        })
        .collect();
    let mut contrast = Contrast {
        of: planned.of.clone(),
        against: planned.against.clone(),
        metric: task.metric.primary,
        verdict: Verdict::Inconclusive,
        estimate: None,
        low: None,
        high: None,
        p: None,
        blocks: u32::try_from(differences.len()).unwrap_or(u32::MAX),
        reason: String::new(),
        charged_to: None,
        speedup: None,
        sign_flip_p: None,
        hodges_lehmann: None,
        equivalence_low: None,
        equivalence_high: None,
        mde: None,
        blocks_needed: None,
        look: blocks.look,
        differences,
    };
    if let Some(reason) = not_run(task, &contrast) {
        (contrast.verdict, contrast.reason) = (Verdict::NotRun, reason);
    } else if let Some((arm, own)) = failed_arm(arms, &contrast) {
        (contrast.verdict, contrast.charged_to) = verdict_on_failure(&arm, own);
        contrast.reason = reason::own_failure(&arm, own);
        contrast.differences.clear();
        contrast.blocks = 0;
    } else {
        by_numbers(task, blocks, arms, &mut contrast);
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

fn by_numbers(task: &PlannedTask, blocks: &TaskBlocks<'_>, arms: &Arms, contrast: &mut Contrast) {
    let values: Vec<f64> = contrast.differences.iter().map(|difference| difference.log_ratio).collect();
    contrast.estimate = mean(&values);
    contrast.speedup = contrast.estimate.map(f64::exp);
    contrast.hodges_lehmann = hodges_lehmann(&values);
    let Some((look, sample)) = blocks.look.zip(OneSample::of(&values)).filter(|_| values.len() >= FEWEST_BLOCKS) else {
        (contrast.verdict, contrast.reason) = too_few(blocks, arms, contrast);
        return;
    };
    let purpose = format!("{} against {}", contrast.of, contrast.against);
    contrast.sign_flip_p = sign_flip_p(&values, derive_seed(task.design.seed, &format!("sign flips of {purpose}")));
    contrast.mde = minimum_detectable_effect(sample.deviation, values.len(), look.level);
    let Some(numbers) = numbers(&sample, look) else {
        contrast.reason = format!("the levels of the look after {} blocks are not between 0 and 1", look.blocks);
        return;
    };
    (contrast.p, contrast.low, contrast.high) =
        (Some(numbers.p), Some(numbers.interval.low), Some(numbers.interval.high));
    (contrast.equivalence_low, contrast.equivalence_high) =
        (Some(numbers.equivalence.low), Some(numbers.equivalence.high));
    let drift = serial_correlation(&values, derive_seed(task.design.seed, &format!("orders of {purpose}")));
    if let Some(drift) = drift.filter(|drift| drift.p < SERIAL) {
        contrast.reason = reason::drift(contrast, look, drift);
        return;
    }
    let margin = task.metric.margin.ln_1p();
    contrast.verdict = verdict(&sample, &numbers, look, margin);
    if contrast.verdict == Verdict::Inconclusive {
        contrast.blocks_needed = blocks_needed(&sample, look, margin);
    }
    contrast.reason = reason::decided(contrast, look, task.metric.margin);
}

fn numbers(sample: &OneSample, look: Look) -> Option<Numbers> {
    Some(Numbers {
        p: sample.p()?,
        interval: sample.interval(look.level)?,
        equivalence: sample.interval(2.0 * look.equivalence_level)?,
    })
}

fn verdict(sample: &OneSample, numbers: &Numbers, look: Look, margin: f64) -> Verdict {
    let significant = numbers.p < look.level;
    let equivalent = numbers.equivalence.is_within(margin);
    match (significant, equivalent) {
        (true, _) if sample.mean >= margin => Verdict::Better,
        (true, _) if sample.mean <= -margin => Verdict::Worse,
        (true, true) => Verdict::Trivial,
        (false, true) => Verdict::Equivalent,
        (true | false, false) => Verdict::Inconclusive,
    }
}

/// Returns the fewest blocks that would decide with a power of 80 % if the truth were as estimated: a difference at
/// least as large as the margin, or equivalence below it. `None` where no number of blocks up to 10,000 would, close to
/// the margin.
fn blocks_needed(sample: &OneSample, look: Look, margin: f64) -> Option<u32> {
    let (spread, difference) = (sample.deviation, sample.mean);
    let needed = if difference.abs() >= margin {
        blocks_for_difference(spread, difference, look.level)
    } else {
        blocks_for_equivalence(spread, difference, margin, look.equivalence_level)
    };
    u32::try_from(needed?).ok()
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
