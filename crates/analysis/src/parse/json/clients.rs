//! The result files of load clients that belong to no engine.
//!
//! Names that these tools share with vLLM don't always mean the same. What has another definition has another name here:
//!
//! | tool and key | what it is | metric |
//! | --- | --- | --- |
//! | AIPerf, GenAI-Perf `inter_token_latency` | per request, time after the first token divided by the tokens after the first: vLLM's TPOT | `tpot` |
//! | AIPerf `inter_chunk_latency` | every gap between chunks of every request: vLLM's ITL | `itl` |
//! | AIPerf `total_osl` | output tokens with those of reasoning, over which `output_token_throughput` is taken | `total_output_tokens` |
//! | AIPerf `total_output_tokens` | output tokens without those of reasoning | `total_answer_tokens` |
//! | GuideLLM `inter_token_latency_ms` | TPOT of each request, weighted by its tokens after the first | `token_weighted_tpot` |
//! | GuideLLM `time_per_output_token_ms` before v0.4 | time after the first token divided by all tokens, weighted by them | `token_weighted_decode_time_per_token` |
//! | GuideLLM `time_per_output_token_ms` from v0.4 | whole latency divided by all tokens, weighted by them | `token_weighted_ntpot` |
//! | inference-perf `time_per_output_token` | vLLM's TPOT | `tpot` |
//! | inference-perf `inter_token_latency` | every gap between tokens: vLLM's ITL | `itl` |
//! | inference-perf `normalized_time_per_output_token` | per request, whole latency divided by the tokens | `ntpot` |
//! | inference-benchmarker `inter_token_latency_ms` | per request, time after the first chunk divided by chunks, tokens or tokens less one, depending on the commit, which the file doesn't name | `decode_time_per_token` |
//! | inference-benchmarker `total_tokens`, `token_throughput_secs` | output tokens | `total_output_tokens`, `output_throughput` |
//!
//! `request_latency` and `e2e_latency` are vLLM's E2EL in all of them. inference-perf and GuideLLM give it in seconds,
//! AIPerf says its unit. GuideLLM's requests that its time limit ended are `incomplete_requests`: they are no failures.
//! Its figures are those of its successful requests. inference-perf's `requested_rate` isn't read: of a stage with a fixed
//! concurrency it is no rate that anyone asked for.
//!
//! Read in the sources of AIPerf 0.1.1, 0.2.0, 0.5.0 and 0.13.0 (`exporters`, `metrics/types`), GenAI-Perf 0.0.16,
//! GuideLLM 0.1.0 to 0.8.1 (`benchmark/schemas`, `schemas/base`), inference-perf 0.1.1 and 0.7.0 (`reportgen/base.py`) and
//! inference-benchmarker (`src/writers.rs`, `src/requests.rs`).

use super::super::binding::{ToolFamily, VersionRange};
use super::super::catalogue::{Format, FormatKind};
use super::layout::{Family, Field, Layout, Mark, PLAIN, Place, Rate, Unit, family, field, optional};

const AIPERF_FIELDS: &[Field] = &[
    field("request_count/avg", "completed"),
    field("error_request_count/avg", "failed"),
    field("benchmark_duration/avg", "duration_s").in_unit(Unit::StatedToSeconds),
    field("total_isl/avg", "total_input_tokens"),
    field("total_osl/avg", "total_output_tokens"),
    field("total_output_tokens/avg", "total_answer_tokens"),
    field("request_throughput/avg", "request_throughput"),
    field("input_token_throughput/avg", "input_throughput"),
    field("output_token_throughput/avg", "output_throughput"),
    field("total_token_throughput/avg", "total_token_throughput"),
    optional("goodput/avg", "request_goodput"),
    optional("request_goodput/avg", "request_goodput"),
    optional("rtfx/avg", "rtfx"),
];

const AIPERF_FAMILIES: &[Family] = &[
    family("time_to_first_token", "ttft_ms", Unit::StatedToMilliseconds),
    family("time_to_second_token", "ttst_ms", Unit::StatedToMilliseconds),
    family("inter_token_latency", "tpot_ms", Unit::StatedToMilliseconds),
    family("inter_chunk_latency", "itl_ms", Unit::StatedToMilliseconds),
    family("request_latency", "e2el_ms", Unit::StatedToMilliseconds),
];

/// `profile_export_aiperf.json`.
pub(super) const AIPERF: Layout = Layout {
    format: Format {
        id: "aiperf-json",
        tool: ToolFamily::Aiperf,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.2.0"),
        read: "counts, duration, rates, statistics of TTFT, second token, TPOT, ITL and E2EL, goodput",
    },
    signs: &[
        &["aiperf_version", "input_config"],
        &["was_cancelled", "input_config", "request_count/avg"],
        &["was_cancelled", "input_config", "request_throughput/avg"],
        &["was_cancelled", "input_config", "error_request_count/avg"],
    ],
    fields: &[AIPERF_FIELDS],
    families: AIPERF_FAMILIES,
    required: &["completed", "request_throughput"],
    finished: &[("was_cancelled", false), ("is_complete", true)],
    ..PLAIN
};

/// `profile_export_aiperf.json` of the first release, with the metrics under `records`.
pub(super) const AIPERF_RECORDS: Layout = Layout {
    format: Format {
        id: "aiperf-json-records",
        tool: ToolFamily::Aiperf,
        kind: FormatKind::Json,
        versions: VersionRange::between("v0.1.0", "v0.1.1"),
        read: "the same, from `records`",
    },
    signs: &[&["input_config", "records/request_count"], &["input_config", "records/request_throughput"]],
    bases: &["records/"],
    ..AIPERF
};

/// `profile_export_genai_perf.json` of AIPerf's forerunner.
pub(super) const GENAI_PERF: Layout = Layout {
    format: Format {
        id: "genai-perf-json",
        tool: ToolFamily::Aiperf,
        kind: FormatKind::Json,
        versions: VersionRange::to("v0.0.16"),
        read: "requests, rates, statistics of TTFT, second token, TPOT and E2EL",
    },
    signs: &[&["input_config", "request_throughput/avg", "request_latency/unit"]],
    foreign: &["was_cancelled", "aiperf_version"],
    required: &["request_throughput"],
    finished: &[],
    ..AIPERF
};

const GUIDELLM_FIELDS: &[Field] = &[
    field("request_totals/successful", "completed"),
    field("request_totals/errored", "failed"),
    field("request_totals/incomplete", "incomplete_requests"),
    field("metrics/request_totals/successful", "completed"),
    field("metrics/request_totals/errored", "failed"),
    field("metrics/request_totals/incomplete", "incomplete_requests"),
    field("duration", "duration_s"),
    field("metrics/requests_per_second/successful/mean", "request_throughput"),
    field("metrics/request_concurrency/successful/mean", "concurrency"),
    field("metrics/output_tokens_per_second/successful/mean", "output_throughput"),
    field("metrics/tokens_per_second/successful/mean", "total_token_throughput"),
    field("metrics/prompt_token_count/successful/total_sum", "total_input_tokens"),
    field("metrics/output_token_count/successful/total_sum", "total_output_tokens"),
    optional("metrics/request_goodput/successful/mean", "request_goodput"),
    optional("metrics/slo_attainment", "slo_attainment_pct").in_unit(Unit::PartToPercent),
];

const GUIDELLM_SIGN: &str = "metrics/requests_per_second/successful/mean";

/// `benchmarks.json`.
pub(super) const GUIDELLM: Layout = Layout {
    format: Format {
        id: "guidellm-json",
        tool: ToolFamily::Guidellm,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.4.0"),
        read: "requests by fate, duration, rates, concurrency, statistics of TTFT, E2EL and times per token",
    },
    place: Place::LastRecord,
    signs: &[&[GUIDELLM_SIGN, "metrics/request_totals"], &["scheduler_metrics", "metrics"]],
    fields: &[GUIDELLM_FIELDS],
    families: &[
        family("metrics/time_to_first_token_ms/successful", "ttft_ms", Unit::Ours),
        family("metrics/inter_token_latency_ms/successful", "token_weighted_tpot_ms", Unit::Ours),
        family("metrics/time_per_output_token_ms/successful", "token_weighted_ntpot_ms", Unit::Ours),
        family("metrics/request_latency/successful", "e2el_ms", Unit::SecondsToMilliseconds),
    ],
    required: &["completed", "request_throughput"],
    ..PLAIN
};

/// `benchmarks.json` of older releases.
pub(super) const GUIDELLM_RUN_STATS: Layout = Layout {
    format: Format {
        id: "guidellm-json-run-stats",
        tool: ToolFamily::Guidellm,
        kind: FormatKind::Json,
        versions: VersionRange::between("v0.2.0", "v0.3.1"),
        read: "the same; time per output token is another",
    },
    signs: &[&[GUIDELLM_SIGN, "run_stats"], &["run_stats", "request_totals"]],
    families: &[
        family("metrics/time_to_first_token_ms/successful", "ttft_ms", Unit::Ours),
        family("metrics/inter_token_latency_ms/successful", "token_weighted_tpot_ms", Unit::Ours),
        family("metrics/time_per_output_token_ms/successful", "token_weighted_decode_time_per_token_ms", Unit::Ours),
        family("metrics/request_latency/successful", "e2el_ms", Unit::SecondsToMilliseconds),
    ],
    ..GUIDELLM
};

const INFERENCE_PERF_FIELDS: &[Field] = &[
    field("successes/count", "completed"),
    field("failures/count", "failed"),
    field("benchmark_time_seconds", "duration_s"),
    optional("load_summary/achieved_rate", "achieved_request_rate"),
    optional("load_summary/concurrency", "max_concurrency"),
    field("successes/throughput/requests_per_sec", "request_throughput"),
    field("successes/throughput/input_tokens_per_sec", "input_throughput"),
    field("successes/throughput/output_tokens_per_sec", "output_throughput"),
    field("successes/throughput/total_tokens_per_sec", "total_token_throughput"),
    optional("successes/goodput_metrics/request_goodput", "request_goodput"),
    optional("successes/goodput_metrics/goodput_percentage", "slo_attainment_pct"),
];

/// `summary_lifecycle_metrics.json`, `stage_N_lifecycle_metrics.json`.
pub(super) const INFERENCE_PERF: Layout = Layout {
    format: Format {
        id: "inference-perf-json",
        tool: ToolFamily::InferencePerf,
        kind: FormatKind::Json,
        versions: VersionRange::from("v0.1.0"),
        read: "requests by fate, duration, rates, statistics of TTFT, TPOT, ITL, E2EL and normalised time per token",
    },
    signs: &[&["load_summary/count", "successes", "failures"]],
    fields: &[INFERENCE_PERF_FIELDS],
    families: &[
        family("successes/latency/time_to_first_token", "ttft_ms", Unit::SecondsToMilliseconds),
        family("successes/latency/time_per_output_token", "tpot_ms", Unit::SecondsToMilliseconds),
        family("successes/latency/inter_token_latency", "itl_ms", Unit::SecondsToMilliseconds),
        family("successes/latency/request_latency", "e2el_ms", Unit::SecondsToMilliseconds),
        family("successes/latency/normalized_time_per_output_token", "ntpot_ms", Unit::SecondsToMilliseconds),
    ],
    required: &["completed", "request_throughput"],
    asked: Some("load_summary/count"),
    rates: &[Rate { rate: "request_throughput", totals: &["completed"] }],
    marks: &[
        Mark::With("load_summary/schedule_accuracy", VersionRange::to("v0.1.1")),
        Mark::With("load_summary/schedule_delay", VersionRange::from("v0.2.0")),
    ],
    ..PLAIN
};

const INFERENCE_BENCHMARKER_FIELDS: &[Field] = &[
    field("successful_requests", "completed"),
    field("failed_requests", "failed"),
    field("duration_ms", "duration_s").in_unit(Unit::MillisecondsToSeconds),
    field("total_tokens_sent", "total_input_tokens"),
    field("total_tokens", "total_output_tokens"),
    field("request_rate", "request_throughput"),
    field("token_throughput_secs", "output_throughput"),
    field("time_to_first_token_ms_avg", "mean_ttft_ms"),
    field("time_to_first_token_ms_p90", "p90_ttft_ms"),
    field("time_to_first_token_ms_p95", "p95_ttft_ms"),
    field("inter_token_latency_ms_avg", "mean_decode_time_per_token_ms"),
    field("inter_token_latency_ms_p90", "p90_decode_time_per_token_ms"),
    field("inter_token_latency_ms_p95", "p95_decode_time_per_token_ms"),
    field("e2e_latency_ms_avg", "mean_e2el_ms"),
    field("e2e_latency_ms_p90", "p90_e2el_ms"),
    field("e2e_latency_ms_p95", "p95_e2el_ms"),
];

/// The results file, before 2025 with keys such as `time_to_first_token_ms_p90` instead of objects.
pub(super) const INFERENCE_BENCHMARKER: Layout = Layout {
    format: Format {
        id: "inference-benchmarker-json",
        tool: ToolFamily::InferenceBenchmarker,
        kind: FormatKind::Json,
        versions: VersionRange::ALL,
        read: "requests by fate, duration, rates, statistics of TTFT, E2EL and time per token",
    },
    place: Place::LastRecord,
    signs: &[&["executor_type", "token_throughput_secs"], &["executor_type", "successful_requests"]],
    fields: &[INFERENCE_BENCHMARKER_FIELDS],
    families: &[
        family("time_to_first_token_ms", "ttft_ms", Unit::Ours),
        family("inter_token_latency_ms", "decode_time_per_token_ms", Unit::Ours),
        family("e2e_latency_ms", "e2el_ms", Unit::Ours),
    ],
    required: &["completed", "request_throughput", "output_throughput"],
    asked: Some("total_requests"),
    rates: &[
        Rate { rate: "request_throughput", totals: &["completed"] },
        Rate { rate: "output_throughput", totals: &["total_output_tokens"] },
    ],
    ..PLAIN
};
