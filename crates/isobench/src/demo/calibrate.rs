//! How many requests make the demo's windows long enough on this machine, and not much longer.

use std::collections::BTreeMap;
use std::path::Path;

use isobench_schema::event::{Event, RunEnd};
use isobench_schema::ids::{ArmId, RunId};
use isobench_schema::measurement::MetricName;
use isobench_schema::outcome::LaunchRecord;
use isobench_store::RunStore;

use super::{CONCURRENCY, MIN_WINDOW_S, OUTPUT_TOKENS, Size, lay_down};
use crate::args::ChoiceArgs;
use crate::commands::{self, Context};
use crate::coordinator;
use crate::evidence::{self, LaunchDigest};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::interrupt;
use crate::progress::Watch;
use crate::terminal::Terminal;

/// Requests of the windows that are timed, and how many such windows.
const TRIED: Size = Size { requests: 48, blocks: 2 };
/// How much longer than the shortest window the fast arm's should be.
const RESERVE: f64 = 1.5;
/// The fewest and the most requests.
const BOUNDS: (f64, f64) = (24.0, 100_000.0);

/// Returns the requests of each window, from two short launches of the fast arm.
pub(crate) fn requests(out: &Path, cache: &Path, context: Context) -> Result<u32, CommandError> {
    context.terminal.status("timing the engine on this machine, to size the demo");
    let cancel = interrupt::flag().exit(Exit::Machine)?;
    let scratch = tempfile::Builder::new().prefix("tmp-calibrate-").tempdir_in(out).exit(Exit::Usage)?;
    let dataset = scratch.path().join("dataset");
    lay_down(&dataset, TRIED).exit(Exit::Machine)?;
    let choice = ChoiceArgs {
        arms: vec!["human".to_owned()],
        settings: vec!["design.min-window-s=0.001".to_owned(), "metric.margin=0.9".to_owned()],
        ..commands::demo::choice(cache)
    };
    let (plan, facts) = commands::plan::make(&dataset, &choice, context)?;
    let run = RunId::new("calibrate").exit(Exit::Error)?;
    let folder = scratch.path().join("run");
    let mut store = RunStore::create(&folder, &run, &plan, &facts).exit(Exit::Error)?;
    let machine = commands::machine(cache.to_owned())?;
    let end = coordinator::run(&mut store, &machine, &cancel, &mut OnlyNotes(context.terminal))?;
    drop(store);
    match end {
        RunEnd::Finished => {}
        RunEnd::Interrupted | RunEnd::Stopped => {
            return Err(CommandError::new(Exit::Interrupted, "interrupted while the engine was timed")
                .hint("the same command starts again; nothing was kept yet"));
        }
    }
    let judgement = evidence::judge(&folder)?;
    let arm = judgement.tasks.iter().flat_map(|task| &task.arms).find(|arm| arm.arm == ArmId::Human);
    let Some(rate) = arm.and_then(|arm| quiet_rate(&arm.means)) else {
        let why = arm.and_then(|arm| arm.failures.first()).map(|counted| counted.failure.to_string());
        let message =
            format!("the demo's engine can't be measured here: {}", why.unwrap_or_else(|| "no launch".into()));
        return Err(CommandError::new(Exit::Machine, message).hint("`isobench doctor` says what this machine lacks"));
    };
    let requests = (rate * MIN_WINDOW_S * RESERVE).ceil().clamp(BOUNDS.0, BOUNDS.1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bounds are far inside the type")]
    Ok(requests as u32)
}

/// Returns the requests per second that the arm would complete if nothing else ran.
///
/// Other work on the machine takes whole time slices from the engine, which make few gaps between tokens very long and leave
/// the median gap as it is. So the median tells the rate of a quiet machine also on a busy one, and the windows are long
/// enough when the other work ends.
fn quiet_rate(means: &BTreeMap<MetricName, f64>) -> Option<f64> {
    let measured = *means.get(&MetricName::RequestThroughput)?;
    let gap_s = means.get(&MetricName::MedianItlMs)? / 1e3;
    let by_gap = f64::from(CONCURRENCY) / (gap_s * f64::from(OUTPUT_TOKENS));
    Some(if by_gap.is_finite() { measured.max(by_gap) } else { measured })
}

/// Shows only what a person must know to understand why it takes long.
struct OnlyNotes(Terminal);

impl Watch for OnlyNotes {
    fn seen(&mut self, _event: &Event) {}
    fn event(&mut self, _event: &Event) {}
    fn measured(&mut self, _record: &LaunchRecord, _digest: Option<&LaunchDigest>) {}
    fn note(&mut self, text: &str) {
        self.0.status(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request_throughput: f64, median_itl_ms: f64, expected: f64) {
        let means =
            [(MetricName::RequestThroughput, request_throughput), (MetricName::MedianItlMs, median_itl_ms)].into();
        let found = quiet_rate(&means).unwrap();
        assert!((found - expected).abs() < 0.1, "{found}");
    }

    #[test]
    fn the_rate_is_that_of_a_quiet_machine() {
        check(140.0, 0.595, 140.1);
        // Half of the time went to other work, and the gaps that weren't cut by it are as short as ever.
        check(70.0, 0.595, 140.1);
        check(150.0, 1.0, 150.0);
    }
}
