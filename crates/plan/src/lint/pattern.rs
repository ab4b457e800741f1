//! Patterns over paths, names and subjects, in which `*` stands for any text.

/// Returns whether a pattern matches a whole text. Letters match whatever their case.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_ascii_lowercase(), text.to_ascii_lowercase());
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        // The earliest place leaves the most for what follows.
        match left.find(part) {
            Some(at) => left = left.get(at + part.len()..).unwrap_or(""),
            None => return false,
        }
    }
    left.ends_with(last)
}

/// Returns whether one of the patterns matches.
pub(crate) fn any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_everything_else_is_itself() {
        for (pattern, text, expected) in [
            ("vllm/v1/*", "vllm/v1/worker/a.py", true),
            ("vllm/v1/*", "vllm/v10", false),
            ("*neuron*", "vllm/worker/neuron_worker.py", true),
            ("*neuron*", "vllm/worker/worker.py", false),
            ("[v1]*", "[V1][Minor] Cache", true),
            ("[v1]*", "[Frontend][V1] x", false),
            ("a*b", "ab", true),
            ("ab*b", "ab", false),
            ("a*b*c", "a-c-b", false),
            ("a*b*c", "a-b-c", true),
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("exact.py", "exact.py", true),
            ("exact.py", "not-exact.py", false),
            ("*é*", "xéy", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "`{pattern}` on `{text}`");
        }
    }
}
