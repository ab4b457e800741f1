//! Two forms of a command, with the words marked that only one of them has.

use std::collections::BTreeMap;

/// What stands around words that the other form doesn't have.
const MARKS: (&str, &str) = ("«", "»");

/// A command as it is asked and as it is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) asked: String,
    pub(super) client: String,
    pub(super) server: String,
}

/// Marks the words of the asked command that aren't run, and those of client and server that aren't asked.
pub(super) fn mark(asked: &str, [client, server]: [&[String]; 2]) -> Marked {
    let asked = words(asked);
    let asked_counts = counts(asked.iter());
    let run_counts = counts(client.iter().chain(server));
    let mut left = asked_counts;
    let client = marked(client, &mut left);
    // Both programs take some words of one command, such as the model's name.
    let mut left = counts(asked.iter());
    let server = marked(server, &mut left);
    let mut left = run_counts;
    Marked { client, server, asked: marked(&asked, &mut left) }
}

fn counts<'w>(words: impl Iterator<Item = &'w String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in words {
        for part in parts(word) {
            *counts.entry(part.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Returns an option's name and value where they are one word.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let pair = word.split_once('=').filter(|_| word.starts_with("--"));
    let (first, second) = pair.map_or((word, None), |(name, value)| (name, Some(value)));
    std::iter::once(first).chain(second).map(|part| part.trim_matches(['\'', '"']))
}

/// Joins words, and marks runs of those that aren't left to be taken.
fn marked(words: &[String], left: &mut BTreeMap<String, usize>) -> String {
    let mut out = String::new();
    let mut is_open = false;
    for word in words {
        let is_known = parts(word).all(|part| take(part, left));
        let close = is_open && is_known;
        if close {
            out.push_str(MARKS.1);
        }
        if !out.is_empty() {
            out.push(' ');
        }
        if !is_known && !is_open {
            out.push_str(MARKS.0);
        }
        is_open = !is_known;
        out.push_str(word);
    }
    if is_open {
        out.push_str(MARKS.1);
    }
    out
}

fn take(part: &str, left: &mut BTreeMap<String, usize>) -> bool {
    match left.get_mut(part) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        Some(_) | None => false,
    }
}

/// Splits a command at spaces outside quotes; quotes stay.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.chars() {
        match quote {
            None if c == ' ' => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            None if matches!(c, '\'' | '"') => quote = Some(c),
            Some(open) if open == c => quote = None,
            None | Some(_) => {}
        }
        word.push(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns a word as a shell would need it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &str, client: &str, server: &str, expected: [&str; 3]) {
        let split = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let found = mark(asked, [&split(client), &split(server)]);
        assert_eq!([found.asked.as_str(), found.client.as_str(), found.server.as_str()], expected);
    }

    #[test]
    fn only_what_differs_is_marked() {
        check("b.py --model m -n 3", "b.py --model m -n 3", "", ["b.py --model m -n 3", "b.py --model m -n 3", ""]);
        check(
            "python b.py --model m --dtype half",
            "b.py --model m --dataset-path x.json",
            "vllm serve m --dtype half",
            [
                "«python» b.py --model m --dtype half",
                "b.py --model m «--dataset-path x.json»",
                "«vllm serve» m --dtype half",
            ],
        );
        check("b.py --a=1", "b.py --a 1", "", ["b.py --a=1", "b.py --a 1", ""]);
        check("b.py [--v2]", "b.py --v2", "", ["b.py «[--v2]»", "b.py «--v2»", ""]);
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words("a 'b c' \"d e\"f  g"), ["a", "'b c'", "\"d e\"f", "g"]);
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("--model=a/b:1"), "--model=a/b:1");
    }
}
