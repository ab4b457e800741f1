//! How many requests make the demo's windows long enough on this machine, and not much longer.

use std::collections::BTreeMap;
use std::path::Path;

use isobench_plan::budget::Budget;
use isobench_schema::event::{Event, RunEnd};
use isobench_schema::ids::{ArmId, RunId};
use isobench_schema::measurement::MetricName;
use isobench_schema::outcome::LaunchRecord;
use isobench_schema::units::Millis;
use isobench_store::RunStore;

use super::{Kind, MIN_WINDOW_S, Size, lay_down};
use crate::args::ChoiceArgs;
use crate::commands::{self, Context};
use crate::coordinator;
use crate::disk_args::DiskArgs;
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
pub(crate) fn requests(kind: Kind, out: &Path, cache: &Path, context: Context) -> Result<u32, CommandError> {
    context.terminal.status("timing the engine on this machine, to size the demo");
    let cancel = interrupt::flag().exit(Exit::Machine)?;
    let scratch = tempfile::Builder::new().prefix("tmp-calibrate-").tempdir_in(out).exit(Exit::Usage)?;
    let dataset = scratch.path().join("dataset");
    // The demo is to show by itself how often native files are built.
    let own_cache = scratch.path().join("cache");
    let cache = match kind {
        Kind::Plain => cache,
        Kind::Native => &own_cache,
    };
    lay_down(&dataset, kind, TRIED).exit(Exit::Machine)?;
    let choice = ChoiceArgs {
        arms: vec!["human".to_owned()],
        settings: vec!["design.min-window-s=0.001".to_owned(), "metric.margin=0.9".to_owned()],
        ..commands::demo::choice(cache)
    };
    let (plan, facts) = commands::plan::make(&dataset, &choice, context)?;
    let run = RunId::new("calibrate").exit(Exit::Error)?;
    let folder = scratch.path().join("run");
    let mut store = RunStore::create(&folder, &run, &plan, &facts).exit(Exit::Error)?;
    let machine = commands::machine(cache.to_owned(), &DiskArgs::default())?;
    let mut watch = Timing { terminal: context.terminal, engine_ms: None };
    let end = coordinator::run(&mut store, &machine, &cancel, &Budget::default(), &mut watch)?;
    drop(store);
    match end {
        RunEnd::Finished => {}
        RunEnd::Interrupted | RunEnd::Stopped | RunEnd::BudgetUsed => {
            return Err(CommandError::new(Exit::Interrupted, "interrupted while the engine was timed")
                .hint("the same command starts again; nothing was kept yet"));
        }
    }
    let judgement = evidence::judge(&folder)?;
    let arm = judgement.tasks.iter().flat_map(|task| &task.arms).find(|arm| arm.arm == ArmId::Human);
    let Some(rate) = arm.and_then(|arm| quiet_rate(&arm.means, watch.engine_ms)) else {
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
/// Other work on the machine slows the engine down, so that its throughput says too little of a quiet machine. The
/// processor time that the requests took stays nearly the same, and the engine computes on one processor at a time.
fn quiet_rate(means: &BTreeMap<MetricName, f64>, engine_ms: Option<f64>) -> Option<f64> {
    let measured = *means.get(&MetricName::RequestThroughput)?;
    let by_processor = engine_ms.map(|ms| f64::from(TRIED.requests) * 1e3 / ms).filter(|rate| rate.is_finite());
    Some(by_processor.map_or(measured, |rate| rate.max(measured)))
}

/// Shows only what a person must know to understand why it takes long, and keeps the least processor time of a window.
struct Timing {
    terminal: Terminal,
    engine_ms: Option<f64>,
}

impl Watch for Timing {
    fn seen(&mut self, _event: &Event) {}
    fn event(&mut self, _event: &Event) {}

    fn measured(&mut self, record: &LaunchRecord, _digest: Option<&LaunchDigest>) {
        let taken = record.client.and_then(|client| client.engine_ms).map(Millis::get);
        self.engine_ms = taken.into_iter().chain(self.engine_ms).reduce(f64::min);
    }

    fn note(&mut self, text: &str) {
        self.terminal.status(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request_throughput: f64, engine_ms: Option<f64>, expected: f64) {
        let found = quiet_rate(&[(MetricName::RequestThroughput, request_throughput)].into(), engine_ms).unwrap();
        assert!((found - expected).abs() < 0.1, "{found}");
    }

    #[test]
    fn the_rate_is_that_of_a_quiet_machine() {
        check(140.0, Some(340.0), 141.2);
        // Three quarters of the time went to other work.
        check(35.0, Some(340.0), 141.2);
        check(150.0, Some(340.0), 150.0);
        check(150.0, Some(0.0), 150.0);
        check(150.0, None, 150.0);
    }
}
