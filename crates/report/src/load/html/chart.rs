//! A plot of curves over a common horizontal axis, with a legend.

use maud::{Markup, html};

use crate::html::scale::{Scale, Tick, across, thin};

/// The values lie between these heights; the axis is below them.
const TOP: f64 = 8.0;
const BOTTOM: f64 = 168.0;
/// The width that curves are drawn in; a browser stretches it.
const WIDTH: f64 = 1000.0;
/// From this ratio of the largest to the smallest value on, the vertical axis is logarithmic.
const LOG_FROM: f64 = 30.0;

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stroke {
    /// A whole line.
    Whole,
    /// A dashed line, so that it is told apart without colour too.
    Dashed,
    /// No line: what lies between this curve and the one after it is filled.
    Fill,
}

/// A curve. It is broken where there is no value.
pub(super) struct Curve<'t> {
    pub(super) name: &'t str,
    /// A class of the page's style, `c0` to `c7`.
    pub(super) colour: &'t str,
    pub(super) stroke: Stroke,
    pub(super) values: Vec<Option<f64>>,
}

/// A plot over time or another number.
pub(super) struct Chart<'t> {
    /// A name that is unique on the page.
    pub(super) id: String,
    pub(super) caption: &'t str,
    pub(super) axis_name: &'t str,
    /// Where each value of every curve stands.
    pub(super) places: Vec<f64>,
    pub(super) curves: Vec<Curve<'t>>,
}

impl Chart<'_> {
    /// Returns the plot; nothing if no curve has a value.
    pub(super) fn draw(&self) -> Markup {
        let values = || self.curves.iter().flat_map(|curve| curve.values.iter().flatten().copied());
        let across_scale = Scale::around(self.places.iter().copied());
        let (Some(up), Some(x)) = (Up::new(&values().collect::<Vec<f64>>()), across_scale) else { return html! {} };
        html! {
            figure {
                figcaption { (self.caption) @if up.log { ", logarithmic" } }
                svg.plot xmlns="http://www.w3.org/2000/svg" width="100%" height="190" role="img"
                    aria-labelledby=(format!("{}-title", self.id)) {
                    title id=(format!("{}-title", self.id)) { (self.caption) }
                    (axes(&thin(up.ticks(), 0.08), &thin(x.ticks(), 0.08), (TOP, BOTTOM)))
                    svg x="0" y="0" width="100%" height="190" viewBox=(format!("0 0 {WIDTH} 190")) preserveAspectRatio="none" {
                        @for (index, curve) in self.curves.iter().enumerate() { (self.curve(index, curve, x, &up)) }
                    }
                }
                p.axis-name { (self.axis_name) }
                (legend(&self.curves))
            }
        }
    }

    fn curve(&self, index: usize, curve: &Curve<'_>, x: Scale, up: &Up) -> Markup {
        let spot = |place: &f64, value: f64| (x.place(*place) * WIDTH, up.height(value));
        match curve.stroke {
            Stroke::Whole | Stroke::Dashed => {
                let pieces = pieces(&self.places, &curve.values, &spot);
                html! { g class=(curve.colour) { @for piece in pieces {
                    polyline.curve.dashed[curve.stroke == Stroke::Dashed] points=(points(&piece)) {}
                } } }
            }
            Stroke::Fill => {
                let Some(other) = self.curves.get(index + 1) else { return html! {} };
                // Each piece is its upper and its lower edge.
                let mut pieces: Vec<[Vec<(f64, f64)>; 2]> = vec![[Vec::new(), Vec::new()]];
                for ((place, upper), lower) in self.places.iter().zip(&curve.values).zip(&other.values) {
                    match (upper, lower, pieces.last_mut()) {
                        (Some(upper), Some(lower), Some([above, below])) => {
                            above.push(spot(place, *upper));
                            below.push(spot(place, *lower));
                        }
                        (_, _, _) => pieces.push([Vec::new(), Vec::new()]),
                    }
                }
                html! { g class=(curve.colour) { @for [above, below] in pieces.iter().filter(|[above, _]| above.len() > 1) {
                    @let outline: Vec<(f64, f64)> = above.iter().chain(below.iter().rev()).copied().collect();
                    polygon.between points=(points(&outline)) {}
                } } }
            }
        }
    }
}

/// The vertical axis: from 0, or logarithmic.
struct Up {
    scale: Scale,
    log: bool,
}

impl Up {
    fn new(values: &[f64]) -> Option<Self> {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = finite().fold((f64::INFINITY, 0.0), |(l, h), value| (value.min(l), value.max(h)));
        let log = low > 0.0 && high / low > LOG_FROM;
        let scale = if log { Scale::around(finite().map(f64::log10))? } else { Scale::from_zero(high)? };
        Some(Self { scale, log })
    }

    fn ticks(&self) -> Vec<Tick> {
        if self.log { self.scale.narrow_log10_ticks() } else { self.scale.ticks() }
    }

    fn height(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        BOTTOM - self.scale.place(value) * (BOTTOM - TOP)
    }
}

/// Returns the pieces of a curve between its gaps; a value that stands alone becomes a short dash.
fn pieces(places: &[f64], values: &[Option<f64>], spot: &impl Fn(&f64, f64) -> (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let mut found: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (place, value) in places.iter().zip(values) {
        match (value, found.last_mut()) {
            (Some(value), Some(piece)) => piece.push(spot(place, *value)),
            (_, _) => found.push(Vec::new()),
        }
    }
    found.retain(|piece| !piece.is_empty());
    for piece in &mut found {
        if let [(x, y)] = piece.as_slice() {
            *piece = vec![(x - 2.0, *y), (x + 2.0, *y)];
        }
    }
    found
}

/// Returns the grid with its labels at the left, and the axis with its labels below; values lie between two heights.
pub(super) fn axes(left: &[Tick], below: &[Tick], (top, bottom): (f64, f64)) -> Markup {
    html! {
        @for tick in left {
            @let y = format!("{:.1}", bottom - tick.at * (bottom - top));
            line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
            text.tick x="-6" y=(y) dy="4" text-anchor="end" { (tick.label) }
        }
        line.axis x1="0" x2="100%" y1=(bottom) y2=(bottom) {}
        @for tick in below {
            text.tick x=(across(tick.at)) y=(bottom + 15.0) text-anchor="middle" { (tick.label) }
        }
    }
}

/// Returns spots as SVG writes them.
pub(super) fn points(spots: &[(f64, f64)]) -> String {
    spots.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Returns the names of the curves with their strokes.
fn legend(curves: &[Curve<'_>]) -> Markup {
    let lines = || curves.iter().filter(|curve| curve.stroke != Stroke::Fill);
    html! {
        @if lines().count() > 1 {
            ul.legend { @for curve in lines() {
                li {
                    svg class=(format!("key {}", curve.colour)) xmlns="http://www.w3.org/2000/svg" width="26" height="10"
                        aria-hidden="true" focusable="false" {
                        line.curve.dashed[curve.stroke == Stroke::Dashed] x1="1" x2="25" y1="5" y2="5" {}
                    }
                    " " (curve.name)
                }
            } }
        }
    }
}
