//! The plot of the looks: the difference of each block in their order, and at each look the estimate with its interval.

use maud::{Markup, html};

use super::badge;
use super::scale::{Scale, across, thin};
use crate::view::{ContrastView, LookView, TaskView};

/// The top and the bottom of the values, and the line of the blocks below them.
const TOP: f64 = 8.0;
const BOTTOM: f64 = 124.0;
const AXIS: f64 = 132.0;
/// The height of the whole.
pub(crate) const HEIGHT: f64 = 152.0;
/// Half the length of a bar's ends.
const END: f64 = 4.0;

/// Returns the plots, one for each contrast that was looked at, and a table of the looks.
pub(super) fn plots(index: usize, task: &TaskView) -> Markup {
    let looked: Vec<(usize, &ContrastView)> =
        task.contrasts.iter().enumerate().filter(|(_, contrast)| !contrast.looks.is_empty()).collect();
    if looked.is_empty() || task.planned_blocks == 0 {
        return html! {};
    }
    html! {
        h3 { "Looks" }
        p.note { "Each dot is one block's difference, in the order in which they ran. A bar is the interval at a look, by that "
            "look's own level; the filled mark is the look that decided. The band is the margin." }
        div.looks {
            @for (place, contrast) in &looked { (plot(&format!("looks-{index}-{place}"), task, contrast)) }
        }
        (table(&looked))
    }
}

fn plot(id: &str, task: &TaskView, contrast: &ContrastView) -> Markup {
    let Some(drawing) = drawing(task, contrast) else { return html! {} };
    html! {
        figure {
            figcaption { b { (contrast.of) } " vs " (contrast.against) " " (badge(contrast.verdict)) }
            svg.plot.look xmlns="http://www.w3.org/2000/svg" width="100%" height=(HEIGHT) role="img"
                aria-labelledby=(format!("{id}-title {id}-desc")) {
                title id=(format!("{id}-title")) { (spoken(contrast)) }
                desc id=(format!("{id}-desc")) { "The numbers are in the table below the plots." }
                (drawing)
            }
            p.axis-name { "blocks" }
        }
    }
}

/// Returns the plot in words.
pub(crate) fn spoken(contrast: &ContrastView) -> String {
    format!("{}: {} at {} of its looks", contrast.name(), contrast.verdict.word, contrast.looks.len())
}

/// Returns what the plot of a contrast shows, in a drawing of [`HEIGHT`] whose labels of the vertical axis hang out on the
/// left; `None` where there is nothing to show.
pub(crate) fn drawing(task: &TaskView, contrast: &ContrastView) -> Option<Markup> {
    let margin = task.margin_log.min(10.0);
    let ends = contrast.looks.iter().filter_map(|look| look.interval).flat_map(|(low, high)| [low, high]);
    let differences = contrast.block_differences.iter().map(|(_, difference)| *difference);
    let scale = Scale::around(ends.chain(differences).chain([-margin, margin, 0.0]))?;
    let height = |value: f64| BOTTOM - scale.place(value) * (BOTTOM - TOP);
    let shown = |value: f64| format!("{:.1}", height(value));
    let (low, high) = (height(-margin), height(margin));
    Some(html! {
        rect.band x="0" width="100%" y=(format!("{high:.1}")) height=(format!("{:.1}", low - high)) {}
        @for tick in thin(scale.ratio_ticks(), 0.12) {
            @let y = format!("{:.1}", BOTTOM - tick.at * (BOTTOM - TOP));
            line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
            text.tick x="-6" y=(y) dy="4" text-anchor="end" { (tick.label) }
        }
        line.zero x1="0" x2="100%" y1=(shown(0.0)) y2=(shown(0.0)) {}
        line.axis x1="0" x2="100%" y1=(AXIS) y2=(AXIS) {}
        @for look in &task.planned_looks {
            @let x = across(after(*look, task.planned_blocks));
            line.axis x1=(x) x2=(x) y1=(AXIS - 3.0) y2=(AXIS + 3.0) {}
            text.tick x=(x) y="147" text-anchor="middle" { (look) }
        }
        g.c0 {
            @for (block, difference) in &contrast.block_differences {
                circle.dot cx=(across(inside(*block, task.planned_blocks))) cy=(shown(*difference)) r="2.6" {}
            }
        }
        g class=(contrast.verdict.tone.class()) {
            @for look in &contrast.looks { (bar(look, task.planned_blocks, &shown)) }
        }
    })
}

fn bar(look: &LookView, planned: u32, shown: &impl Fn(f64) -> String) -> Markup {
    let Some(((low, high), estimate)) = look.interval.zip(look.estimate) else { return html! {} };
    let place = after(look.planned, planned);
    let x = across(place);
    html! {
        line.reach x1=(x) x2=(x) y1=(shown(low)) y2=(shown(high)) {}
        @for end in [low, high] {
            // Lengths in pixels around a place in percent: a nested drawing has its own origin.
            svg x=(x) y=(shown(end)) width="1" height="1" overflow="visible" {
                line.reach x1=(-END) x2=(END) y1="0" y2="0" {}
            }
        }
        circle class=(if look.decides { "estimate" } else { "estimate open" }) cx=(x) cy=(shown(estimate)) r="4.5" {}
    }
}

/// Returns where the end of so many blocks lies: the last one's a little inside the plot.
fn after(blocks: u32, planned: u32) -> f64 {
    0.98 * f64::from(blocks) / f64::from(planned.max(1))
}

/// Returns where a block lies, in the middle of its part.
fn inside(block: u32, planned: u32) -> f64 {
    0.98 * (f64::from(block) + 0.5) / f64::from(planned.max(1))
}

fn table(looked: &[(usize, &ContrastView)]) -> Markup {
    let rows = looked.iter().flat_map(|(_, contrast)| contrast.looks.iter().map(move |look| (contrast, look)));
    html! {
        details {
            summary { "The numbers of each look" }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "of" } th scope="col" { "against" } th.number scope="col" { "look" }
                    th.number scope="col" { "blocks" } th.number scope="col" { "speed\u{2011}up" }
                    th.number scope="col" { "interval" } th.number scope="col" { "p" }
                    th.number scope="col" { "p must be below" } th scope="col" { "says" }
                } }
                tbody { @for (contrast, look) in rows { tr {
                    th.arm scope="row" { (contrast.of) }
                    td.arm { (contrast.against) }
                    td.number { (look.number) }
                    td.number { (look.blocks) }
                    td.number { (look.speedup.as_deref().unwrap_or("–")) }
                    td.number { (look.interval_text.as_deref().unwrap_or("–")) }
                    td.number { (look.p.as_deref().unwrap_or("–")) }
                    td.number { (look.level) }
                    td { (look.decision) }
                } } }
            } }
        }
    }
}
