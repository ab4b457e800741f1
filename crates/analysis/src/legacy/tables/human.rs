//! The human side against the baseline.

use isobench_schema::old_tables::{OldTable, TableRow};

use super::rows::{DeltaRow, InTable, Primary};
use super::{Data, cell, count, table};

/// What counts as a gain in the published table, in percent.
pub(super) const GAIN_PCT: f64 = 5.0;

/// The agent whose primary metric the published table follows.
const LEADING_AGENT: &str = "claude_code";

/// The metrics in the order in which they are taken where the agent has none.
const ORDER: [&str; 3] = ["throughput", "ttft", "latency"];

/// The gain of one commit's human side.
pub(super) struct Gain<'d> {
    pub(super) project: &'d str,
    pub(super) metric: &'d str,
    pub(super) human_pct: f64,
}

/// Returns the gain of the human side at every commit that has one, by one metric each.
pub(super) fn gains(data: &Data) -> Vec<Gain<'_>> {
    let mut commits: Vec<(&str, &str)> = Vec::new();
    for row in &data.deltas {
        let commit = (row.project.as_str(), row.commit.as_str());
        if row.human_pct.is_some() && !commits.contains(&commit) {
            commits.push(commit);
        }
    }
    commits.into_iter().filter_map(|(project, commit)| gain(data, project, commit)).collect()
}

fn gain<'d>(data: &'d Data, project: &str, commit: &str) -> Option<Gain<'d>> {
    let leading = data
        .results
        .iter()
        .find(|row| row.project == project && row.commit == commit && row.agent == LEADING_AGENT)
        .and_then(|row| match row.primary {
            Primary::Ttft => Some("ttft"),
            Primary::Throughput => Some("throughput"),
            Primary::AgentFailed | Primary::None => None,
        });
    let of = |metric: &str| -> Option<&'d DeltaRow> {
        let is_it = |row: &&DeltaRow| row.project == project && row.commit == commit && row.metric == metric;
        data.deltas.iter().find(is_it).filter(|row| row.human_pct.is_some())
    };
    let row = leading.into_iter().chain(ORDER).find_map(of)?;
    Some(Gain { project: &row.project, metric: &row.metric, human_pct: row.human_pct? })
}

pub(super) fn table_of(data: &Data) -> OldTable {
    let about = "The human change against its baseline in percent, positive where it is better, by one metric for each \
        commit: the one that Claude Code's result is judged by, or where it failed throughput, else TTFT, else latency. \
        The published text doesn't say which metric it took; with this choice its figures come out.";
    let columns = ["covered", "of", "min", "median", "max", "over 5 %"];
    let mut found = table("human-vs-baseline", "The human change against its baseline", about, &["project"], &columns);
    let gains = gains(data);
    let mut projects: Vec<&str> = Vec::new();
    for gain in &gains {
        if !projects.contains(&gain.project) {
            projects.push(gain.project);
        }
    }
    found.rows = projects.into_iter().map(|project| row(data, project, &gains)).collect();
    found
}

fn row(data: &Data, project: &str, gains: &[Gain<'_>]) -> TableRow {
    let mut values: Vec<f64> = gains.iter().filter(|gain| gain.project == project).map(|gain| gain.human_pct).collect();
    values.sort_by(f64::total_cmp);
    let mut tasks: Vec<&str> = Vec::new();
    for row in &data.results {
        if row.project == project && row.in_published_table == InTable::Yes && !tasks.contains(&row.commit.as_str()) {
            tasks.push(&row.commit);
        }
    }
    let printed = data.published.human_gain(project);
    let printed = printed.as_ref();
    let over = values.iter().filter(|value| **value > GAIN_PCT).count();
    let end = |value: Option<&f64>| value.copied().unwrap_or_default();
    TableRow {
        labels: vec![project.to_owned()],
        cells: vec![
            count(values.len(), printed.map(|printed| printed.covered)),
            count(tasks.len(), printed.map(|printed| printed.of)),
            cell(end(values.first()), printed.map(|printed| printed.min), 1),
            cell(median(&values), printed.map(|printed| printed.median), 1),
            cell(end(values.last()), printed.map(|printed| printed.max), 1),
            count(over, printed.map(|printed| printed.over_5pct)),
        ],
    }
}

/// Returns the median of sorted values; 0 of none, which no row here has.
fn median(sorted: &[f64]) -> f64 {
    let middle = |place: usize| sorted.get(place).copied().unwrap_or_default();
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => middle(odd / 2),
        even => f64::midpoint(middle(even / 2 - 1), middle(even / 2)),
    }
}
