//! A forest of more tasks than have a row each: thin lines, and a lane for each verdict, so that colour isn't needed.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::{Forest, ForestRow, Frame, HEAD, LEFT, RIGHT, WIDTH, marker, one};
use crate::number::{self, count};
use crate::words::Tone;

/// The height of all rows is at most this, and one row's at most that.
const TALLEST: f64 = 1300.0;
const ROW: f64 = 6.0;

const TONES: [Tone; 6] = [Tone::Good, Tone::Bad, Tone::Neutral, Tone::Unsure, Tone::Fault, Tone::Absent];

/// Returns the lines and where they end.
pub(super) fn body(frame: &Frame, forest: &Forest) -> (Markup, f64) {
    let rows = &forest.rows;
    let height = (TALLEST / count(rows.len())).min(ROW);
    let y = |place: usize| HEAD + height * (count(place) + 0.5);
    let bottom = HEAD + height * count(rows.len()) + 4.0;
    let markup = html! {
        @for tone in TONES {
            path class=(format!("thin {}", tone.class())) stroke-width=(format!("{:.2}", (0.7 * height).max(0.35)))
                d=(intervals(frame, rows, tone, &y)) {}
        }
        path.curve d=(curve(frame, rows, &y)) {}
        (axis(rows.len(), &y))
        (lanes(forest, &y, height))
    };
    (markup, bottom)
}

fn intervals(frame: &Frame, rows: &[ForestRow], tone: Tone, y: &impl Fn(usize) -> f64) -> String {
    let mut path = String::new();
    for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.verdict.tone == tone) {
        let (low, high) = row.interval.unwrap_or((row.estimate, row.estimate));
        write!(path, "M{:.1},{:.2}H{:.1}", frame.x(low), y(place), frame.x(high)).expect("a String takes every write");
    }
    path
}

/// Returns the line through all estimates, which falls from the fastest task to the slowest.
fn curve(frame: &Frame, rows: &[ForestRow], y: &impl Fn(usize) -> f64) -> String {
    let mut path = String::new();
    for (place, row) in rows.iter().enumerate() {
        let step = if place == 0 { 'M' } else { 'L' };
        write!(path, "{step}{:.1},{:.2}", frame.x(row.estimate), y(place)).expect("a String takes every write");
    }
    path
}

/// Returns the numbers of the tasks on the left.
fn axis(tasks: usize, y: &impl Fn(usize) -> f64) -> Markup {
    let every =
        [10, 20, 50, 100, 200, 500, 1000, 2000, 5000].into_iter().find(|step| tasks / step <= 12).unwrap_or(10_000);
    let numbers = (0..tasks).filter(|place| (place + 1).is_multiple_of(every) || *place == 0);
    html! {
        @for place in numbers {
            text.tick x=(LEFT - 12.0) y=(one(y(place) + 4.0)) text-anchor="end" {
                @if place == 0 { "fastest 1" } @else { (number::whole(count(place + 1))) }
            }
        }
        text.label x="12" y=(one(y(0) + 4.0)) { "tasks, sorted" }
    }
}

/// Returns the lanes on the right: a mark for each task in the lane of its verdict.
fn lanes(forest: &Forest, y: &impl Fn(usize) -> f64, height: f64) -> Markup {
    let present: Vec<_> = forest
        .verdicts
        .iter()
        .map(|(verdict, _)| *verdict)
        .filter(|verdict| forest.rows.iter().any(|row| row.verdict == *verdict))
        .collect();
    let width = ((WIDTH - RIGHT - 30.0) / count(present.len().max(1))).min(34.0);
    let left = |lane: usize| RIGHT + 18.0 + width * count(lane);
    let marks = |word: &str, lane: usize| {
        let mut path = String::new();
        for (place, _) in forest.rows.iter().enumerate().filter(|(_, row)| row.verdict.word == word) {
            write!(path, "M{:.1},{:.2}h{:.1}", left(lane), y(place), width - 6.0).expect("a String takes every write");
        }
        path
    };
    html! {
        @for (lane, verdict) in present.iter().enumerate() {
            (marker(*verdict, left(lane) + (width - 6.0) / 2.0, HEAD - 18.0))
            path class=(format!("thin {}", verdict.tone.class())) stroke-width=(format!("{:.2}", height.max(0.5)))
                d=(marks(verdict.word, lane)) {}
        }
    }
}
