//! What is typed for `isobench load`.
//!
//! `isobench load --json FILE` is turned into `--json-file FILE` before this is read (see [`crate::flags`]), as are the flags
//! of other load clients.

pub(crate) mod arrivals;
pub(crate) mod values;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use values::{
    ArrivalArg, BodyField, CpuList, DatasetOption, Header, Percentiles, WarmUp, body_field, cpu_list, dataset_option,
    header, percentiles, positive, ratio_above_zero, seconds, warm_up,
};

/// The most requests, and the most of them under way.
const MOST: i64 = 10_000_000;
/// The most threads that send and read.
const MOST_WORKERS: i64 = 1024;

/// The variable that holds the key where none is named.
pub(crate) const DEFAULT_KEY_ENV: &str = "OPENAI_API_KEY";

/// What the help ends with.
pub(crate) const AFTER_HELP: &str = "\
Flags of other clients may stand beside these, and a whole command of `vllm bench serve`, `benchmark_serving.py` or \
`sglang.bench_serving` may be pasted after `isobench load`, with flags of ours before or behind it: what such a client does \
unasked then counts too. `--explain-flags` shows how each word is understood.

Exit codes: 0 the numbers are valid, 2 wrong usage, 3 this machine lacks something, 5 interrupted, 100 requests failed or \
the numbers aren't valid.";

/// Arguments of `load`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoadArgs {
    /// The server, such as `http://127.0.0.1:8000`. With nothing else, the model, the interface and a load of about half a
    /// minute are found out.
    #[arg(required_unless_present_any = ["against", "explain_flags"])]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    #[command(flatten)]
    pub(crate) arrival: ArrivalArgs,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Print how each word of the command line was understood, and send nothing.
    #[arg(long)]
    pub(crate) explain_flags: bool,
    /// Print what would be sent, and send nothing but the questions that find it out.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Which server, and how it is spoken to.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line, and means nothing else")]
pub(crate) struct ServerArgs {
    /// Send the same requests at the same time to two running servers, and report the difference between them with an
    /// interval: a single-launch, exploratory comparison and no verdict.
    #[arg(long, num_args = 2, value_names = ["URL_A", "URL_B"], conflicts_with_all = ["url", "sweep"])]
    pub(crate) against: Option<Vec<String>>,
    /// The model's name; by default the first that the server lists.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Adapters (`LoRA`) whose names take the model's place, one after the other.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) lora: Vec<String>,
    /// The interface; by default the first of completions, chat and embeddings that the server answers.
    #[arg(long, value_enum)]
    pub(crate) api: Option<ApiArg>,
    /// The path of the requests, where it isn't the interface's usual one.
    #[arg(long, value_name = "PATH")]
    pub(crate) endpoint: Option<String>,
    /// A further header of each request, such as `X-Tenant: a` (repeatable). Values that look secret are never recorded.
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<Header>,
    /// The variable whose value is sent as `Authorization: Bearer …`, if it is set; the value is never recorded.
    #[arg(long, value_name = "VARIABLE", default_value = DEFAULT_KEY_ENV)]
    pub(crate) api_key_env: String,
    /// Connect to this Unix socket; the URL then names only the host that is asked for.
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// Trust the certificates in this PEM file, besides those that the machine trusts.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Trust any certificate.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Speak HTTP/2, without upgrade where there is no TLS; by default HTTP/1.1, and within TLS HTTP/2
    /// where the server speaks it.
    #[arg(long)]
    pub(crate) http2: bool,
    /// Empty the server's prefix cache before the window, where the engine offers it.
    #[arg(long)]
    pub(crate) reset_prefix_cache: bool,
    /// Read the server's own `/metrics` once a second while it is loaded; this is the default.
    #[arg(long, overrides_with = "no_scrape_metrics")]
    pub(crate) scrape_metrics: bool,
    /// Leave the server's `/metrics` alone.
    #[arg(long, overrides_with = "scrape_metrics")]
    pub(crate) no_scrape_metrics: bool,
}

/// What is sent.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct WorkloadArgs {
    /// Measured requests; by default as many as `--duration` has time for, and of a trace by its own times (`--arrival trace`)
    /// each row once.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub(crate) requests: Option<u32>,
    /// The length of the measured window, in seconds: no request is sent after it; by default 30 where `--requests` isn't
    /// given, and as long as it takes for a trace.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<f64>,
    /// Tokens in each prompt; by default 128, or less for a model with a short context.
    #[arg(long, allow_negative_numbers = true, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub(crate) input_len: Option<u32>,
    /// Tokens asked of each answer; by default 64, or less for a model with a short context; for a dataset whose rows say
    /// it, as many as they say.
    #[arg(long, allow_negative_numbers = true, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub(crate) output_len: Option<u32>,
    /// The folder with the model's `tokenizer.json`, or that file: prompts then have exactly the length asked, and text is
    /// counted as the model counts it.
    #[arg(long, value_name = "DIR")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// Send random token ids below this number instead of text, for exact lengths without a tokenizer.
    #[arg(long, value_name = "N", conflicts_with_all = ["tokenizer", "dataset"])]
    pub(crate) vocabulary_size: Option<u32>,
    /// Where prompts come from: `random`, `sharegpt`, `sonnet`, `custom`, `prefix-repetition`, `prefix-tree`, `sessions`,
    /// `image`, a trace (`burstgpt`, `azure`, `mooncake`, `timed`), or the file itself where its form can be seen; by default `random`.
    #[arg(long, value_name = "NAME|PATH")]
    pub(crate) dataset: Option<String>,
    /// An option of the dataset, such as `dataset-path=FILE` or `random-range-ratio=0.5` (repeatable).
    #[arg(long = "dataset-option", value_name = "KEY=VALUE", value_parser = dataset_option)]
    pub(crate) dataset_options: Vec<DatasetOption>,
    /// Let answers end at the end-of-sequence token; by default each is asked to have the whole length.
    #[arg(long)]
    pub(crate) stop_at_eos: bool,
    /// The sampling temperature.
    #[arg(long, allow_negative_numbers = true, value_name = "NUMBER", default_value_t = 0.0, value_parser = values::not_negative)]
    pub(crate) temperature: f64,
    /// A further field of each request's body, such as `top_p=0.9` (repeatable); a value that isn't JSON is text.
    #[arg(long = "extra-body", value_name = "KEY=JSON", value_parser = body_field)]
    pub(crate) extra_body: Vec<BodyField>,
    /// The seed of prompts and arrival times.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// When requests are sent.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Arrivals")]
pub(crate) struct ArrivalArgs {
    /// Requests under way at any time (closed loop); by default 8.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub(crate) concurrency: Option<u32>,
    /// Mean requests per second (open loop).
    #[arg(long, allow_negative_numbers = true, value_name = "PER_SECOND", value_parser = positive)]
    pub(crate) rate: Option<f64>,
    /// The shape of the gaps between requests of `--rate`: 1 is Poisson, below 1 is burstier, above 1 more regular.
    #[arg(long, allow_negative_numbers = true, value_name = "SHAPE", value_parser = ratio_above_zero)]
    pub(crate) burstiness: Option<f64>,
    /// How requests arrive: `closed`, `poisson`, `constant` or `gamma` (with `--rate`), `bursts:SIZE/SECONDS`,
    /// `stages:10s@1..20,30s@20` (rates per second), `trace` or `trace:SPEED` (the dataset's times), `all-at-once`; by
    /// default `poisson` with `--rate` and `closed` without.
    #[arg(long, value_name = "KIND", value_parser = values::arrival)]
    pub(crate) arrival: Option<ArrivalArg>,
    /// The most requests under way in an open loop: one whose time has come then waits, and its latency counts the wait.
    #[arg(long, allow_negative_numbers = true, value_name = "N", conflicts_with = "concurrency", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub(crate) max_in_flight: Option<u32>,
    /// Fill the closed loop evenly over so many seconds.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) ramp: Option<f64>,
    /// Load the server at one level after the other, and find where it saturates.
    #[arg(long, value_enum)]
    pub(crate) sweep: Option<SweepArg>,
    /// The levels of the sweep; by default they are searched for.
    #[arg(long, allow_negative_numbers = true, value_name = "LEVEL,…", requires = "sweep", value_delimiter = ',', value_parser = positive)]
    pub(crate) sweep_levels: Vec<f64>,
    /// Search the highest level at which this holds, such as `p90_ttft_ms<=500`; by default where throughput stops growing.
    #[arg(long, value_name = "EXPR", requires = "sweep", conflicts_with = "sweep_levels")]
    pub(crate) sweep_goal: Option<String>,
}

/// How it is measured.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct MeasuringArgs {
    /// What comes before the window and isn't measured: so many requests (`8`), seconds (`10s`), or `steady`: until the
    /// throughput no longer changes.
    #[arg(long, allow_negative_numbers = true, value_name = "N|SECONDS|steady", default_value = "8", value_parser = warm_up)]
    pub(crate) warm_up: WarmUp,
    /// How tokens are counted; by default by the ids that the server sends, else by the tokenizer, else by the server's
    /// `usage`.
    #[arg(long, value_enum)]
    pub(crate) counter: Option<CounterArg>,
    /// What a request must keep to be good, such as `ttft<=500ms && tpot<=50ms` or `ttft:500 tpot:50`; reported
    /// as goodput.
    #[arg(long, value_name = "EXPR")]
    pub(crate) goodput: Option<String>,
    /// The percentiles that are shown beside the mean and the median, where there are requests enough; the JSON result has
    /// the 50th, 90th, 95th and 99th too.
    #[arg(long, allow_negative_numbers = true, value_name = "P,…", default_value = "50,90,95,99", value_parser = percentiles)]
    pub(crate) percentiles: Percentiles,
    /// How long one request may take, in seconds: what takes longer has failed.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Stop the whole load after so many seconds.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", default_value_t = 3600.0, value_parser = seconds)]
    pub(crate) deadline: f64,
    /// Threads that send and read.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_WORKERS))]
    pub(crate) workers: u32,
    /// Pin those threads to these processors, such as `2,4-6`.
    #[arg(long, value_name = "CPULIST", value_parser = cpu_list)]
    pub(crate) pin: Option<CpuList>,
}

/// What is kept, and in what form.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct OutputArgs {
    /// Write the result as one JSON object to this file; `--json FILE` says the same. Without a file, `--json` prints it.
    #[arg(long, value_name = "FILE")]
    pub(crate) json_file: Option<PathBuf>,
    /// Write the result as another client would, with that client's definitions, to `--out` or standard output.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ResultFormatArg>,
    /// The file that `--format` is written to.
    #[arg(long, short, value_name = "FILE", requires = "format")]
    pub(crate) out: Option<PathBuf>,
    /// Keep every request's record in this file (JSON Lines; packed if its name ends in `.zst`).
    #[arg(long, value_name = "FILE")]
    pub(crate) records: Option<PathBuf>,
    /// Write a page with plots to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the metrics to this file, one row each; with `requests` in its name's end (`…requests.csv`), one row for each
    /// request.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write one row for each request to this Parquet file.
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Show no live view.
    #[arg(long)]
    pub(crate) no_live: bool,
}

/// The interface of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiArg {
    /// `/v1/completions`.
    Completions,
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/embeddings`.
    Embeddings,
}

/// How tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CounterArg {
    /// By the ids that the server sends.
    TokenIds,
    /// By the model's tokenizer, run here (needs `--tokenizer`).
    Tokenizer,
    /// By the server's `usage`: a claim.
    Usage,
    /// By words.
    Whitespace,
}

/// What a sweep raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepArg {
    /// Requests under way.
    Concurrency,
    /// Requests per second.
    Rate,
}

/// Whose form a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultFormatArg {
    /// The file of `vllm bench serve --save-result`.
    Vllm,
    /// A line of `sglang.bench_serving --output-file`.
    Sglang,
}
