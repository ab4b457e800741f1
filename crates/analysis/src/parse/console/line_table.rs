//! The results that are lines of their own: which lines each tool prints, and in which versions.

use isobench_schema::reading::ToolFamily;

use super::template::Template;
use crate::parse::binding::VersionRange;

/// What a line is to its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The tool says that what follows is only its warm-up.
    WarmUp,
    /// The tool says that what follows is measured.
    Measured,
    /// The first line.
    Begins,
    /// A line that has values, wherever it stands after the first.
    Belongs,
    /// One step of many; it has no values of its own.
    Step,
}

/// A line of a result.
#[derive(Debug)]
pub(super) struct LineOf {
    pub(super) role: Role,
    pub(super) template: Template,
    pub(super) versions: VersionRange,
}

/// The lines of one result.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) format: &'static str,
    pub(super) tool: ToolFamily,
    pub(super) versions: VersionRange,
    pub(super) lines: &'static [LineOf],
    /// The metrics that show that it is whole: all of any one list.
    pub(super) whole_with: &'static [&'static [&'static str]],
    /// Metrics that every version from one on prints, each with the last version that doesn't.
    pub(super) missing: &'static [(&'static str, &'static str)],
    /// Whether the warm-up prints the same lines, so that a line must tell which of the two follows.
    pub(super) warms_up_alike: bool,
}

const ALL: VersionRange = VersionRange::ALL;

const fn from(version: &'static str) -> VersionRange {
    VersionRange::from(version)
}

const fn between(first: &'static str, last: &'static str) -> VersionRange {
    VersionRange::between(first, last)
}

const fn line(role: Role, text: &'static str, versions: VersionRange) -> LineOf {
    LineOf { role, template: Template::new(text), versions }
}

use Role::{Begins, Belongs, Measured, Step, WarmUp};

/// Every result of lines.
pub(super) const GROUPS: &[Group] = &[
    Group {
        format: "vllm-serve-summary",
        tool: ToolFamily::VllmServe,
        versions: between("v0.1.0", "v0.3.0"),
        lines: &[
            line(Begins, "Total time: {total_time_s} s", ALL),
            line(Belongs, "Throughput: {request_throughput} requests/s", ALL),
            line(Belongs, "Average latency: {mean_latency_s} s", ALL),
            line(Belongs, "Average latency per token: {mean_latency_per_token_s} s", ALL),
            line(Belongs, "Average latency per output token: {mean_latency_per_output_token_s} s", ALL),
        ],
        whole_with: &[&[
            "total_time_s",
            "request_throughput",
            "mean_latency_s",
            "mean_latency_per_token_s",
            "mean_latency_per_output_token_s",
        ]],
        missing: &[],
        warms_up_alike: false,
    },
    Group {
        format: "vllm-serve-lines",
        tool: ToolFamily::VllmServe,
        versions: between("v0.3.1", "v0.3.3"),
        lines: &[
            line(Begins, "Successful requests: {completed}", ALL),
            line(Belongs, "Benchmark duration: {duration_s} s", ALL),
            line(Belongs, "Total input tokens: {total_input_tokens}", ALL),
            line(Belongs, "Total generated tokens: {total_output_tokens}", ALL),
            line(Belongs, "Request throughput: {request_throughput} requests/s", ALL),
            line(Belongs, "Input token throughput: {input_throughput} tokens/s", ALL),
            line(Belongs, "Output token throughput: {output_throughput} tokens/s", ALL),
            line(Belongs, "Mean TTFT: {mean_ttft_ms} ms", ALL),
            line(Belongs, "Median TTFT: {median_ttft_ms} ms", ALL),
            line(Belongs, "P99 TTFT: {p99_ttft_ms} ms", ALL),
            line(Belongs, "Mean TPOT: {mean_tpot_ms} ms", ALL),
            line(Belongs, "Median TPOT: {median_tpot_ms} ms", ALL),
            line(Belongs, "P99 TPOT: {p99_tpot_ms} ms", ALL),
        ],
        whole_with: &[&[
            "completed",
            "duration_s",
            "request_throughput",
            "output_throughput",
            "mean_ttft_ms",
            "p99_ttft_ms",
            "mean_tpot_ms",
            "p99_tpot_ms",
        ]],
        missing: &[],
        warms_up_alike: false,
    },
    Group {
        format: "vllm-throughput-lines",
        tool: ToolFamily::VllmThroughput,
        versions: ALL,
        lines: &[
            line(Begins, "Throughput: {total_token_throughput} tokens/s", VersionRange::to("v0.1.0.dev")),
            line(
                Begins,
                "Throughput: {request_throughput} requests/s, {total_token_throughput} tokens/s",
                between("v0.1.0", "v0.6.3.post1"),
            ),
            line(
                Begins,
                "Throughput: {request_throughput} requests/s, {total_token_throughput} total tokens/s, \
                 {output_throughput} output tokens/s",
                from("v0.6.4"),
            ),
            line(Belongs, "Total num prompt tokens:  {total_input_tokens}", from("v0.8.0")),
            line(Belongs, "Total num output tokens:  {total_output_tokens}", from("v0.8.0")),
        ],
        whole_with: &[&["total_token_throughput"]],
        missing: &[("total_output_tokens", "v0.7.3")],
        warms_up_alike: false,
    },
    Group {
        format: "vllm-latency-lines",
        tool: ToolFamily::VllmLatency,
        versions: ALL,
        lines: &[
            line(Begins, "Avg latency: {avg_latency_s} seconds", ALL),
            line(Belongs, "99% percentile latency: {p99_latency_s} seconds", from("v0.5.1")),
            line(Belongs, "{rank}% percentile latency: {pRANK_latency_s} seconds", from("v0.4.1")),
        ],
        whole_with: &[&["avg_latency_s"]],
        missing: &[("p50_latency_s", "v0.4.0.post1"), ("p99_latency_s", "v0.5.0.post1")],
        warms_up_alike: false,
    },
    Group {
        format: "sglang-one-batch-lines",
        tool: ToolFamily::SglangOneBatch,
        versions: from("v0.1.18"),
        lines: &[
            line(WarmUp, "Warmup ...", from("v0.2.12")),
            line(Measured, "Benchmark ...", from("v0.2.12")),
            line(Begins, "Prefill. latency:  {prefill_latency_s} s, throughput:  {prefill_throughput} token/s", ALL),
            line(
                Step,
                "Decode.  latency:  {step_latency_s} s, throughput:  {step_throughput} token/s",
                between("v0.1.18", "v0.4.5.post3"),
            ),
            line(
                Step,
                "Decode. Batch size: {size}, latency:  {step_latency_s} s, throughput:  {step_throughput} token/s",
                between("v0.4.6.dev", "v0.4.6.dev"),
            ),
            line(
                Step,
                "Decode {step}. Batch size: {size}, latency:  {step_latency_s} s, throughput:  {step_throughput} token/s",
                from("v0.4.6"),
            ),
            line(
                Belongs,
                "Decode.  avg latency:  {decode_avg_latency_s} s, avg throughput:  {decode_avg_throughput} token/s",
                between("v0.1.18", "v0.2.14.post2"),
            ),
            line(
                Belongs,
                "Decode.  median latency:  {decode_median_latency_s} s, median throughput:  {decode_median_throughput} token/s",
                from("v0.2.15"),
            ),
            line(Belongs, "Total. latency:  {total_latency_s} s, throughput:  {total_throughput} token/s", ALL),
        ],
        whole_with: &[&["prefill_latency_s", "total_latency_s"]],
        missing: &[],
        warms_up_alike: true,
    },
    Group {
        format: "sglang-one-batch-server-lines",
        tool: ToolFamily::SglangOneBatchServer,
        versions: from("v0.3.6"),
        lines: &[
            line(WarmUp, "======== Warmup Begin ========", from("v0.4.6.post4")),
            line(Measured, "======== Warmup End  ========", from("v0.4.6.post4")),
            line(Begins, "batch size: {batch_size}", ALL),
            line(Belongs, "input_len: {input_len}", from("v0.4.6.post4")),
            line(Belongs, "output_len: {output_len}", from("v0.4.6.post4")),
            line(Belongs, "latency: {latency_s} s", ALL),
            line(Belongs, "ttft: {ttft_s} s", between("v0.4.6.post4", "v0.5.5.post3")),
            line(Belongs, "last_ttft: {last_ttft_s} s", from("v0.5.6")),
            line(
                Belongs,
                "Last generation throughput: {last_gen_throughput} tok/s",
                between("v0.4.6.post4", "v0.4.6.post5"),
            ),
            line(Belongs, "last generation throughput: {last_gen_throughput} tok/s", from("v0.4.7")),
            line(Belongs, "Input throughput: {input_throughput} tok/s", between("v0.4.6.post4", "v0.4.6.post5")),
            line(Belongs, "input throughput: {input_throughput} tok/s", from("v0.4.7")),
            line(Belongs, "output throughput: {output_throughput} token/s", between("v0.3.6", "v0.4.6.post3")),
            line(Belongs, "output throughput: {output_throughput} tok/s", from("v0.4.6.post4")),
            line(Belongs, "(input + output) throughput: {total_throughput} token/s", between("v0.3.6", "v0.4.6.post3")),
            line(Belongs, "acc_length: {accept_length}", from("v0.5.6")),
            line(Belongs, "cache hit rate: {cache_hit_rate}", from("v0.5.8")),
        ],
        whole_with: &[
            &["batch_size", "latency_s", "input_throughput", "last_gen_throughput"],
            &["batch_size", "latency_s", "total_throughput"],
        ],
        missing: &[],
        warms_up_alike: false,
    },
];
