//! The result files of SGLang's benchmarks, all of which are JSON Lines that later runs append to.
//!
//! | key | metric |
//! | --- | --- |
//! | `mean_e2e_latency_ms`, before v0.2.12 `mean_e2e_latency`, which is in milliseconds, too | `mean_e2el_ms` |
//! | `median_ttft`, `median_itl` before v0.2.12, in milliseconds | `median_ttft_ms`, `median_itl_ms` |
//! | `total_output_retokenized` before v0.2.12 | `total_output_tokens_retokenized` |
//! | `total_throughput`, `overall_throughput` | `total_token_throughput` of serving, `total_throughput` of one batch |
//! | `slo_attainment`, a part of one | `slo_attainment_pct` |
//! | `accept_length`, `acc_length`: `null`, 0 or -1 without speculation | `accept_length` |
//! | `latency`, `last_ttft` of one batch against a server, in seconds | `latency_s`, `last_ttft_s` |
//!
//! Offline throughput begins with -1 for what it doesn't know yet; a value below zero is a contradiction. Which version
//! wrote which key was read from the sources from v0.1.23 on.

use super::super::binding::{ToolFamily, VersionRange};
use super::super::catalogue::{Format, FormatKind};
use super::layout::{Field, Layout, Mark, PLAIN, Rate, Unit, field, optional, positive};

const SERVE_FIELDS: &[Field] = &[
    field("completed", "completed"),
    field("duration", "duration_s"),
    field("benchmark_duration", "duration_s"),
    field("total_input", "total_input_tokens"),
    field("total_input_tokens", "total_input_tokens"),
    optional("total_input_text_tokens", "total_input_text_tokens"),
    optional("total_input_vision_tokens", "total_input_vision_tokens"),
    field("total_output", "total_output_tokens"),
    field("total_output_tokens", "total_output_tokens"),
    field("total_output_retokenized", "total_output_tokens_retokenized"),
    field("total_output_tokens_retokenized", "total_output_tokens_retokenized"),
    field("request_throughput", "request_throughput"),
    field("input_throughput", "input_throughput"),
    field("output_token_throughput", "output_throughput"),
    field("output_throughput", "output_throughput"),
    field("total_throughput", "total_token_throughput"),
    field("mean_e2e_latency", "mean_e2el_ms"),
    field("median_e2e_latency", "median_e2el_ms"),
    field("median_ttft", "median_ttft_ms"),
    field("median_itl", "median_itl_ms"),
    field("concurrency", "concurrency"),
    positive("accept_length", "accept_length"),
    optional("request_rate", "request_rate"),
    optional("max_concurrency", "max_concurrency"),
    optional("max_output_tokens_per_s", "peak_output_throughput"),
    optional("max_concurrent_requests", "peak_concurrent_requests"),
    optional("cache_report/cache_hit_rate_pct", "cache_hit_rate_pct"),
    optional("cache_report/total_cached_tokens", "total_cached_tokens"),
    optional("request_goodput", "request_goodput"),
    optional("slo_attainment", "slo_attainment_pct").in_unit(Unit::PartToPercent),
];

/// The serving benchmark, which always writes its result.
pub(super) const SERVE: Layout = Layout {
    format: Format {
        id: "sglang-serve-jsonl",
        tool: ToolFamily::SglangServe,
        kind: FormatKind::JsonLines,
        versions: VersionRange::from("v0.1.23"),
        read: "counts, duration, rates, statistics of E2EL, TTFT, TPOT and ITL, concurrency, cache hits, goodput",
    },
    signs: &[
        &["total_output_tokens_retokenized", "dataset_name"],
        &["total_output_retokenized", "dataset_name"],
        &["random_range_ratio", "sharegpt_output_len"],
    ],
    fields: &[SERVE_FIELDS],
    flat: &[("e2e_latency", "e2el"), ("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl")],
    required: &["duration_s", "output_throughput"],
    rates: &[
        Rate { rate: "request_throughput", totals: &["completed"] },
        Rate { rate: "input_throughput", totals: &["total_input_tokens"] },
        Rate { rate: "output_throughput", totals: &["total_output_tokens"] },
        Rate { rate: "total_token_throughput", totals: &["total_input_tokens", "total_output_tokens"] },
    ],
    marks: &[
        Mark::With("benchmark_duration", VersionRange::to("v0.2.11")),
        Mark::With("duration", VersionRange::from("v0.2.12")),
        Mark::With("max_concurrency", VersionRange::from("v0.3.6.post1")),
        Mark::With("request_throughput", VersionRange::from("v0.4.2")),
        Mark::With("accept_length", VersionRange::from("v0.4.3.post3")),
        Mark::With("total_input_text_tokens", VersionRange::from("v0.5.3.post1")),
        Mark::With("tag", VersionRange::from("v0.5.4.post2")),
        Mark::With("server_info", VersionRange::from("v0.5.4.post3")),
        Mark::With("total_throughput", VersionRange::from("v0.5.5.post2")),
        Mark::With("max_output_tokens_per_s", VersionRange::from("v0.5.6")),
        Mark::With("p90_e2e_latency_ms", VersionRange::from("v0.5.8")),
        Mark::With("p90_ttft_ms", VersionRange::from("v0.5.14")),
        Mark::With("request_goodput", VersionRange::from("v0.5.23")),
        Mark::Without("duration", "max_concurrency", VersionRange::to("v0.3.6")),
        Mark::Without("duration", "request_throughput", VersionRange::to("v0.4.1.post7")),
        Mark::Without("duration", "accept_length", VersionRange::to("v0.4.3.post2")),
        Mark::Without("duration", "total_input_text_tokens", VersionRange::to("v0.5.3")),
        Mark::Without("duration", "total_throughput", VersionRange::to("v0.5.5.post1")),
        Mark::Without("duration", "max_output_tokens_per_s", VersionRange::to("v0.5.5.post3")),
        Mark::Without("duration", "p90_e2e_latency_ms", VersionRange::to("v0.5.7")),
        Mark::Without("duration", "p90_ttft_ms", VersionRange::to("v0.5.13")),
    ],
    ..PLAIN
};

const ONE_BATCH_FIELDS: &[Field] = &[
    field("prefill_latency", "prefill_latency_s"),
    field("prefill_throughput", "prefill_throughput"),
    field("median_decode_latency", "decode_median_latency_s"),
    field("median_decode_throughput", "decode_median_throughput"),
    field("total_latency", "total_latency_s"),
    field("overall_throughput", "total_throughput"),
];

/// One batch without a server; a line for each combination of batch size, input and output length.
pub(super) const ONE_BATCH: Layout = Layout {
    format: Format {
        id: "sglang-one-batch-jsonl",
        tool: ToolFamily::SglangOneBatch,
        kind: FormatKind::JsonLines,
        versions: VersionRange::from("v0.2.10"),
        read: "prefill, median decode and total latency, and their rates",
    },
    signs: &[&["prefill_latency", "batch_size"]],
    fields: &[ONE_BATCH_FIELDS],
    required: &["prefill_latency_s", "total_latency_s", "total_throughput"],
    ..PLAIN
};

const ONE_BATCH_SERVER_FIELDS: &[Field] = &[
    field("batch_size", "batch_size"),
    field("latency", "latency_s"),
    optional("input_throughput", "input_throughput"),
    field("output_throughput", "output_throughput"),
    field("overall_throughput", "total_throughput"),
    optional("last_ttft", "last_ttft_s"),
    optional("last_gen_throughput", "last_gen_throughput"),
    positive("acc_length", "accept_length"),
    optional("total_output_tokens", "total_output_tokens"),
    optional("steady_state_output_throughput", "steady_state_output_throughput"),
    optional("cache_hit_rate", "cache_hit_rate_pct").in_unit(Unit::PartToPercent),
];

/// One batch against a server; a line for each combination.
pub(super) const ONE_BATCH_SERVER: Layout = Layout {
    format: Format {
        id: "sglang-one-batch-server-jsonl",
        tool: ToolFamily::SglangOneBatchServer,
        kind: FormatKind::JsonLines,
        versions: VersionRange::from("v0.3.6"),
        read: "latency of the batch, rates of input, output and all tokens",
    },
    signs: &[&["run_name", "batch_size", "latency", "overall_throughput"]],
    foreign: &["prefill_latency"],
    fields: &[ONE_BATCH_SERVER_FIELDS],
    required: &["latency_s", "output_throughput", "total_throughput"],
    marks: &[
        Mark::With("last_gen_throughput", VersionRange::from("v0.4.6.post4")),
        Mark::With("last_ttft", VersionRange::from("v0.5.6")),
        Mark::With("cache_hit_rate", VersionRange::from("v0.5.8")),
        Mark::With("steady_state_output_throughput", VersionRange::from("v0.5.19")),
        Mark::Without("overall_throughput", "last_gen_throughput", VersionRange::to("v0.4.6.post3")),
        Mark::Without("overall_throughput", "last_ttft", VersionRange::to("v0.5.5.post3")),
        Mark::Without("overall_throughput", "cache_hit_rate", VersionRange::to("v0.5.7")),
    ],
    ..PLAIN
};

const OFFLINE_FIELDS: &[Field] = &[
    field("successful_requests", "completed"),
    field("total_latency", "duration_s"),
    field("total_input_tokens", "total_input_tokens"),
    field("total_output_tokens", "total_output_tokens"),
    optional("last_gen_throughput", "last_gen_throughput"),
    field("request_throughput", "request_throughput"),
    field("input_throughput", "input_throughput"),
    field("output_throughput", "output_throughput"),
    field("total_throughput", "total_token_throughput"),
];

/// Offline throughput with `--result-filename`.
pub(super) const OFFLINE: Layout = Layout {
    format: Format {
        id: "sglang-offline-throughput-jsonl",
        tool: ToolFamily::SglangOfflineThroughput,
        kind: FormatKind::JsonLines,
        versions: VersionRange::from("v0.3.5.post2"),
        read: "counts, duration, rates of requests and tokens",
    },
    signs: &[&["backend", "successful_requests", "total_latency"]],
    fields: &[OFFLINE_FIELDS],
    required: &["completed", "duration_s", "request_throughput", "output_throughput"],
    rates: &[
        Rate { rate: "request_throughput", totals: &["completed"] },
        Rate { rate: "input_throughput", totals: &["total_input_tokens"] },
        Rate { rate: "output_throughput", totals: &["total_output_tokens"] },
        Rate { rate: "total_token_throughput", totals: &["total_input_tokens", "total_output_tokens"] },
    ],
    marks: &[
        Mark::With("last_gen_throughput", VersionRange::from("v0.4.3.post3")),
        Mark::Without("total_throughput", "last_gen_throughput", VersionRange::to("v0.4.3.post2")),
    ],
    ..PLAIN
};
