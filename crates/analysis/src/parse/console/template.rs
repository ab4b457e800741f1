//! Compares a line with a template such as `Prefill. latency: {prefill_latency_s} s, throughput: {..} token/s`.

use super::value::Value;

/// What a line looks like: words, and in braces the metrics whose values stand there. Where it has two blanks, a line has
/// one or more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Template(&'static str);

impl Template {
    pub(super) const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Returns its words before the first value.
    pub(super) fn beginning(self) -> &'static str {
        self.0.split('{').next().unwrap_or_default()
    }

    /// Returns the template as people may read it.
    pub(super) fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns the metrics whose values stand in it.
    pub(super) fn metrics(self) -> impl Iterator<Item = &'static str> {
        self.0.split('{').skip(1).filter_map(|part| part.split('}').next())
    }
}

/// What stands in a line that looks like a template.
#[derive(Debug, PartialEq)]
pub(super) struct Filled<'a> {
    /// The values that were printed whole, with their metrics.
    pub(super) values: Vec<(&'static str, Value<'a>)>,
    /// Whether the line is all there.
    pub(super) is_whole: bool,
}

/// Returns what stands in a line, without the blanks around it, if it looks like the template as far as it goes.
///
/// A line that isn't ended may have been cut: of it only those values count that are followed by the words which the
/// template has behind them.
pub(super) fn fill<'a>(template: &Template, text: &'a str, is_ended: bool) -> Option<Filled<'a>> {
    if text.is_empty() {
        return None;
    }
    let mut values = Vec::new();
    let mut rest = text;
    let mut parts = template.0.split('{');
    let first = parts.next().unwrap_or_default();
    rest = match behind(first, rest) {
        Behind::Whole(left) => left,
        Behind::Cut if !is_ended && rest.len() > 3 => return Some(Filled { values, is_whole: false }),
        Behind::Cut | Behind::Other => return None,
    };
    for part in parts {
        let (metric, words) = part.split_once('}')?;
        let token = token(rest);
        if token.is_empty() && rest.is_empty() && !is_ended {
            return Some(Filled { values, is_whole: false });
        }
        let value = Value::parse(token)?;
        rest = rest.get(token.len()..)?;
        if words.is_empty() && rest.is_empty() {
            if is_ended {
                values.push((metric, value));
            }
            return Some(Filled { values, is_whole: is_ended });
        }
        match behind(words, rest) {
            Behind::Whole(left) => {
                values.push((metric, value));
                rest = left;
            }
            Behind::Cut if !is_ended => return Some(Filled { values, is_whole: false }),
            Behind::Cut | Behind::Other => return None,
        }
        if rest.is_empty() && !is_ended {
            let is_whole = part.ends_with(words) && template.0.ends_with(part);
            return Some(Filled { values, is_whole });
        }
    }
    rest.trim().is_empty().then_some(Filled { values, is_whole: true })
}

/// What is left behind words.
enum Behind<'a> {
    Whole(&'a str),
    /// The text ends within the words.
    Cut,
    Other,
}

fn behind<'a>(words: &str, text: &'a str) -> Behind<'a> {
    let mut rest = text;
    let mut pieces = words.split("  ");
    let mut piece = pieces.next().unwrap_or_default();
    loop {
        let Some(left) = rest.strip_prefix(piece) else {
            return if piece.starts_with(rest) { Behind::Cut } else { Behind::Other };
        };
        rest = left;
        let Some(next) = pieces.next() else { return Behind::Whole(rest) };
        let left = rest.trim_start_matches(' ');
        if left.is_empty() {
            return Behind::Cut;
        }
        if left.len() == rest.len() {
            return Behind::Other;
        }
        (rest, piece) = (left, next);
    }
}

/// Returns the characters at the beginning that can be a value: a number, or else a word. A unit may touch a number.
fn token(text: &str) -> &str {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        let signs = text.len() - unsigned.len();
        signs + end_of_number(unsigned)
    } else {
        text.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '/' | '-' | '+'))).unwrap_or(text.len())
    };
    text.get(..end).unwrap_or_default()
}

fn end_of_number(text: &str) -> usize {
    let is_digit = |c: char| c.is_ascii_digit();
    let plain = text.find(|c: char| !is_digit(c) && c != '.').unwrap_or(text.len());
    let Some(exponent) = text.get(plain..).and_then(|rest| rest.strip_prefix(['e', 'E'])) else { return plain };
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !digits.starts_with(is_digit) {
        return plain;
    }
    text.len() - digits.trim_start_matches(is_digit).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Template = Template::new("Throughput: {a} requests/s, {b} total tokens/s");

    fn check(template: Template, text: &str, is_ended: bool, expected: Option<(&[f64], bool)>) {
        let filled = fill(&template, text, is_ended);
        let found = filled.as_ref().map(|filled| {
            let number = |(_, value): &(_, Value<'_>)| match value {
                Value::Number(number) => *number,
                Value::Percent(_) | Value::NotSet | Value::NotANumber(_) => f64::NAN,
            };
            (filled.values.iter().map(number).collect::<Vec<_>>(), filled.is_whole)
        });
        assert_eq!(found.as_ref().map(|(values, whole)| (values.as_slice(), *whole)), expected, "{text:?}");
    }

    #[test]
    fn lines_are_filled_in_and_cut_ones_as_far_as_they_are_sure() {
        let both: &[f64] = &[48.49, 24826.51];
        let one: &[f64] = &[48.49];
        check(TWO, "Throughput: 48.49 requests/s, 24826.51 total tokens/s", true, Some((both, true)));
        check(TWO, "Throughput:  48.49 requests/s, 24826.51 total tokens/s", true, None);
        let padded = Template::new("a:  {a} s");
        check(padded, "a:   1.5 s", true, Some((&[1.5], true)));
        check(padded, "a:1.5 s", true, None);
        check(padded, "a:  ", false, Some((&[], false)));
        check(TWO, "Throughput: 48.49 requests/s, 24826.51 total tok", false, Some((one, false)));
        check(TWO, "Throughput: 48.49 requests/s, 24826", false, Some((one, false)));
        check(TWO, "Throughput: 48.49 requests/s", false, Some((&[], false)));
        check(TWO, "Throughput: 48.4", false, Some((&[], false)));
        check(TWO, "Throughput: 48.49 requests/s, 24826", true, None);
        check(TWO, "Throughput: 48.49 requests/s, 24826.51 total tokens/s and more", true, None);
        check(TWO, "throughput: 48.49 requests/s, 24826.51 total tokens/s", true, None);
        check(Template::new("batch size: {a}"), "batch size: 16", true, Some((&[16.0], true)));
        check(Template::new("batch size: {a}"), "batch size: 16", false, Some((&[], false)));
        check(Template::new("latency: {a} s"), "latency: 1.21 s", false, Some((&[1.21], true)));
        check(Template::new("latency: {a} s"), "latency: 1.21 se", false, None);
        check(Template::new("{a}% percentile latency: {b} seconds"), "9% p", false, Some((&[], false)));
        check(Template::new("latency: {a} s"), "latency: 1.21ms s", true, None);
        check(Template::new("{a}it/s, {b}s"), "1e+03it/s, 5es", true, None);
        check(Template::new("{a}it/s, {b}s"), "1e+03it/s, 5e-1s", true, Some((&[1000.0, 0.5], true)));
    }
}
