//! The result of a load alone, from its request records: numbers with intervals, goodput, failures, the load over time, what is
//! checked of it, and the same in the formats of other tools.
//!
//! Records are pushed in as they are written. A request leaves about 220 bytes and each gap between its chunks about one,
//! so that a million requests of 128 tokens need less than 500 MB, and every percentile is still exact.

mod against;
mod checks;
mod failures;
mod halves;
mod in_flight;
mod inputs;
mod latencies;
mod numbers;
pub mod peers;
mod server;
mod slices;
mod slots;
mod timeline;

use std::collections::BTreeMap;

use isobench_schema::failure::{Failure, FailureClass};
use isobench_schema::ids::{ArmId, BlockId, Digest, LaunchId, TaskId};
use isobench_schema::load_checks::{FlowState, FullLoop};
use isobench_schema::load_result::{InputCounter, LoadResult, Validity};
use isobench_schema::measurement::{DEFINITION, Measurement, RequestCounts};
use isobench_schema::record::{Phase, PhaseAudit, RecordHeader, RecordLine, RequestRecord};
use isobench_schema::workload::{TokenCounter, Workload};

use self::checks::{Checks, Stretch};
use self::in_flight::InFlight;
pub use self::inputs::are_by_usage;
use self::numbers::Numbers;
use self::slots::Slots;
use self::timeline::Timeline;
use crate::load_checks::sweep::StepResult;
use crate::measure::gaps::{self, Clock};
use crate::measure::{Item, ReadRecordsError, RecordLines, Sample, Samples};
use crate::objective::{Objective, RequestMetric};
use crate::stats::{Weighted, real};
use crate::validity::{self, LaunchRules};

/// Percentiles that every result has.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// What is asked of the numbers of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportOptions {
    /// The checks of the window.
    pub rules: LaunchRules,
    /// Whether every request that the rules know of must be recorded; else the window ended by time, and those that were
    /// begun are all there are.
    pub is_whole: bool,
    /// Whether a prompt's tokens are those that the server's `usage` says: [`are_by_usage`].
    pub prompts_by_usage: bool,
    /// Percentiles beside the 50th, 90th, 95th and 99th, between 0 and 100. Others are left out.
    pub percentiles: Vec<f64>,
    /// The objective that good requests meet.
    pub objective: Option<Objective>,
}

/// What the records don't say of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadFacts {
    /// Where the requests were sent.
    pub urls: Vec<String>,
    /// The model asked for.
    pub model: String,
    /// When the clock of the records began, RFC 3339 in UTC.
    pub started: String,
    /// What was asked for.
    pub workload: Workload,
    /// The digest of the tokenizer's file.
    pub tokenizer_digest: Option<Digest>,
    /// The digest of the file of prompts.
    pub dataset_digest: Option<Digest>,
    /// How output tokens were counted.
    pub counted_by: TokenCounter,
}

/// Reads the records of a load, fed in pieces of any size.
#[derive(Debug)]
pub struct LoadReader {
    lines: RecordLines,
    taken: Taken,
}

/// What was read so far.
#[derive(Debug)]
struct Taken {
    options: ReportOptions,
    samples: Samples,
    /// Output tokens and chunks over time.
    tokens: Timeline,
    chunks: Timeline,
    /// Gaps and tokens over time.
    slots: Slots,
}

impl LoadReader {
    /// Says that the load was stopped: the requests that were begun are all there are.
    pub fn cut(&mut self) {
        self.taken.options.is_whole = false;
    }

    /// Returns a reader of the records of one load.
    pub fn new(options: ReportOptions) -> Self {
        let taken = Taken {
            options,
            samples: Samples::default(),
            tokens: Timeline::default(),
            chunks: Timeline::default(),
            slots: Slots::default(),
        };
        Self { lines: RecordLines::default(), taken }
    }

    /// Takes the next bytes of a file of records. The first thing wrong is kept for [`LoadReader::finish`], and what follows
    /// it is ignored.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { lines, taken } = self;
        lines.feed(bytes, |item| taken.item(item));
    }

    /// Takes the header of records that are still in memory: the numbers are the same as if they were written and read.
    pub fn begin(&mut self, header: RecordHeader) {
        let Self { lines, taken } = self;
        lines.begin(header, |item| taken.item(item));
    }

    /// Takes a record, an audit or a look at the server that is still in memory.
    pub fn take(&mut self, line: RecordLine) {
        let Self { lines, taken } = self;
        lines.accept(line, |item| taken.item(item));
    }

    /// Returns what the records tell.
    ///
    /// # Errors
    /// Returns the first line that can't be read.
    pub fn finish(self, facts: LoadFacts) -> Result<LoadReport, ReadRecordsError> {
        let header = self.lines.finish()?;
        Ok(LoadReport::of(header, facts, self.taken))
    }
}

impl Taken {
    fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Header(_) => {}
            Item::Line(line, RecordLine::Request(record)) => self.request(line, &record),
            Item::Line(_, RecordLine::Audit(audit)) => self.samples.audits.push(audit),
            Item::Line(_, RecordLine::Server(sample)) => self.samples.server.push(sample),
        }
    }

    fn request(&mut self, line: u64, record: &RequestRecord) {
        if record.phase != Phase::Measure {
            return;
        }
        let mut sample = Sample::of(record, line);
        if record.failure.is_none() {
            self.answer(record);
            let claimed = sample.prompt_claimed.filter(|_| self.options.prompts_by_usage);
            let prompt = f64::from(claimed.unwrap_or(sample.input_tokens));
            sample.is_good =
                self.options.objective.as_ref().is_some_and(|objective| is_good(objective, record, (&sample, prompt)));
        }
        self.samples.window.push(sample);
    }

    fn answer(&mut self, record: &RequestRecord) {
        let slots = &mut self.slots;
        self.samples.gaps.take(record, |gap| slots.gap(gap));
        for (at, tokens) in record.chunk_ns.iter().zip(&record.chunk_tokens) {
            self.tokens.add(*at, *tokens);
            self.chunks.add(*at, 1);
        }
    }
}

/// Returns whether a completed request meets the objective.
fn is_good(objective: &Objective, record: &RequestRecord, (sample, prompt): (&Sample, f64)) -> bool {
    let mut token_gaps = Vec::new();
    let (mut longest_token, mut longest_chunk) = (0.0_f64, 0.0_f64);
    gaps::walk(record, |gap| {
        let each = gap.ms() / f64::from(gap.tokens);
        if gap.clock != Clock::Chunks {
            longest_token = longest_token.max(each);
            if objective.needs_percentile() {
                token_gaps.push((each, u64::from(gap.tokens)));
            }
        }
        if gap.clock != Clock::Tokens {
            longest_chunk = longest_chunk.max(gap.ms());
        }
    });
    let token_gaps = Weighted::new(token_gaps);
    objective.is_met(|metric| match metric {
        RequestMetric::Ttft => sample.ttft_ms,
        RequestMetric::Ttfc => sample.ttfc_ms(),
        RequestMetric::Tpot => Some(sample.tpot_ms.unwrap_or(0.0)),
        RequestMetric::E2el => Some(sample.e2el_ms),
        RequestMetric::ItlP99 => Some(token_gaps.quantile(0.99).unwrap_or(0.0)),
        RequestMetric::ItlMax => Some(longest_token),
        RequestMetric::IclMax => Some(longest_chunk),
        RequestMetric::Tokens => Some(real(sample.tokens)),
        RequestMetric::InputTokens => Some(prompt),
    })
}

/// What the records of a load tell.
#[derive(Debug)]
pub struct LoadReport {
    /// The result, as it is written as JSON.
    pub result: LoadResult,
    header: RecordHeader,
    taken: Taken,
    /// The stretch in which the load was whole: a closed loop while it was full, an open one while requests were due.
    whole: Window,
}

/// The window: from the first scheduled send to the last end, in nanoseconds of the records' clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Window {
    start_ns: u64,
    end_ns: u64,
}

impl Window {
    fn of(samples: &[Sample]) -> Option<Self> {
        let start_ns = samples.iter().map(|sample| sample.intended_ns).min()?;
        let end_ns = samples.iter().map(|sample| sample.end_ns).max()?.max(start_ns);
        Some(Self { start_ns, end_ns })
    }

    fn seconds(self) -> f64 {
        real(self.end_ns - self.start_ns) / 1e9
    }
}

impl LoadReport {
    fn of(header: RecordHeader, facts: LoadFacts, mut taken: Taken) -> Self {
        taken.samples.gaps.seal();
        let window = Window::of(&taken.samples.window).unwrap_or_default();
        let completed = completed(&taken.samples.window).count();
        taken.slots.widen(window, slices::most(completed));
        let claims = inputs::claims(&facts, &taken.samples.window);
        let input_counted_by = inputs::settle(&facts, &mut taken.samples.window);
        let measurement = counted(&taken.samples.window, window);
        let checks = Checks::of(&taken, &facts.workload, window);
        let known = (checks.audit.as_ref(), checks.flow.as_ref());
        if !taken.options.is_whole {
            taken.options.rules.requests = u32::try_from(taken.samples.window.len()).unwrap_or(u32::MAX);
        }
        let findings = validity::load_findings(&taken.options.rules, &taken.samples, &measurement, (known, claims));
        let in_flight = InFlight::of(&taken.samples.window);
        let findings = bounded(findings, facts.workload.max_in_flight, in_flight.most());
        let mut numbers = Numbers::of(&taken, &measurement, window, &in_flight);
        if input_counted_by == InputCounter::Words {
            // Words and tokens have no sum.
            numbers.metrics.remove("total_token_throughput");
        }
        let result = LoadResult {
            urls: facts.urls,
            model: facts.model,
            client: header.client.clone(),
            started: facts.started,
            definition: DEFINITION.to_owned(),
            workload: facts.workload,
            seed: header.seed,
            workload_digest: header.workload.clone(),
            tokenizer_digest: facts.tokenizer_digest,
            dataset_digest: facts.dataset_digest,
            counted_by: facts.counted_by,
            input_counted_by: Some(input_counted_by),
            validity: Validity::of(&findings),
            metrics: numbers.metrics,
            percentiles: taken.options.percentiles.clone(),
            from_send: numbers.from_send,
            intervals: numbers.intervals,
            too_few: numbers.too_few,
            requests_needed: numbers.requests_needed,
            goodput: numbers.goodput,
            failures: failures::by_class(&taken.samples.window),
            audit: checks.audit,
            findings,
            halves: halves::halves(&taken, window),
            halves_change: checks.halves_change,
            warm_up: None,
            full_loop: checks.full_loop,
            full_loop_metrics: checks.full_loop_metrics,
            flow: checks.flow,
            littles_law: checks.littles_law,
            server: server::summary(&taken.samples.server, window),
            series: slices::series(&taken, window, &in_flight),
            distributions: numbers.distributions,
            paired: None,
            sweep: None,
        };
        Self { result, header, taken, whole: checks.whole }
    }

    /// Returns what this load shows as one step of a search, of the stretch in which it was whole. Where a closed loop was
    /// never full, the level wasn't run, and nothing counts as completed.
    pub fn step(&self, level: f64) -> StepResult {
        let is_never_full = matches!(self.result.full_loop, Some(FullLoop::NeverFull { .. }));
        let stretch = Stretch::of(&self.taken.samples.window, self.whole).filter(|_| !is_never_full);
        let shows = |class| self.result.findings.iter().any(|finding| finding.class == class);
        let is_behind = shows(FailureClass::OverSaturated);
        let flow = self.result.flow.map(|flow| if is_behind { FlowState::OverSaturated } else { flow.state });
        StepResult {
            level,
            seconds: stretch.map_or(0.0, |stretch| stretch.seconds),
            completed: stretch.map_or(0, |stretch| stretch.ended),
            output_tokens: stretch.map(|stretch| stretch.tokens).filter(|tokens| *tokens > 0),
            mean_latency_s: stretch.and_then(|stretch| stretch.mean_s),
            mean_ttft_ms: self.result.metrics.get("mean_ttft_ms").copied(),
            mean_tpot_ms: self.result.metrics.get("mean_tpot_ms").copied(),
            mean_in_flight: stretch.map_or(0.0, |stretch| stretch.in_flight),
            objective_share: self.result.goodput.as_ref().map(|goodput| goodput.share),
            flow,
            is_client_bound: shows(FailureClass::ClientBound),
        }
    }

    /// Returns what the client saw of itself, by phase.
    pub fn audits(&self) -> &[PhaseAudit] {
        &self.taken.samples.audits
    }

    /// Returns the header of the records.
    pub fn header(&self) -> &RecordHeader {
        &self.header
    }
}

/// Says of an open loop that wasn't kept up with that the client itself let no more requests under way, where it did so.
fn bounded(mut findings: Vec<Failure>, bound: Option<u32>, most: u64) -> Vec<Failure> {
    let Some(bound) = bound.filter(|bound| most >= u64::from(*bound)) else { return findings };
    for finding in findings.iter_mut().filter(|finding| finding.class == FailureClass::OverSaturated) {
        finding.message = format!(
            "with no more than {bound} requests under way the arrivals can't be kept up with, and others wait for a place: \
             whether the server could isn't seen; raise `--max-in-flight`, or lower `--rate` ({})",
            finding.message
        );
    }
    findings
}

/// Returns the completed requests.
fn completed(window: &[Sample]) -> impl Iterator<Item = &Sample> {
    window.iter().filter(|sample| sample.failure.is_none())
}

/// Returns the counts of the window, without any latency.
fn counted(window: &[Sample], Window { start_ns, end_ns }: Window) -> Measurement {
    let asked = u64::try_from(window.len()).unwrap_or(u64::MAX);
    let done = u64::try_from(completed(window).count()).unwrap_or(u64::MAX);
    Measurement {
        launch: LaunchId {
            block: BlockId { task: TaskId::new("load").expect("this is a name"), block: 0, attempt: 1 },
            arm: ArmId::Baseline,
        },
        definition: DEFINITION.to_owned(),
        values: BTreeMap::new(),
        too_few: Vec::new(),
        requests: RequestCounts { asked, completed: done, failed: asked - done },
        input_tokens: completed(window).map(|sample| u64::from(sample.input_tokens)).sum(),
        output_tokens: completed(window).map(|sample| sample.tokens).sum(),
        window_s: real(end_ns - start_ns) / 1e9,
    }
}

#[cfg(test)]
mod tests;
