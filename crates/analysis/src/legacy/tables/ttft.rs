//! Times to the first token of baseline, human side and Claude Code.

use isobench_schema::old_tables::{OldTable, TableCell, TableRow};

use super::rows::TtftRow;
use super::table;

/// Half of the last decimal of the published milliseconds.
const HALF_MS: f64 = 0.05;

/// Half of the last decimal of the differences to the baseline.
const HALF_PCT: f64 = 0.05;

pub(super) fn table_of(rows: &[TtftRow]) -> OldTable {
    let about = "Mean time to the first token in milliseconds, and the differences in percent, positive where it is shorter, \
        computed from the published milliseconds.";
    let columns = ["baseline ms", "human ms", "agent ms", "human vs baseline", "agent vs baseline", "agent vs human"];
    let mut found = table("ttft-three-way", "Claude Code's times to the first token", about, &["commit"], &columns);
    found.rows = rows.iter().map(row).collect();
    found
}

fn row(row: &TtftRow) -> TableRow {
    let time = |here: Option<f64>| TableCell { here, published: None, decimals: 1 };
    let difference = |from: Option<f64>, to: Option<f64>, published: Option<f64>| {
        let here = from.zip(to).filter(|(from, _)| *from > 0.0).map(|(from, to)| 100.0 * (from - to) / from);
        TableCell { here, published, decimals: 2 }
    };
    let (baseline, human, agent) = (row.baseline_ms, row.human_ms, row.agent_ms);
    TableRow {
        labels: vec![row.commit.clone()],
        cells: vec![
            time(baseline),
            time(human),
            time(agent),
            difference(baseline, human, row.human_vs_baseline_pct),
            difference(baseline, agent, row.agent_vs_baseline_pct),
            difference(human, agent, row.agent_vs_human_pct),
        ],
    }
}

/// Returns whether a difference in percent, printed with one decimal, may be that of two published times, given how all of
/// them are rounded.
pub(super) fn is_within_rounding(from_ms: f64, to_ms: f64, percent: f64) -> bool {
    let of = |from: f64, to: f64| 100.0 * (from - to) / from;
    let low = of(from_ms - HALF_MS, to_ms + HALF_MS).min(of(from_ms + HALF_MS, to_ms + HALF_MS));
    let high = of(from_ms + HALF_MS, to_ms - HALF_MS).max(of(from_ms - HALF_MS, to_ms - HALF_MS));
    (low - HALF_PCT..=high + HALF_PCT).contains(&percent)
}
