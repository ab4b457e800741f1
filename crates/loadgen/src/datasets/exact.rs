//! Random text of an exact number of tokens.
//!
//! Where a tokenizer splits text at spaces, as nearly all do, the text is made of words that are one token each behind
//! another word. Since no token reaches over the end of a word, each adds exactly one wherever it stands. A part begins with
//! a word that is one token by itself, too, so that parts that are drawn apart may be put together. Other tokenizers get text of any ordinary tokens: it is
//! decoded, tokenised again, and mended until its length is right and what was there before has kept its tokens.

use std::sync::Arc;

use super::DatasetError;
use crate::schedule::draw::Draws;
use crate::tokenizer::{Reach, Tokenizer, WordToken};

/// How many words a tokenizer must have at least. Of so many that are tried one in [`SHARE`] must be good behind another, and
/// [`LEAST_FIRST`] by themselves, too.
const LEAST_WORDS: usize = 32;
const TRIED: usize = 512;
const SHARE: usize = 8;
const LEAST_FIRST: usize = 4;

/// The first prompts are all tokenised again, later ones now and then: what is shown for a tokenizer needs no more.
const CHECKED: u64 = 64;

/// How often the length of a drawn text is mended, and how often another is drawn.
const MENDED: u32 = 24;
const DRAWN: u32 = 32;

/// How often a token is drawn until one is ordinary.
const SOUGHT: u32 = 10_000;

/// A text with its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExactText {
    text: String,
    tokens: u32,
    /// Its tokens, where they must be known to make it longer.
    ids: Vec<u32>,
}

impl ExactText {
    /// Returns the text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Returns its length in tokens.
    pub(crate) fn tokens(&self) -> u32 {
        self.tokens
    }
}

/// Makes texts of exact lengths.
#[derive(Debug)]
pub(crate) struct Maker {
    tokenizer: Arc<Tokenizer>,
    kind: Kind,
    checked: u64,
}

#[derive(Debug)]
enum Kind {
    Words(Words),
    Any { vocabulary: u32 },
}

#[derive(Debug)]
struct Words {
    list: Vec<WordToken>,
    /// What is known of each word.
    found: Vec<Found>,
    anchor: String,
    anchor_id: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Unknown,
    /// It isn't one token.
    Bad,
    /// It is one token behind another word.
    Behind,
    /// It is one token behind another word and by itself.
    Anywhere,
}

impl Maker {
    /// Returns a maker for a tokenizer.
    pub(crate) fn new(tokenizer: &Arc<Tokenizer>) -> Result<Self, DatasetError> {
        let kind = match Words::of(tokenizer)? {
            Some(words) => Kind::Words(words),
            None => Kind::Any { vocabulary: tokenizer.vocabulary_size()? },
        };
        Ok(Self { tokenizer: Arc::clone(tokenizer), kind, checked: 0 })
    }

    /// Returns the tokenizer.
    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns a text of `tokens` tokens.
    pub(crate) fn text(&mut self, tokens: u32, draws: &mut Draws) -> Result<ExactText, DatasetError> {
        let mut text = ExactText::default();
        self.extend(&mut text, tokens, draws)?;
        self.check(&text)?;
        Ok(text)
    }

    /// Makes a text longer by `tokens` tokens. Those that it has stay as they are.
    pub(crate) fn extend(&mut self, text: &mut ExactText, tokens: u32, draws: &mut Draws) -> Result<(), DatasetError> {
        match &mut self.kind {
            Kind::Words(words) => {
                for place in 0..tokens {
                    let least = if place == 0 { Found::Anywhere } else { Found::Behind };
                    let word = words.draw(least, &self.tokenizer, draws)?;
                    if !text.text.is_empty() {
                        text.text.push(' ');
                    }
                    text.text.push_str(word);
                }
                text.tokens += tokens;
                Ok(())
            }
            Kind::Any { vocabulary } => {
                let vocabulary = *vocabulary;
                for _ in 0..DRAWN {
                    if self.try_extend(text, tokens, vocabulary, draws)? {
                        return Ok(());
                    }
                }
                Err(self.not_exact(text.tokens + tokens))
            }
        }
    }

    /// Tokenises a whole text again and compares: the first texts, and then every [`CHECKED`]th.
    pub(crate) fn check(&mut self, text: &ExactText) -> Result<(), DatasetError> {
        self.checked += 1;
        let is_due = self.checked <= CHECKED || self.checked.is_multiple_of(CHECKED);
        if is_due && self.tokenizer.count(&text.text)? != text.tokens {
            return Err(self.not_exact(text.tokens));
        }
        Ok(())
    }

    fn not_exact(&self, tokens: u32) -> DatasetError {
        DatasetError::NotExact { tokens, path: self.tokenizer.path().to_owned() }
    }

    /// Tries one drawn text behind another, and returns whether its length could be made right.
    fn try_extend(
        &self,
        text: &mut ExactText,
        tokens: u32,
        vocabulary: u32,
        draws: &mut Draws,
    ) -> Result<bool, DatasetError> {
        let base = text.ids.len();
        let wanted = base + usize::try_from(tokens).unwrap_or(usize::MAX);
        let mut ids = text.ids.clone();
        for _ in 0..MENDED {
            while ids.len() < wanted {
                ids.push(self.ordinary(vocabulary, draws)?);
            }
            ids.truncate(wanted);
            let decoded = self.tokenizer.decode(&ids)?;
            // A server or a template may take away the spaces at a prompt's ends.
            let decoded = if base == 0 { decoded.trim() } else { decoded.trim_end() };
            let again = self.tokenizer.encode(decoded)?;
            if !decoded.starts_with(&text.text) || !again.starts_with(&text.ids) {
                return Ok(false);
            }
            if again.len() == wanted {
                *text = ExactText { text: decoded.to_owned(), tokens: text.tokens + tokens, ids: again };
                return Ok(true);
            }
            ids = again;
        }
        Ok(false)
    }

    /// Returns a token with a text of its own that people could read.
    fn ordinary(&self, vocabulary: u32, draws: &mut Draws) -> Result<u32, DatasetError> {
        for _ in 0..SOUGHT {
            let id = draws.below(vocabulary);
            if !self.tokenizer.is_ordinary(id)? {
                continue;
            }
            let text = self.tokenizer.decode(&[id])?;
            let is_strange = |sign: char| sign.is_control() || sign == char::REPLACEMENT_CHARACTER;
            if !text.trim().is_empty() && !text.chars().any(is_strange) {
                return Ok(id);
            }
        }
        Err(self.not_exact(1))
    }
}

impl Words {
    /// Returns the words of a tokenizer, if it has enough of them and takes them one by one.
    fn of(tokenizer: &Tokenizer) -> Result<Option<Self>, DatasetError> {
        let (list, reach) = tokenizer.words()?;
        if reach == Reach::Beyond || list.len() < LEAST_WORDS {
            return Ok(None);
        }
        let mut anchor = None;
        for candidate in list.iter().take(TRIED) {
            let twice = tokenizer.encode(&format!("{0} {0}", candidate.word))?;
            if let (&[first], &[before, _]) = (tokenizer.encode(&candidate.word)?.as_slice(), twice.as_slice())
                && first == before
            {
                anchor = Some((candidate.word.clone(), first));
                break;
            }
        }
        let Some((anchor, anchor_id)) = anchor else { return Ok(None) };
        let mut words = Self { found: vec![Found::Unknown; list.len()], list, anchor, anchor_id };
        // Evenly over the vocabulary, whose rare words come late.
        let count = words.list.len();
        let tried = TRIED.min(count);
        let (mut behind, mut first) = (0, 0);
        for step in 0..tried {
            let found = words.found(step * count / tried, tokenizer)?;
            behind += usize::from(found >= Found::Behind);
            first += usize::from(found >= Found::Anywhere);
        }
        Ok((behind * SHARE >= tried && first >= LEAST_FIRST).then_some(words))
    }

    /// Draws a word of which at least so much is found.
    fn draw(&mut self, least: Found, tokenizer: &Tokenizer, draws: &mut Draws) -> Result<&str, DatasetError> {
        let bound = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        for _ in 0..SOUGHT {
            let place = draws.below(bound) as usize;
            if self.found(place, tokenizer)? >= least {
                return Ok(self.list.get(place).map_or("", |word| &word.word));
            }
        }
        Err(DatasetError::NotExact { tokens: 1, path: tokenizer.path().to_owned() })
    }

    /// Returns what is found of a word: whether it is one token behind another word, which must stay the same, and by
    /// itself.
    fn found(&mut self, place: usize, tokenizer: &Tokenizer) -> Result<Found, DatasetError> {
        let (Some(word), Some(found)) = (self.list.get(place), self.found.get_mut(place)) else {
            return Ok(Found::Bad);
        };
        if *found == Found::Unknown {
            let behind = tokenizer.encode(&format!("{} {}", self.anchor, word.word))?;
            *found = match behind.as_slice() {
                [first, _] if *first == self.anchor_id => {
                    if tokenizer.count(&word.word)? == 1 {
                        Found::Anywhere
                    } else {
                        Found::Behind
                    }
                }
                _ => Found::Bad,
            };
        }
        Ok(*found)
    }
}

#[cfg(test)]
mod tests;
