//! What a file of benchmark output says: the metrics that it prints, and why they are no measurement where they aren't.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;

/// One printed value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MetricValue {
    /// A finite number, in the unit that the name ends in; rates are per second.
    Number(f64),
    /// Several values of one name, in the order in which they were printed. What counts is the last.
    Series(Vec<f64>),
    /// The label is there, but what follows is said to be no number, such as `not set`, `nan` or `inf`: `null` in JSON.
    NotANumber,
}

impl MetricValue {
    /// Returns the value that counts, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Series(values) => values.last().copied(),
            Self::NotANumber => None,
        }
    }
}

spelt_enum!(
    /// A tool whose output can be read, over all the names that it has had.
    ToolFamily {
        /// `vllm bench serve`, before that `benchmark_serving.py`.
        VllmServe = "vllm-serve",
        /// `vllm bench throughput`, before that `benchmark_throughput.py`.
        VllmThroughput = "vllm-throughput",
        /// `vllm bench latency`, before that `benchmark_latency.py`.
        VllmLatency = "vllm-latency",
        /// `vllm bench startup`.
        VllmStartup = "vllm-startup",
        /// `benchmark_prefix_caching.py`.
        VllmPrefixCaching = "vllm-prefix-caching",
        /// The progress bar of `LLM.generate`, by whatever program it is called.
        VllmGenerate = "vllm-generate",
        /// `sglang.benchmark.serving`, before that `sglang.bench_serving`.
        SglangServe = "sglang-serve",
        /// `sglang.benchmark.one_batch`, before that `sglang.bench_one_batch` and `sglang.bench_latency`.
        SglangOneBatch = "sglang-one-batch",
        /// `sglang.bench_one_batch_server`.
        SglangOneBatchServer = "sglang-one-batch-server",
        /// `sglang.benchmark.offline_throughput`, before that `sglang.bench_offline_throughput`.
        SglangOfflineThroughput = "sglang-offline-throughput",
        /// NVIDIA `AIPerf`.
        Aiperf = "aiperf",
        /// `GuideLLM`.
        Guidellm = "guidellm",
        /// The Kubernetes project's inference-perf.
        InferencePerf = "inference-perf",
        /// Hugging Face's inference-benchmarker.
        InferenceBenchmarker = "inference-benchmarker",
    }
);

spelt_enum!(
    /// Why what a file says is no measurement.
    ReadingProblemKind {
        /// Nothing in it looks like a result of any tool that is known, or of the one that was named.
        NotAResult = "not-a-result",
        /// It begins as a result does, but doesn't go on like one: a value, a label or the end is missing.
        Broken = "broken",
        /// The tool says that it measures nothing: it was asked for a profile only, or is a stub.
        NothingMeasured = "nothing-measured",
        /// The tool stopped with an error before its result.
        ToolFailed = "tool-failed",
        /// No request was completed.
        NothingCompleted = "nothing-completed",
        /// Fewer requests were completed than were asked for.
        SomeFailed = "some-failed",
        /// A value that must be a number isn't one.
        NotANumber = "not-a-number",
        /// The values contradict each other.
        Contradictory = "contradictory",
        /// There is only what the engine's own log says while it runs.
        EngineLogOnly = "engine-log-only",
    }
);

/// Why what a file says is no measurement, and where that shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingProblem {
    /// The kind.
    pub kind: ReadingProblemKind,
    /// One sentence that names the label and what was expected: a lower-case fragment without a full stop.
    pub message: String,
    /// The line that shows it, from 1; lines end with LF, a carriage return alone ends none.
    pub line: Option<u64>,
}

/// What a file of benchmark output says. It is a measurement only if there is no problem.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The layout, such as `vllm-serve-table`; absent if it is none that is known.
    pub format: Option<String>,
    /// The tool that prints that layout, as [`ToolFamily`] spells it, such as `vllm-serve`.
    pub tool: Option<String>,
    /// The versions of the tool that print what was found, such as `v0.11.1..v0.12.0`; an end that is open is left out.
    pub versions: Option<String>,
    /// The metrics by name.
    pub metrics: BTreeMap<String, MetricValue>,
    /// What the engine's own log says, by names that no metric has. It never is a result.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engine_log: BTreeMap<String, f64>,
    /// Other tools whose whole results are in it too, as [`ToolFamily`] spells them. The metrics are of the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// What a reader should know of how it was read, such as that the last of several results counts: lower-case fragments
    /// without a full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why it is no measurement; absent if it is one.
    pub problem: Option<ReadingProblem>,
}

impl Reading {
    /// Returns whether the file holds a measurement.
    pub fn is_measurement(&self) -> bool {
        self.problem.is_none() && !self.metrics.is_empty()
    }
}
