//! The formats of console output, and what is printed in each.

use isobench_schema::reading::ToolFamily;

use super::labels::{LABELS, LATENCIES, PrintedBy};
use super::line_table::{GROUPS, Role};
use crate::parse::binding::VersionRange;
use crate::parse::catalogue::{Format, FormatKind, Printed};

/// The formats of console output.
pub(in crate::parse) const FORMATS: &[Format] = &[
    Format {
        id: "vllm-serve-table",
        tool: ToolFamily::VllmServe,
        kind: FormatKind::ConsoleTable,
        versions: VersionRange::from("v0.4.0"),
        read: "counts, rates, goodput, latencies with any percentiles, speculative and diffusion decoding, probes",
    },
    Format {
        id: "vllm-serve-lines",
        tool: ToolFamily::VllmServe,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::between("v0.3.1", "v0.3.3"),
        read: "counts, rates, mean, median and P99 of TTFT and TPOT",
    },
    Format {
        id: "vllm-serve-summary",
        tool: ToolFamily::VllmServe,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::between("v0.1.0", "v0.3.0"),
        read: "total time, request throughput, average latencies",
    },
    Format {
        id: "vllm-throughput-lines",
        tool: ToolFamily::VllmThroughput,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::ALL,
        read: "requests and tokens per second, from v0.6.4 output tokens per second, from v0.8.0 numbers of tokens",
    },
    Format {
        id: "vllm-latency-lines",
        tool: ToolFamily::VllmLatency,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::ALL,
        read: "average latency, from v0.4.1 percentiles",
    },
    Format {
        id: "vllm-startup-table",
        tool: ToolFamily::VllmStartup,
        kind: FormatKind::ConsoleTable,
        versions: VersionRange::from("v0.13.0"),
        read: "cold and warm times of start-up and compilation, averages and percentiles",
    },
    Format {
        id: "vllm-prefix-caching-lines",
        tool: ToolFamily::VllmPrefixCaching,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::from("v0.4.0"),
        read: "the time of each pass, of which the last one counts",
    },
    Format {
        id: "vllm-generate-bar",
        tool: ToolFamily::VllmGenerate,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::from("v0.4.3"),
        read: "estimated speeds of a finished progress bar, if there is nothing else",
    },
    Format {
        id: "sglang-serve-table",
        tool: ToolFamily::SglangServe,
        kind: FormatKind::ConsoleTable,
        versions: VersionRange::from("v0.1.22"),
        read: "counts, rates, concurrency, goodput, latencies with percentiles, cache hits",
    },
    Format {
        id: "sglang-one-batch-lines",
        tool: ToolFamily::SglangOneBatch,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::from("v0.1.18"),
        read: "latency and throughput of prefill, decode and all, of the last batch",
    },
    Format {
        id: "sglang-one-batch-server-lines",
        tool: ToolFamily::SglangOneBatchServer,
        kind: FormatKind::ConsoleLines,
        versions: VersionRange::from("v0.3.6"),
        read: "latency and throughputs of the last batch",
    },
    Format {
        id: "sglang-offline-throughput-table",
        tool: ToolFamily::SglangOfflineThroughput,
        kind: FormatKind::ConsoleTable,
        versions: VersionRange::from("v0.3.5.post2"),
        read: "counts and rates",
    },
];

/// Returns what is printed in each format: labels and lines, each with its versions.
pub(in crate::parse) fn printed() -> Vec<Printed> {
    let mut rows = Vec::new();
    let mut label = |text: String, metric: String, by: &PrintedBy| {
        let formats = [
            ("vllm-serve-table", by.vllm),
            ("sglang-serve-table", by.sglang),
            ("sglang-offline-throughput-table", by.offline),
        ];
        for (format, versions) in formats {
            if let Some(versions) = versions {
                rows.push(Printed { format, text: text.clone(), metrics: vec![metric.clone()], versions });
            }
        }
    };
    for of in LABELS.iter().filter(|label| !label.metric.is_empty()) {
        label(format!("{}:", of.text), of.metric.to_owned(), &of.by);
    }
    for of in LATENCIES {
        label(format!("Mean {} (ms):", of.text), format!("{}mean_{}", of.before, of.after), &of.by);
    }
    for group in GROUPS {
        for of in group.lines.iter().filter(|of| matches!(of.role, Role::Begins | Role::Belongs)) {
            rows.push(Printed {
                format: group.format,
                text: of.template.as_str().to_owned(),
                metrics: of.template.metrics().filter(|name| *name != "rank").map(str::to_owned).collect(),
                versions: of.versions.and(group.versions),
            });
        }
    }
    rows
}
