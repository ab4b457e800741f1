//! Published tables, recomputed, as Markdown.

use isobench_schema::old_tables::{OldTable, OldTables, TableDifference};

use super::{code, dash, escape, push, sentence, table};
use crate::legacy::{agreement, cell};
use crate::number::counted;
use crate::text::clean;

/// The title.
const TITLE: &str = "The old tables";

/// What the page is.
const HEAD: &str = "\
What ISO-Bench published about agents on vLLM and SGLang commits, computed again from the data that it published, by its own \
rules: single runs, a threshold of 5 %, quadrants. Each number stands beside the printed one; every difference is listed \
with where it comes from. These rules reproduce what was published. isobench itself decides otherwise, \
by repeated blocks and tests: see the methodology.";

/// Returns the tables, every difference to what was published, and what can't be computed.
pub fn old_tables(tables: &OldTables) -> String {
    let mut out = format!("# {TITLE}\n\n{HEAD}\n\n");
    push(&mut out, &format!("There are {}, one for each commit and agent.", counted(tables.results, "result")));
    push(&mut out, "## What was published otherwise");
    if tables.differences.is_empty() {
        push(&mut out, "Nothing.");
    } else {
        let titles = ["table", "row", "column", "here", "printed", "why"];
        table(&mut out, &titles, tables.differences.iter().map(difference));
    }
    for item in &tables.tables {
        one_table(&mut out, item);
    }
    if !tables.not_recomputed.is_empty() {
        push(&mut out, "## What can't be computed from what is public");
        let row = |item: &isobench_schema::old_tables::NotRecomputed| {
            vec![code(&clean(&item.table)), sentence(&clean(&item.missing))]
        };
        table(&mut out, &["table", "it would take"], tables.not_recomputed.iter().map(row));
    }
    if !tables.remarks.is_empty() {
        push(&mut out, "## What the tables don't show");
        let lines: Vec<String> =
            tables.remarks.iter().map(|remark| format!("- {}", sentence(&clean(remark)))).collect();
        push(&mut out, &lines.join("\n"));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn difference(difference: &TableDifference) -> Vec<String> {
    vec![
        code(&clean(&difference.table)),
        escape(&clean(&difference.row.join(" "))),
        escape(&clean(&difference.column)),
        difference.here.clone().unwrap_or_else(dash),
        difference.published.clone().unwrap_or_else(dash),
        sentence(&clean(&difference.reason)),
    ]
}

fn one_table(out: &mut String, item: &OldTable) {
    push(out, &format!("## {}", escape(&clean(&item.title))));
    push(out, &format!("{} **{}**", sentence(&clean(&item.about)), agreement(item)));
    let titles: Vec<String> = item.labels.iter().chain(&item.columns).map(|title| escape(&clean(title))).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let row = |row: &isobench_schema::old_tables::TableRow| {
        let labels = row.labels.iter().map(|label| escape(&clean(label)));
        labels.chain(row.cells.iter().map(cell)).collect()
    };
    table(out, &titles, item.rows.iter().map(row));
}
