//! Text from elsewhere made harmless, and text fitted into columns.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns `text` on one line, with control characters and characters that reorder or hide others replaced by U+FFFD.
///
/// This takes the force out of terminal escapes and of bidirectional overrides; escaping for a format is the renderer's.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if is_space(c) {
                ' '
            } else if is_harmful(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// Returns lines without what could move a terminal's cursor or hide text; colours stay.
///
/// Unlike [`clean`], this is for whole pages, whose line breaks and colours are meant.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_harmful(c) && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("\r\n") { 2 } else { colour(rest).unwrap_or(c.len_utf8()) };
        let (piece, after) = rest.split_at(length);
        let is_meant = length > c.len_utf8() || matches!(c, '\n' | '\t') || !is_harmful(c);
        cleaned.push_str(if is_meant { piece } else { "\u{fffd}" });
        rest = after;
    }
    Cow::Owned(cleaned)
}

/// Returns how long the sequence that sets a colour is, if the text begins with one.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters.get(end..)?.starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

fn is_space(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}')
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns how many columns of a terminal `text` takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns `text` cut to `columns`, with an ellipsis where something was cut.
pub(crate) fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    Cow::Owned(out)
}

/// Returns `text` cut and filled with spaces on the right to exactly `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let cut = truncate(text, columns);
    let fill = columns.saturating_sub(width(&cut));
    format!("{cut}{}", " ".repeat(fill))
}

/// Returns `text` cut and filled with spaces on the left to exactly `columns`.
pub(crate) fn pad_left(text: &str, columns: usize) -> String {
    let cut = truncate(text, columns);
    let fill = columns.saturating_sub(width(&cut));
    format!("{}{cut}", " ".repeat(fill))
}

/// Returns `text` in lines of at most `columns`, broken at spaces where there are any.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    // A number and its per cent sign stay together.
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let long = width(word);
        if used > 0 && used + 1 + long > columns {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > columns {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(if c == '\u{a0}' { ' ' } else { c });
            used += wide;
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_lines_and_colours_and_nothing_else() {
        for (text, expected) in [
            ("a\tb\nc\r\nd", "a\tb\nc\r\nd"),
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m"),
            ("\u{1b}[2Jx\u{1b}]0;t\u{7}\rz", "\u{fffd}[2Jx\u{fffd}]0;t\u{fffd}\u{fffd}z"),
            ("a\u{202e}b\u{1b}[", "a\u{fffd}b\u{fffd}["),
        ] {
            assert_eq!(clean_lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn escapes_and_overrides_lose_their_force() {
        for (hostile, harmless) in [
            ("\u{1b}[31mred", "\u{fffd}[31mred"),
            ("a\nb\tc", "a b c"),
            ("abc\u{202e}cba\u{2066}", "abc\u{fffd}cba\u{fffd}"),
            ("שלום 東京 é", "שלום 東京 é"),
        ] {
            assert_eq!(clean(hostile), harmless);
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(truncate("東京都庁", 5), "東京…");
        assert_eq!(pad("東京", 6), "東京  ");
        assert_eq!(pad_left("12", 4), "  12");
        assert_eq!(truncate("abc", 0), "");
    }

    #[test]
    fn lines_are_never_longer_than_asked() {
        let text = format!("some words and then {} and more", "x".repeat(50));
        let lines = wrap(&text, 20);
        assert!(lines.iter().all(|line| width(line) <= 20), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        assert!(wrap("", 20).is_empty());
    }
}
