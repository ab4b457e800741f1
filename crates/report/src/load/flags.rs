//! How each word of a command line was understood.

use std::fmt::Write as _;

use serde::Serialize;

use crate::terminal::Style;
use crate::text::{clean, pad, width, wrap};
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

/// The widest that the column of what was typed becomes.
const WIDEST: usize = 44;

/// Returns the words in two columns, each with its note below it. Nothing is cut, because every word counts.
pub fn flags(lines: &[FlagLine], style: Style) -> String {
    let typed: Vec<String> = lines.iter().map(|line| clean(&line.written)).collect();
    let widest = typed.iter().map(|text| width(text)).max().unwrap_or(0);
    let column = widest.min(WIDEST).min(style.width / 2);
    let mut out = String::new();
    for (line, typed) in lines.iter().zip(&typed) {
        let (became, tone) = became(line);
        let left = wrap(typed, column);
        let right = wrap(&clean(&became), style.width.saturating_sub(column + 4));
        for place in 0..left.len().max(right.len()) {
            let of = |side: &[String]| side.get(place).cloned().unwrap_or_default();
            let painted = tone.map_or_else(|| of(&right), |tone| style.paint(tone, &of(&right)));
            let text = format!("{}  {painted}", pad(&of(&left), column));
            writeln!(out, "{}", text.trim_end()).expect("a String takes every write");
        }
        if let Some(note) = &line.note {
            style.paragraph(&mut out, "    ", &clean(note));
        }
    }
    out
}

fn became(line: &FlagLine) -> (String, Option<Tone>) {
    match line.tone {
        FlagTone::Own => ("as it stands".to_owned(), None),
        FlagTone::Becomes if line.became.is_empty() => ("the default".to_owned(), None),
        FlagTone::Becomes => (line.became.clone(), Some(Tone::Good)),
        FlagTone::Ignored => ("nothing".to_owned(), Some(Tone::Unsure)),
        FlagTone::Refused => ("refused".to_owned(), Some(Tone::Bad)),
    }
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
        let expected =
            "--num-prompts 5  --requests 5\n--profile        refused\n    a profiler changes what is measured\n";
        assert_eq!(text, expected);
        let narrow = flags(&lines, Style { width: 24, color: false });
        assert!(narrow.lines().all(|line| width(line) <= 24), "{narrow}");
    }
}
