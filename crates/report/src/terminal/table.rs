//! Tables of text that shrink to the terminal's width, or stack when they can't.

use super::Style;
use crate::text;
use crate::words::Tone;
use std::fmt::Write as _;

/// How a column is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Left-aligned, may be cut.
    Name,
    /// Left-aligned, never cut.
    Word,
    /// Right-aligned, never cut.
    Number,
}

/// A column.
pub(crate) struct Column<'t> {
    pub(crate) title: &'t str,
    pub(crate) layout: Layout,
}

/// A cell.
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Option<Tone>,
}

impl Cell {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: None }
    }

    /// Returns a cell with the text, or with a dash where there is nothing.
    pub(crate) fn optional(text: Option<&String>) -> Self {
        Self::plain(text.map_or("–", String::as_str))
    }
}

/// The narrowest that a cut column becomes.
const NARROWEST: usize = 12;
const INDENT: &str = "  ";
const GAP: &str = "  ";

/// Appends the table, indented by two columns.
pub(crate) fn table(out: &mut String, columns: &[Column<'_>], rows: &[Vec<Cell>], style: Style) {
    let mut widths = natural_widths(columns, rows);
    if !shrink(&mut widths, columns, style.width) {
        stack(out, columns, rows, style);
        return;
    }
    let titles: Vec<Cell> = columns.iter().map(|column| Cell::plain(column.title)).collect();
    let head = line(columns, &widths, &titles, Style { color: false, ..style });
    out.push_str(INDENT);
    out.push_str(&style.code("4", head.trim_end()));
    out.push('\n');
    for row in rows {
        out.push_str(INDENT);
        out.push_str(line(columns, &widths, row, style).trim_end());
        out.push('\n');
    }
}

fn natural_widths(columns: &[Column<'_>], rows: &[Vec<Cell>]) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| text::width(column.title)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(text::width(&cell.text));
        }
    }
    widths
}

/// Narrows the columns that may be cut until the table fits. Returns whether it does.
fn shrink(widths: &mut [usize], columns: &[Column<'_>], available: usize) -> bool {
    let gaps = INDENT.len() + GAP.len() * columns.len().saturating_sub(1);
    loop {
        let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(available);
        if excess == 0 {
            return true;
        }
        let cuttable = widths.iter_mut().zip(columns).filter(|(_, column)| column.layout == Layout::Name);
        match cuttable.map(|(width, _)| width).max_by_key(|width| **width) {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            Some(_) | None => return false,
        }
    }
}

fn line(columns: &[Column<'_>], widths: &[usize], row: &[Cell], style: Style) -> String {
    let cells = columns.iter().zip(widths).zip(row).map(|((column, &width), cell)| {
        let padded = match column.layout {
            Layout::Name | Layout::Word => text::pad(&cell.text, width),
            Layout::Number => text::pad_left(&cell.text, width),
        };
        cell.tone.map_or_else(|| padded.clone(), |tone| style.paint(tone, &padded))
    });
    cells.collect::<Vec<_>>().join(GAP)
}

/// Appends each row as lines of `title: value`, for terminals that are too narrow for columns.
fn stack(out: &mut String, columns: &[Column<'_>], rows: &[Vec<Cell>], style: Style) {
    let label = columns.iter().map(|column| text::width(column.title)).max().unwrap_or(0);
    for (place, row) in rows.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        for (column, cell) in columns.iter().zip(row) {
            let room = style.width.saturating_sub(INDENT.len() + label + GAP.len()).max(8);
            let value = text::truncate(&cell.text, room);
            let value = cell.tone.map_or_else(|| value.to_string(), |tone| style.paint(tone, &value));
            writeln!(out, "{INDENT}{}{GAP}{value}", text::pad(column.title, label))
                .expect("a String takes every write");
        }
    }
}
