//! The plot of the contrasts: each estimate with its interval and its blocks, against the margin.

use maud::{Markup, html};

use super::badge;
use super::scale::{Scale, across, thin};
use crate::view::{ContrastView, IntervalPlot, TaskView};

/// The height of the line of the interval, and of the blocks' dots below it.
const LINE: f64 = 10.0;
const DOTS: f64 = 21.0;

/// Returns the plot: a row for each contrast, and the axis below.
pub(super) fn plot(task: &TaskView) -> Markup {
    let numbers = |plot: &IntervalPlot| {
        let ends = plot.interval.into_iter().flat_map(|(low, high)| [low, high]);
        plot.estimate.into_iter().chain(ends).chain(plot.differences.iter().copied()).collect::<Vec<f64>>()
    };
    let shown: Vec<f64> = task.contrasts.iter().flat_map(|contrast| numbers(&contrast.plot)).collect();
    if shown.is_empty() {
        return html! {};
    }
    let margin = task.margin_log.min(10.0);
    let Some(scale) = Scale::around(shown.into_iter().chain([-margin, margin, 0.0])) else {
        return html! {};
    };
    html! {
        figure.intervals {
            figcaption { "Speed-up with its interval; the band is the margin of ±" (task.margin)
                ", each small dot is one block" }
            @for contrast in &task.contrasts { (row(contrast, scale, margin)) }
            div.row.last {
                div {}
                svg.bar xmlns="http://www.w3.org/2000/svg" width="100%" height="20" aria-hidden="true" focusable="false" {
                    @for tick in thin(scale.ratio_ticks(), 0.11) {
                        text.tick x=(across(tick.at)) y="13" text-anchor=(anchor(tick.at)) { (tick.label) }
                    }
                }
                div {}
            }
        }
    }
}

/// Returns the side on which a label at `place` hangs, so that it stays inside the plot.
fn anchor(place: f64) -> &'static str {
    match place {
        p if p < 0.04 => "start",
        p if p > 0.96 => "end",
        _ => "middle",
    }
}

fn row(contrast: &ContrastView, scale: Scale, margin: f64) -> Markup {
    let speedup = contrast.speedup.as_deref().unwrap_or("no estimate");
    let interval = contrast.interval.as_ref().map(|interval| format!(", {interval}")).unwrap_or_default();
    let spoken = format!("{}: {}, {speedup}{interval}", contrast.name(), contrast.verdict.word);
    html! {
        div.row {
            div.pair title=(contrast.name()) { b { (contrast.of) } " vs " (contrast.against) }
            svg.bar xmlns="http://www.w3.org/2000/svg" width="100%" height="30" role="img" aria-label=(spoken) {
                title { (spoken) }
                desc { (contrast.reason) }
                (drawing(&contrast.plot, contrast.verdict.tone.class(), scale, margin))
            }
            div.result {
                (badge(contrast.verdict)) " "
                span.nowrap { @if let Some(speedup) = &contrast.speedup { (speedup) } }
            }
        }
    }
}

fn drawing(plot: &IntervalPlot, class: &str, scale: Scale, margin: f64) -> Markup {
    let at = |value: f64| across(scale.place(value));
    let band = scale.place(margin) - scale.place(-margin);
    html! {
        rect.band x=(at(-margin)) y="0" width=(across(band)) height="30" {}
        line.zero x1=(at(0.0)) x2=(at(0.0)) y1="0" y2="30" {}
        g class=(class) {
            @for difference in &plot.differences { circle.dot cx=(at(*difference)) cy=(DOTS) r="2.4" {} }
            @if let Some((low, high)) = plot.interval {
                line.reach x1=(at(low)) x2=(at(high)) y1=(LINE) y2=(LINE) {}
                @for end in [low, high] { line.reach x1=(at(end)) x2=(at(end)) y1=(LINE - 4.0) y2=(LINE + 4.0) {} }
            }
            @if let Some(estimate) = plot.estimate { circle.estimate cx=(at(estimate)) cy=(LINE) r="5" {} }
        }
    }
}
