//! The table made ready for searching: all phrases in one automaton, the patterns of single signatures beside it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use super::table::{Signature, Signatures};
use super::triggers::Triggers;
use super::words::{WORDS, Word};

/// The number of a phrase.
pub(super) type Phrase = u16;

/// A set of phrases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Phrases(Vec<u64>);

impl Phrases {
    /// Adds a phrase.
    pub(super) fn insert(&mut self, phrase: Phrase) {
        let word = usize::from(phrase / 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(bits) = self.0.get_mut(word) {
            *bits |= 1 << (phrase % 64);
        }
    }

    /// Adds all phrases of another set.
    pub(super) fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (bits, more) in self.0.iter_mut().zip(&other.0) {
            *bits |= more;
        }
    }

    /// Returns whether a phrase is in it.
    pub(super) fn has(&self, phrase: Phrase) -> bool {
        self.0.get(usize::from(phrase / 64)).is_some_and(|bits| bits & (1 << (phrase % 64)) != 0)
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(|bits| *bits = 0);
    }
}

/// A signature made ready.
#[derive(Debug)]
pub(super) struct Row {
    /// As the table has it.
    pub(super) signature: &'static Signature,
    pub(super) all: Vec<Phrase>,
    pub(super) any: Vec<Phrase>,
    pub(super) not: Vec<Phrase>,
    pub(super) after: Vec<Vec<Phrase>>,
    pub(super) unless_after: Vec<Phrase>,
    pub(super) pattern: Option<Regex>,
    /// Rows that it wins over.
    pub(super) over: Vec<usize>,
}

/// A number to remember, made ready.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) name: &'static str,
    pub(super) phrase: Phrase,
    pub(super) pattern: Regex,
}

/// The table made ready.
#[derive(Debug)]
pub(super) struct Matcher {
    pub(super) triggers: Triggers,
    pub(super) phrases: AhoCorasick,
    pub(super) rows: Vec<Row>,
    /// The rows of which a phrase is one that must or may stand on the line.
    pub(super) rows_of: Vec<Vec<usize>>,
    pub(super) ready: Vec<Phrase>,
    pub(super) ending: Vec<Phrase>,
    pub(super) memories: Vec<Memory>,
    pub(super) words: Vec<(Phrase, Word)>,
}

impl Matcher {
    /// Returns the table that is built into the program, made ready once.
    pub(super) fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Matcher> = OnceLock::new();
        EMBEDDED.get_or_init(|| Self::new(Signatures::embedded()))
    }

    fn new(table: &'static Signatures) -> Self {
        let mut numbers = Numbers::default();
        let places: BTreeMap<&str, usize> =
            table.signature.iter().enumerate().map(|(place, row)| (row.id.as_str(), place)).collect();
        let rows: Vec<Row> = table.signature.iter().map(|row| numbers.row(row, &places)).collect();
        let ready = numbers.of(&table.ready);
        let ending = numbers.of(&table.ending);
        let memories: Vec<Memory> = table
            .remembered
            .iter()
            .map(|row| Memory { name: &row.name, phrase: numbers.one(&row.phrase), pattern: pattern(&row.pattern) })
            .collect();
        let words = WORDS.iter().map(|&(word, says)| (numbers.one(word), says)).collect();
        let mut rows_of = vec![Vec::new(); numbers.phrases.len()];
        for (place, row) in rows.iter().enumerate() {
            // One phrase of those that must all stand there is enough to ask for the rest.
            let keys = if row.any.is_empty() { row.all.get(..1).unwrap_or_default() } else { &row.any };
            for &phrase in keys {
                if let Some(rows) = rows_of.get_mut(usize::from(phrase)) {
                    rows.push(place);
                }
            }
        }
        Self {
            triggers: Triggers::new(&table.trigger),
            phrases: AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .build(&numbers.phrases)
                .expect("a table of phrases makes a small automaton"),
            rows,
            rows_of,
            ready,
            ending,
            memories,
            words,
        }
    }
}

/// Gives phrases their numbers.
#[derive(Default)]
struct Numbers {
    phrases: Vec<&'static str>,
    known: BTreeMap<&'static str, Phrase>,
}

impl Numbers {
    fn one(&mut self, phrase: &'static str) -> Phrase {
        *self.known.entry(phrase).or_insert_with(|| {
            self.phrases.push(phrase);
            Phrase::try_from(self.phrases.len() - 1).expect("a table has far fewer than 65536 phrases")
        })
    }

    fn of(&mut self, phrases: &'static [String]) -> Vec<Phrase> {
        phrases.iter().map(|phrase| self.one(phrase)).collect()
    }

    fn row(&mut self, row: &'static Signature, places: &BTreeMap<&str, usize>) -> Row {
        Row {
            signature: row,
            all: self.of(&row.all),
            any: self.of(&row.any),
            not: self.of(&row.not),
            after: row.after.iter().map(|phrases| self.of(phrases)).collect(),
            unless_after: self.of(&row.unless_after),
            pattern: row.pattern.as_deref().map(pattern),
            over: row.over.iter().filter_map(|id| places.get(id.as_str()).copied()).collect(),
        }
    }
}

/// Returns a pattern of the table, which a test compiles, too.
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns of the table are well-formed")
}
