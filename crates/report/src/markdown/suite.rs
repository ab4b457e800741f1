//! What the tasks of a run say together, as Markdown.

use super::{escape, push, sentence, table};
use crate::view::suite::{SuiteView, TableView};

/// Tables with more rows are cut: the CSV has all of them.
const MOST_ROWS: usize = 200;

/// Appends the suite's sentences and tables.
pub(super) fn suite(out: &mut String, suite: &SuiteView) {
    push(out, "## All tasks together");
    let items: Vec<String> = suite.lead.iter().map(|text| format!("- {}", sentence(text))).collect();
    push(out, &items.join("\n"));
    for item in &suite.tables {
        one(out, item);
    }
}

fn one(out: &mut String, item: &TableView) {
    push(out, &format!("### {}", escape(&item.title)));
    if !item.about.is_empty() {
        push(out, &sentence(&item.about));
    }
    let titles: Vec<String> = item.columns.iter().map(|column| escape(&column.title)).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let rows = item.rows.iter().take(MOST_ROWS).map(|row| row.iter().map(|cell| escape(cell)).collect());
    table(out, &titles, rows);
    if let Some(more) = item.rows.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
        push(out, &format!("And {more} more rows."));
    }
}
