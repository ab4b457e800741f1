//! A forest with a row for each task.

use maud::{Markup, html};

use super::{ForestRow, Frame, HEAD, LEFT, RIGHT, marker, one};
use crate::number::count;
use crate::text::truncate;

/// Up to so many rows are tall.
const TALL: usize = 40;
/// Columns of a task's name.
const NAME: usize = 34;

/// Returns the rows and where they end.
pub(super) fn body(frame: &Frame, rows: &[ForestRow]) -> (Markup, f64) {
    let height = if rows.len() <= TALL { 21.0 } else { 15.0 };
    let first = rows.first().map_or(0.0, |row| row.margin);
    let is_one = rows.iter().all(|row| (row.margin - first).abs() < 1e-12);
    let markup = html! {
        @for (place, row) in rows.iter().enumerate() {
            @let y = HEAD + height * (count(place) + 0.5);
            @if !is_one {
                rect.band x=(one(frame.x(-row.margin))) y=(one(y - height / 2.0))
                    width=(one(frame.x(row.margin) - frame.x(-row.margin))) height=(one(height)) {}
            }
            (one_row(frame, row, y))
        }
    };
    (markup, HEAD + height * count(rows.len()) + 4.0)
}

fn one_row(frame: &Frame, row: &ForestRow, y: f64) -> Markup {
    html! {
        g class=(row.verdict.tone.class()) {
            @if let Some((low, high)) = row.interval {
                line.reach x1=(one(frame.x(low))) x2=(one(frame.x(high))) y1=(one(y)) y2=(one(y)) {}
                // An end that lies outside the plot has an arrow instead of an end.
                @for (end, side) in [(low, -1.0), (high, 1.0)] { (tip(frame.x(end), y, side)) }
            }
            (marker(row.verdict, frame.x(row.estimate), y))
        }
        text.task x=(LEFT - 12.0) y=(one(y + 4.0)) text-anchor="end" { (truncate(&row.task, NAME)) }
        text.value x=(RIGHT + 14.0) y=(one(y + 4.0)) { (row.text) }
    }
}

fn tip(x: f64, y: f64, side: f64) -> Markup {
    let is_cut = x <= LEFT + 0.05 || x >= RIGHT - 0.05;
    let path = if is_cut {
        format!("M{x:.1},{y:.1} l{:.1},-4 v8 Z", -6.0 * side)
    } else {
        format!("M{x:.1},{:.1} v6", y - 3.0)
    };
    html! { path.reach.shape[is_cut] d=(path) {} }
}
