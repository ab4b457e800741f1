//! Carrying a load: warm-up, an empty cache where that is asked for, and the window.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isobench_analysis::load_checks::steady::{Steadiness, SteadyRules};
use isobench_analysis::load_report::{LoadFacts, LoadReader, LoadReport, ReportOptions, are_by_usage};
use isobench_analysis::validity::{LaunchRules, PromptCounts, TOKENIZER_TOLERANCE};
use isobench_loadgen::cancel::{Cancel, StopCause};
use isobench_loadgen::client::{Client, LoadError, LoadOptions, PhaseSummary};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::counting::Counting;
use isobench_loadgen::gauge::Sending;
use isobench_loadgen::get::post;
use isobench_loadgen::schedule::Schedules;
use isobench_loadgen::schedule::prepared::Cache;
use isobench_loadgen::scrape::Scraper;
use isobench_runner::host::client_thread::Scheduling;
use isobench_schema::failure::{Failure, FailureStage};
use isobench_schema::ids::Digest;
use isobench_schema::load_checks::{SteadyState, WarmUp};
use isobench_schema::load_result::{LoadResult, Validity};
use isobench_schema::measurement::MetricName;
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Arrival, TokenCounter};
use tokio::runtime::Runtime;

use super::super::{Context, cache_folder};
use super::asked::{Asked, unsendable};
use super::identity::{announced, identity};
use super::outputs;
use super::recording::Recording;
use super::server::Server;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_args::LoadArgs;
use crate::load_args::values::WarmUp as WarmUpArg;
use crate::load_live::{Expected, LoadMeter, LoadView};

/// How long a stream may be silent.
const STALL: Duration = Duration::from_secs(60);
/// How often it is looked whether the load is to be stopped, and how much is under way.
const WATCH: Duration = Duration::from_millis(50);
/// How often the server's metrics are looked at.
const SCRAPE: Duration = Duration::from_secs(1);
/// The slices by which a warm-up is followed.
const SLICE: Duration = Duration::from_millis(500);
/// How long a server may take to empty its cache.
const RESET: Duration = Duration::from_secs(30);
/// Where engines empty their prefix caches: vLLM, and SGLang.
const RESET_ROUTES: [&str; 2] = ["/reset_prefix_cache", "/flush_cache"];

/// What stops a load before its end.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    interrupted: Arc<AtomicBool>,
    pub(super) stop: Cancel,
    deadline: Instant,
}

impl Limits {
    pub(super) fn new(interrupted: Arc<AtomicBool>, deadline: Instant) -> Self {
        Self { interrupted, stop: Cancel::new(), deadline }
    }

    /// Returns how long it is until the deadline.
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns why the load was stopped, if it was.
    pub(super) fn cause(&self) -> Option<StopCause> {
        self.stop.cause()
    }

    /// Waits for something, unless the load is to be stopped first.
    ///
    /// # Errors
    /// Returns why it is.
    pub(super) async fn over<T>(&self, waiting: impl Future<Output = T>) -> Result<T, CommandError> {
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                done = &mut waiting => return Ok(done),
                () = tokio::time::sleep(WATCH) => self.look(),
            }
            match self.cause() {
                None => {}
                Some(StopCause::Interrupted) => return Err(CommandError::new(Exit::Interrupted, "interrupted")),
                Some(StopCause::WorkloadTimeout | StopCause::ServerDied) => {
                    let message = "the server didn't say what it serves before `--deadline`";
                    return Err(CommandError::new(Exit::SomeFailed, message));
                }
            }
        }
    }

    /// Stops the load if it is time.
    fn look(&self) {
        if self.interrupted.load(Ordering::Relaxed) {
            self.stop.stop(StopCause::Interrupted);
        } else if Instant::now() >= self.deadline {
            self.stop.stop(StopCause::WorkloadTimeout);
        }
    }
}

/// One load of one server.
pub(super) struct Carrier<'a> {
    args: &'a LoadArgs,
    server: &'a Server,
    asked: &'a Asked,
    limits: &'a Limits,
    context: Context,
    schedules: Schedules,
    clock: Clock,
    client: Client,
    recording: Recording,
    /// Where records are kept, if they are.
    records: Option<&'a Path>,
    warmed_up: Option<WarmUp>,
    scraper: Option<Scraper>,
}

impl<'a> Carrier<'a> {
    /// Prepares the requests of a load, whose records are kept in a file if one is named.
    ///
    /// # Errors
    /// Returns what can't be sent, or that the file for records can't be made.
    pub(super) fn new(
        args: &'a LoadArgs,
        server: &'a Server,
        asked: &'a Asked,
        limits: &'a Limits,
        context: Context,
        records: Option<&'a Path>,
    ) -> Result<Self, CommandError> {
        let schedules = schedules(asked)?;
        // In a sweep the levels before this one count, whatever becomes of it.
        if args.arrival.sweep.is_none() {
            check_times(limits, asked, &schedules)?;
        }
        let options = ReportOptions {
            rules: rules(asked),
            is_whole: asked.duration.is_none(),
            prompts_by_usage: are_by_usage(&asked.workload, asked.resources.tokenizer.is_some()),
            percentiles: args.measuring.percentiles.0.clone(),
            objective: outputs::objective(args)?,
        };
        let clock = Clock::start();
        let header = clock.header(asked.seed, identity(asked, &schedules)?);
        let recording = Recording::create(records, header, LoadReader::new(options));
        let recording = recording.map_err(|error| unwritable(records, error))?;
        let client = Client::new(server.target.clone(), load_options(args, asked), clock, limits.stop.clone());
        Ok(Self {
            args,
            server,
            asked,
            limits,
            context,
            schedules,
            clock,
            client,
            recording,
            records,
            warmed_up: None,
            scraper: None,
        })
    }

    /// Says how many rows of the dataset aren't sent, and how many are sent again.
    pub(super) fn say_left_out(&self) {
        let schedule = self.schedules.phase(Phase::Measure);
        if schedule.again() > 0 {
            let rows = self.schedules.phase(Phase::Measure).entries().len() as u64 - schedule.again();
            let ways = "a server may have them in its prefix cache; `--arrival trace` sends each row of a trace once, \
                        `--dataset-option no-oversample=true` refuses to send rows again";
            let message =
                format!("the dataset's {rows} rows are sent again and again where the load needs more: {ways}");
            self.context.terminal.status(&message);
        }
        let rows = schedule.left_out();
        if rows > 0 {
            let why =
                "they have no tokens, or the dataset's options choose others, as `burstgpt-model` does with `GPT-4`";
            self.context.terminal.status(&format!("rows of the dataset that are left out: {rows} ({why})"));
        }
    }

    /// Sends everything; returns what the records tell.
    ///
    /// # Errors
    /// Returns an error if the load can't be carried on or its records can't be kept.
    pub(super) fn carry(mut self, runtime: &Runtime) -> Result<LoadReport, CommandError> {
        runtime.block_on(async {
            self.prepare().await?;
            self.measure().await
        })?;
        self.finish()
    }

    /// Warms the server up, empties its cache where that is asked for, and begins to look at its metrics.
    ///
    /// # Errors
    /// As [`Carrier::carry`].
    pub(super) async fn prepare(&mut self) -> Result<(), CommandError> {
        self.warm_up().await?;
        if self.args.server.reset_prefix_cache {
            self.reset_cache().await?;
        }
        self.scraper = self.scraper()?;
        Ok(())
    }

    /// Sends what is measured.
    ///
    /// # Errors
    /// As [`Carrier::carry`].
    pub(super) async fn measure(&mut self) -> Result<(), CommandError> {
        let sending = self.asked.duration.map_or_else(Sending::all, Sending::within);
        self.phase(Phase::Measure, &sending, |_record| {}).await
    }

    /// Ends looking at the server's metrics; returns what the records tell.
    ///
    /// # Errors
    /// As [`Carrier::carry`].
    pub(super) fn finish(mut self) -> Result<LoadReport, CommandError> {
        for sample in self.scraper.take().map(Scraper::stop).unwrap_or_default() {
            self.recording.server(sample).exit(Exit::Machine)?;
        }
        let facts = LoadFacts {
            urls: vec![self.server.url.clone()],
            model: self.server.target.model().to_owned(),
            started: started(&self.clock),
            workload: self.asked.workload.clone(),
            tokenizer_digest: self.tokenizer_digest()?,
            dataset_digest: self.schedules.phase(Phase::Measure).input().map(|input| input.digest.clone()),
            counted_by: self.asked.workload.counter,
        };
        let mut reader = self.recording.finish().exit(Exit::Machine)?;
        if self.limits.cause().is_some() {
            reader.cut();
        }
        let mut report = reader.finish(facts).exit(Exit::Error)?;
        report.result.warm_up = self.warmed_up;
        if let Some(cause) = self.limits.cause() {
            stopped(&mut report.result, cause);
        }
        Ok(report)
    }

    fn tokenizer_digest(&self) -> Result<Option<Digest>, CommandError> {
        let tokenizer = self.asked.resources.tokenizer.as_ref();
        tokenizer.map(|tokenizer| tokenizer.digest().cloned()).transpose().exit(Exit::Error)
    }

    /// Sends what isn't measured.
    async fn warm_up(&mut self) -> Result<(), CommandError> {
        let sending = match self.asked.warm_up {
            WarmUpArg::Requests(_) => Sending::all(),
            WarmUpArg::Seconds(seconds) => Sending::within(Duration::from_secs_f64(seconds)),
            WarmUpArg::Steady => return self.warm_up_until_steady().await,
        };
        self.phase(Phase::WarmUp, &sending, |_record| {}).await
    }

    /// Sends until the throughput no longer changes: slice by slice, in output tokens (of embeddings: requests).
    async fn warm_up_until_steady(&mut self) -> Result<(), CommandError> {
        let mut steadiness = Steadiness::new(SteadyRules::default());
        let sending = Sending::all();
        let (mut end, mut sum) = (None::<u64>, 0.0);
        let slice_ns = u64::try_from(SLICE.as_nanos()).unwrap_or(u64::MAX);
        let ending = sending.clone();
        let watch = |record: &RequestRecord| {
            let until = *end.get_or_insert(record.intended_ns.saturating_add(slice_ns));
            let mut until = until;
            while record.end_ns >= until {
                if steadiness.push(Some(sum)) != SteadyState::NotYet {
                    ending.end();
                }
                sum = 0.0;
                until = until.saturating_add(slice_ns);
            }
            end = Some(until);
            if record.failure.is_none() {
                let tokens = u32::try_from(record.output_tokens()).unwrap_or(u32::MAX);
                sum += f64::from(tokens.max(1));
            }
        };
        self.phase(Phase::WarmUp, &sending, watch).await?;
        self.warmed_up = Some(steadiness.report());
        Ok(())
    }

    /// Empties the server's prefix cache.
    async fn reset_cache(&self) -> Result<(), CommandError> {
        let endpoint = self.server.target.endpoint();
        let mut said = String::new();
        for route in RESET_ROUTES {
            match post(endpoint, route, RESET).await {
                Ok(reply) if (200..300).contains(&reply.status) => return Ok(()),
                Ok(reply) => said = format!("`POST {route}` was answered with status {}", reply.status),
                Err(error) => said = error.to_string(),
            }
        }
        let message = format!("the server's prefix cache can't be emptied: {said}");
        Err(CommandError::new(Exit::SomeFailed, message)
            .hint("leave `--reset-prefix-cache` out, or start the server with its development endpoints"))
    }

    fn scraper(&self) -> Result<Option<Scraper>, CommandError> {
        if self.args.server.no_scrape_metrics {
            return Ok(None);
        }
        let endpoint = self.server.target.endpoint().clone();
        Scraper::start(endpoint, SCRAPE, self.clock).map(Some).exit(Exit::Machine)
    }

    /// Sends one phase, and shows how it goes.
    async fn phase(
        &mut self,
        phase: Phase,
        sending: &Sending,
        mut watch: impl FnMut(&RequestRecord),
    ) -> Result<(), CommandError> {
        let schedule = Arc::clone(self.schedules.phase(phase));
        if schedule.entries().is_empty() {
            return Ok(());
        }
        let url = &self.server.url;
        let announced = announced(self.asked, phase, schedule.entries().len());
        self.context.terminal.status(&format!("{phase}: {announced} to {url}"));
        let meter =
            Arc::new(Mutex::new(LoadMeter::new(self.expected(phase, schedule.entries().len()), Instant::now())));
        let view = (!self.args.output.no_live).then(|| LoadView::start(self.context.terminal, Arc::clone(&meter)));
        let counting = Counting::new(&self.asked.workload, self.asked.resources.tokenizer.as_ref());
        let recording = &mut self.recording;
        let gauge = self.client.gauge();
        let server = self.server;
        let sink = |mut record: RequestRecord| {
            counting.count(&mut record)?;
            if let Some(failure) = &mut record.failure {
                failure.message = server.masked(&failure.message);
            }
            if let Ok(mut meter) = meter.lock() {
                meter.record(&record, Instant::now());
            }
            watch(&record);
            recording.request(record)
        };
        let limits = self.limits;
        let summary = {
            let running = self.client.run_phase_while(&schedule, sending.clone(), sink);
            tokio::pin!(running);
            loop {
                tokio::select! {
                    result = &mut running => break result,
                    () = tokio::time::sleep(WATCH) => {
                        limits.look();
                        if let Ok(mut meter) = meter.lock() {
                            let under_way = u64::try_from(gauge.under_way()).unwrap_or(u64::MAX);
                            meter.note_in_flight(under_way, Instant::now());
                            meter.note_busy(gauge.busy_share());
                        }
                    }
                }
            }
        };
        drop(view);
        let summary = summary.map_err(|error| match error {
            LoadError::Record { source } => unwritable(self.records, source),
            other @ (LoadError::Engine { .. } | LoadError::Bind { .. } | LoadError::Thread) => {
                CommandError::from_error(Exit::Machine, other)
            }
        });
        let PhaseSummary { completed, failed, audit, .. } = summary?;
        self.recording.audit(audit).exit(Exit::Machine)?;
        self.context.terminal.status(&format!("{phase}: {completed} completed, {failed} failed"));
        Ok(())
    }

    fn expected(&self, phase: Phase, requests: usize) -> Expected {
        let (seconds, is_all) = match (phase, self.asked.warm_up, self.asked.duration) {
            (Phase::Measure, _, duration) => (duration.map(|time| time.as_secs_f64()), duration.is_none()),
            (_, WarmUpArg::Seconds(seconds), _) => (Some(seconds), false),
            (_, WarmUpArg::Steady, _) => (None, false),
            (_, WarmUpArg::Requests(_), _) => (None, true),
        };
        Expected {
            phase: phase.to_string(),
            requests: u64::try_from(requests).ok().filter(|_| is_all),
            rate_per_s: self.args.arrival.rate,
            seconds,
        }
    }
}

/// Says of a load that it was stopped, which weighs more than what became of its numbers by that.
pub(super) fn stopped(result: &mut LoadResult, cause: StopCause) {
    let class = cause.class();
    let why = match cause {
        StopCause::Interrupted => "the load was interrupted before its end",
        StopCause::WorkloadTimeout => "`--deadline` passed before the load's end",
        StopCause::ServerDied => "the server ended before the load did",
    };
    let count = |name: &str| result.metrics.get(name).copied().unwrap_or(0.0);
    let message = format!("{why}: the result holds the {} requests that had been answered", count("completed"));
    // Those that were cut off are no failures of their own.
    result.findings.retain(|finding| finding.class != class);
    result.findings.insert(0, Failure::new(FailureStage::Workload, class, message));
    result.validity = Validity::of(&result.findings);
}

/// Checks that the last request is due before the load is stopped.
fn check_times(limits: &Limits, asked: &Asked, schedules: &Schedules) -> Result<(), CommandError> {
    let last = |phase| {
        let entries = schedules.phase(phase).entries().iter();
        Duration::from_nanos(entries.map(|entry| entry.offset_ns).max().unwrap_or(0))
    };
    let warm_up = if matches!(asked.warm_up, WarmUpArg::Requests(_)) { last(Phase::WarmUp) } else { Duration::ZERO };
    let (needed, left) = (warm_up + last(Phase::Measure), limits.left());
    if asked.duration.is_some() || needed < left {
        return Ok(());
    }
    let message = format!(
        "with the warm-up the last request is due after {:.0} s, but `--deadline` stops the load after {:.0} s",
        needed.as_secs_f64(),
        left.as_secs_f64()
    );
    let is_trace = matches!(asked.workload.arrival, Arrival::Trace { .. });
    let unit = if is_trace { "; times in milliseconds are those of `--dataset mooncake`" } else { "" };
    let ways = "give a longer `--deadline`, fewer `--requests`, or a `--duration` after which none is sent";
    Err(CommandError::new(Exit::Usage, message).hint(format!("{ways}{unit}")))
}

/// Returns the error of records that can't be kept.
fn unwritable(records: Option<&Path>, error: io::Error) -> CommandError {
    let Some(path) = records else { return CommandError::from_error(Exit::Machine, error) };
    let message = format!("failed to write the records to `{}`", path.display());
    CommandError { source: Some(error.into()), ..CommandError::new(Exit::Machine, message) }
        .hint("give `--records` a file in a folder that you may write to, on a disk with room")
}

/// Returns the prepared requests: those that were prepared before for the same load, where the cache folder keeps them.
fn schedules(asked: &Asked) -> Result<Schedules, CommandError> {
    let cache = cache_folder(None).ok().map(|folder| Cache::open(&folder.join("prepared")));
    match cache {
        Some(Ok(cache)) => {
            let prepared = cache.schedules(&asked.workload, asked.seed, &asked.resources).map_err(unsendable)?;
            Ok(prepared.schedules)
        }
        // Without a cache everything is prepared anew.
        Some(Err(_)) | None => Schedules::new(&asked.workload, asked.seed, &asked.resources).map_err(unsendable),
    }
}

fn load_options(args: &LoadArgs, asked: &Asked) -> LoadOptions {
    let timeout = Duration::from_secs_f64(args.measuring.timeout);
    LoadOptions {
        // What a tokenizer counts is judged after it was counted.
        exact_lengths: asked.workload.ignore_eos && asked.workload.counter != TokenCounter::Tokenizer,
        workers: usize::try_from(args.measuring.workers).unwrap_or(1),
        processors: args.measuring.pin.as_ref().map_or_else(Vec::new, |list| list.0.clone()),
        prepare_thread: || {
            Scheduling::take();
        },
        ..LoadOptions::new(timeout, STALL.min(timeout))
    }
}

/// Returns what the window is checked against.
fn rules(asked: &Asked) -> LaunchRules {
    let is_by_tokenizer = asked.workload.counter == TokenCounter::Tokenizer;
    LaunchRules {
        requests: asked.workload.requests,
        probes: 0,
        exact_length: asked.workload.ignore_eos,
        count_tolerance: if is_by_tokenizer { TOKENIZER_TOLERANCE } else { 0.0 },
        arrival: asked.workload.arrival.clone(),
        failed_requests: 0,
        min_window_s: Seconds::new(0.0).expect("zero is a duration"),
        primary: MetricName::OutputThroughput,
        margin: 0.02,
        prompt_counts: PromptCounts::Unknown,
        script: None,
    }
}

/// Returns when the clock of the records began, RFC 3339 in UTC.
fn started(clock: &Clock) -> String {
    let nanoseconds = i128::from(clock.epoch_unix_ns());
    let seconds = jiff::Timestamp::from_nanosecond(nanoseconds).ok();
    seconds.and_then(|at| at.round(jiff::Unit::Second).ok()).unwrap_or_default().to_string()
}
