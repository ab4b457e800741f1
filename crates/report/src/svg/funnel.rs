//! The funnel of a coverage: how many reached each stage, and how many were lost before it.

use isobench_schema::coverage::{Coverage, CoverageStep};
use maud::html;

use super::Drawing;
use crate::number::{self, count};
use crate::text::{clean, truncate};
use crate::words::coverage::{reason, stage};

const WIDTH: f64 = 960.0;
/// Where bars begin and end.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 610.0;
const HEAD: f64 = 44.0;
const ROW: f64 = 34.0;
/// Columns of the reasons.
const REASON: usize = 40;

/// Returns the drawing.
pub(crate) fn drawing(coverage: &Coverage) -> Drawing {
    let all = coverage.steps.first().map_or(0, |step| step.reached);
    let of = clean(&coverage.of);
    let rows = coverage.steps.iter().enumerate();
    let content = html! {
        text.title x="12" y="20" { "How far the " (of) " come" }
        @for (place, step) in rows {
            @let y = HEAD + ROW * count(place);
            (row(step, all, y))
        }
    };
    let reached = coverage.steps.last().map_or(0, |step| step.reached);
    Drawing {
        title: format!("How far the {of} come"),
        about: format!("{reached} of {all} come through."),
        width: WIDTH,
        height: HEAD + ROW * count(coverage.steps.len()) + 8.0,
        content,
    }
}

fn row(step: &CoverageStep, all: u64, y: f64) -> maud::Markup {
    let lost: usize = step.lost.iter().map(|loss| loss.names.len()).sum();
    let wide = |number: u64| {
        let thousandths = number.saturating_mul(1000).checked_div(all).unwrap_or(0);
        (RIGHT - LEFT) * f64::from(u32::try_from(thousandths).unwrap_or(1000)) / 1000.0
    };
    let reached = wide(step.reached);
    let gone = wide(u64::try_from(lost).unwrap_or(u64::MAX));
    let most = step.lost.iter().max_by_key(|loss| loss.names.len());
    let why = most.map(|loss| {
        let others = step.lost.len() - 1;
        let more = if others > 0 {
            format!(", and {} more", number::counted(u64::try_from(others).unwrap_or(0), "reason"))
        } else {
            String::new()
        };
        format!("{}{more}", truncate(&clean(&reason(loss)), REASON))
    });
    html! {
        text.strong x=(LEFT - 12.0) y=(format!("{:.1}", y + 15.0)) text-anchor="end" { (stage(step.stage)) }
        rect.bar-all x=(LEFT) y=(format!("{y:.1}")) width=(RIGHT - LEFT) height="20" rx="3" {}
        rect.bar-reached x=(LEFT) y=(format!("{y:.1}")) width=(format!("{reached:.1}")) height="20" rx="3" {}
        @if lost > 0 {
            // Lost ones are hatched by a thinner bar, so that colour isn't needed.
            rect.bar-lost x=(format!("{:.1}", LEFT + reached)) y=(format!("{:.1}", y + 6.0))
                width=(format!("{:.1}", gone.min(RIGHT - LEFT - reached))) height="8" {}
        }
        text.value.strong x=(RIGHT + 12.0) y=(format!("{:.1}", y + 15.0)) { (number::whole(count(usize::try_from(step.reached).unwrap_or(usize::MAX)))) }
        @if let Some(why) = why {
            text.label x=(RIGHT + 62.0) y=(format!("{:.1}", y + 15.0)) { "−" (lost) " " (why) }
        }
    }
}
