//! What the tasks of a run say together, as text for a terminal.

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::view::suite::{SuiteView, TableView};

/// Appends the suite's sentences and its short tables.
pub(super) fn suite(out: &mut String, suite: &SuiteView, style: Style) {
    section(out, "All tasks together", style);
    for sentence in &suite.lead {
        style.paragraph(out, "  - ", sentence);
    }
    for item in suite.tables.iter().filter(|table| !table.is_long) {
        one(out, item, style);
    }
}

fn one(out: &mut String, item: &TableView, style: Style) {
    out.push('\n');
    style.paragraph(out, "  ", &item.title);
    style.paragraph(out, "  ", &item.about);
    let layout = |place: usize, is_number: bool| match (place, is_number) {
        (_, true) => Layout::Number,
        (0, false) => Layout::Name,
        (_, false) => Layout::Word,
    };
    let columns: Vec<Column<'_>> = item
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| Column { title: &column.title, layout: layout(place, column.is_number) })
        .collect();
    let rows: Vec<Vec<Cell>> = item.rows.iter().map(|row| row.iter().map(Cell::plain).collect()).collect();
    table(out, &columns, &rows, style);
}
