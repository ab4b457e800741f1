//! Every number that was published otherwise than it comes out of the data, with the reason that the data give.

use isobench_schema::old_tables::{OldTable, TableCell, TableDifference, TableRow};

use super::rows::ResultRow;
use super::thresholds;

pub(super) fn differences(tables: &[OldTable], results: &[ResultRow]) -> Vec<TableDifference> {
    let mut found = Vec::new();
    for table in tables {
        for row in &table.rows {
            for (column, cell) in table.columns.iter().zip(&row.cells).filter(|(_, cell)| !cell.agrees()) {
                found.push(TableDifference {
                    table: table.id.clone(),
                    row: row.labels.clone(),
                    column: column.clone(),
                    here: cell.text(),
                    published: cell.published_text(),
                    reason: reason(tables, table, row, column, results),
                });
            }
        }
    }
    found
}

fn reason(tables: &[OldTable], table: &OldTable, row: &TableRow, column: &str, results: &[ResultRow]) -> String {
    let found = match (table.id.as_str(), column) {
        ("quadrants", _) | ("success-rates", "true") => by_interval(tables, row),
        ("success-rates", "gap") => by_rounded_rates(table, row),
        ("threshold:5%", _) => by_edge(row, results),
        _ => None,
    };
    found.unwrap_or_else(|| "the data don't say".to_owned())
}

fn find<'t>(tables: &'t [OldTable], id: &str, labels: &[String]) -> Option<(&'t OldTable, &'t TableRow)> {
    let table = tables.iter().find(|table| table.id == id)?;
    Some((table, table.rows.iter().find(|row| row.labels == labels)?))
}

fn cell<'r>(table: &OldTable, row: &'r TableRow, column: &str) -> Option<&'r TableCell> {
    let place = table.columns.iter().position(|title| title == column)?;
    row.cells.get(place)
}

/// The published interval of the same rate takes sides: it comes out of one of the two counts only.
fn by_interval(tables: &[OldTable], row: &TableRow) -> Option<String> {
    let (table, interval) = find(tables, "wilson", &row.labels)?;
    let (low, high) = (cell(table, interval, "low")?, cell(table, interval, "high")?);
    let is_ours = low.published.is_some() && low.agrees() && high.agrees();
    let (successes, all) = (cell(table, interval, "successes")?.text()?, cell(table, interval, "results")?.text()?);
    is_ours.then(|| {
        format!(
            "the published interval of the same agent's true success, {} to {} %, is that of {successes} of {all}, as the \
             per-commit data have it; the printed count goes with neither",
            low.text().unwrap_or_default(),
            high.text().unwrap_or_default()
        )
    })
}

/// A difference of rates that were rounded before.
fn by_rounded_rates(table: &OldTable, row: &TableRow) -> Option<String> {
    let printed = |column: &str| cell(table, row, column)?.published;
    let (truly, hard, gap) = (printed("true")?, printed("hard")?, printed("gap")?);
    let is_rounded = format!("{:.1}", hard - truly) == format!("{gap:.1}");
    is_rounded.then(|| format!("the published gap is that of the rounded rates, {hard} less {truly}"))
}

/// A class whose difference, as it is printed, is the threshold itself.
fn by_edge(row: &TableRow, results: &[ResultRow]) -> Option<String> {
    let [project, agent] = row.labels.as_slice() else { return None };
    let of = results.iter().filter(|result| result.project == *project && result.agent == *agent);
    let differ = of.filter(|result| thresholds::class(result, thresholds::FIVE) != result.class);
    let text = |result: &ResultRow| {
        let printed = result.agent_vs_human_pct.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        let is_edge = result.agent_vs_human_pct.is_some_and(|value| value.abs().to_bits() == 5.0_f64.to_bits());
        let why =
            if is_edge { ", the threshold itself, which it must have been beyond before it was rounded" } else { "" };
        format!("`{}` is published as `{}` with a difference of {printed} %{why}", result.commit, result.class)
    };
    let texts: Vec<String> = differ.map(text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}
