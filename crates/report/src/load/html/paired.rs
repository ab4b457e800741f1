//! The difference between two running servers as a plot: each metric with its intervals over time slices and over pairs.

use isobench_schema::load_checks::{Difference, PairedMetric};
use isobench_schema::load_result::{LoadResult, Paired};
use maud::{Markup, html};

use crate::html::scale::{Scale, across, thin};
use crate::load::against::{PairedRow, both_rows, difference, not_compared, paired_rows};
use crate::load::checks::change;
use crate::load::terminal::count_or_number;
use crate::number::significant;
use crate::text::clean;

/// Changes beyond this are put on the edge of the plot.
const FARTHEST: f64 = 10.0;

/// Returns the section.
pub(super) fn section(result: &LoadResult, paired: &Paired) -> Markup {
    let name = |place: usize| result.urls.get(place).map_or("–".to_owned(), |url| clean(url));
    let rows = paired_rows(paired);
    let ends = |(_, found): &(String, Difference)| {
        let ends = found.interval.into_iter().flat_map(|interval| [interval.low, interval.high]);
        ends.chain([found.change]).map(|value| value.clamp(-1.0, FARTHEST)).collect::<Vec<f64>>()
    };
    let scale = Scale::around(rows.iter().flat_map(differences).flat_map(|found| ends(&found)).chain([0.0]));
    html! {
        section {
            h2 { "The second server against the first" }
            p { code { bdi { (name(1)) } } " against " code { bdi { (name(0)) } } ": " b { (clean(&paired.checks.mark)) } "; "
                (clean(&paired.checks.note)) "." }
            @if let Some(scale) = scale {
                figure.intervals {
                    figcaption { "Change of each metric with its 95 % interval: of the mean over slices of time, and of the typical request over pairs" }
                    @for row in &rows {
                        @if let Some(why) = not_compared(row.found) {
                            div.row {
                                div.pair { (clean(row.metric)) }
                                div.note { (why) }
                                div.result { (bare(row.bare_change())) " " (values(row)) }
                            }
                        }
                        @for (name, found) in differences(row) {
                            div.row {
                                div.pair title=(name) { (name) }
                                (bar(&name, &found, scale))
                                div.result {
                                    (change(found.change)) " "
                                    @if !name.contains(TYPICAL) { (values(row)) }
                                    @if found.interval.is_none() {
                                        div.note title="neighbouring slices of time depend on each other" { small { "slices depend: no interval" } }
                                    }
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
            (both(paired))
        }
    }
}

/// Returns a change that has no interval.
fn bare(found: Option<f64>) -> String {
    found.map_or_else(|| "–".to_owned(), change)
}

fn values(row: &PairedRow<'_>) -> Markup {
    html! {
        @if let [Some(a), Some(b)] = row.values { span.note { (significant(a)) " → " (significant(b)) } }
    }
}

/// Returns the numbers of both servers beside those that are compared.
fn both(paired: &Paired) -> Markup {
    let number =
        |name: &str, value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| count_or_number(name, value));
    html! {
        div.scroll { table.narrow {
            thead { tr {
                th scope="col" { "number" }
                @for title in ["first", "second", "change"] { th.number scope="col" { (title) } }
            } }
            tbody { @for row in both_rows(paired) { tr {
                th scope="row" { (clean(&row.name)) }
                @for value in row.values { td.number { (number(&row.name, value)) } }
                td.number { (bare(row.change)) }
            } } }
        } }
    }
}

/// What the name of a difference of the typical request has.
const TYPICAL: &str = ", typical request";

/// Returns the differences of a metric by their names.
fn differences(row: &PairedRow<'_>) -> Vec<(String, Difference)> {
    match row.found {
        PairedMetric::TooFew { .. } | PairedMetric::TooFewSlices { .. } | PairedMetric::Fixed { .. } => Vec::new(),
        PairedMetric::Compared { by_time, by_pair, .. } => {
            let metric = clean(row.metric);
            let typical = by_pair.map(|found| (format!("{metric}{TYPICAL}"), found));
            std::iter::once((metric, *by_time)).chain(typical).collect()
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

fn bar(metric: &str, found: &Difference, scale: Scale) -> Markup {
    let at = |value: f64| across(scale.place(value.clamp(-1.0, FARTHEST)));
    let spoken = format!("{metric}: {}", difference(found));
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
