//! Published tables, recomputed, as a terminal page.

use isobench_schema::old_tables::{OldTable, OldTables, TableDifference};

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::legacy::{agreement, cell};
use crate::number::counted;
use crate::text::clean;

/// Returns the tables, every difference to what was published, and what can't be computed.
pub fn old_tables(tables: &OldTables, style: Style) -> String {
    let mut out = String::new();
    style.heading(&mut out, &format!("The published tables, from {}", counted(tables.results, "result")));
    for item in &tables.tables {
        one_table(&mut out, item, style);
    }
    section(&mut out, "Published otherwise", style);
    if tables.differences.is_empty() {
        style.paragraph(&mut out, "  ", "nothing");
    }
    for difference in &tables.differences {
        style.paragraph(&mut out, "  - ", &sentence(difference));
    }
    if !tables.not_recomputed.is_empty() {
        section(&mut out, "Can't be computed from what is public", style);
        for item in &tables.not_recomputed {
            style.paragraph(
                &mut out,
                "  - ",
                &format!("{}: it would take {}", clean(&item.table), clean(&item.missing)),
            );
        }
    }
    if !tables.remarks.is_empty() {
        section(&mut out, "What the tables don't show", style);
        for remark in &tables.remarks {
            style.paragraph(&mut out, "  - ", &clean(remark));
        }
    }
    out
}

/// Returns a difference in one sentence.
fn sentence(difference: &TableDifference) -> String {
    let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
    format!(
        "{}, {}, {}: {} here, printed {}: {}",
        difference.table,
        clean(&difference.row.join(" ")),
        difference.column,
        or_nothing(&difference.here),
        or_nothing(&difference.published),
        clean(&difference.reason)
    )
}

fn one_table(out: &mut String, item: &OldTable, style: Style) {
    section(out, &item.title, style);
    style.paragraph(out, "  ", &format!("{} {}", item.about, agreement(item)));
    let label = |title| Column { title, layout: Layout::Word };
    let number = |title| Column { title, layout: Layout::Number };
    let labels = item.labels.iter().map(|title| label(title.as_str()));
    let columns: Vec<Column<'_>> = labels.chain(item.columns.iter().map(|title| number(title.as_str()))).collect();
    let mut rows = Vec::new();
    for row in &item.rows {
        let labels = row.labels.iter().map(|label| Cell::plain(clean(label)));
        rows.push(labels.chain(row.cells.iter().map(|number| Cell::plain(cell(number)))).collect());
    }
    table(out, &columns, &rows, style);
}
