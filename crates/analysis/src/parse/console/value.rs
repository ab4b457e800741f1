//! Reads one printed value, whole or not at all.

/// A printed value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    /// A finite number.
    Number(f64),
    /// A finite number before `%`.
    Percent(f64),
    /// Words that say that there is no number, as they should where an option wasn't given.
    NotSet,
    /// Words that stand where a number should: `nan`, `inf`, `-` and their like.
    NotANumber(&'a str),
}

impl<'a> Value<'a> {
    /// Returns the value that a text is, if it is one and nothing else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        if let Some(number) = number(text) {
            return Some(Self::Number(number));
        }
        if let Some(number) = text.strip_suffix('%').and_then(number) {
            return Some(Self::Percent(number));
        }
        match text {
            "not set" | "None" => Some(Self::NotSet),
            "-" | "N/A" | "n/a" => Some(Self::NotANumber(text)),
            _ if is_no_number(text) => Some(Self::NotANumber(text)),
            _ => None,
        }
    }
}

/// Returns a decimal number as Python and C print it: digits, which must be there, a fraction, an exponent.
pub(super) fn number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts_and_ends = unsigned.bytes().next()?.is_ascii_digit() && unsigned.bytes().last()?.is_ascii_digit();
    let is_plain = unsigned.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !(starts_and_ends && is_plain) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn is_no_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    ["nan", "inf", "infinity"].iter().any(|word| unsigned.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_whole_or_not_at_all() {
        for (text, value) in [
            ("812.44", Some(Value::Number(812.44))),
            ("0", Some(Value::Number(0.0))),
            ("-1.5", Some(Value::Number(-1.5))),
            ("1e+06", Some(Value::Number(1e6))),
            ("20.0%", Some(Value::Percent(20.0))),
            ("not set", Some(Value::NotSet)),
            ("nan", Some(Value::NotANumber("nan"))),
            ("-inf", Some(Value::NotANumber("-inf"))),
            ("-", Some(Value::NotANumber("-"))),
            ("812.", None),
            (".44", None),
            ("812.4WARNING", None),
            ("812 44", None),
            ("1,234", None),
            ("1e999", None),
            ("1.2.3", None),
            ("0x10", None),
            ("", None),
        ] {
            assert_eq!(Value::parse(text), value, "{text:?}");
        }
    }
}
