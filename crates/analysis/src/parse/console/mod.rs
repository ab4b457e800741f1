//! Reads what tools print on a console, merged or not with what else was printed there.
//!
//! A result is known by its first line and read label by label; what stands between its lines is left out. A value counts
//! only if nothing can be missing from it: its line is ended, or its unit follows. The last whole result counts.

mod engine_log;
mod estimate;
mod filter;
mod formats;
mod found;
mod labels;
mod line;
mod line_table;
mod lines;
mod notes;
mod prefix;
mod prefix_caching;
mod reader;
mod startup;
mod table;
mod template;
mod value;

use isobench_schema::reading::Reading;

use super::binding::Binding;
use crate::text::Segments;
use reader::Reader;

pub(super) use formats::{FORMATS, printed};

/// A push reader of console output. It keeps one line at most and the results that may count, however much it is fed.
#[derive(Debug, Clone)]
pub struct Console {
    segments: Segments,
    reader: Reader,
}

impl Default for Console {
    fn default() -> Self {
        Self::new(&Binding::default())
    }
}

impl Console {
    /// Returns a reader for the output of a run of which so much is known.
    pub fn new(binding: &Binding) -> Self {
        Self { segments: Segments::default(), reader: Reader::new(binding) }
    }

    /// Reads on. How the output is cut into pieces makes no difference.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { segments, reader } = self;
        segments.feed(bytes, |segment| reader.segment(&segment));
    }

    /// Returns what was read.
    pub fn finish(self) -> Reading {
        let Self { segments, mut reader } = self;
        segments.finish(|segment| reader.segment(&segment));
        reader.finish()
    }
}
