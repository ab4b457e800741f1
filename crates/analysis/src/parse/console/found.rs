//! The results that were found so far, and which of them counts.

use std::collections::BTreeMap;

use isobench_schema::reading::{MetricValue, ReadingProblem, ReadingProblemKind, ToolFamily};

use crate::parse::binding::VersionRange;

/// One result: a table, or lines that belong together.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) format: &'static str,
    pub(super) tool: ToolFamily,
    /// The versions that can have printed it, judged by what is there and by what isn't.
    pub(super) versions: VersionRange,
    /// The versions that can have printed what is there.
    pub(super) printed_by: VersionRange,
    pub(super) metrics: BTreeMap<String, MetricValue>,
    /// The line of each metric.
    pub(super) lines: BTreeMap<String, u64>,
    /// What is broken in it.
    pub(super) problem: Option<ReadingProblem>,
    /// The number of requests that were asked for before it.
    pub(super) asked: Option<u64>,
    /// The line in which it begins.
    pub(super) line: u64,
    /// Whether its end was seen.
    pub(super) is_whole: bool,
}

/// The last whole result of each tool, and what begins after it and has no end. Of each there is at most one.
#[derive(Debug, Clone, Default)]
pub(super) struct Results {
    slots: Vec<Slot>,
}

#[derive(Debug, Clone)]
struct Slot {
    tool: ToolFamily,
    whole: Option<Found>,
    cut: Option<Found>,
}

/// The result that counts, and what else there is.
pub(super) struct Chosen {
    pub(super) found: Found,
    /// The other tools that have a whole result.
    pub(super) also: Vec<ToolFamily>,
}

impl Results {
    /// Takes a result, which replaces an earlier one of the same tool only if it is whole.
    pub(super) fn push(&mut self, found: Found) {
        if !self.slots.iter().any(|slot| slot.tool == found.tool) {
            self.slots.push(Slot { tool: found.tool, whole: None, cut: None });
        }
        let slot = self.slots.iter_mut().find(|slot| slot.tool == found.tool);
        if let Some(slot) = slot {
            if found.is_whole {
                (slot.whole, slot.cut) = (Some(found), None);
            } else {
                slot.cut = Some(found);
            }
        }
    }

    /// Forgets the results of a tool: they were of its warm-up.
    pub(super) fn forget(&mut self, tool: ToolFamily) {
        self.slots.retain(|slot| slot.tool != tool);
    }

    /// Returns the last whole result, of one tool or of any. If another one begins after it and has no end, the result is
    /// broken: what it says isn't the last word. If none is whole, the last one is returned.
    pub(super) fn choose(self, tool: Option<ToolFamily>) -> Option<Chosen> {
        let wanted = |slot: &&Slot| tool.is_none_or(|tool| slot.tool == tool);
        let whole = self.slots.iter().filter(wanted).filter_map(|slot| slot.whole.as_ref());
        let cut = self.slots.iter().filter(wanted).filter_map(|slot| slot.cut.as_ref());
        let whole = whole.max_by_key(|found| found.line).cloned();
        let cut = cut.max_by_key(|found| found.line).cloned();
        let found = match (whole, cut) {
            (Some(mut whole), Some(cut)) if cut.line > whole.line => {
                let message = format!(
                    "a result of `{}` begins after the last whole one and has no end; the values are of the whole one",
                    cut.tool
                );
                let problem = ReadingProblem { kind: ReadingProblemKind::Broken, message, line: Some(cut.line) };
                whole.problem = Some(problem);
                whole
            }
            (Some(whole), _) => whole,
            (None, cut) => cut?,
        };
        let others = self.slots.iter().filter(|slot| slot.whole.is_some() && slot.tool != found.tool);
        let also = others.map(|slot| slot.tool).collect();
        Some(Chosen { found, also })
    }
}
