//! An answer in short: its first tokens, and a digest of the whole if it is longer.

use isobench_schema::ids::Digest;
use isobench_schema::record::RequestRecord;
use serde::{Deserialize, Serialize};

use crate::stats::length;

/// The first tokens of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Tokens {
    /// Token ids, where the server gives them.
    Ids(Vec<u32>),
    /// Words, joined by one space each.
    Words(String),
}

/// An answer in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The request's number in its phase.
    pub index: u32,
    /// Its line in the request records, from 1.
    pub line: u64,
    /// How many token ids or words the whole answer has.
    pub tokens: usize,
    /// The first of them.
    pub kept: Tokens,
    /// The digest of all of them, if there are more than were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Digest>,
}

impl Answer {
    /// Returns the record's answer with at most `most` tokens kept.
    pub(crate) fn of(record: &RequestRecord, line: u64, most: usize) -> Self {
        let (tokens, kept, whole) = if let Some(ids) = &record.token_ids {
            let kept = Tokens::Ids(ids.iter().take(most).copied().collect());
            (ids.len(), kept, ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>())
        } else {
            let words: Vec<&str> = record.text.split_whitespace().collect();
            let kept = words.iter().take(most).copied().collect::<Vec<&str>>().join(" ");
            (words.len(), Tokens::Words(kept), words.join(" ").into_bytes())
        };
        let whole = (tokens > most).then(|| Digest::of(&whole));
        Self { index: record.index, line, tokens, kept, whole }
    }

    /// Returns how far two answers agree, from 0 to 1: the length of what they have in common from the start, over the
    /// length of the longer one. Of what wasn't kept nothing counts as common, unless all of it is equal.
    pub fn agreement(&self, other: &Self) -> f64 {
        if self.tokens == other.tokens && self.kept == other.kept && self.whole == other.whole {
            return 1.0;
        }
        length(self.common(other)) / length(self.tokens.max(other.tokens).max(1))
    }

    /// Returns how many tokens two answers have in common from the start, among those that were kept.
    pub fn common(&self, other: &Self) -> usize {
        match (&self.kept, &other.kept) {
            (Tokens::Ids(a), Tokens::Ids(b)) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
            (Tokens::Words(a), Tokens::Words(b)) => {
                a.split_ascii_whitespace().zip(b.split_ascii_whitespace()).take_while(|(a, b)| a == b).count()
            }
            (Tokens::Ids(_), Tokens::Words(_)) | (Tokens::Words(_), Tokens::Ids(_)) => 0,
        }
    }

    /// Returns up to `most` kept tokens from number `from` on, for people.
    pub fn excerpt(&self, from: usize, most: usize) -> String {
        let words: Vec<String> = match &self.kept {
            Tokens::Ids(ids) => ids.iter().skip(from).take(most).map(u32::to_string).collect(),
            Tokens::Words(words) => words.split_ascii_whitespace().skip(from).take(most).map(str::to_owned).collect(),
        };
        if words.is_empty() { "nothing".to_owned() } else { format!("`{}`", words.join(" ")) }
    }
}

/// Returns how far the answers to the same requests agree on average, from 0 to 1. Requests that only one side has an
/// answer to don't count: whether so many may fail is another check. `None` if there is no request with two answers.
/// Both are sorted by index.
pub(crate) fn agreement(a: &[Answer], b: &[Answer]) -> Option<f64> {
    let mut others = b.iter().peekable();
    let (mut sum, mut count) = (0.0, 0_usize);
    for answer in a {
        while others.next_if(|other| other.index < answer.index).is_some() {}
        if let Some(other) = others.next_if(|other| other.index == answer.index) {
            sum += answer.agreement(other);
            count += 1;
        }
    }
    (count > 0).then(|| sum / length(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::record;
    use isobench_schema::record::Phase;

    fn words(text: &str, most: usize) -> Answer {
        let mut record = record(Phase::Measure, 0);
        text.clone_into(&mut record.text);
        Answer::of(&record, 1, most)
    }

    fn check(a: &str, b: &str, most: usize, expected: f64) {
        for (a, b) in [(a, b), (b, a)] {
            assert!((words(a, most).agreement(&words(b, most)) - expected).abs() < 1e-12, "{a} / {b}");
        }
    }

    #[test]
    fn answers_agree_as_far_as_their_common_start() {
        check("a b c d", "a  b c d", 9, 1.0);
        check("a b c d", "a b x d", 9, 0.5);
        check("a b c d", "a b", 9, 0.5);
        check("a b c d", "", 9, 0.0);
        check("", "", 9, 1.0);
    }

    #[test]
    fn what_was_not_kept_counts_only_if_all_of_it_is_equal() {
        check("a b c d", "a b c d", 2, 1.0);
        check("a b c d", "a b c x", 2, 0.5);
    }

    #[test]
    fn token_ids_come_before_text_and_never_agree_with_it() {
        let mut record = record(Phase::Measure, 0);
        record.token_ids = Some(vec![1, 2, 3]);
        let ids = Answer::of(&record, 1, 9);
        assert_eq!((&ids.kept, ids.tokens), (&Tokens::Ids(vec![1, 2, 3]), 3));
        assert!(ids.agreement(&words("1 2 3", 9)) == 0.0);
        assert_eq!((ids.excerpt(1, 5), ids.excerpt(3, 5)), ("`2 3`".to_owned(), "nothing".to_owned()));
    }

    #[test]
    fn only_requests_with_two_answers_are_compared() {
        let at = |index, text| Answer { index, ..words(text, 9) };
        let mine = [at(0, "a b"), at(1, "a b"), at(3, "a b")];
        assert_eq!(agreement(&mine, &[at(1, "a x"), at(2, "x"), at(3, "a b")]), Some(0.75));
        assert_eq!(agreement(&mine, &[at(2, "a b")]), None);
        assert_eq!(agreement(&[], &[]), None);
    }

    #[test]
    fn kept_tokens_are_short_in_json() {
        let text = serde_json::to_string(&words("a b", 9)).unwrap();
        assert_eq!(text, r#"{"index":0,"line":1,"tokens":2,"kept":"a b"}"#);
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), words("a b", 9));
    }
}
