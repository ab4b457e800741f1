//! Reads what `benchmark_prefix_caching.py` prints: how long it took, for the warm-up (until v0.6.3) and then for what is
//! measured.

use std::collections::BTreeMap;

use isobench_schema::reading::{MetricValue, ReadingProblem, ReadingProblemKind, ToolFamily};

use super::found::{Found, Results};
use super::line::Line;
use super::value;
use crate::parse::binding::VersionRange;

const WARM_UP: &str = "------warm up------";
const MEASURED: &str = "------start generating------";
const COST: &str = "cost time ";

/// The metric: the times in the order of the passes, of which the last one counts.
const METRIC: &str = "cost_time_s";

/// The result that is being read, if one was begun.
#[derive(Debug, Clone, Default)]
pub(super) struct PrefixCaching {
    begun: Option<Begun>,
}

#[derive(Debug, Clone)]
struct Begun {
    line: u64,
    warm_up: Option<f64>,
    has_warm_up: bool,
    is_measuring: bool,
}

impl PrefixCaching {
    /// Reads a line.
    pub(super) fn feed(&mut self, line: &Line<'_>, results: &mut Results) {
        let text = line.text.trim();
        match (&mut self.begun, text) {
            (_, WARM_UP) => {
                self.cut(results);
                self.begun = Some(Begun { line: line.number, warm_up: None, has_warm_up: true, is_measuring: false });
            }
            (Some(begun), MEASURED) if !begun.is_measuring => begun.is_measuring = true,
            (_, MEASURED) => {
                self.cut(results);
                self.begun = Some(Begun { line: line.number, warm_up: None, has_warm_up: false, is_measuring: true });
            }
            (Some(begun), _) => {
                let cost = text.strip_prefix(COST).filter(|_| line.is_ended()).and_then(value::number);
                if let Some(cost) = cost {
                    if begun.is_measuring {
                        let found = begun.finish(cost, line.number);
                        results.push(found);
                        self.begun = None;
                    } else {
                        begun.warm_up = Some(cost);
                    }
                }
            }
            (None, _) => {}
        }
    }

    /// Ends what was begun.
    pub(super) fn finish(mut self, results: &mut Results) {
        self.cut(results);
    }

    fn cut(&mut self, results: &mut Results) {
        let Some(begun) = self.begun.take() else { return };
        let mut found = begun.finish(0.0, begun.line);
        found.metrics.clear();
        found.lines.clear();
        found.is_whole = false;
        found.problem = Some(ReadingProblem {
            kind: ReadingProblemKind::Broken,
            message: format!("a line `{COST}..` after `{MEASURED}` is expected; an earlier one is of the warm-up"),
            line: Some(begun.line),
        });
        results.push(found);
    }
}

impl Begun {
    fn finish(&self, cost: f64, line: u64) -> Found {
        let versions = if self.has_warm_up {
            VersionRange::between("v0.4.0", "v0.6.3.post1")
        } else {
            VersionRange::from("v0.4.0")
        };
        let costs = self.warm_up.into_iter().chain([cost]).collect();
        Found {
            format: "vllm-prefix-caching-lines",
            tool: ToolFamily::VllmPrefixCaching,
            versions,
            printed_by: versions,
            metrics: BTreeMap::from([(METRIC.to_owned(), MetricValue::Series(costs))]),
            lines: BTreeMap::from([(METRIC.to_owned(), line)]),
            problem: None,
            asked: None,
            line: self.line,
            is_whole: true,
        }
    }
}
