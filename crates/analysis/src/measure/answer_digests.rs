//! A short digest of every answer of the window: wherever in it an answer differs, it shows.

use std::fmt::Write as _;

use isobench_schema::ids::Digest;
use isobench_schema::record::RequestRecord;
use serde::{Deserialize, Serialize};

use crate::stats::length;

/// The digits of one digest: 64 of the 256 bits of a SHA-256.
const DIGITS: usize = 16;
/// What stands for a request without an answer.
const ABSENT: &str = "----------------";

/// The digests of answers by the number of their request. A request that failed has none.
///
/// It is stored as one text of 16 characters for each request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AnswerDigests(Vec<Option<u64>>);

/// A text that isn't the digests of answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the digest of answer {index} is `{text}`, which isn't 16 hexadecimal digits or dashes")]
pub struct InvalidAnswerDigestsError {
    /// The request's number.
    index: usize,
    /// What stands there.
    text: String,
}

impl AnswerDigests {
    /// Takes in an answer.
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let Ok(place) = usize::try_from(record.index) else { return };
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        if let Some(entry) = self.0.get_mut(place) {
            *entry = digest(record);
        }
    }

    /// Returns whether there is no answer at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the share of equal answers among the requests that both sides have one to, from 0 to 1. `None` if there is
    /// no such request.
    pub(crate) fn equal_share(&self, other: &Self) -> Option<f64> {
        let (mut equal, mut count) = (0, 0_usize);
        for (_, is_equal) in self.pairs(other) {
            equal += usize::from(is_equal);
            count += 1;
        }
        (count > 0).then(|| length(equal) / length(count))
    }

    /// Returns the first request whose answers differ.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<usize> {
        self.pairs(other).find(|(_, is_equal)| !is_equal).map(|(index, _)| index)
    }

    /// Returns the requests with two answers, and whether these are equal.
    fn pairs(&self, other: &Self) -> impl Iterator<Item = (usize, bool)> {
        let both = self.0.iter().zip(&other.0).enumerate();
        both.filter_map(|(index, (own, its))| Some((index, (*own)? == (*its)?)))
    }
}

impl FromIterator<Option<u64>> for AnswerDigests {
    fn from_iter<I: IntoIterator<Item = Option<u64>>>(digests: I) -> Self {
        Self(digests.into_iter().collect())
    }
}

impl From<AnswerDigests> for String {
    fn from(AnswerDigests(digests): AnswerDigests) -> Self {
        let mut text = Self::with_capacity(DIGITS * digests.len());
        for digest in digests {
            match digest {
                Some(digest) => write!(text, "{digest:016x}").expect("a String takes every write"),
                None => text.push_str(ABSENT),
            }
        }
        text
    }
}

impl TryFrom<String> for AnswerDigests {
    type Error = InvalidAnswerDigestsError;

    fn try_from(text: String) -> Result<Self, InvalidAnswerDigestsError> {
        let read = |(index, bytes): (usize, &[u8])| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let is_digest = bytes.len() == DIGITS && bytes.iter().all(u8::is_ascii_hexdigit);
            match u64::from_str_radix(&text, 16) {
                Ok(digest) if is_digest => Ok(Some(digest)),
                Ok(_) | Err(_) if text == ABSENT => Ok(None),
                Ok(_) | Err(_) => Err(InvalidAnswerDigestsError { index, text }),
            }
        };
        text.as_bytes().chunks(DIGITS).enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }
}

/// Returns the digest of an answer: of its words or, where the server gives token ids, of these and the text to the byte.
fn digest(record: &RequestRecord) -> Option<u64> {
    let bytes = if let Some(ids) = &record.token_ids {
        let mut bytes = b"ids ".to_vec();
        bytes.extend((ids.len() as u64).to_le_bytes());
        bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        bytes.extend(record.text.as_bytes());
        bytes
    } else {
        let words: Vec<&str> = record.text.split_whitespace().collect();
        format!("words {}", words.join(" ")).into_bytes()
    };
    u64::from_str_radix(Digest::of(&bytes).as_str().get(..DIGITS)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::record;
    use isobench_schema::record::Phase;

    fn of(answers: &[(&str, Option<&[u32]>)]) -> AnswerDigests {
        let mut digests = AnswerDigests::default();
        for (index, (text, ids)) in (0..).zip(answers) {
            let mut record = record(Phase::Measure, index);
            (*text).clone_into(&mut record.text);
            record.token_ids = ids.map(<[u32]>::to_vec);
            digests.take(&record);
        }
        digests
    }

    #[test]
    fn answers_are_equal_by_their_words_or_by_ids_and_text_together() {
        let words = of(&[("a b", None), ("c", None), ("d", None), ("e", None)]);
        assert_eq!(words.equal_share(&of(&[("a  b", None), ("c", None), ("x", None)])), Some(2.0 / 3.0));
        assert_eq!(words.first_difference(&of(&[("a b", None), ("c", None), ("x", None)])), Some(2));
        assert_eq!(words.equal_share(&words), Some(1.0));
        assert_eq!(words.equal_share(&AnswerDigests::default()), None);
        let ids = of(&[("a b", Some(&[1, 2]))]);
        for (text, other, share) in [("a b", [1, 2], 1.0), ("a b", [1, 3], 0.0), ("a c", [1, 2], 0.0)] {
            assert_eq!(ids.equal_share(&of(&[(text, Some(&other))])), Some(share), "{text} {other:?}");
        }
        assert_eq!(ids.equal_share(&of(&[("a b", None)])), Some(0.0));
    }

    #[test]
    fn a_text_of_16_characters_for_each_request_is_read_back() {
        let digests: AnswerDigests = [Some(1), None, Some(u64::MAX)].into_iter().collect();
        let text = serde_json::to_string(&digests).unwrap();
        assert_eq!(text, "\"0000000000000001----------------ffffffffffffffff\"");
        assert_eq!(serde_json::from_str::<AnswerDigests>(&text).unwrap(), digests);
        assert_eq!(serde_json::from_str::<AnswerDigests>("\"\"").unwrap(), AnswerDigests::default());
        for wrong in ["0", "+000000000000001", "000000000000000x", "0000000000000001-", "000000000000000é"] {
            assert!(AnswerDigests::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
