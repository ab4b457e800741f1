//! Patterns over paths, names and subjects, in which `*` stands for any text.

/// Returns whether a pattern matches a whole text, letter for letter: texts whose case says nothing are given in lower case.
///
/// Nothing is allocated: a plan of many tasks asks this millions of times.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    if !left.ends_with(tail) {
        return false;
    }
    let mut parts = middle.split('*').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        // Whether a text is there is told faster than where; for the last part before an open end that is enough.
        if tail.is_empty() && parts.peek().is_none() {
            return left.contains(part);
        }
        // The earliest place leaves the most for what follows.
        match left.split_once(part) {
            Some((_, rest)) => left = rest,
            None => return false,
        }
    }
    left.ends_with(tail)
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
            ("[v1]*", "[v1][minor] cache", true),
            ("[v1]*", "[frontend][v1] x", false),
            ("[v1]*", "[V1] x", false),
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
