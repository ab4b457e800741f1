//! Tells in a few instructions which lines of a log need not be looked at.

use std::sync::LazyLock;

use memchr::{memchr2, memmem};

use super::engine_log::WORD;
use super::line_table::GROUPS;

/// What lines begin with that say something, besides those of [`GROUPS`].
const BEGINNINGS: &[&str] = &[
    "Namespace(",
    "benchmark_args=",
    "STARTUP TIME",
    "Starting ",
    "Measuring cold",
    "Profiling",
    "Bench iterations",
    "Processed prompts",
    "DEPRECATED",
    "usage: ",
    "Killed",
    "Terminated",
    "Aborted",
    "Segmentation",
    "------warm up",
    "------start gen",
    "cost time",
    "{\"",
];

/// What lines hold somewhere that say something.
const PARTS: &[&str] =
    &["Benchmark Result", "Traceback (most recent", ": error: ", "it [", ": No module named ", ": can't open file "];

/// What a line may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing that is read.
    Noise,
    /// One of the engine's log.
    Engine,
    /// Anything.
    Any,
}

/// Returns what a line may be.
pub(super) fn kind(bytes: &[u8]) -> Kind {
    FILTER.kind(bytes)
}

/// Returns whether a line may be one of the engine's log, whatever else it may be.
pub(super) fn may_be_engine(bytes: &[u8]) -> bool {
    FILTER.engine.find(bytes).is_some()
}

/// Returns whether a line may hold a progress bar.
pub(super) fn may_be_bar(bytes: &[u8]) -> bool {
    memchr2(b'|', b']', bytes).is_some()
}

/// The filter, made once.
static FILTER: LazyLock<Filter> = LazyLock::new(Filter::new);

/// A filter of lines.
struct Filter {
    /// For each two bytes whether a line that says something begins with them.
    beginnings: Vec<bool>,
    parts: Vec<memmem::Finder<'static>>,
    engine: memmem::Finder<'static>,
}

impl Filter {
    fn new() -> Self {
        let mut beginnings = vec![false; 1 << 16];
        let templates = GROUPS.iter().flat_map(|group| group.lines).map(|of| of.template.beginning());
        for beginning in templates.chain(BEGINNINGS.iter().copied()) {
            if let Some(pair) = pair(beginning.as_bytes())
                && let Some(place) = beginnings.get_mut(pair)
            {
                *place = true;
            }
        }
        let finder = |part: &&'static str| memmem::Finder::new(*part);
        Self { beginnings, parts: PARTS.iter().map(finder).collect(), engine: memmem::Finder::new(WORD) }
    }

    fn kind(&self, bytes: &[u8]) -> Kind {
        let text = bytes.trim_ascii_start();
        let Some(pair) = pair(text) else { return Kind::Noise };
        let begins = self.beginnings.get(pair).is_some_and(|begins| *begins);
        // `10% percentile latency`: the rank has no beginning of its own.
        let begins_with_rank = || memchr2(b'%', b' ', text).is_some_and(|place| text.get(place) == Some(&b'%'));
        // Escape sequences and bars may stand before anything.
        if begins
            || (text.first().is_some_and(u8::is_ascii_digit) && begins_with_rank())
            || memchr2(0x1b, b'|', text).is_some()
            || self.parts.iter().any(|part| part.find(text).is_some())
        {
            Kind::Any
        } else if self.engine.find(text).is_some() {
            Kind::Engine
        } else {
            Kind::Noise
        }
    }
}

fn pair(text: &[u8]) -> Option<usize> {
    match text {
        [first, second, ..] => Some(usize::from(*first) << 8 | usize::from(*second)),
        _ => None,
    }
}
