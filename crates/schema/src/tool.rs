//! The benchmark and server programs of the engines, as tasks name them in commands.

use crate::environment::EngineKind;
use crate::failure::spelt_enum;

spelt_enum!(
    /// A program of an engine that a command can name. The spelling is how the field calls it.
    Tool {
        /// vLLM's serving client as a script.
        BenchmarkServing = "benchmark_serving.py",
        /// vLLM's offline throughput benchmark as a script.
        BenchmarkThroughput = "benchmark_throughput.py",
        /// vLLM's offline latency benchmark as a script.
        BenchmarkLatency = "benchmark_latency.py",
        /// vLLM's offline prefix-caching benchmark, always a script.
        BenchmarkPrefixCaching = "benchmark_prefix_caching.py",
        /// vLLM's serving client as a subcommand.
        VllmBenchServe = "vllm bench serve",
        /// vLLM's offline throughput benchmark as a subcommand.
        VllmBenchThroughput = "vllm bench throughput",
        /// vLLM's offline latency benchmark as a subcommand.
        VllmBenchLatency = "vllm bench latency",
        /// vLLM's OpenAI-compatible server: `vllm serve` and `python -m vllm.entrypoints.openai.api_server`.
        VllmServe = "vllm serve",
        /// SGLang's serving client.
        SglangBenchServing = "sglang.bench_serving",
        /// SGLang's offline benchmark of one batch.
        SglangBenchOneBatch = "sglang.bench_one_batch",
        /// SGLang's benchmark of one batch against a server.
        SglangBenchOneBatchServer = "sglang.bench_one_batch_server",
        /// SGLang's offline throughput benchmark.
        SglangBenchOfflineThroughput = "sglang.bench_offline_throughput",
        /// SGLang's server.
        SglangLaunchServer = "sglang.launch_server",
    }
);

spelt_enum!(
    /// What a program measures, and whether it needs a server beside it.
    ToolKind {
        /// A client that loads a server.
        Serving = "serving",
        /// A program that holds the engine itself and reports throughput.
        OfflineThroughput = "offline-throughput",
        /// A program that holds the engine itself and reports latency.
        OfflineLatency = "offline-latency",
        /// The server.
        Server = "server",
    }
);

impl Tool {
    /// Returns what it measures.
    pub fn kind(self) -> ToolKind {
        match self {
            Self::BenchmarkServing
            | Self::VllmBenchServe
            | Self::SglangBenchServing
            | Self::SglangBenchOneBatchServer => ToolKind::Serving,
            Self::BenchmarkThroughput
            | Self::BenchmarkPrefixCaching
            | Self::VllmBenchThroughput
            | Self::SglangBenchOfflineThroughput => ToolKind::OfflineThroughput,
            Self::BenchmarkLatency | Self::VllmBenchLatency | Self::SglangBenchOneBatch => ToolKind::OfflineLatency,
            Self::VllmServe | Self::SglangLaunchServer => ToolKind::Server,
        }
    }

    /// Returns the engine that it belongs to.
    pub fn engine(self) -> EngineKind {
        match self {
            Self::BenchmarkServing
            | Self::BenchmarkThroughput
            | Self::BenchmarkLatency
            | Self::BenchmarkPrefixCaching
            | Self::VllmBenchServe
            | Self::VllmBenchThroughput
            | Self::VllmBenchLatency
            | Self::VllmServe => EngineKind::Vllm,
            Self::SglangBenchServing
            | Self::SglangBenchOneBatch
            | Self::SglangBenchOneBatchServer
            | Self::SglangBenchOfflineThroughput
            | Self::SglangLaunchServer => EngineKind::Sglang,
        }
    }

    /// Returns the server program of the same engine.
    #[must_use]
    pub fn server(self) -> Self {
        match self.engine() {
            EngineKind::Sglang => Self::SglangLaunchServer,
            EngineKind::Vllm | EngineKind::Generic => Self::VllmServe,
        }
    }
}
