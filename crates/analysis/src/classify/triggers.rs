//! Finds the next place in a log at which one of some hundred short pieces of words stands.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

/// How many pieces the processor's vector instructions can look for at once. A search for more would take an automaton byte by
/// byte, which is twenty times as slow as a search for so many, and seven times as slow as three of them.
const AT_ONCE: usize = 64;

/// Pieces of words to look for.
#[derive(Debug)]
pub(super) struct Triggers(Vec<AhoCorasick>);

impl Triggers {
    /// Makes a search ready.
    pub(super) fn new<P: AsRef<[u8]>>(pieces: &[P]) -> Self {
        let search = |pieces: &[P]| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .kind(Some(AhoCorasickKind::DFA))
                .build(pieces)
                .expect("some dozens of short pieces make a small automaton")
        };
        Self(pieces.chunks(AT_ONCE).map(search).collect())
    }

    /// Returns whether a piece stands in a text.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|search| search.is_match(text))
    }

    /// Returns a search of a text for one place after another.
    pub(super) fn search<'t>(&'t self, text: &'t [u8]) -> Search<'t> {
        Search { triggers: self, text, next: vec![Next::Unknown; self.0.len()] }
    }
}

/// What one automaton finds next.
#[derive(Debug, Clone)]
enum Next {
    /// It wasn't asked yet.
    Unknown,
    /// This.
    Found(Range<usize>),
    /// Nothing more.
    Nothing,
}

/// A search of one text. Each automaton looks at each byte once, as long as what is asked for moves forward.
pub(super) struct Search<'t> {
    triggers: &'t Triggers,
    text: &'t [u8],
    next: Vec<Next>,
}

impl Search<'_> {
    /// Returns the first piece that begins at a byte or after it.
    pub(super) fn from(&mut self, start: usize) -> Option<Range<usize>> {
        let mut first: Option<Range<usize>> = None;
        for (search, next) in self.triggers.0.iter().zip(&mut self.next) {
            let is_stale = match next {
                Next::Unknown => true,
                Next::Found(found) => found.start < start,
                Next::Nothing => false,
            };
            if is_stale {
                *next = match search.find(Input::new(self.text).range(start.min(self.text.len())..)) {
                    Some(found) => Next::Found(found.range()),
                    None => Next::Nothing,
                };
            }
            if let Next::Found(found) = next
                && first.as_ref().is_none_or(|first| (found.start, found.end) < (first.start, first.end))
            {
                first = Some(found.clone());
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_found_in_order_whichever_automaton_knows_them() {
        let pieces: Vec<String> = (0..150).map(|number| format!("<{number}>")).collect();
        let triggers = Triggers::new(&pieces);
        assert_eq!(triggers.0.len(), 3);
        let text = b"a <3> b <149> c <70> <3> <999>";
        let mut search = triggers.search(text);
        let (mut at, mut found) = (0, Vec::new());
        while let Some(next) = search.from(at) {
            found.push(String::from_utf8_lossy(&text[next.clone()]).into_owned());
            at = next.end;
        }
        assert_eq!(found, ["<3>", "<149>", "<70>", "<3>"]);
        assert!(triggers.is_in(text) && !triggers.is_in(b"<999>"));
    }
}
