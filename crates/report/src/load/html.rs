//! The result of a load as one self-contained HTML file: inline style and SVG, nothing loaded from elsewhere.

mod chart;
mod paired;
mod search;
mod spread;
mod sweep;
mod tables;
mod time;

use isobench_schema::load_checks::SweepReport;
use isobench_schema::load_result::{LoadResult, Validity};
use maud::{DOCTYPE, Markup, html};

use super::checks::level_name;
use super::terminal::{arrival, meaning};
use crate::html::{Options, PALETTE, STYLE, head};
use crate::number::{duration, percent, significant};
use crate::text::clean;

pub use sweep::SweepLevel;

/// What the plots of a load need beside the page's style.
const LOAD_STYLE: &str = include_str!("html/style.css");

/// Returns the whole page of one load.
pub fn page(result: &LoadResult, options: &Options) -> String {
    let plain = format!("Load of {}", result.model);
    let title = clean(if options.title.is_empty() { &plain } else { &options.title });
    document(&title, options, &body(result))
}

/// Returns the whole page of a sweep: what it found, the levels against each other, then each of them.
pub fn sweep_page(found: &SweepReport, levels: &[SweepLevel<'_>], options: &Options) -> String {
    let model = levels.first().map_or("no level", |level| level.result.model.as_str());
    let plain = format!("Sweep of {model}");
    let title = clean(if options.title.is_empty() { &plain } else { &options.title });
    let markup = html! {
        (search::section(found))
        (sweep::section(levels))
        @for (index, level) in levels.iter().enumerate() {
            section.task {
                h2 { (level.name) " " (level_name(level.level)) }
                (verdict(level.result))
                (facts(level.result))
                (tables::latencies(level.result))
                (time::section(level.result, &index.to_string()))
            }
        }
    };
    document(&title, options, &markup)
}

fn document(title: &str, options: &Options, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, &[PALETTE, STYLE, LOAD_STYLE]))
            body {
                header { h1 { bdi { (title) } } }
                main { (body) }
                footer { @if let Some(note) = &options.note { p { bdi { (clean(note)) } } } }
            }
        }
    };
    markup.into_string()
}

fn body(result: &LoadResult) -> Markup {
    html! {
        (verdict(result))
        (facts(result))
        section {
            h2 { "Latency" }
            (tables::latencies(result))
        }
        @if let Some(paired) = &result.paired { (paired::section(result, paired)) }
        @if let Some(found) = &result.sweep { (search::section(found)) }
        (time::section(result, "load"))
        (spread::section(result))
        (tables::failures(result))
        (tables::audit(result))
        (tables::steadiness(result))
        (tables::server(result))
        (tables::workload(result))
    }
}

/// Says first what speaks against the numbers.
fn verdict(result: &LoadResult) -> Markup {
    html! {
        @if result.validity != Validity::Valid {
            div.invalid role="alert" {
                p.word { "Invalid: " (result.validity) }
                p { "Why: " (meaning(result.validity)) "." }
                ul {
                    @for finding in &result.findings { li { bdi { (clean(&finding.to_string())) } } }
                }
            }
        } @else if !result.findings.is_empty() {
            div.notice { ul { @for finding in &result.findings { li { bdi { (clean(&finding.to_string())) } } } } }
        }
    }
}

fn facts(result: &LoadResult) -> Markup {
    let number = |name: &str| result.metrics.get(name).map_or_else(|| "–".to_owned(), |value| significant(*value));
    let whole =
        |name: &str| result.metrics.get(name).map_or_else(|| "–".to_owned(), |value| crate::number::whole(*value));
    html! {
        p.facts {
            @for url in &result.urls { span { code { bdi { (clean(url)) } } } }
            span { b { bdi { (clean(&result.model)) } } }
            span { (arrival(&result.workload.arrival)) }
            span { (clean(&result.started)) }
            span { (clean(&result.client)) }
        }
        ul.tiles {
            li { b { (number("output_throughput")) } " output tok/s" }
            li { b { (number("request_throughput")) } " req/s" }
            li { b { (number("median_ttft_ms")) } " ms median TTFT" }
            li { b { (number("median_tpot_ms")) } " ms median TPOT" }
            li { b { (whole("completed")) } " completed, " b { (whole("failed")) } " failed" }
            li { b { (duration(result.metrics.get("duration").copied().unwrap_or(f64::NAN))) } " window" }
            @if let Some(goodput) = &result.goodput {
                li { b { (significant(goodput.request_goodput)) } " good req/s (" (percent(goodput.share)) " keep "
                    code { bdi { (clean(&goodput.objective)) } } ")" }
            }
        }
    }
}
