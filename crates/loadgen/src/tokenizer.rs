//! The model's own tokenizer: counts tokens, and tells the ordinary ones from those with a meaning of their own.
//!
//! It is read from a `tokenizer.json` when it is first used. That takes its time (see [`Tokenizer::at`]), so that prepared
//! requests are kept and sent again without it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use isobench_schema::ids::Digest;
use tokenizers::PostProcessor as _;
use tokenizers::models::ModelWrapper;

/// The file that holds a tokenizer.
const FILE: &str = "tokenizer.json";

/// Why a tokenizer can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// There is nothing to read.
    #[error("there is no tokenizer at `{path}`: give a `tokenizer.json`, or the folder of a model that holds one")]
    Missing {
        /// What was given.
        path: PathBuf,
    },
    /// The file can't be read.
    #[error("failed to read the tokenizer `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file is no tokenizer of a known form.
    #[error(
        "`{path}` is no tokenizer that can be read ({cause}): give the `tokenizer.json` of the model that is served"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What its reader says.
        cause: String,
    },
    /// The tokenizer fails on a text, or on token ids.
    #[error("the tokenizer `{path}` can't {what}: {cause}")]
    Fails {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What it says.
        cause: String,
    },
}

/// A model's tokenizer.
///
/// No count includes the special tokens that a server puts around a text; [`Tokenizer::special_tokens`] says how many
/// these are.
#[derive(Debug)]
pub struct Tokenizer {
    path: PathBuf,
    loaded: OnceLock<Loaded>,
    digest: OnceLock<Digest>,
}

#[derive(Debug)]
struct Loaded {
    inner: tokenizers::Tokenizer,
    /// How many tokens a server adds to a text.
    special_tokens: u32,
    /// Tokens that stand for themselves in every text.
    added: HashSet<u32>,
}

/// A token that may be a whole word, by the form of its entry in the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordToken {
    pub(crate) id: u32,
    /// The word, without the space before it.
    pub(crate) word: String,
}

impl Tokenizer {
    /// Returns the tokenizer that `path` is or holds, without reading it.
    ///
    /// Reading happens once, when it is first used: with a generated vocabulary of 128,000 tokens and as many merges it took
    /// 0.3 s of CPU time and 90 MB of memory, and tokenising 1.6 us for each token (optimised build, one core).
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn at(path: &Path) -> Result<Self, TokenizerError> {
        let file = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        if !file.is_file() {
            return Err(TokenizerError::Missing { path: path.to_owned() });
        }
        Ok(Self { path: file, loaded: OnceLock::new(), digest: OnceLock::new() })
    }

    /// Returns its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file was read: whether the memory for it is taken.
    pub fn is_loaded(&self) -> bool {
        self.loaded.get().is_some()
    }

    /// Returns the digest of its file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn digest(&self) -> Result<&Digest, TokenizerError> {
        if let Some(digest) = self.digest.get() {
            return Ok(digest);
        }
        let bytes = self.bytes()?;
        Ok(self.digest.get_or_init(|| Digest::of(&bytes)))
    }

    /// Returns how many tokens a server adds to a text that it gets by itself, such as one for its begin.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or is no tokenizer.
    pub fn special_tokens(&self) -> Result<u32, TokenizerError> {
        Ok(self.loaded()?.special_tokens)
    }

    /// Returns how many tokens a text has.
    ///
    /// # Errors
    /// As for [`Tokenizer::encode`].
    pub fn count(&self, text: &str) -> Result<u32, TokenizerError> {
        let encoding = self.loaded()?.inner.encode_fast(text, false).map_err(|cause| self.fails("encode", &cause))?;
        u32::try_from(encoding.len()).map_err(|_too_long| self.fails("count", &"more than 4,294,967,295 tokens"))
    }

    /// Returns the tokens of a text.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or is no tokenizer, or if the tokenizer doesn't take the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.loaded()?.inner.encode_fast(text, false).map_err(|cause| self.fails("encode", &cause))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the text of tokens, without those that have no text of their own.
    ///
    /// # Errors
    /// As for [`Tokenizer::encode`].
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        self.loaded()?.inner.decode(ids, true).map_err(|cause| self.fails("decode", &cause))
    }

    /// Returns how many tokens each chunk of a text brought, where `chunk_bytes` are the chunks' lengths in bytes.
    ///
    /// The whole text is tokenised, because a chunk by itself may have more tokens than it brought or fewer. A token
    /// belongs to the chunk in which its last byte falls, so that the sum is the count of the whole text; what comes after
    /// the last chunk belongs to that. Without chunks there is nothing to belong to: the answer is empty.
    ///
    /// # Errors
    /// As for [`Tokenizer::encode`].
    pub fn chunk_tokens(&self, text: &str, chunk_bytes: &[usize]) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.loaded()?.inner.encode(text, false).map_err(|cause| self.fails("encode", &cause))?;
        let mut counts = vec![0_u32; chunk_bytes.len()];
        let mut chunks = counts.iter_mut().zip(chunk_bytes).peekable();
        let (mut chunk_end, mut token_end) = (0, 0);
        let Some((mut count, first)) = chunks.next() else { return Ok(counts) };
        chunk_end += first;
        for (_, end) in encoding.get_offsets() {
            // A tokenizer that changes text before it splits it may place a token before the one that it follows.
            token_end = token_end.max(*end);
            while chunk_end < token_end.max(1) {
                let Some((next, bytes)) = chunks.next() else { break };
                (count, chunk_end) = (next, chunk_end + bytes);
            }
            *count += 1;
        }
        Ok(counts)
    }

    /// Returns whether a token is neither special nor added: whether only the text around it decides if it appears.
    pub(crate) fn is_ordinary(&self, id: u32) -> Result<bool, TokenizerError> {
        Ok(!self.loaded()?.added.contains(&id))
    }

    /// Returns the number of tokens of the vocabulary, without added ones.
    pub(crate) fn vocabulary_size(&self) -> Result<u32, TokenizerError> {
        Ok(u32::try_from(self.loaded()?.inner.get_vocab_size(false)).unwrap_or(u32::MAX))
    }

    /// Returns the tokens that may be whole words of at least two ASCII letters, by id, and whether no token reaches over
    /// the end of a word, in which case words are tokenised one by one whatever stands beside them.
    pub(crate) fn words(&self) -> Result<(Vec<WordToken>, Reach), TokenizerError> {
        let loaded = self.loaded()?;
        let (mark, inner) = match loaded.inner.get_model() {
            ModelWrapper::BPE(_) | ModelWrapper::Unigram(_) => (true, ""),
            ModelWrapper::WordPiece(model) => (false, model.continuing_subword_prefix.as_str()),
            ModelWrapper::WordLevel(_) => (false, ""),
        };
        let is_word = |text: &str| text.len() >= 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        let mut words = Vec::new();
        let mut reach = Reach::Word;
        for (token, id) in loaded.inner.get_vocab(true) {
            let mut pairs = token.chars().zip(token.chars().skip(1));
            if pairs.any(|(before, sign)| before.is_ascii_alphabetic() && is_space(sign)) {
                reach = Reach::Beyond;
            }
            if loaded.added.contains(&id) {
                continue;
            }
            let word = if mark {
                token.strip_prefix(is_space)
            } else if inner.is_empty() || !token.starts_with(inner) {
                Some(token.as_str())
            } else {
                None
            };
            if let Some(word) = word.filter(|word| is_word(word)) {
                words.push(WordToken { id, word: word.to_owned() });
            }
        }
        words.sort_unstable_by_key(|word| word.id);
        Ok((words, reach))
    }

    fn bytes(&self) -> Result<Vec<u8>, TokenizerError> {
        fs::read(&self.path).map_err(|source| TokenizerError::Read { path: self.path.clone(), source })
    }

    fn loaded(&self) -> Result<&Loaded, TokenizerError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let bytes = self.bytes()?;
        // Two threads may get here at once: both read the same file, and the first one's tokenizer is kept.
        let loaded = Loaded::read(&bytes)
            .map_err(|cause| TokenizerError::Malformed { path: self.path.clone(), cause: cause.to_string() })?;
        self.digest.get_or_init(|| Digest::of(&bytes));
        Ok(self.loaded.get_or_init(|| loaded))
    }

    fn fails(&self, what: &'static str, cause: &dyn std::fmt::Display) -> TokenizerError {
        TokenizerError::Fails { path: self.path.clone(), what, cause: cause.to_string() }
    }
}

/// How far tokens reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// No token holds the end of one word and the begin of another.
    Word,
    /// Some may.
    Beyond,
}

impl Loaded {
    fn read(bytes: &[u8]) -> tokenizers::Result<Self> {
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes)?;
        // Some files cut texts or fill them up, which is for training.
        inner.with_truncation(None)?;
        inner.with_padding(None);
        let special_tokens = inner.get_post_processor().map_or(0, |processor| processor.added_tokens(false));
        // What it does to tokens beside adding some is to leave spaces out of their places, which would move them.
        inner.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        let added = inner.get_added_tokens_decoder().into_keys().collect();
        Ok(Self { inner, special_tokens: u32::try_from(special_tokens)?, added })
    }
}

/// Returns whether a sign of a vocabulary stands for a space.
fn is_space(sign: char) -> bool {
    matches!(sign, ' ' | '\u{2581}' | '\u{120}')
}

#[cfg(test)]
pub(crate) mod tests;
