//! The line that says why a task ends at once: its plan asks for what can't be measured.

use isobench_plan::progress::{Progress, TaskStop};
use isobench_schema::event::EventKind;
use isobench_schema::outcome::LaunchRecord;

/// Returns why the block that has ended is the last of its task, if the plan is at fault for that. Of several arms the one
/// with the shortest window tells what to ask for instead: what is enough for it is enough for all.
pub(super) fn ends_here(
    progress: &Progress,
    ended: &EventKind,
    window_s: impl Fn(&LaunchRecord) -> Option<f64>,
) -> Option<String> {
    let EventKind::BlockEnded { id, launches, charged, .. } = ended else { return None };
    let Some(TaskStop::PlanAtFault { class }) = progress.stop(&id.task) else { return None };
    let faults = launches.iter().filter_map(|record| {
        let failure = charged.get(&record.launch.arm).filter(|failure| failure.class == class)?;
        Some((window_s(record).unwrap_or(f64::INFINITY), &record.launch.arm, failure))
    });
    let (_, arm, failure) = faults.min_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!(
        "{} ends here: no two arms can be compared, and more blocks would only repeat that; {arm}: {}",
        id.task, failure.message
    ))
}
