//! How long the launches of tasks took in earlier runs, for deadlines.

use std::collections::BTreeMap;
use std::path::PathBuf;

use isobench_plan::requirements::History;
use isobench_schema::event::EventKind;
use isobench_schema::ids::TaskId;
use isobench_schema::outcome::{Outcome, Timeline};
use isobench_schema::units::Millis;

use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};

/// Returns the longest start and load of each task, over the measured launches of these runs.
pub(super) fn read(runs: &[PathBuf]) -> Result<BTreeMap<TaskId, History>, CommandError> {
    let mut found: BTreeMap<TaskId, History> = BTreeMap::new();
    for run in runs {
        for event in evidence::open(run)?.events().exit(Exit::Error)? {
            let EventKind::BlockEnded { id, launches, .. } = event.exit(Exit::Error)?.kind else { continue };
            let history = found.entry(id.task).or_default();
            for launch in launches.iter().filter(|launch| launch.outcome == Outcome::Measured) {
                add(history, &launch.timeline);
            }
        }
    }
    Ok(found)
}

fn add(history: &mut History, timeline: &Timeline) {
    let seconds = |part: Option<Millis>| part.map(|part| part.get() / 1000.0);
    let longer = |known: Option<f64>, found: f64| Some(known.map_or(found, |known| known.max(found)));
    if let Some(start) = seconds(timeline.start_ms) {
        history.ready_s = longer(history.ready_s, start);
    }
    if let (Some(warm_up), Some(window)) = (seconds(timeline.warm_up_ms), seconds(timeline.window_ms)) {
        history.workload_s = longer(history.workload_s, warm_up + window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_each_counts_and_what_was_not_measured_does_not() {
        let timeline = |start: f64, window: Option<f64>| Timeline {
            start_ms: Millis::new(start),
            warm_up_ms: Millis::new(1000.0),
            window_ms: window.and_then(Millis::new),
            ..Timeline::default()
        };
        let mut history = History::default();
        add(&mut history, &timeline(4000.0, Some(30_000.0)));
        add(&mut history, &timeline(9000.0, None));
        assert_eq!(history, History { ready_s: Some(9.0), workload_s: Some(31.0) });
    }
}
