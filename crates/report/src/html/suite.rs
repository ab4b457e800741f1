//! What the tasks of a run say together: sentences, forests and tables.

use maud::{Markup, PreEscaped, html};

use crate::svg::forest::{Forest, Part};
use crate::svg::style;
use crate::view::suite::{SuiteView, TableView};

/// Long tables are cut after so many rows; the CSV has all of them.
const MOST_ROWS: usize = 500;

/// Up to so many tasks the pages of a forest are in the page too.
const PAGED: usize = 1000;

/// Returns the section.
pub(super) fn section(suite: &SuiteView) -> Markup {
    html! {
        section.suite aria-labelledby="suite" {
            style { (PreEscaped(style())) }
            h2 #suite { "All tasks together" }
            ul { @for sentence in &suite.lead { li { (ticked(sentence)) } } }
            @for forest in &suite.forests { (figure(forest)) }
            @for table in &suite.tables { (one(table)) }
        }
    }
}

fn figure(forest: &Forest) -> Markup {
    let pages = forest.pages();
    html! {
        figure {
            figcaption { b { (forest.of) } " vs " (forest.against) ": each task's speed-up with its interval, fastest first" }
            (forest.drawing(Part::Whole).inline())
            @if pages > 1 && forest.rows.len() <= PAGED {
                details {
                    summary { "Each task by name" }
                    @for page in 0..pages { (forest.drawing(Part::Page(page)).inline()) }
                }
            }
        }
    }
}

fn one(table: &TableView) -> Markup {
    let body = html! {
        @if !table.about.is_empty() { p.note { (ticked(&table.about)) } }
        div.scroll { table {
            thead { tr { @for column in &table.columns {
                th.number[column.is_number] scope="col" { (column.title) }
            } } }
            tbody { @for row in table.rows.iter().take(MOST_ROWS) { tr {
                @for (place, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
                    @if place == 0 { th scope="row" { bdi { (cell) } } }
                    @else { td.number[column.is_number] { bdi { (cell) } } }
                }
            } } }
        } }
        @if let Some(more) = table.rows.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
            p.note { "And " (more) " more rows." }
        }
    };
    html! {
        @if table.is_long { details { summary { (table.title) } (body) } } @else { h3 { (table.title) } (body) }
    }
}

/// Returns a text in which what stands between backticks is code.
fn ticked(text: &str) -> Markup {
    html! { @for (place, part) in text.split('`').enumerate() {
        @if place % 2 == 1 { code { bdi { (part) } } } @else { (part) }
    } }
}
