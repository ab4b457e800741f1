//! How latencies are spread: a histogram over a logarithmic axis, the share of all values up to each, and the percentiles.

use isobench_schema::load_result::{Histogram, LoadResult};
use maud::{Markup, html};

use super::chart::points;
use super::time::exact;
use crate::html::scale::{Scale, across, thin};
use crate::load::rows::LATENCIES;
use crate::number::{counted, significant};

const TOP: f64 = 33.0;
const BOTTOM: f64 = 178.0;
const WIDTH: f64 = 1000.0;
/// The most bars of a histogram: finer buckets are drawn together.
const BARS: usize = 90;
/// One in so many values at either end may lie beyond the axis.
const FEW: u64 = 200;
/// The percentiles that are marked.
const MARKED: [(&str, &str); 3] = [("median", "p50"), ("p90", "p90"), ("p99", "p99")];
/// Names of marks closer than this part of the axis would cover each other.
const CLOSE: f64 = 0.07;

/// Returns the plots; nothing if there is no distribution.
pub(super) fn section(result: &LoadResult) -> Markup {
    let named = LATENCIES.iter().filter_map(|(short, long)| Some((*short, *long, result.distributions.get(*short)?)));
    // Content and chunks are shown only where they are spread otherwise than tokens.
    let same = |short: &str, other: &str| result.distributions.get(short) == result.distributions.get(other);
    let told = named
        .filter(|(short, ..)| !(*short == "ttfc" && same("ttfc", "ttft") || *short == "icl" && same("icl", "itl")));
    let plots: Vec<Markup> = told.map(|(short, long, found)| plot(result, short, long, found)).collect();
    html! {
        @if !plots.is_empty() {
            section {
                h2 { "Distributions" }
                p.note { "Bars: how many values; line: the share of all values up to there. The axis is logarithmic." }
                div.two { @for plot in plots { (plot) } }
            }
        }
    }
}

/// A bar of the histogram: its ends in milliseconds, and how many values it has.
struct Bar {
    from: f64,
    to: f64,
    count: u64,
}

/// The bars that are drawn, and how many values lie beyond them.
struct Shown {
    bars: Vec<Bar>,
    below: u64,
    above: u64,
}

/// Returns the buckets, neighbours drawn together where there are too many. Where the last half percent of the values at
/// either end take up most of the axis, it ends before them.
fn shown(histogram: &Histogram) -> Shown {
    let few = histogram.counts.iter().sum::<u64>() / FEW;
    let end = |counts: &mut dyn Iterator<Item = &u64>| {
        let mut beyond = 0;
        let buckets = counts.take_while(|count| {
            let is_few = beyond + **count <= few;
            beyond += if is_few { **count } else { 0 };
            is_few
        });
        (buckets.count(), beyond)
    };
    let (low, below) = end(&mut histogram.counts.iter());
    let (high, above) = end(&mut histogram.counts.iter().rev());
    let kept = histogram.counts.len().saturating_sub(low + high);
    let (low, kept, below, above) =
        if kept * 2 < histogram.counts.len() { (low, kept, below, above) } else { (0, histogram.counts.len(), 0, 0) };
    let counts = histogram.counts.get(low..low + kept).unwrap_or_default();
    let together = counts.len().div_ceil(BARS).max(1);
    let edge = |place: usize| histogram.first_ms * histogram.ratio.powf(crate::number::count(low + place));
    let bar = |(index, counts): (usize, &[u64])| {
        let place = index * together;
        Bar { from: edge(place), to: edge(place + counts.len()), count: counts.iter().sum() }
    };
    Shown { bars: counts.chunks(together).enumerate().map(bar).collect(), below, above }
}

fn plot(result: &LoadResult, short: &str, long: &str, histogram: &Histogram) -> Markup {
    let Shown { bars, below, above } = shown(histogram);
    let all: u64 = bars.iter().map(|bar| bar.count).sum::<u64>() + below + above;
    let highest = bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    let ends = bars.iter().flat_map(|bar| [bar.from, bar.to]).filter(|end| *end > 0.0);
    let Some(x) = Scale::around(ends.map(f64::log10)).filter(|_| highest > 0) else { return html! {} };
    let up = |share: f64| BOTTOM - share * (BOTTOM - TOP);
    let at = |value: f64| x.place(value.max(f64::MIN_POSITIVE).log10());
    let (highest, total) = (exact(highest), exact(all));
    let mut outline = Vec::new();
    let mut shares = Vec::new();
    let mut so_far = below;
    for bar in &bars {
        let height = up(exact(bar.count) / highest);
        let (from, to) = (at(bar.from) * WIDTH, at(bar.to) * WIDTH);
        outline.extend([(from, up(0.0)), (from, height), (to, height), (to, up(0.0))]);
        if shares.is_empty() {
            shares.push((from, up(exact(below) / total)));
        }
        so_far += bar.count;
        shares.push((to, up(exact(so_far) / total)));
    }
    let marks = marks(result, short, &at);
    let beyond = match (below, above) {
        (0, 0) => String::new(),
        _ => format!(", {below} of them below and {above} above the axis"),
    };
    let caption = format!("{} ({long}) in ms, {}{beyond}", short.to_uppercase(), counted(all, "value"));
    html! {
        figure {
            figcaption { (caption) }
            svg.plot xmlns="http://www.w3.org/2000/svg" width="100%" height="200" role="img"
                aria-labelledby=(format!("spread-{short}")) {
                title id=(format!("spread-{short}")) { (caption) }
                @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
                    @let y = format!("{:.1}", up(share));
                    line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                    text.tick x="-6" y=(y) dy="4" text-anchor="end" { (format!("{:.0} %", share * 100.0)) }
                }
                svg x="0" y="0" width="100%" height="200" viewBox=(format!("0 0 {WIDTH} 200")) preserveAspectRatio="none" {
                    g.c1 { polygon.bars points=(points(&outline)) {} }
                    g.c2 { polyline.curve points=(points(&shares)) {} }
                }
                line.axis x1="0" x2="100%" y1=(BOTTOM) y2=(BOTTOM) {}
                @for tick in thin(x.narrow_log10_ticks(), 0.09) {
                    text.tick x=(across(tick.at)) y=(BOTTOM + 15.0) text-anchor="middle" { (tick.label) }
                }
                @for (place, name, row) in marks {
                    line.level x1=(across(place)) x2=(across(place)) y1=(TOP) y2=(BOTTOM) {}
                    text.level-name x=(across(place)) y=(12.0 + row * 14.0) text-anchor=(if place > 0.85 { "end" } else { "middle" }) { (name) }
                }
            }
        }
    }
}

/// Returns where the percentiles are, their names, and the row of each name, so that none covers another.
fn marks(result: &LoadResult, short: &str, at: &impl Fn(f64) -> f64) -> Vec<(f64, String, f64)> {
    let mut found: Vec<(f64, String, f64)> = Vec::new();
    for (statistic, name) in MARKED {
        let Some(value) = result.metrics.get(&format!("{statistic}_{short}_ms")) else { continue };
        let place = at(*value);
        let row = match found.last() {
            Some((last, _, row)) if place - last < CLOSE * 2.0 => row + 1.0,
            Some(_) | None => 0.0,
        };
        found.push((place, format!("{name} {}", significant(*value)), row));
    }
    found
}
