//! `isobench load`: the load client alone.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isobench_analysis::measure::{LaunchDigest, RecordReader};
use isobench_analysis::validity::LaunchRules;
use isobench_loadgen::cancel::{Cancel, StopCause};
use isobench_loadgen::client::{Client, LoadOptions, PhaseSummary};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::get::discover_model;
use isobench_loadgen::record::RecordWriter;
use isobench_loadgen::schedule::Schedules;
use isobench_loadgen::target::{Endpoint, Target};
use isobench_schema::ids::{ArmId, BlockId, LaunchId, TaskId};
use isobench_schema::measurement::MetricName;
use isobench_schema::record::Phase;
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};
use serde::Serialize;

use super::Context;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::interrupt;
use crate::load_args::arrivals::arrival;
use crate::load_args::values::WarmUp;
use crate::load_args::{ApiArg, CounterArg, LoadArgs};
use crate::load_defaults::{self, Probe};
use crate::load_live::{Expected, LoadMeter, LoadView};
use crate::load_rows;

/// How long the server may take to name its model.
const DISCOVERY: Duration = Duration::from_secs(30);
/// How long one request may take, and how long its stream may be silent.
const REQUEST: Duration = Duration::from_secs(300);
const STALL: Duration = Duration::from_secs(60);
/// How often it is looked whether the load is to be stopped.
const WATCH: Duration = Duration::from_millis(50);

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    url: &'a str,
    model: &'a str,
    workload: &'a Workload,
    metrics: serde_json::Map<String, serde_json::Value>,
    findings: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &LoadArgs, context: Context) -> Result<Exit, CommandError> {
    let url = args.url.as_deref().unwrap_or_default();
    let endpoint = Endpoint::parse(url).exit(Exit::Usage)?;
    let workload = workload(args)?;
    let schedules = Schedules::new(&workload, args.workload.seed).exit(Exit::Usage)?;
    let interrupted = interrupt::flag().exit(Exit::Machine)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().exit(Exit::Machine)?;
    let model = match &args.server.model {
        Some(model) => model.clone(),
        None => runtime.block_on(discover_model(&endpoint, DISCOVERY)).exit(Exit::Usage)?,
    };
    let records: Box<dyn Write> = match &args.output.records {
        Some(path) => Box::new(BufWriter::new(File::create(path).exit(Exit::Usage)?)),
        None => Box::new(io::sink()),
    };
    let rules = LaunchRules {
        requests: workload.requests,
        probes: 0,
        exact_length: true,
        arrival: workload.arrival.clone(),
        failed_requests: 0,
        min_window_s: Seconds::new(0.0).expect("zero is a duration"),
        primary: MetricName::OutputThroughput,
        margin: 0.02,
    };
    let clock = Clock::start();
    let header = clock.header(args.workload.seed, schedules.digest());
    let sink = Tee { records, reader: RecordReader::new(launch(), rules) };
    let mut writer = RecordWriter::new(sink, &header).exit(Exit::Machine)?;
    let stop = Cancel::new();
    let options = LoadOptions { request_timeout: REQUEST, stall_timeout: STALL };
    let client = Client::new(Target::new(endpoint, &model), options, clock, stop.clone());
    let limits = Limits {
        interrupted,
        stop,
        deadline: Instant::now() + Duration::from_secs_f64(args.measuring.deadline.clamp(0.0, 1e8)),
    };
    for phase in [Phase::WarmUp, Phase::Measure] {
        let schedule = schedules.phase(phase);
        context.terminal.status(&format!("{phase}: {} requests to {}", schedule.entries().len(), url));
        let expected = Expected {
            phase: phase.to_string(),
            requests: u64::try_from(schedule.entries().len()).ok(),
            rate_per_s: args.arrival.rate,
            seconds: None,
        };
        let meter = Arc::new(Mutex::new(LoadMeter::new(expected, Instant::now())));
        let mut left = u64::try_from(schedule.entries().len()).unwrap_or(u64::MAX);
        let view = (!args.output.no_live).then(|| LoadView::start(context.terminal, Arc::clone(&meter)));
        let summary = runtime.block_on(limits.over(client.run_phase(schedule, |record| {
            if let Ok(mut meter) = meter.lock() {
                let now = Instant::now();
                meter.record(&record, now);
                left = left.saturating_sub(1);
                if let Arrival::Closed { concurrency, .. } = workload.arrival {
                    meter.note_in_flight(u64::from(concurrency).min(left), now);
                }
            }
            writer.write(&record)
        })));
        drop(view);
        let PhaseSummary { completed, failed, .. } = summary.exit(Exit::Machine)?;
        context.terminal.status(&format!("{phase}: {completed} completed, {failed} failed"));
    }
    let Tee { records, reader } = writer.finish().exit(Exit::Machine)?;
    // The records are whole on the disk before they are read again.
    drop(records);
    write_tables(args)?;
    let digest = reader.finish().exit(Exit::Error)?;
    print(args, context, &model, &workload, &digest)?;
    Ok(match (limits.stop.cause(), digest.findings.is_empty()) {
        (Some(StopCause::Interrupted), _) => Exit::Interrupted,
        (Some(StopCause::WorkloadTimeout | StopCause::ServerDied), _) | (None, false) => Exit::SomeFailed,
        (None, true) => Exit::Success,
    })
}

/// Writes a row for each request where that is asked for.
fn write_tables(args: &LoadArgs) -> Result<(), CommandError> {
    let Some(records) = &args.output.records else { return Ok(()) };
    if let Some(out) = &args.output.parquet {
        load_rows::write_parquet(records, out).exit(Exit::Machine)?;
    }
    if let Some(out) = &args.output.csv {
        load_rows::write_csv(records, out).exit(Exit::Machine)?;
    }
    Ok(())
}

fn workload(args: &LoadArgs) -> Result<Workload, CommandError> {
    let unsaid = load_defaults::plan(&Probe::unasked());
    let arrival = arrival(&args.arrival, unsaid.concurrency).exit(Exit::Usage)?;
    let input_tokens = args.workload.input_len.unwrap_or(unsaid.input_len);
    let prompts = match args.workload.vocabulary_size {
        Some(vocabulary_size) => {
            Prompts::TokenIds { input_tokens, vocabulary_size, first_id: 10.min(vocabulary_size / 2) }
        }
        None => Prompts::Words { input_tokens },
    };
    Ok(Workload {
        kind: WorkloadKind::Serving,
        api: match args.server.api {
            None | Some(ApiArg::Completions) => Api::Completions,
            Some(ApiArg::Chat) => Api::Chat,
            Some(ApiArg::Embeddings) => Api::Embeddings,
        },
        requests: args.workload.requests.unwrap_or(100),
        prompts,
        output_tokens: args.workload.output_len.unwrap_or(unsaid.output_len),
        ignore_eos: !args.workload.stop_at_eos,
        temperature: args.workload.temperature,
        arrival,
        max_in_flight: args.arrival.max_in_flight,
        warm_up_requests: match args.measuring.warm_up {
            WarmUp::Requests(requests) => requests,
            WarmUp::Seconds(_) | WarmUp::Steady => unsaid.warm_up,
        },
        probes: Probes { count: 0, output_tokens: 1 },
        counter: match args.measuring.counter {
            None => unsaid.counter,
            Some(CounterArg::TokenIds) => TokenCounter::TokenIds,
            Some(CounterArg::Tokenizer) => TokenCounter::Tokenizer,
            Some(CounterArg::Usage) => TokenCounter::Usage,
            Some(CounterArg::Whitespace) => TokenCounter::Whitespace,
        },
        extra_body: args.workload.extra_body.iter().map(|field| (field.key.clone(), field.value.clone())).collect(),
    })
}

/// Returns the name that the numbers of a load go by; it is part of no run.
fn launch() -> LaunchId {
    let task = TaskId::new("load").expect("a plain word is a task's name");
    LaunchId { block: BlockId { task, block: 0, attempt: 1 }, arm: ArmId::Baseline }
}

fn print(
    args: &LoadArgs,
    context: Context,
    model: &str,
    workload: &Workload,
    digest: &LaunchDigest,
) -> Result<(), CommandError> {
    let measurement = &digest.measurement;
    let findings: Vec<String> = digest.findings.iter().map(ToString::to_string).collect();
    if context.json {
        let mut metrics = serde_json::Map::new();
        for (name, value) in &measurement.values {
            metrics.insert(name.to_string(), (*value).into());
        }
        metrics.insert("completed".to_owned(), measurement.requests.completed.into());
        metrics.insert("failed".to_owned(), measurement.requests.failed.into());
        metrics.insert("total_input_tokens".to_owned(), measurement.input_tokens.into());
        metrics.insert("total_output_tokens".to_owned(), measurement.output_tokens.into());
        metrics.insert("duration".to_owned(), measurement.window_s.into());
        return context.print_json(&Report {
            url: args.url.as_deref().unwrap_or_default(),
            model,
            workload,
            metrics,
            findings,
        });
    }
    let counts = measurement.requests;
    let (completed, failed, window_s) = (counts.completed, counts.failed, measurement.window_s);
    let mut lines = vec![format!("{completed} completed, {failed} failed in {window_s:.2} s")];
    for (name, value) in &measurement.values {
        lines.push(format!("{:<24}{value:>12.2} {}", name.to_string(), name.unit()));
    }
    lines.extend(measurement.too_few.iter().map(|name| format!("{:<24}{:>12}", name.to_string(), "n too small")));
    lines.extend(findings.iter().map(|finding| format!("! {finding}")));
    context.terminal.data(&(lines.join("\n") + "\n"));
    Ok(())
}

/// Writes records to where they are kept, and to the reader that computes the numbers.
struct Tee {
    records: Box<dyn Write>,
    reader: RecordReader,
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.records.write_all(bytes)?;
        self.reader.feed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.records.flush()
    }
}

/// What stops a load before its end.
struct Limits {
    interrupted: Arc<AtomicBool>,
    stop: Cancel,
    deadline: Instant,
}

impl Limits {
    /// Waits for a phase, and stops it when it is time.
    async fn over<T>(&self, phase: impl Future<Output = T>) -> T {
        tokio::pin!(phase);
        loop {
            tokio::select! {
                result = &mut phase => return result,
                () = tokio::time::sleep(WATCH) => {
                    if self.interrupted.load(Ordering::Relaxed) {
                        self.stop.stop(StopCause::Interrupted);
                    } else if Instant::now() >= self.deadline {
                        self.stop.stop(StopCause::WorkloadTimeout);
                    }
                }
            }
        }
    }
}
