//! How far the block differences of a task spread, beside what was forecast.

use isobench_schema::ids::ArmId;
use isobench_schema::noise::{SpreadFound, SpreadOrigin};
use isobench_schema::plan::PlannedTask;
use isobench_schema::verdict::{BlockDifference, Contrast, SentinelJudgement};

use crate::noise::spread_of;

/// Returns the spread of the first differences to the baseline that are enough for one: those of the human arm, of the
/// sentinel, of an agent. All of a task's differences share the baseline's launches, so that more than one would count the
/// same noise twice.
pub(super) fn judge(
    task: &PlannedTask,
    contrasts: &[Contrast],
    sentinel: Option<&SentinelJudgement>,
) -> Option<SpreadFound> {
    let against_baseline = |human: bool| {
        contrasts
            .iter()
            .filter(move |contrast| contrast.against == ArmId::Baseline && (contrast.of == ArmId::Human) == human)
            .filter_map(|contrast| found(task, origin(task, &contrast.of), &contrast.of, &contrast.differences))
    };
    let of_sentinel =
        sentinel.and_then(|sentinel| found(task, SpreadOrigin::Sentinel, &sentinel.arm, &sentinel.differences));
    against_baseline(true).chain(of_sentinel).chain(against_baseline(false)).next()
}

/// Returns what the differences of an arm to the baseline are of: of nothing, if both run in the same environment.
fn origin(task: &PlannedTask, of: &ArmId) -> SpreadOrigin {
    let environment = |arm: &ArmId| task.arms.iter().find(|planned| planned.arm == *arm).map(|arm| &arm.environment);
    match (environment(of), environment(&ArmId::Baseline)) {
        (Some(one), Some(other)) if one == other => SpreadOrigin::AgainstItself,
        (Some(_) | None, _) => SpreadOrigin::Contrast,
    }
}

fn found(task: &PlannedTask, origin: SpreadOrigin, of: &ArmId, differences: &[BlockDifference]) -> Option<SpreadFound> {
    let ratios: Vec<f64> = differences.iter().map(|difference| difference.log_ratio).collect();
    let (deviation, degrees, interval) = spread_of(&ratios)?;
    Some(SpreadFound {
        origin,
        of: of.clone(),
        against: ArmId::Baseline,
        deviation,
        low: interval.low,
        high: interval.high,
        degrees,
        forecast: task.forecast.as_ref().and_then(|forecast| Some(forecast.known.as_ref()?.deviation)),
    })
}
