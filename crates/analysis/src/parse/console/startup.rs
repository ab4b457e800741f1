//! Reads the result of `vllm bench startup`: two sections whose lines have the same labels.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::reading::{MetricValue, ReadingProblem, ReadingProblemKind, ToolFamily};

use super::found::Found;
use super::line::Line;
use super::template::{self, Template};
use super::value::Value;
use crate::parse::binding::VersionRange;

/// The line that says that the result follows, between two rules.
pub(super) const TITLE: &str = "STARTUP TIME BENCHMARK RESULTS";

/// The length of the rules, or less where a terminal is narrower.
const RULE_WIDTH: usize = 30;

/// The averages: label, what is measured, and the versions that print it.
const AVERAGES: &[(&str, &str, VersionRange)] = &[
    ("Avg total startup time: {value} seconds", "startup", VersionRange::between("v0.13.0", "v0.19.1")),
    ("Avg startup time: {value} seconds", "startup", VersionRange::from("v0.20.0")),
    ("Avg compilation time:  {value} seconds", "compilation", VersionRange::from("v0.13.0")),
    ("Avg encoder compilation time: {value} seconds", "encoder_compilation", VersionRange::from("v0.20.0")),
];

/// The headings of the percentiles, and what is measured.
const PERCENTILES: &[(&str, &str)] = &[
    ("Startup time percentiles:", "startup"),
    ("Compilation time percentiles:", "compilation"),
    ("Encoder compilation time percentiles:", "encoder_compilation"),
];

/// A result that was begun.
#[derive(Debug, Clone)]
pub(super) struct Startup {
    line: u64,
    /// `cold` or `warm`.
    phase: Option<&'static str>,
    percentiles_of: Option<&'static str>,
    metrics: BTreeMap<String, MetricValue>,
    lines: BTreeMap<String, u64>,
    doubtful: BTreeSet<String>,
    versions: VersionRange,
    is_closed: bool,
}

impl Startup {
    /// Returns the result that a line begins.
    pub(super) fn begun_by(line: &Line<'_>) -> Option<Self> {
        (line.text.trim() == TITLE).then(|| Self {
            line: line.number,
            phase: None,
            percentiles_of: None,
            metrics: BTreeMap::new(),
            lines: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            versions: VersionRange::from("v0.13.0"),
            is_closed: false,
        })
    }

    /// Returns whether the closing rule was seen.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reads a line of the result.
    pub(super) fn feed(&mut self, line: &Line<'_>) {
        if line.is_rule('=', RULE_WIDTH) {
            // The first rule stands under the title.
            self.is_closed = self.phase.is_some();
            return;
        }
        let text = line.text.trim();
        match text {
            "COLD STARTUP:" => return self.section("cold"),
            "WARM STARTUP:" => return self.section("warm"),
            _ => {}
        }
        if let Some((_, measured)) = PERCENTILES.iter().find(|(heading, _)| *heading == text) {
            self.percentiles_of = Some(measured);
            return;
        }
        let Some(phase) = self.phase else { return };
        if let Some((rank, rest)) = text.split_once("%: ")
            && let Some(measured) = self.percentiles_of
            && let (Some(_), Some(value)) = (super::value::number(rank), seconds("{value} seconds", rest, line))
        {
            self.keep(format!("p{rank}_{phase}_{measured}_s"), value, line.number);
            return;
        }
        if !text.is_empty() {
            // What isn't known may be the next heading with something before it.
            self.percentiles_of = None;
        }
        for (average, measured, versions) in AVERAGES {
            if let Some(value) = seconds(average, text, line) {
                self.versions = self.versions.and(*versions);
                self.keep(format!("{phase}_{measured}_s"), value, line.number);
            }
        }
    }

    fn section(&mut self, phase: &'static str) {
        self.phase = Some(phase);
        self.percentiles_of = None;
    }

    /// Keeps a value. A second one of the same name says that the heading between them wasn't read.
    fn keep(&mut self, metric: String, value: MetricValue, line: u64) {
        if self.metrics.get(&metric).is_some_and(|earlier| *earlier != value) {
            self.doubtful.insert(metric.clone());
        }
        self.lines.insert(metric.clone(), line);
        self.metrics.insert(metric, value);
    }

    /// Returns what the result says.
    pub(super) fn finish(mut self) -> Found {
        self.metrics.retain(|metric, _| !self.doubtful.contains(metric));
        let is_whole = self.is_closed && self.metrics.contains_key("cold_startup_s");
        let problem = (!is_whole).then(|| ReadingProblem {
            kind: ReadingProblemKind::Broken,
            message: format!("`{TITLE}` isn't followed by `COLD STARTUP:`, its averages and a closing line of `=`"),
            line: Some(self.line),
        });
        Found {
            format: "vllm-startup-table",
            tool: ToolFamily::VllmStartup,
            versions: self.versions,
            printed_by: self.versions,
            metrics: self.metrics,
            lines: self.lines,
            problem,
            asked: None,
            line: self.line,
            is_whole: self.is_closed,
        }
    }
}

/// Returns the value of a line of one value in seconds.
fn seconds(template: &'static str, text: &str, line: &Line<'_>) -> Option<MetricValue> {
    let filled = template::fill(&Template::new(template), text, line.is_ended())?;
    match filled.values.first()? {
        (_, Value::Number(number)) => Some(MetricValue::Number(*number)),
        (_, Value::NotANumber(_)) => Some(MetricValue::NotANumber),
        (_, Value::Percent(_) | Value::NotSet) => None,
    }
}
