//! What a table of a result file's layout says: by which keys it is told, which key is which metric, in which unit,
//! and which keys came and went with which versions.

use super::super::binding::VersionRange;
use super::super::catalogue::Format;
use super::record::{Document, Record};

/// The layout of one tool's result files.
pub(super) struct Layout {
    /// What the table of formats says of it.
    pub(super) format: Format,
    /// Which object holds the metrics.
    pub(super) place: Place,
    /// The keys that tell it: all of any of these sets must be there.
    pub(super) signs: &'static [&'static [&'static str]],
    /// The keys that tell that it is another layout.
    pub(super) foreign: &'static [&'static str],
    /// What every path below begins with; each of these beginnings is tried.
    pub(super) bases: &'static [&'static str],
    /// The metrics that have a key each.
    pub(super) fields: &'static [&'static [Field]],
    /// The metrics that have an object of statistics each.
    pub(super) families: &'static [Family],
    /// The metrics whose statistics have keys of the form `p99_ttft_ms`: the name in the key, then ours.
    pub(super) flat: &'static [(&'static str, &'static str)],
    /// The metrics without which a result is broken.
    pub(super) required: &'static [&'static str],
    /// The key with the number of requests that were asked for.
    pub(super) asked: Option<&'static str>,
    /// The flags that say whether the run went to its end, and what they say if it did.
    pub(super) finished: &'static [(&'static str, bool)],
    /// Rates that the tool computes as a total divided by the duration.
    pub(super) rates: &'static [Rate],
    /// The keys that came and went with versions.
    pub(super) marks: &'static [Mark],
}

/// Which object holds the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The one at the top.
    Root,
    /// The last one of the list of records.
    LastRecord,
}

/// A metric with a key of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) path: &'static str,
    pub(super) metric: &'static str,
    pub(super) unit: Unit,
    pub(super) presence: Presence,
}

/// A metric with an object of statistics: mean, median, percentiles and so on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) path: &'static str,
    /// The name, to which the statistic is prefixed.
    pub(super) metric: &'static str,
    pub(super) unit: Unit,
}

/// How a value becomes one in the unit of our name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// It is in that unit.
    Ours,
    /// Seconds become milliseconds.
    SecondsToMilliseconds,
    /// Milliseconds become seconds.
    MillisecondsToSeconds,
    /// A part of one becomes percent.
    PartToPercent,
    /// The text at `unit` beside it says the unit; milliseconds are wanted.
    StatedToMilliseconds,
    /// The text at `unit` beside it says the unit; seconds are wanted.
    StatedToSeconds,
}

/// What it means if a key has no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// If the key is there, so must be a number.
    Number,
    /// `null`, a text or an infinite value says that there is none.
    NumberOrNone,
    /// As before, and so does a number that is not above zero.
    PositiveOrNone,
}

/// A rate that is a total divided by the duration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) rate: &'static str,
    pub(super) totals: &'static [&'static str],
}

/// What the presence or absence of a key says of the version.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    /// The key is written by these versions only.
    With(&'static str, VersionRange),
    /// If the first key is there, which tells a whole record, but the second isn't, it was written by these versions.
    Without(&'static str, &'static str, VersionRange),
}

/// Returns a field in our unit that must be a number.
pub(super) const fn field(path: &'static str, metric: &'static str) -> Field {
    Field { path, metric, unit: Unit::Ours, presence: Presence::Number }
}

/// Returns a field in our unit that may be absent.
pub(super) const fn optional(path: &'static str, metric: &'static str) -> Field {
    Field { path, metric, unit: Unit::Ours, presence: Presence::NumberOrNone }
}

/// Returns a field in our unit that means something only above zero.
pub(super) const fn positive(path: &'static str, metric: &'static str) -> Field {
    Field { path, metric, unit: Unit::Ours, presence: Presence::PositiveOrNone }
}

impl Field {
    /// Returns the field in another unit.
    pub(super) const fn in_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }
}

/// Returns a metric with an object of statistics.
pub(super) const fn family(path: &'static str, metric: &'static str, unit: Unit) -> Family {
    Family { path, metric, unit }
}

/// What most layouts don't have.
pub(super) const PLAIN: Layout = Layout {
    format: Format {
        id: "",
        tool: super::super::binding::ToolFamily::VllmServe,
        kind: super::super::catalogue::FormatKind::Json,
        versions: VersionRange::ALL,
        read: "",
    },
    place: Place::Root,
    signs: &[],
    foreign: &[],
    bases: &[""],
    fields: &[],
    families: &[],
    flat: &[],
    required: &[],
    asked: None,
    finished: &[],
    rates: &[],
    marks: &[],
};

impl Layout {
    /// Returns the object that holds the metrics.
    pub(super) fn record<'a>(&self, document: &'a Document) -> Option<&'a Record> {
        match self.place {
            Place::Root => document.only_records().filter(|last| self.has_signs(last)).or(Some(&document.root)),
            Place::LastRecord => document.last.as_ref(),
        }
    }

    fn has_signs(&self, record: &Record) -> bool {
        self.signs.iter().any(|set| set.iter().all(|path| record.get(path).is_some()))
    }

    /// Returns whether a document has the keys that tell this layout.
    pub(super) fn is_told_by(&self, document: &Document) -> bool {
        let has = |path: &str| {
            document.root.get(path).is_some() || document.last.as_ref().is_some_and(|last| last.get(path).is_some())
        };
        self.signs.iter().any(|set| set.iter().all(|path| has(path))) && !self.foreign.iter().any(|path| has(path))
    }

    /// Returns the versions that write the keys of a document. Keys that no one version writes say nothing.
    pub(super) fn versions(&self, document: &Document) -> VersionRange {
        let Some(record) = self.record(document) else { return self.format.versions };
        let has = |path: &str| record.get(path).is_some();
        let versions = self.marks.iter().fold(self.format.versions, |versions, mark| match *mark {
            Mark::With(key, range) if has(key) => versions.and(range),
            Mark::Without(whole, key, range) if has(whole) && !has(key) => versions.and(range),
            Mark::With(..) | Mark::Without(..) => versions,
        });
        if versions.is_empty() { self.format.versions } else { versions }
    }
}
