//! Judgements, plans, assessments and legacy evidence as plain text for a terminal, coloured only when asked.

mod assessment;
mod cause;
mod coverage;
mod funnel;
mod images;
mod judgement;
mod left_out;
mod legacy;
mod lint;
mod noise;
mod old_tables;
mod plan;
mod reading;
mod suite;
pub(crate) mod table;

use crate::words::Tone;

pub use assessment::assessment;
pub use cause::cause;
pub use coverage::coverage;
pub use funnel::funnel;
pub use images::{image_audit, image_list};
pub use judgement::judgement;
pub use legacy::{legacy, legacy_summary};
pub use lint::{lint, meaning, meanings, rule, rules};
pub use noise::{library, noise};
pub use old_tables::old_tables;
pub use plan::{explain, forecasts, plan};
pub use reading::reading;

/// How to write for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
}

impl Default for Style {
    /// 100 columns without colour, for pipes and files.
    fn default() -> Self {
        Self { width: 100, color: false }
    }
}

impl Style {
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        self.code(tone.ansi(), text)
    }

    fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    pub(crate) fn code(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Appends a heading, in lines that fit.
    pub(crate) fn heading(self, out: &mut String, text: &str) {
        for line in crate::text::wrap(text, self.width) {
            out.push_str(&self.bold(&line));
            out.push('\n');
        }
    }

    /// Appends `text` in lines that fit, indented by `indent` columns; the first line starts with `first` instead.
    pub(crate) fn paragraph(self, out: &mut String, first: &str, text: &str) {
        let indent = crate::text::width(first);
        let lines = crate::text::wrap(text, self.width.saturating_sub(indent));
        for (place, line) in lines.iter().enumerate() {
            if place == 0 {
                out.push_str(first);
            } else {
                out.push_str(&" ".repeat(indent));
            }
            out.push_str(line);
            out.push('\n');
        }
    }
}
