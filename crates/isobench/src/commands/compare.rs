//! `isobench compare`: what two runs measured for the same arm of the same task, if their comparability keys are equal.

use std::collections::BTreeMap;
use std::path::Path;

use isobench_analysis::stats::OneSample;
use isobench_report::words::key_difference;
use isobench_schema::comparability::{ComparabilityKey, KeyDifference, KeyField};
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::measurement::{Direction, MetricName};
use serde::Serialize;

use super::Context;
use crate::args::CompareArgs;
use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};

/// The comparison of one arm.
#[derive(Debug, Serialize)]
struct Row {
    task: TaskId,
    arm: ArmId,
    metric: MetricName,
    /// The fields in which the keys differ. Unless there are none, nothing is compared.
    differs_in: Vec<KeyField>,
    /// The same with both values.
    differences: Vec<KeyDifference>,
    /// Blocks that both runs have with the same seed.
    blocks: usize,
    /// The mean log ratio of the second run to the first, positive is better.
    log_ratio: Option<f64>,
    /// The lower end of its 95 % interval.
    low: Option<f64>,
    /// The upper end of its 95 % interval.
    high: Option<f64>,
}

/// What one arm of one task measured in a run.
#[derive(Debug, Default)]
struct Side {
    /// The key without the block's seed.
    key: ComparabilityKey,
    /// The primary metric by the block's seed.
    values: BTreeMap<String, f64>,
}

type Sides = BTreeMap<(TaskId, ArmId), (MetricName, Direction, Side)>;

/// Runs the command.
pub(crate) fn run(args: &CompareArgs, context: Context) -> Result<Exit, CommandError> {
    let (first, second) = (sides(&args.first)?, sides(&args.second)?);
    let mut rows = Vec::new();
    for ((task, arm), (metric, direction, before)) in first {
        let Some((other, _, after)) = second.get(&(task.clone(), arm.clone())) else { continue };
        if metric != *other {
            let message = format!("task `{task}` is measured by {metric} in one run and by {other} in the other");
            return Err(CommandError::new(Exit::Usage, message));
        }
        rows.push(row(task, arm, (metric, direction), [&before, after]));
    }
    if rows.is_empty() {
        return Err(CommandError::new(Exit::Usage, "the runs have no arm of a task in common")
            .hint("`isobench report` shows what each of them measured"));
    }
    let refused = rows.iter().filter(|row| !row.differs_in.is_empty()).count();
    if context.json {
        context.print_json(&rows)?;
    } else {
        for row in &rows {
            context.terminal.data(&line(row));
        }
    }
    if refused == rows.len() {
        let message = "nothing can be compared: every pair differs in what must be equal";
        return Err(CommandError::new(Exit::Usage, message).hint("run both with the same plan on the same machine"));
    }
    context.terminal.status("exploratory: the two runs were not interleaved, so that this is no verdict");
    Ok(Exit::Success)
}

fn row(task: TaskId, arm: ArmId, metric: (MetricName, Direction), sides: [&Side; 2]) -> Row {
    let [before, after] = sides;
    let key_differences = before.key.differences(&after.key);
    let differs_in: Vec<KeyField> = key_differences.iter().map(|difference| difference.field).collect();
    let (metric, direction) = metric;
    let sign = match direction {
        Direction::Higher => 1.0,
        Direction::Lower => -1.0,
    };
    let mut differences = Vec::new();
    if differs_in.is_empty() {
        for (seed, value) in &before.values {
            if let Some(other) = after.values.get(seed) {
                differences.push(sign * (other / value).ln());
            }
        }
    }
    let sample = OneSample::of(&differences);
    let interval = sample.and_then(|sample| sample.interval(0.05));
    Row {
        task,
        arm,
        metric,
        differs_in,
        differences: key_differences,
        blocks: differences.len(),
        log_ratio: sample.map(|sample| sample.mean).or_else(|| differences.first().copied()),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
    }
}

fn line(row: &Row) -> String {
    let name = format!("{} {}", row.task, row.arm);
    if !row.differs_in.is_empty() {
        let fields: Vec<String> = row.differences.iter().map(key_difference).collect();
        return format!("{name}: not comparable, the runs differ in {}\n", fields.join(", "));
    }
    let Some(ratio) = row.log_ratio else {
        return format!("{name}: no block of both runs has the same seed and counts\n");
    };
    let percent = |log: f64| format!("{:+.1} %", (log.exp() - 1.0) * 100.0);
    let interval = match (row.low, row.high) {
        (Some(low), Some(high)) => format!(" (95 % interval {} to {})", percent(low), percent(high)),
        (Some(_) | None, Some(_) | None) => String::new(),
    };
    let better = "positive is better";
    format!("{name}: {} {}{interval} over {} blocks, {better}\n", row.metric, percent(ratio), row.blocks)
}

/// Returns what each arm measured by the run's judgement: only what counts in its blocks is compared with another run.
fn sides(run: &Path) -> Result<Sides, CommandError> {
    let judgement = evidence::judgement(run)?;
    let keys = keys(run)?;
    let mut sides = Sides::new();
    for task in judgement.tasks {
        for arm in task.arms {
            let of = |block| keys.get(&(task.id.clone(), block, arm.arm.clone())).map(|(_, key)| key);
            let mut side = Side::default();
            for value in &arm.values {
                let Some(key) = of(value.block) else { continue };
                let Some(seed) = key.0.get(&KeyField::Seed) else { continue };
                side.key = key.without(KeyField::Seed);
                side.values.insert(seed.clone(), value.value);
            }
            if side.values.is_empty()
                && let Some(key) = (0..task.blocks.planned).find_map(of)
            {
                side.key = key.without(KeyField::Seed);
            }
            if arm.launches > 0 {
                sides.insert((task.id.clone(), arm.arm), (task.metric, task.direction, side));
            }
        }
    }
    Ok(sides)
}

/// The comparability key of each arm's launch in the attempt that counts, by block: the complete one, or else the last.
type Keys = BTreeMap<(TaskId, u32, ArmId), ((bool, u32), ComparabilityKey)>;

fn keys(run: &Path) -> Result<Keys, CommandError> {
    let mut keys = Keys::new();
    for event in evidence::open(run)?.events().exit(Exit::Error)? {
        let EventKind::BlockEnded { id, end, launches, .. } = event.exit(Exit::Error)?.kind else { continue };
        let rank = (end == BlockEnd::Complete, id.attempt);
        for record in launches {
            let entry = keys.entry((id.task.clone(), id.block, record.launch.arm));
            let kept = entry.or_insert_with(|| (rank, record.key.clone()));
            if kept.0 < rank {
                *kept = (rank, record.key);
            }
        }
    }
    Ok(keys)
}
