//! Reads results that are lines of their own, without a table around them.

use std::collections::BTreeMap;

use isobench_schema::reading::{MetricValue, ReadingProblem, ReadingProblemKind, ToolFamily};

use super::found::{Found, Results};
use super::line::Line;
use super::line_table::{GROUPS, Group, LineOf, Role};
use super::template::{self, Filled};
use super::value::Value;
use crate::parse::binding::VersionRange;
use crate::text::End;

/// The steps that SGLang's one batch warms up with, which it doesn't announce before v0.2.12. Those versions print the
/// average of the steps, later ones the median.
const UNANNOUNCED_STEPS: u32 = 4;

/// A result that was begun.
#[derive(Debug, Clone)]
struct Begun {
    group: &'static Group,
    line: u64,
    versions: VersionRange,
    metrics: BTreeMap<String, MetricValue>,
    lines: BTreeMap<String, u64>,
    steps: u32,
    /// The first metric that stands there twice with different values, and the line of the second.
    twice: Option<(String, u64)>,
    is_cut: bool,
    asked: Option<u64>,
}

/// The results of lines that are being read: one of each group at most.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    begun: Vec<Begun>,
    /// The tools that said that what follows is only their warm-up.
    warming_up: Vec<ToolFamily>,
    /// The tools that said that what follows is measured.
    measuring: Vec<ToolFamily>,
}

impl Lines {
    /// Reads a line.
    pub(super) fn feed(&mut self, line: &Line<'_>, asked: Option<u64>, results: &mut Results) {
        let text = line.text.trim();
        let mut is_taken = false;
        for begun in &mut self.begun {
            if let Some((of, filled)) = best(begun.group, text, line)
                && matches!(of.role, Role::Belongs | Role::Step)
            {
                begun.take(of, &filled, line.number);
                is_taken = true;
            }
        }
        if is_taken {
            return;
        }
        for group in GROUPS {
            if let Some((of, filled)) = best(group, text, line) {
                match of.role {
                    Role::WarmUp => self.warm_up(group, results),
                    Role::Measured => self.measure(group, results),
                    Role::Begins => {
                        self.end(group, results);
                        if !self.warming_up.contains(&group.tool) {
                            let mut begun = Begun::new(group, line.number, asked);
                            begun.take(of, &filled, line.number);
                            self.begun.push(begun);
                        }
                    }
                    Role::Step | Role::Belongs => {}
                }
            }
        }
    }

    /// Ends what was begun.
    pub(super) fn finish(mut self, results: &mut Results) {
        for group in GROUPS {
            self.end(group, results);
        }
    }

    fn warm_up(&mut self, group: &'static Group, results: &mut Results) {
        self.end(group, results);
        self.measuring.retain(|tool| *tool != group.tool);
        if !self.warming_up.contains(&group.tool) {
            self.warming_up.push(group.tool);
        }
    }

    /// Notes that what follows is measured; what came before it was a warm-up, even if the log begins within that.
    fn measure(&mut self, group: &'static Group, results: &mut Results) {
        self.begun.retain(|begun| begun.group.tool != group.tool);
        self.warming_up.retain(|tool| *tool != group.tool);
        if !self.measuring.contains(&group.tool) {
            self.measuring.push(group.tool);
            results.forget(group.tool);
        }
    }

    fn end(&mut self, group: &Group, results: &mut Results) {
        if let Some(place) = self.begun.iter().position(|begun| begun.group.format == group.format) {
            let begun = self.begun.swap_remove(place);
            let is_announced = self.measuring.contains(&group.tool);
            if is_announced || !begun.is_unannounced_warm_up() {
                results.push(begun.finish(is_announced));
            }
        }
    }
}

/// Returns the line of a group that a text is. Of a text that is cut, that is the one of which most is there.
fn best<'a>(group: &'static Group, text: &'a str, line: &Line<'_>) -> Option<(&'static LineOf, Filled<'a>)> {
    let filled = group.lines.iter().filter_map(|of| Some((of, template::fill(&of.template, text, line.is_ended())?)));
    // Only the end of the input cuts a line. What ends with a carriage return and isn't whole is something else.
    let filled = filled.filter(|(_, filled)| filled.is_whole || line.end == End::Input);
    // The first of those that are equal, since special lines come before general ones.
    filled.reduce(|one, other| {
        let rank = |filled: &Filled<'_>| (filled.is_whole, filled.values.len());
        if rank(&other.1) > rank(&one.1) { other } else { one }
    })
}

impl Begun {
    fn new(group: &'static Group, line: u64, asked: Option<u64>) -> Self {
        let (metrics, lines) = (BTreeMap::new(), BTreeMap::new());
        Self { group, line, versions: group.versions, metrics, lines, steps: 0, twice: None, is_cut: false, asked }
    }

    fn take(&mut self, of: &LineOf, filled: &Filled<'_>, line: u64) {
        self.is_cut |= !filled.is_whole;
        if filled.is_whole {
            self.versions = self.versions.and(of.versions);
        }
        if of.role == Role::Step {
            self.steps += 1;
            return;
        }
        // A percentile's rank is the first value of its line.
        let rank = filled.values.iter().find(|(name, _)| *name == "rank").map(|(_, rank)| *rank);
        for (name, value) in filled.values.iter().filter(|(name, _)| *name != "rank") {
            let name = match rank {
                Some(Value::Number(rank)) => name.replace("RANK", &rank.to_string()),
                Some(Value::Percent(_) | Value::NotSet | Value::NotANumber(_)) => continue,
                None => (*name).to_owned(),
            };
            let value = match value {
                Value::Number(number) | Value::Percent(number) => MetricValue::Number(*number),
                Value::NotSet | Value::NotANumber(_) => MetricValue::NotANumber,
            };
            match self.metrics.get(&name) {
                Some(earlier) if *earlier != value => {
                    self.twice.get_or_insert((name, line));
                }
                Some(_) => {}
                None => {
                    self.lines.insert(name.clone(), line);
                    self.metrics.insert(name, value);
                }
            }
        }
    }

    fn has(&self, metric: &str) -> bool {
        self.metrics.contains_key(metric)
    }

    /// Returns whether it is a warm-up of SGLang's one batch that no line announced.
    fn is_unannounced_warm_up(&self) -> bool {
        self.has("decode_avg_latency_s") && self.steps == UNANNOUNCED_STEPS
    }

    /// Returns whether a line must have announced it, for it to be told from a warm-up.
    fn must_be_announced(&self) -> bool {
        self.group.warms_up_alike && !self.has("decode_avg_latency_s")
    }

    fn finish(mut self, is_announced: bool) -> Found {
        let mut expected = None;
        if !self.group.whole_with.iter().any(|names| names.iter().all(|name| self.has(name))) {
            expected = Some(self.missing());
        } else if self.is_cut {
            expected = Some("the end of its last line".to_owned());
        } else if self.must_be_announced() && !is_announced {
            expected = Some("a line `Benchmark ...` before it".to_owned());
        }
        if expected.is_some() && self.group.warms_up_alike && !is_announced {
            // It may be of the warm-up as well.
            self.metrics.clear();
        }
        let mut problem = expected.map(|expected| ReadingProblem {
            kind: ReadingProblemKind::Broken,
            message: format!("the result of `{}` isn't whole: {expected} is missing", self.group.tool),
            line: Some(self.line),
        });
        if let Some((metric, line)) = self.twice.take() {
            // Two results run into each other: what stands there once may be of either.
            self.metrics.clear();
            problem = Some(ReadingProblem {
                kind: ReadingProblemKind::Broken,
                message: format!(
                    "`{metric}` stands twice in one result of `{}`, with different values",
                    self.group.tool
                ),
                line: Some(line),
            });
        }
        let mut versions = self.versions;
        for (metric, last) in self.group.missing {
            let narrowed = versions.and(VersionRange::to(last));
            if !self.has(metric) && !narrowed.is_empty() {
                versions = narrowed;
                break;
            }
        }
        Found {
            format: self.group.format,
            tool: self.group.tool,
            versions,
            printed_by: self.versions,
            is_whole: problem.is_none(),
            metrics: self.metrics,
            lines: self.lines,
            problem,
            asked: self.asked,
            line: self.line,
        }
    }

    /// Returns the first line that it lacks.
    fn missing(&self) -> String {
        let wanted = self.group.whole_with.first().into_iter().flat_map(|names| names.iter());
        let wanted = wanted.copied().find(|name| !self.has(name)).unwrap_or_default();
        let of = self.group.lines.iter().find(|of| of.template.metrics().any(|metric| metric == wanted));
        let beginning = of.map(|of| of.template.beginning()).unwrap_or_default();
        format!("a whole line `{}..`", beginning.trim_end())
    }
}
