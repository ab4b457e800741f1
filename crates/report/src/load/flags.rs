//! How each word of a command line was understood.

use serde::Serialize;

use crate::terminal::Style;
use crate::terminal::table::{Cell, Column, Layout, table};
use crate::text::clean;
use crate::words::Tone;

/// What a word was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlagTone {
    /// A flag of ours.
    Own,
    /// A flag of another client that says the same as one of ours.
    Becomes,
    /// A flag that changes nothing that is measured.
    Ignored,
    /// A flag that can't be done, or isn't known.
    Refused,
}

/// A word of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagLine {
    /// As it was typed.
    pub written: String,
    /// What it was taken for.
    #[serde(rename = "kind")]
    pub tone: FlagTone,
    /// Words of ours that say the same; empty if there are none.
    pub became: String,
    /// Why, or what differs all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Returns the words as a table.
pub fn flags(lines: &[FlagLine], style: Style) -> String {
    let columns = [
        Column { title: "as typed", layout: Layout::Name },
        Column { title: "understood as", layout: Layout::Name },
        Column { title: "note", layout: Layout::Name },
    ];
    let rows: Vec<Vec<Cell>> = lines.iter().map(row).collect();
    let mut out = String::new();
    table(&mut out, &columns, &rows, style);
    out
}

fn row(line: &FlagLine) -> Vec<Cell> {
    let (became, tone) = match line.tone {
        FlagTone::Own => ("as it stands".to_owned(), None),
        FlagTone::Becomes if line.became.is_empty() => ("the default".to_owned(), None),
        FlagTone::Becomes => (line.became.clone(), Some(Tone::Good)),
        FlagTone::Ignored => ("nothing".to_owned(), Some(Tone::Unsure)),
        FlagTone::Refused => ("refused".to_owned(), Some(Tone::Bad)),
    };
    vec![
        Cell::plain(clean(&line.written)),
        Cell { text: clean(&became), tone },
        Cell::plain(clean(line.note.as_deref().unwrap_or_default())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_became_of_each_word() {
        let line = |written: &str, tone, became: &str, note: Option<&str>| FlagLine {
            written: written.to_owned(),
            tone,
            became: became.to_owned(),
            note: note.map(ToOwned::to_owned),
        };
        let lines = [
            line("--num-prompts 5", FlagTone::Becomes, "--requests 5", None),
            line("--profile", FlagTone::Refused, "", Some("a profiler changes what is measured")),
        ];
        let text = flags(&lines, Style::default());
        assert!(text.contains("--num-prompts 5") && text.contains("--requests 5"), "{text}");
        assert!(text.contains("refused") && text.contains("a profiler changes"), "{text}");
    }
}
