//! The classes by a threshold on single runs, `threshold:5%` and `threshold:2%`.

use isobench_schema::legacy::HardClass;
use isobench_schema::old_tables::{OldTable, TableRow};

use super::agents::of_class;
use super::count;
use super::rates::BY_AGENT;
use super::rows::{Primary, ResultRow};
use crate::legacy::rules::{AgentRun, hard_class};

/// A threshold.
#[derive(Clone, Copy)]
pub(super) struct Threshold {
    pub(super) percent: f64,
    pub(super) id: &'static str,
}

/// The threshold of the published classes.
pub(super) const FIVE: Threshold = Threshold { percent: 5.0, id: "threshold:5%" };

/// The threshold of an earlier report.
pub(super) const TWO: Threshold = Threshold { percent: 2.0, id: "threshold:2%" };

/// Returns a result's class by a threshold.
pub(super) fn class(row: &ResultRow, threshold: Threshold) -> HardClass {
    let run = match row.primary {
        Primary::AgentFailed => AgentRun::Failed,
        Primary::Ttft | Primary::Throughput | Primary::None => AgentRun::Ran,
    };
    hard_class(row.agent_vs_human_pct, threshold.percent, run)
}

fn rows(results: &[ResultRow], threshold: Threshold) -> Vec<TableRow> {
    let mut groups: Vec<(&str, &str, Vec<&ResultRow>)> = Vec::new();
    for row in results {
        match groups.iter_mut().find(|(project, agent, _)| *project == row.project && *agent == row.agent) {
            Some((_, _, rows)) => rows.push(row),
            None => groups.push((&row.project, &row.agent, vec![row])),
        }
    }
    let is_published = threshold.id == FIVE.id;
    let line = |(project, agent, rows): (&str, &str, Vec<&ResultRow>)| {
        let here: Vec<HardClass> = rows.iter().map(|row| class(row, threshold)).collect();
        let printed: Vec<HardClass> = rows.iter().map(|row| row.class).collect();
        let cell = |&class: &HardClass| {
            let printed = is_published.then(|| crate::stats::length(of_class(&printed, class)));
            count(of_class(&here, class), printed)
        };
        TableRow {
            labels: vec![project.to_owned(), agent.to_owned()],
            cells: HardClass::ALL.iter().map(cell).collect(),
        }
    };
    groups.into_iter().map(line).collect()
}

/// Counts the classes by a threshold over all results, those outside the published tables too. At the threshold of the
/// published classes these stand beside them.
pub(super) fn table(results: &[ResultRow], threshold: Threshold) -> OldTable {
    let beside = if threshold.id == FIVE.id { " The published classes are of this threshold." } else { "" };
    let about = format!(
        "Each result's difference to the human side, of one run each: `beats` above {0} %, `worse` below −{0} % or if the \
         agent's side failed, else `similar`; `NO_DATA` without a number. All results, also those outside the published \
         tables.{beside}",
        threshold.percent
    );
    let columns: Vec<&str> = HardClass::ALL.iter().map(|class| class.as_str()).collect();
    let title = format!("Classes by {} %", threshold.percent);
    let mut found = super::table(threshold.id, &title, &about, &BY_AGENT, &columns);
    found.rows = rows(results, threshold);
    found
}
