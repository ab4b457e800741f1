//! Gives each line of a console to those who read it, and joins what they found.

use isobench_schema::reading::{Reading, ReadingProblem, ReadingProblemKind};

use super::engine_log::EngineLog;
use super::estimate;
use super::filter::{self, Kind};
use super::found::{Chosen, Found, Results};
use super::line::Line;
use super::lines::Lines;
use super::notes::{self, Notes};
use super::prefix_caching::PrefixCaching;
use super::startup::Startup;
use super::table::Table;
use crate::parse::binding::Binding;
use crate::parse::checks::Values;
use crate::parse::json;
use crate::text::{End, Segment, clean};

/// A result between a heading and a closing rule.
#[derive(Debug, Clone)]
enum Block {
    Table(Box<Table>),
    Startup(Box<Startup>),
}

/// A reader of lines.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    binding: Binding,
    block: Option<Block>,
    lines: Lines,
    prefix_caching: PrefixCaching,
    results: Results,
    estimate: Option<Found>,
    from_json: Option<Reading>,
    engine_log: EngineLog,
    notes: Notes,
}

impl Reader {
    /// Returns a reader for the output of a run of which so much is known.
    pub(super) fn new(binding: &Binding) -> Self {
        Self {
            binding: binding.clone(),
            block: None,
            lines: Lines::default(),
            prefix_caching: PrefixCaching::default(),
            results: Results::default(),
            estimate: None,
            from_json: None,
            engine_log: EngineLog::default(),
            notes: Notes::default(),
        }
    }

    /// Reads a segment.
    pub(super) fn segment(&mut self, segment: &Segment<'_>) {
        if segment.cut {
            // No line that is read is that long.
            return;
        }
        let kind = filter::kind(segment.bytes);
        match kind {
            Kind::Noise if self.block.is_none() && !self.notes.is_waiting() => {}
            Kind::Engine if self.block.is_none() && !self.notes.is_waiting() => {
                self.engine_log.feed(segment.bytes, segment.line, segment.end == End::Line);
            }
            Kind::Noise | Kind::Engine | Kind::Any => {
                let text = clean(segment.bytes);
                self.line(&Line { number: segment.line, text: &text, end: segment.end });
                if filter::may_be_engine(segment.bytes) {
                    self.engine_log.feed(text.as_bytes(), segment.line, segment.end == End::Line);
                }
            }
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        let mut line = *line;
        if filter::may_be_bar(line.text.as_bytes()) {
            self.estimate = estimate::read(&line).or(self.estimate.take());
            line = line.without_bars();
        }
        if line.text.is_empty() {
            return;
        }
        if let Some(begun) = begun_by(&line) {
            self.end_block();
            self.block = Some(begun);
            return;
        }
        match &mut self.block {
            Some(Block::Table(table)) => {
                table.feed(&line);
                if table.is_closed() {
                    self.end_block();
                }
            }
            Some(Block::Startup(startup)) => {
                startup.feed(&line);
                if startup.is_closed() {
                    self.end_block();
                }
            }
            None => {
                self.lines.feed(&line, self.notes.asked, &mut self.results);
                self.prefix_caching.feed(&line, &mut self.results);
                self.notes.feed(&line);
                self.json(&line);
            }
        }
    }

    fn end_block(&mut self) {
        let asked = self.notes.asked;
        match self.block.take() {
            Some(Block::Table(table)) => self.results.push(table.finish(asked)),
            Some(Block::Startup(startup)) => self.results.push(startup.finish()),
            None => {}
        }
    }

    fn json(&mut self, line: &Line<'_>) {
        let text = line.text.trim();
        if text.starts_with("{\"")
            && text.ends_with('}')
            && let Some(mut reading) = json::read_line(text.as_bytes(), &self.binding)
        {
            if let Some(problem) = &mut reading.problem {
                problem.line = Some(line.number);
            }
            self.from_json = Some(reading);
        }
    }

    /// Returns what was read.
    pub(super) fn finish(mut self) -> Reading {
        self.end_block();
        self.lines.finish(&mut self.results);
        self.prefix_caching.finish(&mut self.results);
        let tool = self.binding.tool;
        let estimate = self.estimate.filter(|found| tool.is_none_or(|tool| tool == found.tool));
        let chosen = self.results.choose(tool);
        let engine_line = self.engine_log.first_line();
        let mut reading = match (chosen, self.from_json, estimate) {
            // A result that is cut and says nothing says less than why the tool stopped.
            (Some(chosen), None, _) if chosen.found.metrics.is_empty() => {
                let mut reading = reading_of(chosen, &self.binding);
                reading.problem = self.notes.why_stopped().or(reading.problem);
                reading
            }
            (Some(chosen), _, _) => reading_of(chosen, &self.binding),
            (None, Some(reading), _) => reading,
            (None, None, Some(found)) => {
                let mut reading = reading_of(Chosen { found, also: Vec::new() }, &self.binding);
                reading.problem = reading.problem.or(self.notes.why_stopped());
                reading
            }
            (None, None, None) => Reading {
                problem: Some(self.notes.why_nothing(tool).unwrap_or_else(|| nothing(&self.binding, engine_line))),
                ..Reading::default()
            },
        };
        reading.engine_log = self.engine_log.finish();
        reading
    }
}

fn begun_by(line: &Line<'_>) -> Option<Block> {
    Table::begun_by(line)
        .map(|table| Block::Table(Box::new(table)))
        .or_else(|| Startup::begun_by(line).map(|startup| Block::Startup(Box::new(startup))))
}

/// Returns the reading of a result.
fn reading_of(chosen: Chosen, binding: &Binding) -> Reading {
    let found = chosen.found;
    let asked = binding.asked.or(found.asked);
    let mut reading = Reading {
        format: Some(found.format.to_owned()),
        tool: Some(found.tool.to_string()),
        versions: Some(found.versions.to_string()),
        also: chosen.also.iter().map(ToString::to_string).collect(),
        ..Reading::default()
    };
    if let Some(version) = binding.version.as_ref().filter(|version| !found.printed_by.contains(version)) {
        let message = format!(
            "this is what `{}` {} prints, not {version}: the file is of another version or another tool",
            found.tool, found.printed_by
        );
        reading.problem =
            Some(ReadingProblem { kind: ReadingProblemKind::NotAResult, message, line: Some(found.line) });
        return reading;
    }
    let checked = Values { metrics: &found.metrics, asked, lines: &found.lines }.problem();
    reading.problem = found.problem.or(checked);
    reading.metrics = found.metrics;
    reading
}

/// Returns why there is no result where no line tells.
fn nothing(binding: &Binding, engine_line: Option<u64>) -> ReadingProblem {
    let expected = match binding.tool {
        Some(tool) => format!("{} was expected, which `{tool}` prints", notes::expectation(tool)),
        None => "no line of it is one of a result that is known".to_owned(),
    };
    match engine_line {
        Some(line) => ReadingProblem {
            kind: ReadingProblemKind::EngineLogOnly,
            message: format!("only the engine's own log says how fast it is, which is no result; {expected}"),
            line: Some(line),
        },
        None => ReadingProblem { kind: ReadingProblemKind::NotAResult, message: expected, line: None },
    }
}
