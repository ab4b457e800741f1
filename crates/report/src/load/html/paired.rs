//! The difference between two running servers as a plot: each number with its interval over time slices.

use isobench_schema::load_result::{LoadResult, PairedDifference, PairedResult};
use maud::{Markup, html};

use crate::html::scale::{Scale, across, thin};
use crate::load::terminal::change;
use crate::number::{counted, significant};
use crate::text::clean;

/// Changes beyond this are put on the edge of the plot.
const FARTHEST: f64 = 10.0;

/// Returns the section.
pub(super) fn section(result: &LoadResult, paired: &PairedResult) -> Markup {
    let name = |place: usize| result.urls.get(place).map_or("–".to_owned(), |url| clean(url));
    let ends = |found: &PairedDifference| {
        let ends = found.interval.into_iter().flat_map(|interval| [interval.low, interval.high]);
        ends.chain([found.change]).map(|value| value.clamp(-1.0, FARTHEST)).collect::<Vec<f64>>()
    };
    let scale = Scale::around(paired.differences.values().flat_map(ends).chain([0.0]));
    let [first, second] = &paired.metrics;
    html! {
        section {
            h2 { "The second server against the first" }
            p { code { bdi { (name(1)) } } " against " code { bdi { (name(0)) } } ", over " (counted(paired.slices, "slice"))
                ": " b { (clean(&paired.mark)) } ". Each server was launched once: another launch may differ by more." }
            @if let Some(scale) = scale {
                figure.intervals {
                    figcaption { "Change of each number with its 95 % interval over time slices" }
                    @for (metric, found) in &paired.differences {
                        div.row {
                            div.pair title=(metric) { (metric) }
                            (bar(metric, found, scale))
                            div.result {
                                (change(found.change)) " "
                                @if let (Some(a), Some(b)) = (first.get(metric), second.get(metric)) {
                                    span.note { (significant(*a)) " → " (significant(*b)) }
                                }
                            }
                        }
                    }
                    div.row.last {
                        div {}
                        svg.bar xmlns="http://www.w3.org/2000/svg" width="100%" height="20" aria-hidden="true" focusable="false" {
                            @for tick in thin(scale.ticks(), 0.12) {
                                text.tick x=(across(tick.at)) y="13" text-anchor="middle" { (percent(&tick.label)) }
                            }
                        }
                        div {}
                    }
                }
            }
        }
    }
}

/// Returns the label of a tick, which is a part, as a percentage.
fn percent(label: &str) -> String {
    label.parse::<f64>().map_or_else(
        |_| label.to_owned(),
        |part| format!("{}{:.0} %", if part < 0.0 { "−" } else { "" }, part.abs() * 100.0),
    )
}

fn bar(metric: &str, found: &PairedDifference, scale: Scale) -> Markup {
    let at = |value: f64| across(scale.place(value.clamp(-1.0, FARTHEST)));
    let spoken = format!("{metric}: {}", change(found.change));
    html! {
        svg.bar xmlns="http://www.w3.org/2000/svg" width="100%" height="22" role="img" aria-label=(spoken) {
            title { (spoken) }
            line.zero x1=(at(0.0)) x2=(at(0.0)) y1="0" y2="22" {}
            g.neutral {
                @if let Some(interval) = found.interval {
                    line.reach x1=(at(interval.low)) x2=(at(interval.high)) y1="11" y2="11" {}
                    @for end in [interval.low, interval.high] { line.reach x1=(at(end)) x2=(at(end)) y1="7" y2="15" {} }
                }
                circle.estimate cx=(at(found.change)) cy="11" r="4.5" {}
            }
        }
    }
}
