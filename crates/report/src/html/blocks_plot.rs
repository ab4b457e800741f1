//! The plot of the blocks: the primary metric of each arm in each block, and the launches that don't count.

use maud::{Markup, html};

use super::scale::{Scale, across, thin};
use crate::number::count;
use crate::view::{ArmView, PointView, TaskView};

/// Colours of the page's style, `c0` to `c7`.
const COLOURS: usize = 8;
/// Shapes of [`shapes`], `s0` to `s7`.
const SHAPES: usize = 8;
/// The values lie between these heights; below them is the strip of launches that don't count.
const TOP: f64 = 12.0;
const BOTTOM: f64 = 190.0;
const STRIP: f64 = 214.0;
const FOOT: f64 = 228.0;
/// From this ratio of the largest to the smallest value on, the axis is logarithmic.
const LOG_FROM: f64 = 20.0;
/// Lines between an arm's values are drawn for up to so many arms.
const LINED_ARMS: usize = 8;

/// Returns the definitions of the arms' marker shapes, once for the page.
pub(super) fn shapes() -> Markup {
    let paths = [
        "M4.4,0 A4.4,4.4 0 1 1 -4.4,0 A4.4,4.4 0 1 1 4.4,0 Z",
        "M-4,-4 H4 V4 H-4 Z",
        "M0,-5.4 L5,4 H-5 Z",
        "M0,-5.8 L5.2,0 L0,5.8 L-5.2,0 Z",
        "M0,5.4 L5,-4 H-5 Z",
        "M-1.7,-5 H1.7 V-1.7 H5 V1.7 H1.7 V5 H-1.7 V1.7 H-5 V-1.7 H-1.7 Z",
        "M0,-5.5 L1.4,-1.8 L5.3,-1.7 L2.2,0.7 L3.3,4.5 L0,2.3 L-3.3,4.5 L-2.2,0.7 L-5.3,-1.7 L-1.4,-1.8 Z",
        "M-2.2,-5 H2.2 L5,-2.2 V2.2 L2.2,5 H-2.2 L-5,2.2 V-2.2 Z",
    ];
    html! {
        svg.defs xmlns="http://www.w3.org/2000/svg" width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                @for (index, path) in paths.iter().enumerate() { path id=(format!("s{index}")) d=(path) {} }
                path #lost d="M-4,-4 L4,4 M-4,4 L4,-4" {}
            }
        }
    }
}

/// Returns the class of the colour of the arm at `index`.
fn colour(index: usize) -> String {
    format!("c{}", index % COLOURS)
}

/// Returns the reference to the shape of the arm at `index`; colour and shape together tell 64 arms apart.
fn shape(index: usize) -> String {
    format!("#s{}", (index + index / COLOURS) % SHAPES)
}

/// The vertical axis: plain or logarithmic.
struct Axis {
    scale: Scale,
    log: bool,
}

impl Axis {
    fn new(arms: &[ArmView]) -> Option<Self> {
        let values = || arms.iter().flat_map(|arm| &arm.points).map(|point| point.value);
        let (low, high) = values().fold((f64::INFINITY, 0.0), |(l, h), v| (v.min(l), v.max(h)));
        let log = low > 0.0 && high / low > LOG_FROM;
        let scale = if log { Scale::around(values().map(f64::log10))? } else { Scale::around(values())? };
        Some(Self { scale, log })
    }

    fn height(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        BOTTOM - self.scale.place(value) * (BOTTOM - TOP)
    }
}

/// Returns where a launch is drawn: the middle of its block's slot, moved aside by arm.
fn slot(block: usize, blocks: usize, arm: usize, arms: usize) -> f64 {
    let aside = (count(arm) + 0.5) / count(arms.max(1)) - 0.5;
    (count(block) + 0.5 + 0.6 * aside) / count(blocks.max(1))
}

/// Returns the plot with its legend.
pub(super) fn plot(index: usize, task: &TaskView) -> Markup {
    let Some(axis) = Axis::new(&task.arms) else {
        return html! { p.empty { "No launch gave a value that counts." } };
    };
    let ids = format!("blocks-{index}");
    let blocks = task.block_axis.len();
    let every = blocks.div_ceil(12).max(1);
    let ticks = if axis.log { axis.scale.log10_ticks() } else { axis.scale.ticks() };
    let scale = if axis.log { ", logarithmic" } else { "" };
    html! {
        figure {
            figcaption { (task.metric) " in " (task.unit) " in each block, " (task.direction) (scale) }
            svg.plot xmlns="http://www.w3.org/2000/svg" width="100%" height="252" role="img"
                aria-labelledby=(format!("{ids}-title {ids}-desc")) {
                title id=(format!("{ids}-title")) { (task.metric) " of each arm in each block of " (task.id) }
                desc id=(format!("{ids}-desc")) { "The values are in the table below the plot." }
                @for tick in thin(ticks, 0.07) {
                    @let y = format!("{:.1}", BOTTOM - tick.at * (BOTTOM - TOP));
                    line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                    text.tick x="-6" y=(y) dy="4" text-anchor="end" { (tick.label) }
                }
                line.axis x1="0" x2="100%" y1=(FOOT) y2=(FOOT) {}
                @if task.arms.iter().any(|arm| !arm.missing.is_empty()) {
                    text.tick x="-6" y=(STRIP) dy="4" text-anchor="end" { "no value" }
                }
                @for (place, block) in task.block_axis.iter().enumerate().step_by(every) {
                    text.tick x=(across(slot(place, blocks, 0, 1))) y="244" text-anchor="middle" { (block) }
                }
                @for (number, arm) in task.arms.iter().enumerate() { (marks(&axis, task, number, arm)) }
            }
            p.axis-name { "block" }
            (legend(task))
        }
    }
}

fn marks(axis: &Axis, task: &TaskView, number: usize, arm: &ArmView) -> Markup {
    let (blocks, arms) = (task.block_axis.len(), task.arms.len());
    let place = |block: u32| task.block_axis.binary_search(&block).ok();
    let at = |place: usize| across(slot(place, blocks, number, arms));
    let spot = |point: &PointView| {
        let place = place(point.block)?;
        Some((place, at(place), format!("{:.1}", axis.height(point.value))))
    };
    let spots: Vec<(usize, String, String)> = arm.points.iter().filter_map(spot).collect();
    // A line over a block without a value would claim one.
    let pairs = spots.iter().zip(spots.iter().skip(1)).filter(|(from, to)| to.0 == from.0 + 1);
    html! {
        g class=(colour(number)) {
            @if arms <= LINED_ARMS {
                @for ((_, x1, y1), (_, x2, y2)) in pairs { line.run x1=(x1) y1=(y1) x2=(x2) y2=(y2) {} }
            }
            @for (_, x, y) in &spots { use.mark href=(shape(number)) x=(x) y=(y) {} }
            @for place in arm.missing.iter().filter_map(|block| place(*block)) {
                use.lost href="#lost" x=(at(place)) y=(STRIP) {}
            }
        }
    }
}

fn legend(task: &TaskView) -> Markup {
    html! {
        ul.legend {
            @for (number, arm) in task.arms.iter().enumerate() {
                li {
                    svg class=(format!("key {}", colour(number))) xmlns="http://www.w3.org/2000/svg" width="14" height="14"
                        aria-hidden="true" focusable="false" {
                        use.mark href=(shape(number)) x="7" y="7" {}
                    }
                    " " span.arm { (arm.name) }
                }
            }
            @if task.arms.iter().any(|arm| !arm.missing.is_empty()) {
                li { svg.key xmlns="http://www.w3.org/2000/svg" width="14" height="14" aria-hidden="true" focusable="false" {
                    use.lost href="#lost" x="7" y="7" {}
                } " launch that doesn't count" }
            }
        }
    }
}
