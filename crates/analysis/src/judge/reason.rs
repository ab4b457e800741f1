//! Verdicts in one plain sentence each.

use isobench_schema::comparability::KeyDifference;
use isobench_schema::failure::Failure;
use isobench_schema::ids::ArmId;
use isobench_schema::plan::PlannedTask;
use isobench_schema::verdict::{BlockCounts, Contrast, LookDecision, LookResult};

use super::arms::OwnFailure;
use super::blocks::{Launch, TaskBlocks};
use super::looks::FEWEST_BLOCKS;
use crate::stats::SerialCorrelation;

/// Returns the arm's name inside a sentence.
pub(super) fn name(arm: &ArmId) -> String {
    match arm {
        ArmId::Baseline => "the baseline".to_owned(),
        ArmId::Human => "the human commit".to_owned(),
        ArmId::Agent(name) => format!("agent `{name}`"),
    }
}

/// Returns why an arm's own failure decides.
pub(super) fn own_failure(arm: &ArmId, own: &OwnFailure) -> String {
    let OwnFailure { failure, failed, blocks } = own;
    let what = if failure.class.breaks_validity() { "broke a validity check" } else { "failed" };
    format!("{} {what} in {failed} of {}: {}: {}", name(arm), counted(*blocks), failure.class, failure.message)
}

/// Returns why a contrast can't be decided by its numbers.
pub(super) fn too_few(blocks: &TaskBlocks<'_>, contrast: &Contrast, most: Option<&Failure>) -> String {
    let found = contrast.blocks;
    if blocks.look().is_none() && contrast.differences.len() == blocks.blocks.len() {
        let BlockCounts { planned, complete, .. } = blocks.counts;
        return format!("only {complete} of {} are complete, and no look is reached", counted(planned));
    }
    let cause = match most {
        Some(failure) => format!("{}: {}", failure.class, failure.message),
        None if blocks.blocks.is_empty() => "no block is complete".to_owned(),
        None => reason_without_failure(blocks, contrast),
    };
    let can = if found == 1 { "1 block can".to_owned() } else { format!("{found} blocks can") };
    format!("only {can} be compared, and an interval needs {FEWEST_BLOCKS}; {cause}")
}

fn reason_without_failure(blocks: &TaskBlocks<'_>, contrast: &Contrast) -> String {
    let pairs =
        || blocks.blocks.iter().filter_map(|block| block.launch(&contrast.of).zip(block.launch(&contrast.against)));
    let unlike = pairs().find_map(|(of, against)| of.differences(against).into_iter().next());
    let lacks = pairs()
        .flat_map(|(of, against)| [of, against])
        .filter_map(Launch::valid)
        .any(|digest| !digest.measurement.values.contains_key(&contrast.metric));
    match unlike {
        Some(KeyDifference { field, left, right }) => {
            let shown = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
            let (left, right) = (shown(left), shown(right));
            format!("the launches can't be compared because their `{field}` differs: {left} and {right}")
        }
        None if lacks => format!("the launches have too few requests for {}", contrast.metric),
        None => "the plan has no more blocks".to_owned(),
    }
}

/// Returns what a look says by its numbers.
pub(super) fn of_look(
    task: &PlannedTask,
    contrast: &Contrast,
    result: &LookResult,
    drift: Option<SerialCorrelation>,
) -> String {
    let difference = difference(contrast, result);
    let margin = percent(task.metric.margin);
    let text = match result.decision {
        LookDecision::Better => format!("{difference}, faster by at least the margin of {margin}"),
        LookDecision::Worse => format!("{difference}, slower by at least the margin of {margin}"),
        LookDecision::Trivial => {
            format!("{difference}, a proven difference that is smaller than the margin of {margin}")
        }
        LookDecision::Equivalent => format!(
            "{}x as fast as {} ({} interval {} to {}, {}), no difference as large as the margin of {margin}",
            ratio(contrast.estimate),
            name(&contrast.against),
            percent(1.0 - 2.0 * result.equivalence_level),
            ratio(contrast.equivalence_low),
            ratio(contrast.equivalence_high),
            counted(contrast.blocks)
        ),
        LookDecision::Drift => {
            let found = drift.map_or_else(String::new, |SerialCorrelation { correlation, p }| {
                format!(" (serial correlation {correlation:.2}, {})", p_value(p))
            });
            format!("{difference}, but drift: the differences follow those of the block before{found}")
        }
        LookDecision::Hopeless => format!(
            "{difference}, not enough evidence for a margin of {margin}, and the looks to come were unlikely to change \
             that{}",
            outlook(contrast)
        ),
        LookDecision::Undecided | LookDecision::TooFew | LookDecision::Settled => {
            format!("{difference}, not enough evidence for a margin of {margin}{}", outlook(contrast))
        }
    };
    format!("{text}{}", at_look(task, contrast, result))
}

/// Returns at which of several looks the verdict fell, and what later blocks, which another contrast needed, say.
fn at_look(task: &PlannedTask, contrast: &Contrast, result: &LookResult) -> String {
    let planned = task.design.looks.len();
    if planned < 2 {
        return String::new();
    }
    let number = result.look.saturating_add(1);
    let later = contrast.looks.last().filter(|last| last.look > result.look && last.blocks > result.blocks);
    match later {
        None => format!(" (look {number} of {planned})"),
        Some(last) => {
            format!(" (look {number} of {planned}; over all {} it is {}x)", counted(last.blocks), ratio(last.estimate))
        }
    }
}

fn difference(contrast: &Contrast, result: &LookResult) -> String {
    format!(
        "{}x as fast as {} ({} interval {} to {}, {}, {})",
        ratio(contrast.estimate),
        name(&contrast.against),
        percent(1.0 - result.level),
        ratio(contrast.low),
        ratio(contrast.high),
        contrast.p.map_or_else(String::new, p_value),
        counted(contrast.blocks)
    )
}

fn outlook(contrast: &Contrast) -> String {
    let mde = contrast.mde.map_or_else(String::new, |mde| {
        format!("; so many blocks find a difference of {} with a power of 80 %", percent(mde.exp_m1()))
    });
    match contrast.blocks_needed {
        Some(needed) => format!("{mde}, and about {} would decide", counted(needed)),
        None => mde,
    }
}

fn counted(blocks: u32) -> String {
    if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") }
}

fn ratio(log_ratio: Option<f64>) -> String {
    log_ratio.map_or_else(|| "?".to_owned(), |value| format!("{:.*}", digits(value), value.exp()))
}

/// Returns how many decimals show a ratio: three near 1, where margins are.
fn digits(log_ratio: f64) -> usize {
    if log_ratio.abs() < 0.1 { 3 } else { 2 }
}

fn p_value(p: f64) -> String {
    if p < 0.0001 {
        "p < 0.0001".to_owned()
    } else if p < 0.1 {
        format!("p = {p:.4}")
    } else {
        format!("p = {p:.2}")
    }
}

/// Returns a share in percent, with at most two decimals.
fn percent(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}
