//! What is said around a result: how many requests were asked for, how the tool began, and why it ended without one.

use isobench_schema::reading::{ReadingProblem, ReadingProblemKind, ToolFamily};

use super::line::Line;
use crate::text::without_prefixes;

/// How much of a line a message quotes, in characters.
const QUOTED: usize = 160;

/// Lines by which a tool says that it won't measure anything.
const NOTHING_MEASURED: &[(&str, &str)] = &[
    ("DEPRECATED: This script has been moved", "the script is only a stub that names its successor"),
    ("Profiling (results will be saved", "the tool was asked for a profile, after which it ends without measuring"),
    ("Profiling with cuda profiler", "the tool was asked for a profile, after which it ends without measuring"),
    ("Profiling...", "the tool was asked for a profile, after which it ends without measuring"),
];

/// Lines by which a shell or a tool says that it was ended.
const ENDED: &[&str] = &[
    "Killed",
    "Terminated",
    "Aborted",
    "Aborted (core dumped)",
    "Segmentation fault",
    "Segmentation fault (core dumped)",
];

/// Lines with which a tool begins.
const BEGINNINGS: &[(&str, ToolFamily)] = &[
    ("Starting initial single prompt test run...", ToolFamily::VllmServe),
    ("Starting main benchmark run...", ToolFamily::VllmServe),
    ("benchmark_args=Namespace(", ToolFamily::SglangServe),
    ("Measuring cold startup time...", ToolFamily::VllmStartup),
    ("Profiling iterations:", ToolFamily::VllmLatency),
    ("Bench iterations:", ToolFamily::VllmLatency),
];

/// What is said around a result.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// The number of requests that the last arguments which were printed ask for.
    pub(super) asked: Option<u64>,
    begun: Option<(ToolFamily, u64)>,
    usage: bool,
    in_traceback: bool,
    failure: Option<ReadingProblem>,
    nothing: Option<ReadingProblem>,
}

impl Notes {
    /// Returns whether what comes next must be read, whatever it looks like.
    pub(super) fn is_waiting(&self) -> bool {
        self.in_traceback
    }

    /// Reads a line outside of results.
    pub(super) fn feed(&mut self, line: &Line<'_>) {
        let text = line.text.trim();
        if let Some(arguments) = text.strip_prefix("benchmark_args=").unwrap_or(text).strip_prefix("Namespace(") {
            self.asked = asked(arguments);
        }
        if let Some((_, tool)) = BEGINNINGS.iter().find(|(beginning, _)| text.starts_with(beginning)) {
            self.begun = Some((*tool, line.number));
        }
        if let Some((_, why)) = NOTHING_MEASURED.iter().find(|(beginning, _)| text.starts_with(beginning)) {
            let problem = problem(ReadingProblemKind::NothingMeasured, (*why).to_owned(), line.number);
            self.nothing.get_or_insert(problem);
        }
        self.arguments_refused(text, line.number);
        self.traceback(text, line.number);
        if [": No module named ", ": can't open file "].iter().any(|words| text.contains(words)) && !self.in_traceback {
            self.failed(format!("the tool could not be started: `{}`", quoted(text)), line.number);
        }
        if ENDED.contains(&text) {
            self.failed(format!("the tool was ended before its result: `{text}`"), line.number);
        }
    }

    /// Reads `usage: ..` and the `PROGRAM: error: ..` behind it, as argparse prints them.
    fn arguments_refused(&mut self, text: &str, number: u64) {
        self.usage |= text.starts_with("usage: ");
        if self.usage
            && let Some((program, why)) = text.split_once(": error: ")
        {
            self.usage = false;
            self.failed(format!("`{program}` refuses its arguments: `{}`", quoted(why)), number);
        }
    }

    /// Reads a traceback to the exception that it ends with. The first one that was printed is the innermost cause.
    fn traceback(&mut self, text: &str, number: u64) {
        let text = without_prefixes(text);
        // Groups of exceptions are drawn as trees.
        let text = if self.in_traceback { text.trim_start_matches(['|', ' ']) } else { text };
        if text.contains("Traceback (most recent call last)") {
            self.in_traceback = true;
        } else if self.in_traceback && is_exception(text) {
            self.in_traceback = false;
            self.failed(format!("the tool stopped with `{}`", quoted(text)), number);
        }
    }

    fn failed(&mut self, message: String, number: u64) {
        self.failure.get_or_insert(problem(ReadingProblemKind::ToolFailed, message, number));
    }

    /// Returns why the tool stopped, if a line says so.
    pub(super) fn why_stopped(self) -> Option<ReadingProblem> {
        self.failure
    }

    /// Returns why there is no result, as far as the lines tell. Without a line that tells, `tool` or whichever tool began
    /// is said to lack its result.
    pub(super) fn why_nothing(self, tool: Option<ToolFamily>) -> Option<ReadingProblem> {
        let unfinished =
            self.begun.filter(|(begun, _)| tool.is_none_or(|tool| tool == *begun)).map(|(begun, number)| {
                let message =
                    format!("the output begins as that of `{begun}` does, but {} is missing", expectation(begun));
                problem(ReadingProblemKind::Broken, message, number)
            });
        self.failure.or(self.nothing).or(unfinished)
    }
}

/// Returns the line by which a tool's result is known, in words for people.
pub(super) fn expectation(tool: ToolFamily) -> &'static str {
    match tool {
        ToolFamily::VllmServe | ToolFamily::SglangServe => "the table `Serving Benchmark Result`",
        ToolFamily::VllmThroughput => "a line `Throughput: .. requests/s, .. tokens/s`",
        ToolFamily::VllmLatency => "a line `Avg latency: .. seconds`",
        ToolFamily::VllmStartup => "the table `STARTUP TIME BENCHMARK RESULTS`",
        ToolFamily::VllmPrefixCaching => "a line `cost time ..` after `------start generating------`",
        ToolFamily::VllmGenerate => "a finished bar `Processed prompts: 100%`",
        ToolFamily::SglangOneBatch => "lines `Prefill. latency: ..` to `Total. latency: ..` after `Benchmark ...`",
        ToolFamily::SglangOneBatchServer => "lines `batch size: ..` to the throughputs",
        ToolFamily::SglangOfflineThroughput => "the table `Offline Throughput Benchmark Result`",
        ToolFamily::Aiperf | ToolFamily::Guidellm | ToolFamily::InferencePerf | ToolFamily::InferenceBenchmarker => {
            "its result file in JSON"
        }
    }
}

/// Returns the number of requests that printed arguments ask for.
fn asked(arguments: &str) -> Option<u64> {
    let rest = arguments.split_once("num_prompts=")?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest.get(..end)?.parse().ok()
}

/// Returns whether a line ends a traceback: the name of an exception, alone or with what it says.
fn is_exception(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or(text);
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
    let kinds = ["Error", "Exception", "Interrupt", "Exit", "Timeout", "Failure", "Disconnected", "Iteration"];
    is_name && kinds.iter().any(|kind| last.ends_with(kind))
}

fn quoted(text: &str) -> String {
    text.trim().chars().take(QUOTED).collect()
}

fn problem(kind: ReadingProblemKind, message: String, number: u64) -> ReadingProblem {
    ReadingProblem { kind, message, line: Some(number) }
}
