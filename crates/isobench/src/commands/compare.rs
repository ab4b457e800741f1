//! `isobench compare`: what two runs measured for the same arm of the same task, if their comparability keys are equal.

use std::collections::BTreeMap;
use std::path::Path;

use isobench_analysis::stats::OneSample;
use isobench_analysis::validity::LaunchRules;
use isobench_schema::comparability::{ComparabilityKey, KeyField};
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::measurement::{Direction, MetricName};
use serde::Serialize;

use super::Context;
use crate::args::CompareArgs;
use crate::evidence::{self, Digests};
use crate::exit::{CommandError, Exit, WithExit as _};

/// The comparison of one arm.
#[derive(Debug, Serialize)]
struct Row {
    task: TaskId,
    arm: ArmId,
    metric: MetricName,
    /// The fields in which the keys differ. Unless there are none, nothing is compared.
    differs_in: Vec<KeyField>,
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
    let differs_in = before.key.differences(&after.key);
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
        blocks: differences.len(),
        log_ratio: sample.map(|sample| sample.mean).or_else(|| differences.first().copied()),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
    }
}

fn line(row: &Row) -> String {
    let name = format!("{} {}", row.task, row.arm);
    if !row.differs_in.is_empty() {
        let fields: Vec<&str> = row.differs_in.iter().map(|field| field.as_str()).collect();
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

fn sides(run: &Path) -> Result<Sides, CommandError> {
    let reader = evidence::open(run)?;
    let mut digests = Digests::open(run);
    let mut sides = Sides::new();
    for event in reader.events().exit(Exit::Error)? {
        let EventKind::BlockEnded { id, end: BlockEnd::Complete, launches, .. } = event.exit(Exit::Error)?.kind else {
            continue;
        };
        let Some(task) = reader.plan().task(&id.task) else { continue };
        let rules = LaunchRules::of_task(task);
        for record in &launches {
            let input = digests.input(reader.artifacts(), record, &rules)?;
            let Some(digest) = input.digest.filter(|digest| digest.findings.is_empty()) else { continue };
            let Some(value) = digest.measurement.values.get(&task.metric.primary) else { continue };
            let Some(seed) = record.key.0.get(&KeyField::Seed) else { continue };
            let place = (id.task.clone(), record.launch.arm.clone());
            let metric = &task.metric;
            let (.., side) = sides.entry(place).or_insert((metric.primary, metric.direction, Side::default()));
            side.key = record.key.without(KeyField::Seed);
            side.values.insert(seed.clone(), *value);
        }
    }
    Ok(sides)
}
