//! Reads result files in JSON and JSON Lines, in constant memory, whatever the length of the lists in them.
//!
//! The tables of keys are in [`vllm`], [`sglang`] and [`clients`]. A file is told by keys that only one tool writes.
//!
//! *Several results in one file.* Runs append to one file, people put results into one list, and GuideLLM and inference-benchmarker write all rates of one
//! run into one. The last result counts; [`Reading::notes`] says how many there were and in which settings they differ.
//!
//! *Cut files.* A value counts only in an object that is closed. The last result is the one that is wanted: if it is cut,
//! or anything but whole results follows, the file is broken and no earlier one stands in for it.
//!
//! *What is no number.* `NaN`, `Infinity`, `null` and the texts `inf` and `nan` are no numbers. Where a tool writes them
//! for what wasn't asked for (a rate without limit, goodput without goals, speculation that is off), the metric is left
//! out; elsewhere they are a problem, as are counts and rates below zero, keys that are there twice with different values,
//! and rates that are not their total divided by the duration.

mod checks;
mod clients;
mod layout;
mod lexer;
mod metrics;
mod record;
mod sglang;
mod vllm;

use std::collections::BTreeSet;
use std::io;

use isobench_schema::reading::{Reading, ReadingProblem, ReadingProblemKind};

use super::binding::{Binding, ToolFamily};
use super::catalogue::Format;
use layout::Layout;
use lexer::{Lexer, Stop};
use record::{Document, Next};

/// The layouts that are known; the first that a document's keys tell is taken.
const LAYOUTS: &[Layout] = &[
    vllm::SERVE,
    vllm::THROUGHPUT,
    vllm::LATENCY,
    vllm::STARTUP,
    vllm::PYTORCH,
    sglang::SERVE,
    sglang::ONE_BATCH,
    sglang::ONE_BATCH_SERVER,
    sglang::OFFLINE,
    clients::AIPERF,
    clients::AIPERF_RECORDS,
    clients::GENAI_PERF,
    clients::GUIDELLM,
    clients::GUIDELLM_RUN_STATS,
    clients::INFERENCE_PERF,
    clients::INFERENCE_BENCHMARKER,
];

/// The formats that are read here.
pub(super) const FORMATS: &[Format] = &[
    vllm::SERVE.format,
    vllm::THROUGHPUT.format,
    vllm::LATENCY.format,
    vllm::STARTUP.format,
    vllm::PYTORCH.format,
    sglang::SERVE.format,
    sglang::ONE_BATCH.format,
    sglang::ONE_BATCH_SERVER.format,
    sglang::OFFLINE.format,
    clients::AIPERF.format,
    clients::AIPERF_RECORDS.format,
    clients::GENAI_PERF.format,
    clients::GUIDELLM.format,
    clients::GUIDELLM_RUN_STATS.format,
    clients::INFERENCE_PERF.format,
    clients::INFERENCE_BENCHMARKER.format,
];

/// The settings by which several results in one file are told apart.
const SETTINGS: &[&str] = &[
    "backend",
    "model_id",
    "dataset_name",
    "num_prompts",
    "request_rate",
    "max_concurrency",
    "random_input_len",
    "random_output_len",
    "batch_size",
    "input_len",
    "output_len",
    "config/rate",
    "config/max_vus",
    "config/strategy/type_",
    "config/strategy/rate",
    "config/strategy/streams",
    "args/strategy/type_",
    "args/strategy/rate",
    "args/strategy/streams",
];

/// What a file is that begins as JSON does.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A result file, whole or broken.
    ResultFile(Reading),
    /// Something else, for all that was seen of it; the reading says why it is no result file.
    Other(Reading),
}

/// Reads a file whose first byte that is no blank begins a JSON value.
///
/// # Errors
///
/// Only those of `input`. What it holds never is an error.
pub(super) fn read(input: &mut dyn io::Read, binding: &Binding) -> io::Result<Outcome> {
    let mut lexer = Lexer::new(input);
    let mut results = Results::default();
    loop {
        match record::next(&mut lexer, SETTINGS) {
            Next::Document(document) => results.take(document),
            Next::End => return Ok(results.finish(binding)),
            Next::Stopped(Stop::Input(error), _) => return Err(error),
            Next::Stopped(stop, document) => return Ok(results.stopped(&stop, &document, lexer.line())),
        }
    }
}

/// Reads one line of a log that begins with `{`. Returns `None` unless it is the whole result of a tool that is known.
pub(super) fn read_line(mut line: &[u8], binding: &Binding) -> Option<Reading> {
    let mut lexer = Lexer::new(&mut line);
    let Next::Document(document) = record::next(&mut lexer, SETTINGS) else { return None };
    let Next::End = record::next(&mut lexer, SETTINGS) else { return None };
    let mut results = Results::default();
    results.take(document);
    match results.finish(binding) {
        Outcome::ResultFile(reading) => Some(reading),
        Outcome::Other(_) => None,
    }
}

/// The results of a file.
#[derive(Default)]
struct Results {
    /// The last document, and the layout that its keys tell.
    last: Option<(Document, Option<&'static Layout>)>,
    /// The first document that is a result.
    first: Option<Document>,
    /// The layout of the last result.
    known: Option<&'static Layout>,
    /// How many results there were.
    count: u64,
    /// The settings in which they differ.
    differing: BTreeSet<&'static str>,
}

impl Results {
    fn take(&mut self, document: Document) {
        let layout = recognise(&document);
        if let Some(layout) = layout {
            self.known = Some(layout);
            self.count += match layout.place {
                layout::Place::Root if document.only_records().is_none() => 1,
                layout::Place::Root | layout::Place::LastRecord => document.records,
            };
            self.differing.extend(&document.differing);
            match &self.first {
                Some(first) => self
                    .differing
                    .extend(SETTINGS.iter().filter(|path| first.root.scalar(path) != document.root.scalar(path))),
                None => self.first = Some(document.clone()),
            }
        }
        self.last = Some((document, layout));
    }

    fn finish(self, binding: &Binding) -> Outcome {
        match (&self.last, self.known) {
            (Some((document, Some(layout))), _) => Outcome::ResultFile(self.measured(layout, document, binding)),
            (Some((document, None)), Some(known)) => Outcome::ResultFile(refused(
                Some(known),
                ReadingProblemKind::Broken,
                "the last value in the file is no result of a tool that is known".to_owned(),
                document.root.line,
            )),
            (Some((document, None)), None) => {
                let line = document.root.line;
                Outcome::Other(refused(None, ReadingProblemKind::NotAResult, what_it_is(document), line))
            }
            (None, _) => {
                Outcome::Other(refused(None, ReadingProblemKind::NotAResult, "the file is empty".to_owned(), 1))
            }
        }
    }

    fn measured(&self, layout: &'static Layout, document: &Document, binding: &Binding) -> Reading {
        let line = document.root.line;
        let tool = tool(layout, document);
        if binding.tool.is_some_and(|bound| bound != tool) {
            let message = format!("it is a result of {tool}, in the format `{}`", layout.format.id);
            return refused(None, ReadingProblemKind::NotAResult, message, line);
        }
        let versions = layout.versions(document);
        let described = Reading {
            format: Some(layout.format.id.to_owned()),
            tool: Some(tool.to_string()),
            versions: Some(versions.to_string()),
            notes: self.notes(),
            ..Reading::default()
        };
        if let Some(version) = binding.version.as_ref().filter(|version| !versions.contains(version)) {
            let message = format!("its keys are those of {versions}, which {version} doesn't write");
            let problem = Some(ReadingProblem { kind: ReadingProblemKind::NotAResult, message, line: Some(line) });
            return Reading { problem, ..described };
        }
        let Some(record) = layout.record(document) else { return described };
        let mut measured = metrics::measure(layout, record);
        let problem = checks::problem(layout, record, &mut measured, binding);
        let notes = described.notes.iter().cloned().chain(measured.notes).collect();
        Reading { metrics: measured.metrics, notes, problem, ..described }
    }

    fn notes(&self) -> Vec<String> {
        if self.count < 2 {
            return Vec::new();
        }
        let mut note = format!("{} results are in the file, of which the last counts", self.count);
        if !self.differing.is_empty() {
            let settings: Vec<String> = self.differing.iter().map(|setting| format!("`{setting}`")).collect();
            note.push_str("; they differ in ");
            note.push_str(&settings.join(", "));
        }
        vec![note]
    }

    /// Returns what a file says that goes on with something else than a whole document.
    ///
    /// If results were followed by text, as in a log, they may not be the last. If a record was begun, they surely aren't.
    fn stopped(self, stop: &Stop, document: &Document, line: u64) -> Outcome {
        let (message, is_cut) = match stop {
            Stop::Input(error) => (error.to_string(), false),
            Stop::Cut => {
                (format!("the file ends within the value that begins in line {}", document.root.line.max(1)), true)
            }
            Stop::Wrong(message) => (message.clone(), false),
        };
        let is_begun = is_cut || document.root.under("").next().is_some() || document.records > 0;
        match recognise(document).or(self.known) {
            Some(layout) => {
                let reading = refused(Some(layout), ReadingProblemKind::Broken, message, line);
                if is_begun { Outcome::ResultFile(reading) } else { Outcome::Other(reading) }
            }
            None => Outcome::Other(refused(None, ReadingProblemKind::NotAResult, message, line)),
        }
    }
}

/// Returns the layout that the keys of a document tell.
fn recognise(document: &Document) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.is_told_by(document))
}

/// Returns the tool that wrote a document.
fn tool(layout: &Layout, document: &Document) -> ToolFamily {
    let has = |path: &str| document.root.get(path).is_some();
    if layout.format.id != vllm::PYTORCH.format.id {
        layout.format.tool
    } else if has("metric/requests_per_second") {
        ToolFamily::VllmThroughput
    } else if has("metric/latency") {
        ToolFamily::VllmLatency
    } else if document.root.under("metric/avg_").next().is_some() {
        ToolFamily::VllmStartup
    } else {
        ToolFamily::VllmServe
    }
}

fn refused(layout: Option<&Layout>, kind: ReadingProblemKind, message: String, line: u64) -> Reading {
    Reading {
        format: layout.map(|layout| layout.format.id.to_owned()),
        tool: layout.map(|layout| layout.format.tool.to_string()),
        versions: layout.map(|layout| layout.format.versions.to_string()),
        problem: Some(ReadingProblem { kind, message, line: Some(line) }),
        ..Reading::default()
    }
}

/// Says what a document is that no layout fits.
fn what_it_is(document: &Document) -> String {
    let last = document.last.as_ref();
    if last.is_some_and(|last| last.get("benchmarks").is_some() && last.get("args").is_some()) {
        return "GuideLLM before v0.2.0 wrote its requests without a summary of them".to_owned();
    }
    let keys: Vec<&str> = document.root.under("").map(|(path, _)| path).filter(|path| !path.contains('/')).collect();
    let shown: Vec<String> = keys.iter().take(5).map(|key| format!("`{key}`")).collect();
    match (shown.len(), keys.len()) {
        (0, _) => "it has no keys of a tool that is known".to_owned(),
        (shown_count, count) if shown_count < count => {
            format!(
                "its keys are those of no tool that is known: {} and {} more",
                shown.join(", "),
                count - shown_count
            )
        }
        _ => format!("its keys are those of no tool that is known: {}", shown.join(", ")),
    }
}
