//! A sweep: throughput against latency, one point for each level.

use isobench_schema::load_result::{LoadResult, Validity};
use maud::{Markup, html};

use super::chart::{axes, points};
use crate::html::scale::{Scale, across, thin};
use crate::load::checks::level_name;
use crate::number::{significant, whole};

const TOP: f64 = 14.0;
const BOTTOM: f64 = 208.0;
const WIDTH: f64 = 1000.0;

/// A level of a sweep and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct SweepLevel<'r> {
    /// What is raised, such as `concurrency`.
    pub name: &'r str,
    /// How far.
    pub level: f64,
    /// The result at this level.
    pub result: &'r LoadResult,
}

impl SweepLevel<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.result.metrics.get(name).copied()
    }
}

/// Returns the section: two plots and the table, from the lowest level to the highest, in whatever order they were run.
pub(super) fn section(levels: &[SweepLevel<'_>]) -> Markup {
    let mut levels = levels.to_vec();
    levels.sort_by(|a, b| a.level.total_cmp(&b.level));
    let levels = levels.as_slice();
    let name = levels.first().map_or("level", |level| level.name);
    html! {
        section {
            h2 { "Throughput against latency by " (name) }
            div.two {
                (plot(levels, "ttft", "median and p99 TTFT in ms"))
                (plot(levels, "tpot", "median and p99 TPOT in ms"))
            }
            p { "Throughputs here are of each level's whole window, with the ramp at its begin and the drain at its end. Those of the "
                "search above are of the stretch in which the load was whole, and so a little higher." }
            div.scroll { table.values {
                thead { tr {
                    th.number scope="col" { (name) }
                    @for title in ["output tok/s", "req/s", "median TTFT ms", "p99 TTFT ms", "median TPOT ms", "failed"] {
                        th.number scope="col" { (title) }
                    }
                    th scope="col" { "validity" }
                } }
                tbody { @for level in levels { tr {
                    th.number scope="row" { (level_name(level.level)) }
                    @for name in ["output_throughput", "request_throughput", "median_ttft_ms", "p99_ttft_ms", "median_tpot_ms"] {
                        td.number { (level.number(name).map_or_else(|| "–".to_owned(), significant)) }
                    }
                    td.number { (level.number("failed").map_or_else(|| "–".to_owned(), whole)) }
                    td class=(if level.result.validity == Validity::Valid { "good" } else { "bad" }) { (level.result.validity) }
                } } }
            } }
        }
    }
}

fn plot(levels: &[SweepLevel<'_>], latency: &str, caption: &str) -> Markup {
    let of = |statistic: &str| {
        let name = format!("{statistic}_{latency}_ms");
        let spot = |level: &SweepLevel<'_>| {
            let (x, y) = (level.number("output_throughput")?, level.number(&name)?);
            (y > 0.0).then_some((x, y, level.level))
        };
        levels.iter().filter_map(spot).collect::<Vec<(f64, f64, f64)>>()
    };
    let mut curves = vec![("c1", "median", of("median")), ("c2", "p99", of("p99"))];
    // What no level has requests enough for has no curve, and no key.
    curves.retain(|(_, _, spots)| !spots.is_empty());
    let caption = if curves.len() == 1 { caption.replace(" and p99", "") } else { caption.to_owned() };
    let all = || curves.iter().flat_map(|(_, _, spots)| spots);
    let x = Scale::from_zero(all().map(|spot| spot.0).fold(0.0, f64::max));
    // The names of the levels stand below their points.
    let lowest = all().map(|spot| spot.1).fold(f64::INFINITY, f64::min);
    let y = Scale::around(all().map(|spot| spot.1).chain([lowest * 0.85]).map(f64::log10));
    let (Some(x), Some(y)) = (x, y) else { return html! {} };
    let height = |value: f64| BOTTOM - y.place(value.log10()) * (BOTTOM - TOP);
    html! {
        figure {
            figcaption { (caption) ", logarithmic; each point is a level" }
            svg.plot xmlns="http://www.w3.org/2000/svg" width="100%" height="230" role="img" aria-label=(caption) {
                (axes(&thin(y.narrow_log10_ticks(), 0.07), &thin(x.ticks(), 0.1), (TOP, BOTTOM)))
                svg x="0" y="0" width="100%" height="230" viewBox=(format!("0 0 {WIDTH} 230")) preserveAspectRatio="none" {
                    @for (colour, name, spots) in &curves {
                        @let line: Vec<(f64, f64)> = spots.iter().map(|spot| (x.place(spot.0) * WIDTH, height(spot.1))).collect();
                        g class=(colour) { polyline.curve.dashed[*name == "p99"] points=(points(&line)) {} }
                    }
                }
                @for (colour, name, spots) in &curves {
                    g class=(colour) { @for spot in spots {
                        circle.point cx=(across(x.place(spot.0))) cy=(format!("{:.1}", height(spot.1))) r="4" {}
                        @if *name == "median" {
                            text.level-name x=(across(x.place(spot.0))) y=(format!("{:.1}", height(spot.1) + 16.0)) text-anchor="middle" {
                                (level_name(spot.2))
                            }
                        }
                    } }
                }
            }
            p.axis-name { "output tokens per second" }
            ul.legend { @for (colour, name, _) in &curves {
                li { svg class=(format!("key {colour}")) xmlns="http://www.w3.org/2000/svg" width="26" height="10" aria-hidden="true" focusable="false" {
                    line.curve.dashed[*name == "p99"] x1="1" x2="25" y1="5" y2="5" {}
                } " " (name) }
            } }
        }
    }
}
