//! The result files of vLLM's benchmarks.
//!
//! | key | metric |
//! | --- | --- |
//! | `request_inthroughput` (sic, v0.3) | `request_throughput` |
//! | `request_goodput:` (with a colon, v0.6.4 to v0.9.1) | `request_goodput` |
//! | `duration`, `elapsed_time` | `duration_s` |
//! | `max_output_tokens_per_s`, `max_concurrent_requests` | `peak_output_throughput`, `peak_concurrent_requests` |
//! | `spec_decode_*` | `spec_*`, as in the console table |
//! | `num_requests` of the throughput benchmark, which returns when all are done | `completed` |
//! | `tokens_per_second` of the throughput benchmark: prompts and outputs | `total_token_throughput` |
//!
//! From `--metadata KEY=VALUE` come keys with any name; their values are texts, so that they never are taken for a
//! metric's. Which version wrote which key was read from the sources of `benchmarks/benchmark_serving.py`, v0.3.1 to
//! v0.10.1, and `vllm/benchmarks/{serve,throughput,latency,startup}.py` from v0.8.0 on.

use super::super::binding::{ToolFamily, VersionRange};
use super::super::catalogue::{Format, FormatKind};
use super::layout::{Family, Field, Layout, Mark, PLAIN, Rate, Unit, family, field, optional, positive};

const SERVE_FIELDS: &[Field] = &[
    field("completed", "completed"),
    field("failed", "failed"),
    field("duration", "duration_s"),
    field("total_input_tokens", "total_input_tokens"),
    field("total_output_tokens", "total_output_tokens"),
    field("total_input_sequences", "total_input_sequences"),
    field("request_inthroughput", "request_throughput"),
    field("request_throughput", "request_throughput"),
    optional("request_goodput:", "request_goodput"),
    optional("request_goodput", "request_goodput"),
    field("input_throughput", "input_throughput"),
    field("output_throughput", "output_throughput"),
    field("total_token_throughput", "total_token_throughput"),
    field("input_sequence_throughput", "input_sequence_throughput"),
    field("max_output_tokens_per_s", "peak_output_throughput"),
    field("max_concurrent_requests", "peak_concurrent_requests"),
    positive("rtfx", "rtfx"),
    optional("request_rate", "request_rate"),
    optional("max_concurrency", "max_concurrency"),
    optional("spec_decode_acceptance_rate", "spec_acceptance_rate_pct"),
    optional("spec_decode_acceptance_length", "spec_acceptance_length"),
    optional("spec_decode_num_drafts", "spec_drafts"),
    optional("spec_decode_draft_tokens", "spec_draft_tokens"),
    optional("spec_decode_accepted_tokens", "spec_accepted_tokens"),
    optional("diffusion_committed_throughput", "diffusion_committed_throughput"),
    optional("diffusion_steps_per_canvas", "diffusion_steps_per_canvas"),
    optional("diffusion_committed_per_step", "diffusion_committed_per_step"),
    optional("diffusion_committed_tokens", "diffusion_committed_tokens"),
    optional("diffusion_denoising_steps", "diffusion_denoising_steps"),
    optional("diffusion_canvas_positions", "diffusion_canvas_positions"),
    optional("probe_completed", "probe_completed"),
    optional("probe_failed", "probe_failed"),
    optional("probe_median_e2el_ms", "probe_median_e2el_ms"),
    optional("probe_p99_e2el_ms", "probe_p99_e2el_ms"),
    optional("probe_max_e2el_ms", "probe_max_e2el_ms"),
];

const SERVE_FLAT: &[(&str, &str)] = &[
    ("ttft", "ttft"),
    ("tpot", "tpot"),
    ("itl", "itl"),
    ("e2el", "e2el"),
    ("client_queue_time", "client_queue_time"),
    ("e2el_including_client_queue", "e2el_including_client_queue"),
];

const SERVE_RATES: &[Rate] = &[
    Rate { rate: "request_throughput", totals: &["completed"] },
    Rate { rate: "output_throughput", totals: &["total_output_tokens"] },
    Rate { rate: "input_throughput", totals: &["total_input_tokens"] },
];

const SERVE_MARKS: &[Mark] = &[
    Mark::With("request_inthroughput", VersionRange::between("v0.3.1", "v0.3.3")),
    Mark::With("input_throughput", VersionRange::between("v0.3.1", "v0.5.5")),
    Mark::With("errors", VersionRange::from("v0.4.0")),
    Mark::With("mean_itl_ms", VersionRange::from("v0.5.0")),
    Mark::With("std_ttft_ms", VersionRange::from("v0.5.2")),
    Mark::With("total_token_throughput", VersionRange::from("v0.6.0")),
    Mark::With("burstiness", VersionRange::from("v0.6.4")),
    Mark::With("request_goodput:", VersionRange::between("v0.6.4", "v0.9.1")),
    Mark::With("best_of", VersionRange::between("v0.3.1", "v0.9.0")),
    Mark::With("endpoint_type", VersionRange::from("v0.8.0")),
    Mark::With("request_goodput", VersionRange::from("v0.9.2")),
    Mark::With("max_output_tokens_per_s", VersionRange::from("v0.11.0")),
    Mark::With("failed", VersionRange::from("v0.11.1")),
    Mark::With("spec_decode_num_drafts", VersionRange::from("v0.14.0")),
    Mark::With("start_times", VersionRange::from("v0.16.0")),
    Mark::With("rtfx", VersionRange::from("v0.17.0")),
    Mark::With("diffusion_committed_tokens", VersionRange::from("v0.24.0")),
    Mark::With("probe_completed", VersionRange::from("v0.27.0")),
    Mark::With("input_sequence_throughput", VersionRange::from("v0.29.0")),
    Mark::With("queue_times", VersionRange::from("v0.30.0")),
    Mark::Without("best_of", "endpoint_type", VersionRange::to("v0.7.3")),
    Mark::Without("total_output_tokens", "total_token_throughput", VersionRange::to("v0.5.5")),
    Mark::Without("total_output_tokens", "burstiness", VersionRange::to("v0.6.3")),
    Mark::Without("total_output_tokens", "endpoint_type", VersionRange::to("v0.10.1.1")),
    Mark::Without("total_output_tokens", "best_of", VersionRange::from("v0.8.0")),
    Mark::Without("total_output_tokens", "max_output_tokens_per_s", VersionRange::to("v0.10.2")),
    Mark::Without("total_output_tokens", "failed", VersionRange::to("v0.11.0")),
    Mark::Without("total_output_tokens", "rtfx", VersionRange::to("v0.16.0")),
    Mark::Without("total_output_tokens", "queue_times", VersionRange::to("v0.29.0")),
];

/// `--save-result` of the serving benchmark, also with `--append-result`.
pub(super) const SERVE: Layout = Layout {
    format: Format {
        id: "vllm-serve-json",
        tool: ToolFamily::VllmServe,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.3.1"),
        read: "counts, duration, rates, chosen statistics of TTFT, TPOT, ITL, E2EL and queue times, speculation, probes",
    },
    // Not `model_id` alone: other tools have it.
    signs: &[
        &["date", "completed"],
        &["date", "tokenizer_id", "num_prompts"],
        &["tokenizer_id", "num_prompts", "completed"],
    ],
    fields: &[SERVE_FIELDS],
    flat: SERVE_FLAT,
    required: &["completed", "request_throughput"],
    asked: Some("num_prompts"),
    rates: SERVE_RATES,
    marks: SERVE_MARKS,
    ..PLAIN
};

const THROUGHPUT_FIELDS: &[Field] = &[
    field("elapsed_time", "duration_s"),
    field("num_requests", "completed"),
    field("total_num_tokens", "total_tokens"),
    field("requests_per_second", "request_throughput"),
    field("tokens_per_second", "total_token_throughput"),
];

const THROUGHPUT_RATES: &[Rate] = &[
    Rate { rate: "request_throughput", totals: &["completed"] },
    Rate { rate: "total_token_throughput", totals: &["total_tokens"] },
];

/// `--output-json` of the throughput benchmark.
pub(super) const THROUGHPUT: Layout = Layout {
    format: Format {
        id: "vllm-throughput-json",
        tool: ToolFamily::VllmThroughput,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.4.3"),
        read: "duration, requests, tokens and their rates; it has no rate of output tokens alone",
    },
    signs: &[&["elapsed_time", "num_requests"], &["requests_per_second", "total_num_tokens"]],
    fields: &[THROUGHPUT_FIELDS],
    required: &["duration_s", "completed", "request_throughput", "total_token_throughput"],
    rates: THROUGHPUT_RATES,
    marks: &[
        Mark::With("model_id", VersionRange::from("v0.31.0")),
        Mark::Without("elapsed_time", "model_id", VersionRange::to("v0.30.0")),
    ],
    ..PLAIN
};

const LATENCY_FIELDS: &[Field] = &[field("avg_latency", "avg_latency_s"), field("latency", "latency_s")];
const LATENCY_FAMILIES: &[Family] = &[family("percentiles", "latency_s", Unit::Ours)];

/// `--output-json` of the latency benchmark.
pub(super) const LATENCY: Layout = Layout {
    format: Format {
        id: "vllm-latency-json",
        tool: ToolFamily::VllmLatency,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.4.3"),
        read: "mean latency of a batch and its percentiles",
    },
    signs: &[&["avg_latency", "percentiles"], &["avg_latency", "latencies"]],
    fields: &[LATENCY_FIELDS],
    families: LATENCY_FAMILIES,
    required: &["avg_latency_s"],
    marks: &[
        Mark::With("percentiles/99", VersionRange::from("v0.5.1")),
        Mark::With("model_id", VersionRange::from("v0.31.0")),
        Mark::Without("percentiles/90", "percentiles/99", VersionRange::to("v0.5.0.post1")),
        Mark::Without("percentiles/90", "model_id", VersionRange::to("v0.30.0")),
    ],
    ..PLAIN
};

const STARTUP_FIELDS: &[Field] = &[
    field("avg_cold_startup_time", "cold_startup_s"),
    field("avg_cold_compilation_time", "cold_compilation_s"),
    field("avg_cold_encoder_compilation_time", "cold_encoder_compilation_s"),
    field("avg_warm_startup_time", "warm_startup_s"),
    field("avg_warm_compilation_time", "warm_compilation_s"),
    field("avg_warm_encoder_compilation_time", "warm_encoder_compilation_s"),
];

const STARTUP_FAMILIES: &[Family] = &[
    family("cold_startup_percentiles", "cold_startup_s", Unit::Ours),
    family("cold_compilation_percentiles", "cold_compilation_s", Unit::Ours),
    family("cold_encoder_compilation_percentiles", "cold_encoder_compilation_s", Unit::Ours),
    family("warm_startup_percentiles", "warm_startup_s", Unit::Ours),
    family("warm_compilation_percentiles", "warm_compilation_s", Unit::Ours),
    family("warm_encoder_compilation_percentiles", "warm_encoder_compilation_s", Unit::Ours),
];

/// `--output-json` of the startup benchmark.
pub(super) const STARTUP: Layout = Layout {
    format: Format {
        id: "vllm-startup-json",
        tool: ToolFamily::VllmStartup,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.13.0"),
        read: "mean time of cold and warm starts and of the compilation in them, and their percentiles",
    },
    signs: &[&["avg_cold_startup_time"], &["avg_warm_startup_time"]],
    fields: &[STARTUP_FIELDS],
    families: STARTUP_FAMILIES,
    required: &["cold_startup_s", "warm_startup_s"],
    marks: &[Mark::With("avg_cold_encoder_compilation_time", VersionRange::from("v0.20.0"))],
    ..PLAIN
};

/// `NAME.pytorch.json`, which every benchmark writes beside its result if `SAVE_TO_PYTORCH_BENCHMARK_FORMAT` is set: a
/// list with an object for each metric.
pub(super) const PYTORCH: Layout = Layout {
    format: Format {
        id: "vllm-pytorch-records",
        tool: ToolFamily::VllmServe,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.7.3"),
        read: "what the result file beside it holds, of any of vLLM's benchmarks",
    },
    signs: &[&["benchmark/name", "metric/name", "metric/benchmark_values"]],
    bases: &["metric/", "extra_info/"],
    fields: &[SERVE_FIELDS, THROUGHPUT_FIELDS, LATENCY_FIELDS, STARTUP_FIELDS],
    families: PYTORCH_FAMILIES,
    flat: SERVE_FLAT,
    asked: Some("extra_info/num_prompts"),
    rates: SERVE_RATES,
    ..PLAIN
};

const PYTORCH_FAMILIES: &[Family] = &[
    family("percentiles", "latency_s", Unit::Ours),
    family("cold_startup_percentiles", "cold_startup_s", Unit::Ours),
    family("cold_compilation_percentiles", "cold_compilation_s", Unit::Ours),
    family("cold_encoder_compilation_percentiles", "cold_encoder_compilation_s", Unit::Ours),
    family("warm_startup_percentiles", "warm_startup_s", Unit::Ours),
    family("warm_compilation_percentiles", "warm_compilation_s", Unit::Ours),
    family("warm_encoder_compilation_percentiles", "warm_encoder_compilation_s", Unit::Ours),
];
