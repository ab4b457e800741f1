//! Reads a table of labelled rows, from its heading to its closing rule.

use std::collections::BTreeMap;

use isobench_schema::reading::{MetricValue, ReadingProblem, ReadingProblemKind, ToolFamily};

use super::found::Found;
use super::labels::{self, PrintedBy, Printer};
use super::line::Line;
use super::prefix::Prefix;
use super::value::Value;
use crate::parse::binding::VersionRange;

/// How wide a row is: a label of 40 characters, a blank, a value of 10. Longer labels and values make wider rows.
const ROW_WIDTH: usize = 51;

/// The least length of a closing rule. It is 50 long, or less where a terminal wrapped it.
const RULE_WIDTH: usize = 8;

/// What a heading says that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Serving,
    Offline,
}

impl Heading {
    const ALL: [Self; 2] = [Self::Serving, Self::Offline];

    fn title(self) -> &'static str {
        match self {
            Self::Serving => " Serving Benchmark Result ",
            Self::Offline => " Offline Throughput Benchmark Result ",
        }
    }
}

/// What a tool's rows say of its versions.
#[derive(Debug, Clone, Copy)]
struct Evidence {
    printer: Printer,
    versions: VersionRange,
    /// How many rows no version of it prints.
    foreign: u32,
}

impl Evidence {
    fn new(printer: Printer) -> Self {
        Self { printer, versions: VersionRange::ALL, foreign: 0 }
    }

    fn take(&mut self, by: &PrintedBy) {
        match by.of(self.printer) {
            Some(versions) => self.versions = self.versions.and(versions),
            None => self.foreign += 1,
        }
    }
}

/// A row that was read.
#[derive(Debug, Clone)]
struct Row {
    value: MetricValue,
    line: u64,
    /// Whether nothing shows that the value is all that was printed: it touches the end of a line that is too short.
    is_bare: bool,
}

/// A table that was begun.
#[derive(Debug, Clone)]
pub(super) struct Table {
    heading: Heading,
    line: u64,
    prefix: Prefix,
    /// Where a terminal wrapped the lines, if it did within the rows.
    wrapped_at: Option<usize>,
    /// The beginning of a row that was wrapped.
    begun: String,
    rows: BTreeMap<String, Row>,
    vllm: Evidence,
    sglang: Evidence,
    offline: Evidence,
    in_cache_report: bool,
    has_padding: bool,
    /// The line of the first row of another table between its own, from which none can be told then.
    mixed_at: Option<u64>,
    problem: Option<ReadingProblem>,
    is_closed: bool,
}

impl Table {
    /// Returns the table that a line is the heading of.
    pub(super) fn begun_by(line: &Line<'_>) -> Option<Self> {
        if !line.text.contains('=') {
            return None;
        }
        let (heading, place) =
            Heading::ALL.iter().find_map(|heading| Some((*heading, line.text.find(heading.title())?)))?;
        let (before, behind) = line.text.split_at(place);
        let left = before.len() - before.trim_end_matches('=').len();
        let behind = behind.get(heading.title().len()..)?.trim_end();
        let right = behind.len() - behind.trim_start_matches('=').len();
        if left < 3 || right != behind.len() {
            return None;
        }
        let prefix = Prefix::new(before.trim_end_matches('='));
        // Both sides of the title are filled equally, the right one by one more if need be.
        let wrapped_at = (line.is_ended() && right < left).then(|| line.text.chars().count());
        Some(Self {
            heading,
            line: line.number,
            prefix,
            wrapped_at,
            begun: String::new(),
            rows: BTreeMap::new(),
            vllm: Evidence::new(Printer::VllmServe),
            sglang: Evidence::new(Printer::SglangServe),
            offline: Evidence::new(Printer::SglangOffline),
            in_cache_report: false,
            has_padding: false,
            mixed_at: None,
            problem: None,
            is_closed: false,
        })
    }

    /// Returns whether the closing rule was seen.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reads a line within the table.
    pub(super) fn feed(&mut self, line: &Line<'_>) {
        let text = self.prefix.strip(line.text);
        let line = Line { text, ..*line };
        if line.is_rule('=', RULE_WIDTH) {
            // The rest of a wrapped heading stands before the rows.
            self.is_closed = self.wrapped_at.is_none() || !self.rows.is_empty();
            return;
        }
        match self.wrapped_at {
            Some(width) => self.feed_wrapped(&line, width),
            None => self.row(&line),
        }
    }

    /// Puts rows together that a terminal wrapped. What was written between their halves makes them unreadable, never
    /// wrong: a row that was put together must have its full width.
    fn feed_wrapped(&mut self, line: &Line<'_>, width: usize) {
        let is_full = line.is_ended() && line.text.chars().count() == width;
        if is_full && self.begun.chars().count() < ROW_WIDTH {
            self.begun.push_str(line.text);
            return;
        }
        let whole = std::mem::take(&mut self.begun) + line.text;
        if whole.chars().count() >= ROW_WIDTH {
            self.row(&Line { text: &whole, ..*line });
        }
    }

    fn row(&mut self, line: &Line<'_>) {
        let text = line.text.trim();
        if let Some(title) = title_of_section(text) {
            self.in_cache_report = title == "Cache Hit Details";
            return;
        }
        let Some((label, value)) = split(text) else { return };
        let Some((metric, by)) = self.meaning(label, value) else { return };
        for evidence in [&mut self.vllm, &mut self.sglang, &mut self.offline] {
            evidence.take(&by);
        }
        let Some(metric) = metric else { return };
        if !line.is_ended() {
            self.broken(line, format!("the line of `{label}:` isn't ended, so that its value may be cut"));
            return;
        }
        let parsed = Value::parse(value);
        if metric == labels::OPTIONAL && !matches!(parsed, Some(Value::Number(_))) {
            return;
        }
        let Some(parsed) = parsed else {
            let value = value.chars().take(40).collect::<String>();
            let said =
                if value.is_empty() { "nothing".to_owned() } else { format!("`{value}`, which is not a number") };
            self.broken(line, format!("`{label}:` is followed by {said}"));
            return;
        };
        let has_padding = line.text.ends_with([' ', '\t']) || line.text.chars().count() >= ROW_WIDTH;
        self.has_padding |= has_padding;
        let (value, is_bare) = match parsed {
            Value::Number(number) => (MetricValue::Number(number), !has_padding),
            Value::Percent(number) => (MetricValue::Number(number), false),
            Value::NotSet | Value::NotANumber(_) => (MetricValue::NotANumber, !has_padding),
        };
        self.keep(label, metric, Row { value, line: line.number, is_bare });
    }

    /// Keeps a row. Two rows of one label with different values say that two tables run into each other: then the rows that
    /// stand there once may be of either.
    fn keep(&mut self, label: &str, metric: String, row: Row) {
        match self.rows.get(&metric) {
            Some(earlier) if earlier.value != row.value => {
                let message = format!("`{label}:` stands twice in one table, with different values");
                self.problem.get_or_insert(broken(message, row.line));
                self.mixed_at.get_or_insert(row.line);
            }
            Some(_) => {}
            None => {
                self.rows.insert(metric, row);
            }
        }
    }

    fn meaning(&self, label: &str, value: &str) -> Option<(Option<String>, PrintedBy)> {
        if self.in_cache_report
            && let Some(place) = ["Device", "Host", "Storage"].iter().find(|place| label.starts_with(**place))
        {
            let unit = if value.ends_with('%') { "pct" } else { "tokens" };
            let metric = format!("cached_{}_{unit}", place.to_ascii_lowercase());
            return Some((Some(metric), labels::meaning("Total cached tokens")?.by));
        }
        let meaning = labels::meaning(label)?;
        Some((meaning.metric.map(std::borrow::Cow::into_owned), meaning.by))
    }

    fn broken(&mut self, line: &Line<'_>, message: String) {
        self.problem.get_or_insert(broken(message, line.number));
    }

    /// Returns what the table says.
    pub(super) fn finish(mut self, asked: Option<u64>) -> Found {
        self.drop_bare_rows();
        if !self.is_closed {
            let message = format!("the table `{}` isn't closed by a line of `=`", self.heading.title().trim());
            self.problem = Some(broken(message, self.line));
        } else if self.rows.is_empty() {
            let message = format!("the table `{}` has no row that is known", self.heading.title().trim());
            self.problem.get_or_insert(broken(message, self.line));
        } else if !self.rows.contains_key("completed") {
            let message = "the row `Successful requests:` is missing, so that nothing shows what was measured";
            self.problem.get_or_insert(broken(message.to_owned(), self.line));
        }
        let evidence = self.evidence();
        let (format, tool) = match evidence.printer {
            Printer::VllmServe => ("vllm-serve-table", ToolFamily::VllmServe),
            Printer::SglangServe => ("sglang-serve-table", ToolFamily::SglangServe),
            Printer::SglangOffline => ("sglang-offline-throughput-table", ToolFamily::SglangOfflineThroughput),
        };
        let mut versions = evidence.versions;
        if self.is_closed {
            let missing = labels::MISSING.iter().filter(|missing| missing.printer == evidence.printer);
            for missing in missing.filter(|missing| self.rows.contains_key(missing.beside)) {
                let narrowed = versions.and(VersionRange::to(missing.last));
                if !self.rows.contains_key(missing.without) && !narrowed.is_empty() {
                    versions = narrowed;
                }
            }
        }
        if self.mixed_at.is_some() {
            self.rows.clear();
        }
        Found {
            format,
            tool,
            versions,
            printed_by: evidence.versions,
            lines: self.rows.iter().map(|(metric, row)| (metric.clone(), row.line)).collect(),
            metrics: self.rows.into_iter().map(|(metric, row)| (metric, row.value)).collect(),
            problem: self.problem,
            asked,
            line: self.line,
            is_whole: self.is_closed,
        }
    }

    /// Drops the rows whose value may have been cut by a terminal or a writer in between: they are short, and others show
    /// that rows aren't.
    fn drop_bare_rows(&mut self) {
        if !self.has_padding {
            return;
        }
        let cut = self.rows.iter().filter(|(_, row)| row.is_bare).min_by_key(|(_, row)| row.line);
        if let Some((metric, row)) = cut {
            let message = format!("the row of `{metric}` is shorter than the others, so that its value may be cut");
            self.problem.get_or_insert(broken(message, row.line));
        }
        self.rows.retain(|_, row| !row.is_bare);
    }

    /// Returns what the rows say of the tool that most likely printed them.
    fn evidence(&self) -> Evidence {
        match self.heading {
            Heading::Offline => self.offline,
            Heading::Serving if self.sglang.foreign < self.vllm.foreign => self.sglang,
            Heading::Serving => self.vllm,
        }
    }
}

fn broken(message: String, line: u64) -> ReadingProblem {
    ReadingProblem { kind: ReadingProblemKind::Broken, message, line: Some(line) }
}

/// Returns the title of a section, `-----TITLE-----`.
fn title_of_section(text: &str) -> Option<&str> {
    let title = text.trim_matches('-');
    (text.starts_with("---") && text.ends_with("---") && !title.is_empty()).then_some(title)
}

/// Returns a row's label without its colon, and its value without the blanks before it.
fn split(text: &str) -> Option<(&str, &str)> {
    let colon = text.match_indices(':').map(|(place, _)| place).find(|place| {
        let behind = text.get(place + 1..).unwrap_or_default();
        behind.is_empty() || behind.starts_with(' ')
    })?;
    Some((text.get(..colon)?, text.get(colon + 1..)?.trim()))
}
