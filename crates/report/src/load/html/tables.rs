//! Tables of a load: latencies, failures, what the client saw of itself, what the server says, and what was sent.

use isobench_schema::load_checks::{AgainstProcess, Pacing};
use isobench_schema::load_result::{LoadInterval, LoadResult};
use maud::{Markup, html};

use crate::load::rows::{LATENCIES, is_shown, latency_name, statistic_order};
use crate::load::terminal::{arrival, too_few};
use crate::load::{checks, sent, server as says};
use crate::number::significant;
use crate::text::clean;

fn between(interval: &LoadInterval) -> String {
    format!("{} to {}", significant(interval.low), significant(interval.high))
}

/// Returns the latencies, each with its interval below it.
pub(super) fn latencies(result: &LoadResult) -> Markup {
    let names = || result.metrics.keys().chain(&result.too_few).filter_map(|name| latency_name(name));
    let mut statistics: Vec<String> = names().map(|name| name.statistic.to_owned()).collect();
    // The median has two names.
    statistics.retain(|statistic| statistic != "p50" && is_shown(result, statistic));
    statistics.sort_by(|a, b| statistic_order(a).total_cmp(&statistic_order(b)));
    statistics.dedup();
    let has = |place: usize| names().any(|name| name.latency == place);
    html! {
        div.scroll { table.values {
            thead { tr {
                th scope="col" { "in ms" }
                @for statistic in &statistics { th.number scope="col" { (statistic) } }
                th.number scope="col" { "mean from the send" }
            } }
            tbody { @for (place, (short, long)) in LATENCIES.iter().enumerate() { @if has(place) { tr {
                th scope="row" { b { (short.to_uppercase()) } " " span.note { (long) } }
                @for statistic in &statistics { (cell(result, &format!("{statistic}_{short}_ms"))) }
                td.number.note { (result.from_send.get(&format!("mean_{short}_ms")).map_or_else(String::new, |value| significant(*value))) }
            } } } }
        } }
    }
}

fn cell(result: &LoadResult, name: &str) -> Markup {
    html! {
        td.number {
            @if let Some(value) = result.metrics.get(name) {
                (significant(*value))
                @if let Some(interval) = result.intervals.get(name) { div.note { small { (between(interval)) } } }
            } @else if result.too_few.iter().any(|few| few == name) {
                span.unsure title=(too_few(result)) { "n too small" }
            } @else { "–" }
        }
    }
}

/// Returns the failed requests by class.
pub(super) fn failures(result: &LoadResult) -> Markup {
    html! {
        @if !result.failures.is_empty() {
            section {
                h2 { "Failed requests" }
                div.scroll { table {
                    thead { tr { th scope="col" { "class" } th.number scope="col" { "requests" } th scope="col" { "for example" } } }
                    tbody { @for found in &result.failures { tr {
                        th scope="row" { (found.class) }
                        td.number { (found.count) }
                        td.text { @for example in &found.examples { div { bdi { (clean(example)) } } } }
                    } } }
                } }
            }
        }
    }
}

/// Returns what the client saw of itself.
pub(super) fn audit(result: &LoadResult) -> Markup {
    html! {
        @if let Some(audit) = &result.audit {
            @let (word, tone) = checks::verdict(audit);
            section {
                h2 { "The client: " span class=(tone.class()) { (word) } }
                ul {
                    @for broken in &audit.broken {
                        li.bad { b { (broken.bound) } ": " bdi { (clean(&broken.message)) } }
                    }
                    @for line in checks::audit_lines(audit) { li { bdi { (line) } } }
                }
                @if let Some(pacing) = &audit.pacing { (arrivals(pacing)) }
            }
        }
    }
}

/// Returns the arrivals as the process asked for gives them on average, as they were drawn, and as they were sent.
fn arrivals(pacing: &Pacing) -> Markup {
    let rows = [
        ("variation of the gaps", pacing.gap_cv),
        ("dispersion of counts in 100 ms", pacing.dispersion),
        ("share of gaps under 50 µs", pacing.short_gaps),
    ];
    let expected = |found: AgainstProcess| {
        let error = found.standard_error.map(|error| format!(" ± {}", significant(error))).unwrap_or_default();
        found.expected.map_or_else(|| "–".to_owned(), |expected| significant(expected) + &error)
    };
    html! {
        div.scroll { table.narrow {
            thead { tr { th scope="col" { "arrivals" } @for title in ["of the process", "drawn", "sent"] { th.number scope="col" { (title) } } } }
            tbody {
                tr {
                    th scope="row" { "requests per second" }
                    td.number { (pacing.asked_per_s.map_or_else(|| "–".to_owned(), significant)) }
                    td.number { (significant(pacing.drawn_per_s)) }
                    td.number { (significant(pacing.sent_per_s)) }
                }
                @for (name, found) in rows { @if let Some(found) = found { tr {
                    th scope="row" { (name) }
                    td.number { (expected(found)) }
                    td.number { (significant(found.drawn)) }
                    td.number { (significant(found.sent)) }
                } } }
            }
        } }
        p.note { "±: one standard error of a draw with as many requests" }
    }
}

/// Returns what was checked of the loop and of the server over time.
pub(super) fn steadiness(result: &LoadResult) -> Markup {
    let lines = checks::lines(result);
    html! {
        @if !lines.is_empty() || result.halves.is_some() {
            section {
                h2 { "Steadiness" }
                dl.pairs { @for (word, line) in &lines { dt { (word) } dd { (line) } } }
                @if let Some([first, second]) = &result.halves {
                    div.scroll { table.narrow {
                        thead { tr {
                            th scope="col" { "part of the window" } th.number scope="col" { "first half" } th.number scope="col" { "second half" }
                            @if !result.full_loop_metrics.is_empty() { th.number scope="col" { "full loop" } }
                        } }
                        tbody { @for name in ["output_throughput", "request_throughput", "median_ttft_ms", "median_tpot_ms", "median_e2el_ms"] { tr {
                            th scope="row" { (name) }
                            (number(first.get(name))) (number(second.get(name)))
                            @if !result.full_loop_metrics.is_empty() { (number(result.full_loop_metrics.get(name))) }
                        } } }
                    } }
                }
            }
        }
    }
}

fn number(value: Option<&f64>) -> Markup {
    html! { td.number { (value.map_or_else(|| "–".to_owned(), |value| significant(*value))) } }
}

/// Returns what the server says of itself.
pub(super) fn server(result: &LoadResult) -> Markup {
    html! {
        @if !result.server.is_empty() {
            section {
                h2 { "What the server says of itself" }
                @if let Some(note) = says::cache_note(result) { p.unsure { (note) } }
                div.scroll { table.values {
                    thead { tr {
                        th scope="col" { "metric" }
                        @for title in ["first", "last", "over the window", "min", "mean", "max", "looks"] { th.number scope="col" { (title) } }
                    } }
                    tbody { @for (name, metric) in &result.server { tr {
                        th scope="row" { code { bdi { (clean(name)) } } }
                        td.number { (significant(metric.first)) }
                        td.number { (significant(metric.last)) }
                        (number(says::grown(name, metric).as_ref()))
                        @for value in [metric.min, metric.mean, metric.max] { td.number { (significant(value)) } }
                        td.number { (metric.looks) }
                    } } }
                } }
            }
        }
    }
}

/// Returns what was sent, and with which versions.
pub(super) fn workload(result: &LoadResult) -> Markup {
    let load = &result.workload;
    let digests = [("tokenizer", &result.tokenizer_digest), ("dataset", &result.dataset_digest)];
    html! {
        section {
            h2 { "What was sent" }
            dl.pairs {
                dt { "interface" } dd { (load.api) }
                dt { "requests" } dd { (load.requests) ", after " (load.warm_up_requests) " that weren't measured" }
                dt { "arrivals" } dd { (arrival(&load.arrival)) @if let Some(most) = load.max_in_flight { ", at most " (most) " under way" } }
                dt { "prompts" } dd { bdi { (sent::prompts(&load.prompts)) } }
                dt { "answers" } dd { (sent::answers(result)) ", temperature " (load.temperature) }
                @if !load.extra_body.is_empty() {
                    dt { "further fields" }
                    dd { @for (key, value) in &load.extra_body { code { bdi { (clean(key)) ": " (clean(&value.to_string())) } } " " } }
                }
                dt { "tokens counted by" } dd { (result.counted_by) ", those of prompts by " (sent::input_counter(result)) }
                dt { "seed" } dd { (result.seed) }
                dt { "digest of the load" } dd { code { (result.workload_digest) } }
                @for (name, digest) in digests { @if let Some(digest) = digest { dt { "digest of the " (name) } dd { code { (digest) } } } }
                dt { "client" } dd { (clean(&result.client)) }
                dt { "definitions" } dd { (clean(&result.definition)) }
            }
        }
    }
}
