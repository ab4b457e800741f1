//! What a benchmark script of the engine says of itself, read into the numbers of one launch, and held against what was seen
//! of it from outside.
//!
//! The numbers are claims: whoever writes the engine writes into the same process. What can be checked of them is that the
//! script did what it was asked, that the time which it claims fits into the time for which its process ran, and that it isn't
//! far shorter than the script's progress bar was seen to move.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Read};

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::{Digest, LaunchId};
use isobench_schema::measurement::{Measurement, MetricName, RequestCounts};
use isobench_schema::outcome::evidence;
use isobench_schema::reading::{MetricValue, Reading, ReadingProblemKind, ToolFamily};
use isobench_schema::script::{SELF_REPORTED, Script, ScriptSeen, SeenBar};
use isobench_schema::tool::Tool;
use isobench_schema::workload::{Arrival, Workload};
use serde::Deserialize;

use crate::measure::{AnswerDigests, LaunchDigest};
use crate::parse::{self, binding::Binding};

/// The largest result file whose single values are counted, in bytes.
const MOST_BYTES: u64 = 1 << 26;
/// A claimed time must be at least this share of the time for which the bar of the measured part was seen.
const BAR_SHARE: f64 = 0.8;
/// What a bar may take besides what is measured, in seconds: it is drawn before the first and after the last step.
const BAR_SLACK_S: f64 = 0.25;
/// And this share of the whole wall time, where no bar was seen.
const WALL_SHARE: f64 = 0.001;
/// Half of the last digit of a value that is printed with two decimals.
const ROUNDING: f64 = 0.005;
/// How far counts of tokens may be above what was asked: beginnings of sentences and the like.
const TOKENS_SLACK: f64 = 1.05;

/// What a script was asked, by which its claims are checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptRules {
    /// What is run.
    pub script: Script,
    /// Requests that are measured, all iterations together.
    pub requests: u32,
    /// Requests of one batch, for latency.
    pub batch: u32,
    /// Tokens of each prompt, if all have one length.
    pub input_tokens: Option<u32>,
    /// Tokens asked of each answer.
    pub output_tokens: u32,
    /// Whether each answer has as many.
    pub exact_length: bool,
}

impl ScriptRules {
    /// Returns the rules of a workload that is a script's.
    pub fn of(workload: &Workload) -> Option<Self> {
        let batch = match workload.arrival {
            Arrival::Closed { concurrency, .. } => concurrency.max(1),
            Arrival::Open { .. }
            | Arrival::Constant { .. }
            | Arrival::Stages { .. }
            | Arrival::Bursts { .. }
            | Arrival::Trace { .. }
            | Arrival::AllAtOnce => 1,
        };
        Some(Self {
            script: workload.script.clone()?,
            requests: workload.requests,
            batch,
            input_tokens: workload.prompts.input_tokens(),
            output_tokens: workload.output_tokens,
            exact_length: workload.ignore_eos,
        })
    }

    /// Returns how often a latency script measures its batch.
    fn iterations(&self) -> u32 {
        self.requests.checked_div(self.batch).unwrap_or(0).max(1)
    }
}

/// Returns how the output of a program that can be run as a script is read; `None` for every other.
fn family(tool: Tool) -> Option<ToolFamily> {
    match tool {
        Tool::BenchmarkLatency | Tool::VllmBenchLatency => Some(ToolFamily::VllmLatency),
        Tool::BenchmarkThroughput | Tool::VllmBenchThroughput => Some(ToolFamily::VllmThroughput),
        Tool::BenchmarkPrefixCaching => Some(ToolFamily::VllmPrefixCaching),
        Tool::BenchmarkServing
        | Tool::VllmBenchServe
        | Tool::VllmServe
        | Tool::SglangBenchServing
        | Tool::SglangBenchOneBatch
        | Tool::SglangBenchOneBatchServer
        | Tool::SglangBenchOfflineThroughput
        | Tool::SglangLaunchServer => None,
    }
}

/// Returns the captions of the progress bar that is drawn while a program measures, over all its versions.
fn captions(tool: ToolFamily) -> &'static [&'static str] {
    match tool {
        ToolFamily::VllmLatency => &["Profiling iterations", "Bench iterations"],
        ToolFamily::VllmThroughput | ToolFamily::VllmPrefixCaching => &["Processed prompts"],
        ToolFamily::VllmServe
        | ToolFamily::VllmStartup
        | ToolFamily::VllmGenerate
        | ToolFamily::SglangServe
        | ToolFamily::SglangOneBatch
        | ToolFamily::SglangOneBatchServer
        | ToolFamily::SglangOfflineThroughput
        | ToolFamily::Aiperf
        | ToolFamily::Guidellm
        | ToolFamily::InferencePerf
        | ToolFamily::InferenceBenchmarker => &[],
    }
}

/// Returns the bar that was drawn while a program measured. Programs that warm up by the same means draw the one of the warm-up
/// first; a latency script has one alone, so that the longest counts, whatever else calls itself so.
fn measured_bar(seen: &ScriptSeen, tool: ToolFamily) -> Option<&SeenBar> {
    let mut bars = seen.bars.iter().filter(|bar| captions(tool).contains(&bar.caption.as_str()));
    if tool == ToolFamily::VllmLatency {
        bars.max_by(|a, b| moved_s(a).total_cmp(&moved_s(b)))
    } else {
        bars.next_back()
    }
}

/// Returns for how many seconds a bar was seen to move.
fn moved_s(bar: &SeenBar) -> f64 {
    (bar.last_ms.get() - bar.first_ms.get()) / 1000.0
}

/// The evidence of a script's launch.
pub struct ScriptEvidence<'a> {
    /// What was seen from outside.
    pub seen: ScriptSeen,
    /// The script's result file, if it wrote one.
    pub result: Option<Vec<u8>>,
    /// What it printed.
    pub stdout: &'a mut dyn Read,
}

/// Returns the numbers that a script claims, with the checks that they break; or why it has left none.
///
/// # Errors
/// Returns an error only if the evidence can't be read from its place.
pub fn read(
    launch: LaunchId,
    rules: &ScriptRules,
    evidence: ScriptEvidence<'_>,
) -> io::Result<Result<LaunchDigest, Failure>> {
    let ScriptEvidence { seen, result, stdout } = evidence;
    let tool = family(rules.script.tool);
    let asked = (tool == Some(ToolFamily::VllmThroughput)).then(|| u64::from(rules.requests));
    let binding = Binding { tool, version: None, asked };
    let printed = parse::read(stdout, &binding)?;
    let written = match &result {
        Some(bytes) => Some(parse::read(bytes.as_slice(), &binding)?),
        None => None,
    };
    let (claimed, file) = match written {
        Some(written) => (written, evidence::SCRIPT_RESULT),
        None => (printed, evidence::SERVER_STDOUT),
    };
    let contradiction = match &claimed.problem {
        None if claimed.is_measurement() => None,
        Some(problem) if problem.kind == ReadingProblemKind::Contradictory => Some(problem.message.clone()),
        Some(_) | None => return Ok(Err(missing(&claimed, file))),
    };
    let claim = Claim { rules, reading: &claimed, file };
    let Some(claimed_s) = claim.seconds() else { return Ok(Err(missing(&claimed, file))) };
    let measurement = claim.measurement(launch, claimed_s);
    let work = contradiction.or_else(|| claim.other_work(result.as_deref()));
    let work = work.map(|message| claim.failure(Check::ClaimedWork.into(), message));
    let time = tool.and_then(|tool| claim.other_time(&seen, measured_bar(&seen, tool)));
    Ok(Ok(LaunchDigest {
        measurement,
        client: rules.script.author(),
        seed: 0,
        workload: Digest::of(format!("{}\n{:?}", seen.files, rules.script.arguments).as_bytes()),
        probes_before: Vec::new(),
        probes_after: Vec::new(),
        answers: Vec::new(),
        answer_digests: AnswerDigests::default(),
        audits: Vec::new(),
        findings: work.into_iter().chain(time).collect(),
    }))
}

/// Returns the failure of a script that ended well and left no result that can be read.
fn missing(reading: &Reading, file: &str) -> Failure {
    let problem = reading.problem.as_ref();
    let why = problem.map_or("it names no time", |problem| problem.message.as_str());
    let message = format!("the benchmark script left no result that can be read: {why}");
    let line = EvidenceLine::new(file, problem.and_then(|problem| problem.line), why);
    Failure::new(FailureStage::Parse, FailureClass::ResultMissing, message).with_evidence([line])
}

/// What a script claims.
struct Claim<'a> {
    rules: &'a ScriptRules,
    reading: &'a Reading,
    /// The evidence that says it.
    file: &'static str,
}

/// A time that is claimed, as exactly as it was printed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seconds {
    least: f64,
    most: f64,
}

impl Claim<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.reading.metrics.get(name).and_then(MetricValue::number).filter(|value| value.is_finite())
    }

    /// Returns the time of everything that is measured, if one is claimed.
    fn seconds(&self) -> Option<Seconds> {
        let exactly = |value: f64| Seconds { least: value, most: value };
        let found = if let Some(duration) = self.number("duration_s") {
            exactly(duration)
        } else if let Some(latency) = self.number("avg_latency_s") {
            exactly(latency * f64::from(self.rules.iterations()))
        } else if let Some(cost) = self.number("cost_time_s") {
            exactly(cost)
        } else {
            let (rate, requests) = (self.number("request_throughput")?, f64::from(self.rules.requests));
            Seconds { least: requests / (rate + ROUNDING), most: requests / (rate - ROUNDING).max(1e-9) }
        };
        (found.least > 0.0 && found.most.is_finite()).then_some(found)
    }

    fn measurement(&self, launch: LaunchId, claimed: Seconds) -> Measurement {
        let named =
            self.reading.metrics.iter().filter_map(|(name, value)| Some((MetricName::parse(name)?, value.number()?)));
        let values: BTreeMap<MetricName, f64> = named.filter(|(_, value)| value.is_finite()).collect();
        let requests = u64::from(self.rules.requests);
        let input = self.rules.input_tokens.map_or(0, u64::from) * requests;
        Measurement {
            launch,
            definition: SELF_REPORTED.to_owned(),
            values,
            too_few: Vec::new(),
            requests: RequestCounts { asked: requests, completed: requests, failed: 0 },
            input_tokens: input,
            output_tokens: u64::from(self.rules.output_tokens) * requests,
            window_s: claimed.most,
        }
    }

    /// Returns what the script claims to have done that it wasn't asked.
    fn other_work(&self, result: Option<&[u8]>) -> Option<String> {
        let rules = self.rules;
        if let Some(completed) = self.number("completed")
            && (completed - f64::from(rules.requests)).abs() > 0.5
        {
            return Some(format!("{completed} requests are claimed, and {} were asked for", rules.requests));
        }
        if let (Some(total), Some(input)) = (self.number("total_tokens"), rules.input_tokens) {
            let most = f64::from(rules.requests) * (f64::from(input) + f64::from(rules.output_tokens));
            if total > most * TOKENS_SLACK {
                return Some(format!("{total} tokens are claimed, and {most} were asked for"));
            }
        }
        self.other_latencies(&latencies(result?)?)
    }

    /// Looks at the single values that a latency script writes.
    fn other_latencies(&self, latencies: &[f64]) -> Option<String> {
        let (count, asked) = (latencies.len(), self.rules.iterations());
        if usize::try_from(asked) != Ok(count) {
            return Some(format!("{count} iterations are claimed, and {asked} were asked for"));
        }
        let (mean, sum) = (self.number("avg_latency_s")?, latencies.iter().sum::<f64>());
        let found = sum / f64::from(asked);
        ((found - mean).abs() > 0.05 * found.abs().max(mean.abs()))
            .then(|| format!("a mean of {mean} s is claimed, and the single iterations have one of {found} s"))
    }

    /// Returns the failure of a claimed time that doesn't fit what was seen of the process.
    fn other_time(&self, seen: &ScriptSeen, bar: Option<&SeenBar>) -> Option<Failure> {
        let claimed = self.seconds()?;
        let wall = seen.wall_ms.get() / 1000.0;
        if claimed.least > wall {
            let message = format!(
                "the script claims to have measured for {:.3} s, and its whole process ran for {wall:.3} s",
                claimed.least
            );
            return Some(self.failure(Check::ClaimedTime.above(claimed.least, wall, CheckUnit::Seconds), message));
        }
        let (least, what) = match bar {
            Some(bar) => {
                let moved = moved_s(bar);
                let what = format!("its bar `{}` was seen to move for {moved:.3} s", bar.caption);
                (moved.mul_add(BAR_SHARE, -BAR_SLACK_S), what)
            }
            None => (wall * WALL_SHARE, format!("its process ran for {wall:.3} s without a progress bar")),
        };
        (claimed.most < least).then(|| {
            let message = format!("the script claims to have measured for {:.3} s, and {what}", claimed.most);
            self.failure(Check::ClaimedTime.below(claimed.most, least, CheckUnit::Seconds), message)
        })
    }

    fn failure(&self, check: isobench_schema::check::BrokenCheck, message: String) -> Failure {
        let names = ["duration_s", "avg_latency_s", "cost_time_s", "request_throughput", "completed", "total_tokens"];
        let told = names.into_iter().filter_map(|name| Some(format!("{name} {}", self.number(name)?)));
        let line = EvidenceLine::new(self.file, None, &told.collect::<Vec<_>>().join(", "));
        let failure = Failure::new(FailureStage::Validity, FailureClass::Implausible, message);
        failure.breaking(check).with_evidence([line])
    }
}

/// Returns the single values of a latency script's result file, if it has them.
fn latencies(result: &[u8]) -> Option<Vec<f64>> {
    #[derive(Deserialize)]
    struct Latencies {
        latencies: Vec<f64>,
    }
    let is_small = u64::try_from(result.len()).is_ok_and(|bytes| bytes <= MOST_BYTES);
    is_small.then(|| serde_json::from_slice::<Latencies>(result).ok()).flatten().map(|found| found.latencies)
}
