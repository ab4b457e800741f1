//! The labels of the rows of tables: what each is called here, and which versions of which tool print it.

use std::borrow::Cow;

use crate::parse::binding::VersionRange;

/// The tools that print tables of labelled rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printer {
    VllmServe,
    SglangServe,
    SglangOffline,
}

/// The versions of each tool that print a label. `None`: no version of it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrintedBy {
    pub(super) vllm: Option<VersionRange>,
    pub(super) sglang: Option<VersionRange>,
    pub(super) offline: Option<VersionRange>,
}

impl PrintedBy {
    /// Returns the versions of one tool.
    pub(super) fn of(&self, printer: Printer) -> Option<VersionRange> {
        match printer {
            Printer::VllmServe => self.vllm,
            Printer::SglangServe => self.sglang,
            Printer::SglangOffline => self.offline,
        }
    }
}

/// A label with one metric.
pub(super) struct Label {
    pub(super) text: &'static str,
    /// The metric; empty where the row says something else.
    pub(super) metric: &'static str,
    pub(super) by: PrintedBy,
}

/// The name of a latency, as in `Mean NAME (ms):`.
pub(super) struct Latency {
    pub(super) text: &'static str,
    /// What comes before the statistic in the metric's name.
    pub(super) before: &'static str,
    /// What comes after it.
    pub(super) after: &'static str,
    pub(super) by: PrintedBy,
}

const fn vllm(versions: VersionRange) -> PrintedBy {
    PrintedBy { vllm: Some(versions), sglang: None, offline: None }
}

const fn sglang(versions: VersionRange) -> PrintedBy {
    PrintedBy { vllm: None, sglang: Some(versions), offline: None }
}

const fn from(version: &'static str) -> VersionRange {
    VersionRange::from(version)
}

const fn between(first: &'static str, last: &'static str) -> VersionRange {
    VersionRange::between(first, last)
}

const EVERYWHERE: PrintedBy =
    PrintedBy { vllm: Some(from("v0.4.0")), sglang: Some(from("v0.1.22")), offline: Some(from("v0.3.5.post2")) };

const fn label(text: &'static str, metric: &'static str, by: PrintedBy) -> Label {
    Label { text, metric, by }
}

/// The metric whose row may say in words that there is no limit: `inf`, or `trace` where a trace has the times.
pub(super) const OPTIONAL: &str = "request_rate";

/// The labels that have one metric each. Main between two releases can print what either of them does.
pub(super) const LABELS: &[Label] = &[
    label("Successful requests", "completed", EVERYWHERE),
    label("Failed requests", "failed", vllm(from("v0.11.1"))),
    label("Maximum request concurrency", "max_concurrency", vllm(from("v0.10.1"))),
    label("Max reqeuest concurrency", "max_concurrency", sglang(between("v0.3.6.post1", "v0.4.6.post3"))),
    label("Max request concurrency", "max_concurrency", sglang(from("v0.4.6.post4"))),
    label("Request rate configured (RPS)", "request_rate", vllm(from("v0.10.1"))),
    label("Traffic request rate", OPTIONAL, sglang(from("v0.1.22"))),
    label("Backend", "", PrintedBy { vllm: None, sglang: Some(from("v0.1.23")), offline: Some(from("v0.3.5.post2")) }),
    label("Benchmark duration (s)", "duration_s", EVERYWHERE),
    label("Total input tokens", "total_input_tokens", EVERYWHERE),
    label("Total input text tokens", "total_input_text_tokens", sglang(from("v0.5.3.post1"))),
    label("Total input vision tokens", "total_input_vision_tokens", sglang(from("v0.5.3.post1"))),
    label("Total generated tokens", "total_output_tokens", EVERYWHERE),
    label("Total generated tokens (retokenized)", "total_output_tokens_retokenized", sglang(from("v0.1.23"))),
    label(
        "Last generation throughput (tok/s)",
        "last_gen_throughput",
        PrintedBy { vllm: None, sglang: None, offline: Some(from("v0.4.3")) },
    ),
    label("Request throughput (req/s)", "request_throughput", EVERYWHERE),
    label(
        "Request goodput (req/s)",
        "request_goodput",
        PrintedBy { vllm: Some(from("v0.6.4")), sglang: Some(from("v0.5.23")), offline: None },
    ),
    label(
        "Input token throughput (tok/s)",
        "input_throughput",
        PrintedBy {
            vllm: Some(between("v0.4.0", "v0.5.5")),
            sglang: Some(from("v0.1.22")),
            offline: Some(from("v0.3.5.post2")),
        },
    ),
    label("Output token throughput (tok/s)", "output_throughput", EVERYWHERE),
    label(
        "Peak output token throughput (tok/s)",
        "peak_output_throughput",
        PrintedBy { vllm: Some(from("v0.11.0")), sglang: Some(from("v0.5.6")), offline: None },
    ),
    label(
        "Peak concurrent requests",
        "peak_concurrent_requests",
        PrintedBy { vllm: Some(from("v0.11.0")), sglang: Some(from("v0.5.6")), offline: None },
    ),
    label("RTFx (Inverse Real-Time Factor)", "rtfx", vllm(from("v0.17.0"))),
    label("Input throughput (inputs/s)", "input_sequence_throughput", vllm(from("v0.29.0"))),
    label("Total Token throughput (tok/s)", "total_token_throughput", vllm(between("v0.6.0", "v0.12.0"))),
    label(
        "Total token throughput (tok/s)",
        "total_token_throughput",
        PrintedBy {
            vllm: Some(from("v0.13.0")),
            sglang: Some(from("v0.3.5.post2")),
            offline: Some(from("v0.3.5.post2")),
        },
    ),
    label("Concurrency", "concurrency", sglang(from("v0.4.2"))),
    label("Accept length", "accept_length", sglang(from("v0.4.3.post3"))),
    // Speculative Decoding.
    label("Acceptance rate (%)", "spec_acceptance_rate_pct", vllm(from("v0.14.0"))),
    label("Acceptance length", "spec_acceptance_length", vllm(from("v0.14.0"))),
    label("Drafts", "spec_drafts", vllm(from("v0.14.0"))),
    label("Draft tokens", "spec_draft_tokens", vllm(from("v0.14.0"))),
    label("Accepted tokens", "spec_accepted_tokens", vllm(from("v0.14.0"))),
    label("Per-position acceptance (%)", "", vllm(from("v0.14.0"))),
    // Diffusion Decoding.
    label("Committed throughput (tok/s)", "diffusion_committed_throughput", vllm(from("v0.24.0"))),
    label("Denoising steps per canvas", "diffusion_steps_per_canvas", vllm(from("v0.24.0"))),
    label("Committed per denoising step", "diffusion_committed_per_step", vllm(from("v0.24.0"))),
    label("Committed tokens", "diffusion_committed_tokens", vllm(from("v0.24.0"))),
    label("Denoising steps", "diffusion_denoising_steps", vllm(from("v0.24.0"))),
    label("Canvas positions evaluated", "diffusion_canvas_positions", vllm(from("v0.24.0"))),
    // Probe Requests.
    label("Probe requests completed", "probe_completed", vllm(from("v0.27.0"))),
    label("Probe requests failed", "probe_failed", vllm(from("v0.27.0"))),
    // Goodput.
    label("SLOs (ms)", "", sglang(from("v0.5.23"))),
    label("SLO attainment (%)", "slo_attainment_pct", sglang(from("v0.5.23"))),
    label("TTFT SLO attainment (%)", "ttft_slo_attainment_pct", sglang(from("v0.5.23"))),
    label("TPOT SLO attainment (%)", "tpot_slo_attainment_pct", sglang(from("v0.5.23"))),
    label("ITL SLO attainment (%)", "itl_slo_attainment_pct", sglang(from("v0.5.23"))),
    label("E2E SLO attainment (%)", "e2el_slo_attainment_pct", sglang(from("v0.5.23"))),
    label("E2EL SLO attainment (%)", "e2el_slo_attainment_pct", sglang(from("v0.5.23"))),
    // Cache Hit Details.
    label("Total prompt tokens", "total_prompt_tokens", sglang(from("v0.5.14"))),
    label("Total cached tokens", "total_cached_tokens", sglang(from("v0.5.14"))),
    label("Cache hit rate", "cache_hit_rate_pct", sglang(from("v0.5.14"))),
];

/// The latencies that statistics are printed of.
pub(super) const LATENCIES: &[Latency] = &[
    latency(
        "TTFT",
        "",
        "ttft_ms",
        PrintedBy { vllm: Some(from("v0.4.0")), sglang: Some(from("v0.1.22")), offline: None },
    ),
    latency(
        "TPOT",
        "",
        "tpot_ms",
        PrintedBy { vllm: Some(from("v0.4.0")), sglang: Some(from("v0.1.22")), offline: None },
    ),
    latency(
        "ITL",
        "",
        "itl_ms",
        PrintedBy { vllm: Some(from("v0.5.0")), sglang: Some(from("v0.1.22")), offline: None },
    ),
    latency("E2EL", "", "e2el_ms", vllm(from("v0.6.0"))),
    latency("E2E Latency", "", "e2el_ms", sglang(from("v0.1.23"))),
    latency("probe E2EL", "probe_", "e2el_ms", vllm(from("v0.27.0"))),
    latency("Client Queue Time", "", "client_queue_time_ms", vllm(from("v0.30.0"))),
    latency("E2EL incl. Client Queue", "", "e2el_including_client_queue_ms", vllm(from("v0.30.0"))),
];

const fn latency(text: &'static str, before: &'static str, after: &'static str, by: PrintedBy) -> Latency {
    Latency { text, before, after, by }
}

/// What a label means.
#[derive(Debug)]
pub(super) struct Meaning {
    /// The metric; `None` where the row says something else.
    pub(super) metric: Option<Cow<'static, str>>,
    pub(super) by: PrintedBy,
}

/// Returns what a label means, given without its colon. Where blanks are, one is enough.
pub(super) fn meaning(text: &str) -> Option<Meaning> {
    if let Some(label) = LABELS.iter().find(|label| same_words(label.text, text)) {
        let metric = (!label.metric.is_empty()).then_some(Cow::Borrowed(label.metric));
        return Some(Meaning { metric, by: label.by });
    }
    if let Some(position) = text.strip_prefix("Position ") {
        let position: u32 = position.parse().ok()?;
        let metric = format!("spec_acceptance_rate_position_{position}_pct");
        return Some(Meaning { metric: Some(Cow::Owned(metric)), by: vllm(from("v0.14.0")) });
    }
    statistic(text)
}

/// Returns what `Mean TTFT (ms)` and its like mean.
fn statistic(text: &str) -> Option<Meaning> {
    let (statistic, name) = text.strip_suffix("(ms)")?.trim_end().split_once(' ')?;
    let latency = LATENCIES.iter().find(|latency| same_words(latency.text, name))?;
    let (statistic, vllm, sglang) = match statistic {
        "Mean" => ("mean".to_owned(), None, None),
        "Median" => ("median".to_owned(), None, None),
        "Max" => ("max".to_owned(), None, Some("v0.4.3.post3")),
        _ => {
            let rank = statistic.strip_prefix('P')?;
            let place: f64 = super::value::number(rank)?;
            if !(0.0..=100.0).contains(&place) {
                return None;
            }
            let vllm = (rank != "99").then_some("v0.6.0");
            (format!("p{rank}"), vllm, percentile_of_sglang(rank, latency.text))
        }
    };
    let narrowed = |range: Option<VersionRange>, version: Option<&'static str>| match (range, version) {
        (Some(range), Some(version)) => Some(range.and(from(version))),
        (range, _) => range,
    };
    let by =
        PrintedBy { vllm: narrowed(latency.by.vllm, vllm), sglang: narrowed(latency.by.sglang, sglang), offline: None };
    Some(Meaning { metric: Some(Cow::Owned(format!("{}{statistic}_{}", latency.before, latency.after))), by })
}

/// Returns the version of SGLang that began to print a percentile.
fn percentile_of_sglang(rank: &str, latency: &str) -> Option<&'static str> {
    match (rank, latency) {
        ("90" | "99", "E2E Latency") => Some("v0.5.8"),
        ("95", "ITL") => Some("v0.4.3.post3"),
        ("90" | "95", _) => Some("v0.5.14"),
        _ => None,
    }
}

/// Returns whether two texts are the same but for the number of blanks between words.
fn same_words(known: &str, found: &str) -> bool {
    known == found || (found.contains("  ") && known.split(' ').eq(found.split_whitespace()))
}

/// A row that says something of versions where it is missing.
pub(super) struct Missing {
    pub(super) printer: Printer,
    /// The metric that isn't there.
    pub(super) without: &'static str,
    /// The metric that must be there for the row to be expected.
    pub(super) beside: &'static str,
    /// The last version that prints a table without it.
    pub(super) last: &'static str,
}

/// The rows that every version from one on prints.
pub(super) const MISSING: &[Missing] = &[
    missing(Printer::VllmServe, "failed", "completed", "v0.11.0"),
    missing(Printer::VllmServe, "peak_output_throughput", "output_throughput", "v0.10.2"),
    missing(Printer::VllmServe, "total_token_throughput", "output_throughput", "v0.5.5"),
    missing(Printer::SglangServe, "peak_concurrent_requests", "completed", "v0.5.5.post3"),
    missing(Printer::SglangServe, "total_input_text_tokens", "completed", "v0.5.3"),
    missing(Printer::SglangServe, "concurrency", "completed", "v0.4.1.post7"),
    missing(Printer::SglangServe, "total_token_throughput", "output_throughput", "v0.3.5.post1"),
    missing(Printer::SglangServe, "p99_e2el_ms", "mean_e2el_ms", "v0.5.7"),
    missing(Printer::SglangServe, "p95_e2el_ms", "mean_e2el_ms", "v0.5.13.post1"),
    missing(Printer::SglangServe, "mean_e2el_ms", "completed", "v0.1.22"),
    missing(Printer::SglangOffline, "last_gen_throughput", "completed", "v0.4.2.post4"),
];

const fn missing(printer: Printer, without: &'static str, beside: &'static str, last: &'static str) -> Missing {
    Missing { printer, without, beside, last }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(text: &str) -> Option<String> {
        meaning(text).and_then(|meaning| meaning.metric).map(Cow::into_owned)
    }

    #[test]
    fn labels_are_compared_whole() {
        for (text, expected) in [
            ("Output token throughput (tok/s)", Some("output_throughput")),
            ("output token throughput (tok/s)", None),
            ("Peak output token throughput (tok/s)", Some("peak_output_throughput")),
            ("Output  token throughput  (tok/s)", Some("output_throughput")),
            ("P99 TTFT (ms)", Some("p99_ttft_ms")),
            ("P99.9 TTFT (ms)", Some("p99.9_ttft_ms")),
            ("P99 probe E2EL (ms)", Some("probe_p99_e2el_ms")),
            ("P999 TTFT (ms)", None),
            ("P TTFT (ms)", None),
            ("Mean E2EL incl. Client Queue (ms)", Some("mean_e2el_including_client_queue_ms")),
            ("Position 2", Some("spec_acceptance_rate_position_2_pct")),
            ("Backend", None),
            ("ean TTFT (ms)", None),
            ("Mean TTFT", None),
        ] {
            assert_eq!(metric(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn every_version_in_the_tables_can_be_read() {
        let ranges = LABELS.iter().map(|label| label.by).chain(LATENCIES.iter().map(|latency| latency.by));
        let ranges = ranges.flat_map(|by| [by.vllm, by.sglang, by.offline]).flatten();
        let ends = ranges.flat_map(|range| [range.from, range.to]).flatten();
        for version in ends.chain(MISSING.iter().map(|missing| missing.last)) {
            assert!(crate::parse::binding::ToolVersion::parse(version).is_some(), "{version}");
        }
    }
}
