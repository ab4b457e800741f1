//! What is sent: what was typed, and where nothing was typed what a probe of the server suggests.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use isobench_loadgen::schedule::{DatasetError, Resources, Schedule, ScheduleError};
use isobench_loadgen::tokenizer::Tokenizer;
use isobench_schema::record::Phase;
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};
use serde::Serialize;
use tokio::runtime::Runtime;

use super::carry::Limits;
use super::probe::{Probed, probe};
use super::server::Server;
use super::{Context, dataset};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_args::arrivals::arrival;
use crate::load_args::values::WarmUp;
use crate::load_args::{ApiArg, CounterArg, LoadArgs, SweepArg};
use crate::load_defaults::{self, Defaults, Probe};

/// The most requests that are prepared for a window of some length.
const MOST_REQUESTS: u32 = 200_000;
/// The fewest.
pub(super) const FEWEST_REQUESTS: u32 = 32;
/// Datasets whose rows say how long answers are.
const ROWS: [&str; 7] = ["sharegpt", "custom", "burstgpt", "azure", "mooncake", "timed", "timed_trace"];
/// Datasets whose prompts are messages.
const CHATS: [&str; 3] = ["sessions", "multi-turn", "image"];
/// The longest warm-up that waits for steadiness, in seconds.
const LONGEST_WARM_UP_S: f64 = 300.0;

/// What is sent, and with what it is made.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) workload: Workload,
    pub(super) resources: Resources,
    pub(super) seed: u64,
    /// No request is begun later than this after the window's start.
    pub(super) duration: Option<Duration>,
    /// Whether that alone bounds the load: how many requests are prepared was reckoned from a guess of the server's speed.
    pub(super) is_by_time: bool,
    pub(super) warm_up: WarmUp,
    /// How long one request took alone, in seconds, where one was sent; and how long one of the load would at most.
    request_s: Option<f64>,
    alone_s: Option<f64>,
}

impl Asked {
    /// Returns what is sent to `server`, which is asked where the arguments leave something open.
    ///
    /// # Errors
    /// Returns which arguments contradict each other, and what a server says that answers nothing.
    pub(super) fn of(
        args: &LoadArgs,
        server: &Server,
        limits: &Limits,
        runtime: &Runtime,
    ) -> Result<Self, CommandError> {
        let tokenizer = args.workload.tokenizer.as_deref().map(Tokenizer::at).transpose().exit(Exit::Usage)?;
        let resources = Resources { tokenizer: tokenizer.map(Arc::new), folder: PathBuf::new() };
        let apis = apis(args);
        let first = apis.first().copied().unwrap_or(Api::Completions);
        let unasked = Self::with(args, first, &Probe::unasked(), &resources)?;
        if is_told(args) {
            return Ok(unasked);
        }
        // What can't be sent whatever the server says is refused before it is asked.
        let one = Workload { requests: 1, ..unasked.workload.clone() };
        Schedule::new(&one, unasked.seed, Phase::Measure, &resources).map_err(unsendable)?;
        let Probed { api, probe: found } =
            probe(server, &apis, Duration::from_secs_f64(args.measuring.timeout), limits, runtime)?;
        let found = Probe { has_tokenizer: resources.tokenizer.is_some(), ..found };
        Self::with(args, api, &found, &resources)
    }

    /// Returns what is sent to a server of which this is known.
    fn with(args: &LoadArgs, api: Api, found: &Probe, resources: &Resources) -> Result<Self, CommandError> {
        let has_tokenizer = resources.tokenizer.is_some();
        let unsaid = load_defaults::plan(found);
        let arrival = match args.arrival.sweep {
            // Its levels say the rest.
            Some(SweepArg::Rate) => {
                Arrival::Open { rate_per_s: 1.0, burstiness: args.arrival.burstiness.unwrap_or(1.0) }
            }
            Some(SweepArg::Concurrency) | None => arrival(&args.arrival, unsaid.concurrency).exit(Exit::Usage)?,
        };
        let input_tokens = args.workload.input_len.unwrap_or(unsaid.input_len);
        let prompts = dataset::prompts(args, input_tokens, has_tokenizer)?;
        let request_s = (found.request_s > 0.0).then_some(found.request_s);
        let (requests, mut duration_s) = window(args, &unsaid, &arrival, request_s);
        let probed = f64::from(found.output_tokens.max(1));
        let counter = counter(args, &unsaid);
        if counter == TokenCounter::Tokenizer && !has_tokenizer {
            let message = "tokens can't be counted by a tokenizer that isn't given";
            return Err(CommandError::new(Exit::Usage, message).hint("give `--tokenizer DIR` too"));
        }
        let mut is_by_time = args.workload.requests.is_none();
        let has_rows = matches!(&prompts, Prompts::Dataset { name, .. } if ROWS.contains(&name.as_str()));
        let output_tokens = match (api, args.workload.output_len) {
            (Api::Embeddings, _) => 1,
            (Api::Completions | Api::Chat, Some(given)) => given,
            // Each row has a length of its own.
            (Api::Completions | Api::Chat, None) if has_rows => 0,
            (Api::Completions | Api::Chat, None) => unsaid.output_len,
        };
        let mut workload = Workload {
            kind: WorkloadKind::Serving,
            api,
            requests,
            prompts,
            output_tokens,
            ignore_eos: !args.workload.stop_at_eos && api != Api::Embeddings,
            temperature: args.workload.temperature,
            warm_up_requests: warm_up_requests(args.measuring.warm_up, &arrival, requests, request_s),
            arrival,
            max_in_flight: args.arrival.max_in_flight,
            probes: Probes { count: 0, output_tokens: 1 },
            counter,
            extra_body: args.workload.extra_body.iter().map(|field| (field.key.clone(), field.value.clone())).collect(),
            script: None,
        };
        if let Some(rows) = requests_of_trace(args, &workload, resources)? {
            workload.requests = rows;
            // A trace says itself how long it lasts.
            duration_s = args.workload.duration;
            is_by_time = false;
        }
        Ok(Self {
            workload,
            resources: resources.clone(),
            seed: args.workload.seed,
            duration: duration_s.map(Duration::from_secs_f64),
            is_by_time,
            warm_up: args.measuring.warm_up,
            request_s,
            alone_s: request_s.map(|seconds| {
                // Rows have lengths of their own, which aren't known yet.
                let tokens = if output_tokens == 0 { unsaid.output_len } else { output_tokens };
                seconds * (f64::from(tokens) / probed).max(1.0)
            }),
        })
    }

    /// Returns how many requests per second the server answers one after the other at least, where it was asked.
    pub(super) fn rate_alone(&self) -> Option<f64> {
        self.alone_s.map(|seconds| 1.0 / seconds.max(1e-3))
    }

    /// Returns the same with other arrivals, and requests enough for them.
    pub(super) fn with_arrival(&self, arrival: Arrival) -> Self {
        let mut other = self.clone();
        if let Some(duration) = self.duration {
            other.workload.requests = enough(&arrival, duration.as_secs_f64(), self.request_s);
        }
        // Where they aren't counted in requests, other arrivals need others.
        if !matches!(self.warm_up, WarmUp::Requests(_)) {
            let requests = other.workload.requests;
            other.workload.warm_up_requests = warm_up_requests(self.warm_up, &arrival, requests, self.request_s);
        }
        other.workload.arrival = arrival;
        other
    }

    /// Prints what would be sent.
    ///
    /// # Errors
    /// Returns an error if it can't be written.
    pub(super) fn show(&self, server: &Server, context: Context) -> Result<Exit, CommandError> {
        #[derive(Serialize)]
        struct Shown<'a> {
            url: &'a str,
            model: &'a str,
            workload: &'a Workload,
            seed: u64,
            duration_s: Option<f64>,
        }
        let shown = Shown {
            url: &server.url,
            model: server.target.model(),
            workload: &self.workload,
            seed: self.seed,
            duration_s: self.duration.map(|duration| duration.as_secs_f64()),
        };
        context.print_json(&shown)?;
        Ok(Exit::Success)
    }
}

/// Returns the command's error for requests that can't be made, with the flag that helps.
pub(super) fn unsendable(error: ScheduleError) -> CommandError {
    let dir = "give `--tokenizer DIR`, the folder with the model's `tokenizer.json`";
    let needs_tokenizer = matches!(error, ScheduleError::Dataset(DatasetError::MissingTokenizer { .. }));
    let needs_length = matches!(error, ScheduleError::Dataset(DatasetError::MissingLength { .. }));
    let error = CommandError::from_error(Exit::Usage, error);
    if needs_tokenizer {
        return error.hint(format!("{dir}; or leave `--dataset` and its options out: random words need none"));
    }
    if needs_length {
        return error.hint(dir);
    }
    error
}

/// Returns whether nothing is left to be asked of the server.
fn is_told(args: &LoadArgs) -> bool {
    let has_lengths = args.workload.input_len.is_some() && args.workload.output_len.is_some();
    let has_loop = args.arrival.concurrency.is_some() || args.arrival.rate.is_some() || args.arrival.arrival.is_some();
    let has_requests = args.workload.requests.is_some();
    has_requests && has_loop && (has_lengths || args.workload.dataset.is_some()) && args.measuring.counter.is_some()
}

/// Returns the interfaces that are tried, one after the other.
fn apis(args: &LoadArgs) -> Vec<Api> {
    match (args.server.api, args.workload.dataset.as_deref()) {
        (Some(ApiArg::Completions), _) => vec![Api::Completions],
        (Some(ApiArg::Chat), _) => vec![Api::Chat],
        (Some(ApiArg::Embeddings), _) => vec![Api::Embeddings],
        (None, Some(dataset)) if CHATS.contains(&dataset) => vec![Api::Chat],
        (None, _) => vec![Api::Completions, Api::Chat, Api::Embeddings],
    }
}

fn counter(args: &LoadArgs, unsaid: &Defaults) -> TokenCounter {
    match args.measuring.counter {
        None => unsaid.counter,
        Some(CounterArg::TokenIds) => TokenCounter::TokenIds,
        Some(CounterArg::Tokenizer) => TokenCounter::Tokenizer,
        Some(CounterArg::Usage) => TokenCounter::Usage,
        Some(CounterArg::Whitespace) => TokenCounter::Whitespace,
    }
}

/// Returns the requests of the window, and how long it lasts where that was typed or nothing was.
fn window(args: &LoadArgs, unsaid: &Defaults, arrival: &Arrival, request_s: Option<f64>) -> (u32, Option<f64>) {
    match (args.workload.requests, args.workload.duration) {
        (Some(requests), duration) => (requests, duration),
        (None, duration) => {
            let seconds = duration.unwrap_or(unsaid.duration_s);
            (enough(arrival, seconds, request_s), Some(seconds))
        }
    }
}

/// Returns the number of a trace's requests, where it is sent by its own times and no other number was typed.
fn requests_of_trace(args: &LoadArgs, workload: &Workload, resources: &Resources) -> Result<Option<u32>, CommandError> {
    let is_trace = matches!(workload.arrival, Arrival::Trace { .. });
    if args.workload.requests.is_some() || !is_trace {
        return Ok(None);
    }
    let rows = Schedule::timed_requests(workload, args.workload.seed, resources).map_err(unsendable)?;
    Ok(rows.map(|rows| u32::try_from(rows).unwrap_or(u32::MAX).max(1)))
}

/// Returns as many requests as can begin within `seconds`: in a closed loop none is answered sooner than one alone.
fn enough(arrival: &Arrival, seconds: f64, request_s: Option<f64>) -> u32 {
    let alone_s = request_s.unwrap_or(0.01).max(1e-3);
    let count = match arrival {
        // Half as long again as alone, as a prompt may be in a cache; and a power of two, so that datasets which are laid out
        // for a number of requests are the same each time, though each time the server answers a little sooner or later.
        Arrival::Closed { concurrency, .. } => {
            let count = f64::from(*concurrency) * (seconds / alone_s * 1.5 + 1.0);
            count.max(1.0).log2().ceil().exp2()
        }
        Arrival::Open { rate_per_s, .. } | Arrival::Constant { rate_per_s } => rate_per_s * seconds * 1.2 + 50.0,
        Arrival::Bursts { size, period_s } => f64::from(*size) * (seconds / period_s + 1.0),
        Arrival::Stages { stages, .. } => {
            let highest = stages.iter().map(|stage| stage.from_per_s.max(stage.to_per_s)).fold(0.0, f64::max);
            highest * seconds * 1.2 + 50.0
        }
        Arrival::Trace { .. } | Arrival::AllAtOnce => f64::from(FEWEST_REQUESTS),
    };
    whole(count).clamp(FEWEST_REQUESTS, MOST_REQUESTS)
}

/// Returns the requests that are prepared for the warm-up.
fn warm_up_requests(warm_up: WarmUp, arrival: &Arrival, requests: u32, request_s: Option<f64>) -> u32 {
    match warm_up {
        WarmUp::Requests(requests) => requests,
        WarmUp::Seconds(seconds) => enough(arrival, seconds, request_s),
        WarmUp::Steady => enough(arrival, LONGEST_WARM_UP_S, request_s).min(requests.max(10_000)),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
fn whole(number: f64) -> u32 {
    number.ceil() as u32
}
