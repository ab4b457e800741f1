//! Which agents can be told apart: pairs of agents over the tasks that both have.
//!
//! By speed-up, two agents are compared by the mean of their differences over common tasks (both log ratios are to the same
//! launches of the baseline), drawn anew together; a task in which one failed by itself counts with no gain of it. By
//! successes it is `McNemar`'s exact test. All pairs of a table together are held to 5 % by Holm's method.

use isobench_schema::ids::ArmId;
use isobench_schema::order::derive_seed;
use isobench_schema::suite::{RankMeasure, RankPair, RankRow, RankTable, SuccessRule};

use super::means::{Over, as_the_baseline};
use super::rates::outcome;
use super::{Kind, LEVEL, Tasks, counted, estimate};
use crate::stats::{holm, mcnemar_exact, mean};

/// An agent with its value at each task, in the order of the tasks.
struct Column<'a> {
    arm: &'a ArmId,
    values: Vec<Option<f64>>,
}

impl Column<'_> {
    fn present(&self) -> Vec<f64> {
        self.values.iter().flatten().copied().collect()
    }

    /// Returns the values of both at the tasks that both have.
    fn with<'c>(&'c self, other: &'c Self) -> impl Iterator<Item = (f64, f64)> + 'c {
        self.values.iter().zip(&other.values).filter_map(|(one, other)| one.zip(*other))
    }
}

/// Returns the tables of ranks, if there are two agents.
pub(super) fn of(tasks: &Tasks<'_>) -> Vec<RankTable> {
    let agents = tasks.agents();
    if agents.len() < 2 {
        return Vec::new();
    }
    let table = |&by: &RankMeasure| {
        let columns: Vec<Column<'_>> =
            agents.iter().map(|arm| Column { arm, values: values(tasks, arm, by) }).collect();
        let columns: Vec<Column<'_>> =
            columns.into_iter().filter(|column| column.values.iter().any(Option::is_some)).collect();
        (columns.len() >= 2).then(|| rank(tasks, by, columns))
    };
    RankMeasure::ALL.iter().filter_map(table).collect()
}

/// Returns an agent's value at each task.
fn values(tasks: &Tasks<'_>, arm: &ArmId, by: RankMeasure) -> Vec<Option<f64>> {
    let success = |rule: SuccessRule| {
        let value = |is_success: bool| if is_success { 1.0 } else { 0.0 };
        tasks.rows.iter().map(|row| outcome(tasks, *row, arm, rule).trial().map(value)).collect()
    };
    match by {
        RankMeasure::SpeedUp => {
            let kind = Kind { against: ArmId::Baseline, of: arm.clone() };
            let value = |row: &super::Row<'_>| {
                let measured = row.contrast(&kind.of, &kind.against).and_then(estimate);
                measured.or_else(|| as_the_baseline(*row, &kind))
            };
            tasks.rows.iter().map(value).collect()
        }
        RankMeasure::BetterThanBaseline => success(SuccessRule::BetterThanBaseline),
        RankMeasure::AtLeastHuman => success(SuccessRule::AtLeastHuman),
    }
}

fn rank(tasks: &Tasks<'_>, by: RankMeasure, mut columns: Vec<Column<'_>>) -> RankTable {
    let value = |column: &Column<'_>| mean(&column.present()).unwrap_or_default();
    // Best first; those with the same value by name.
    columns.sort_by(|one, other| value(other).total_cmp(&value(one)).then_with(|| one.arm.cmp(other.arm)));
    let mut pairs: Vec<RankPair> = Vec::new();
    for (place, one) in columns.iter().enumerate() {
        pairs.extend(columns.iter().skip(place + 1).map(|other| pair(tasks, by, one, other)));
    }
    adjust(&mut pairs);
    let row = |column: &Column<'_>| {
        let ahead = pairs.iter().filter(|pair| loser(pair) == Some(column.arm)).count();
        let behind = pairs.iter().filter(|pair| winner(pair) == Some(column.arm)).count();
        RankRow {
            arm: column.arm.clone(),
            value: value(column),
            tasks: counted(column.present().len()),
            best: counted(1 + ahead),
            worst: counted(columns.len() - behind),
        }
    };
    let rows: Vec<RankRow> = columns.iter().map(row).collect();
    let groups = groups(&rows, &pairs);
    RankTable { by, rows, groups, pairs }
}

fn pair(tasks: &Tasks<'_>, by: RankMeasure, one: &Column<'_>, other: &Column<'_>) -> RankPair {
    let differences: Vec<f64> = one.with(other).map(|(one, other)| one - other).collect();
    let empty = RankPair {
        of: one.arm.clone(),
        against: other.arm.clone(),
        tasks: counted(differences.len()),
        difference: mean(&differences),
        low: None,
        high: None,
        first_only: None,
        second_only: None,
        p: None,
        holm: None,
    };
    match by {
        RankMeasure::SpeedUp => {
            let purpose = format!("suite: rank of {} and {}", one.arm, other.arm);
            let over = Over::tasks(&differences, derive_seed(tasks.plan.seed, &purpose));
            let found = over.as_ref().map(Over::mean);
            RankPair {
                low: found.and_then(|found| found.low),
                high: found.and_then(|found| found.high),
                p: over.as_ref().and_then(Over::p),
                ..empty
            }
        }
        RankMeasure::BetterThanBaseline | RankMeasure::AtLeastHuman => {
            let first = differences.iter().filter(|difference| **difference > 0.5).count();
            let second = differences.iter().filter(|difference| **difference < -0.5).count();
            let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
            let p = mcnemar_exact(count(first), count(second));
            RankPair {
                first_only: Some(counted(first)),
                second_only: Some(counted(second)),
                p: (!differences.is_empty()).then_some(p),
                ..empty
            }
        }
    }
}

/// Adjusts the p of all pairs that have one.
fn adjust(pairs: &mut [RankPair]) {
    let p: Vec<f64> = pairs.iter().filter_map(|pair| pair.p).collect();
    let adjusted = holm(&p).unwrap_or_default();
    for (pair, adjusted) in pairs.iter_mut().filter(|pair| pair.p.is_some()).zip(adjusted) {
        pair.holm = Some(adjusted);
    }
}

/// Returns the better agent of a pair, if the two can be told apart.
fn winner(pair: &RankPair) -> Option<&ArmId> {
    ordered(pair).map(|(winner, _)| winner)
}

/// Returns the other one.
fn loser(pair: &RankPair) -> Option<&ArmId> {
    ordered(pair).map(|(_, loser)| loser)
}

fn ordered(pair: &RankPair) -> Option<(&ArmId, &ArmId)> {
    let difference = pair.difference.filter(|_| pair.holm.is_some_and(|p| p <= LEVEL))?;
    Some(if difference > 0.0 { (&pair.of, &pair.against) } else { (&pair.against, &pair.of) })
}

/// Returns the longest stretches of the table in which no pair can be told apart.
fn groups(rows: &[RankRow], pairs: &[RankPair]) -> Vec<Vec<ArmId>> {
    let is_apart = |one: &ArmId, other: &ArmId| {
        let both = |pair: &&RankPair| {
            (pair.of == *one && pair.against == *other) || (pair.of == *other && pair.against == *one)
        };
        pairs.iter().find(both).is_some_and(|pair| ordered(pair).is_some())
    };
    let mut groups: Vec<Vec<ArmId>> = Vec::new();
    let mut reached = 0;
    for start in 0..rows.len() {
        let mut stretch: Vec<ArmId> = Vec::new();
        for row in rows.iter().skip(start) {
            if stretch.iter().any(|arm| is_apart(arm, &row.arm)) {
                break;
            }
            stretch.push(row.arm.clone());
        }
        // A stretch that goes no further than one before it is a part of that.
        let end = start + stretch.len();
        if end > reached {
            reached = end;
            groups.push(stretch);
        }
    }
    groups
}
