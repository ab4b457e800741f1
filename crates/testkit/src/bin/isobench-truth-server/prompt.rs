//! Prompts: their tokens, and what of them a prefix cache holds.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// The tokens that the prefix cache holds as one.
const BLOCK: u64 = 16;
/// The most blocks in the prefix cache; it starts anew when it is full.
const MOST_BLOCKS: usize = 1 << 20;

/// A prompt, of which each word is a token, and so is each number of a list of token ids.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) tokens: u64,
    /// A hash of all that comes before the end of each block.
    blocks: Vec<u64>,
    hasher: DefaultHasher,
}

impl Prompt {
    /// Returns the prompt in a request's values.
    pub(crate) fn of<'v>(values: impl Iterator<Item = &'v Value>) -> Self {
        let mut prompt = Self::default();
        values.for_each(|value| prompt.add(value));
        prompt
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                for word in text.split_ascii_whitespace() {
                    word.hash(&mut self.hasher);
                    self.count();
                }
            }
            Value::Number(id) => {
                id.hash(&mut self.hasher);
                self.count();
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(message) => {
                ["content", "text"].into_iter().filter_map(|key| message.get(key)).for_each(|part| self.add(part));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn count(&mut self) {
        self.tokens += 1;
        if self.tokens.is_multiple_of(BLOCK) {
            self.blocks.push(self.hasher.finish());
        }
    }
}

/// The beginnings of prompts that were seen.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache {
    blocks: HashSet<u64>,
    /// Tokens that were looked up.
    pub(crate) queries: u64,
    /// Tokens of them that were there.
    pub(crate) hits: u64,
}

impl PrefixCache {
    /// Looks a prompt up and keeps it.
    pub(crate) fn look_up(&mut self, prompt: &Prompt) {
        let known = prompt.blocks.iter().take_while(|block| self.blocks.contains(block)).count();
        self.queries += prompt.tokens;
        self.hits += u64::try_from(known).unwrap_or(0) * BLOCK;
        if self.blocks.len() + prompt.blocks.len() > MOST_BLOCKS {
            self.blocks.clear();
        }
        self.blocks.extend(&prompt.blocks);
    }

    /// Forgets all prompts.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_blocks_of_a_common_beginning_are_hits() {
        let prompt = |words: std::ops::Range<u32>| {
            let text = words.map(|word| word.to_string()).collect::<Vec<_>>().join(" ");
            Prompt::of([&serde_json::json!([{"role": "user", "content": text}])].into_iter())
        };
        let mut cache = PrefixCache::default();
        for (words, hits) in [(0..40, 0), (0..40, 32), (0..20, 48), (1..40, 48)] {
            cache.look_up(&prompt(words));
            assert_eq!(cache.hits, hits);
        }
        assert_eq!(cache.queries, 40 + 40 + 20 + 39);
        cache.clear();
        cache.look_up(&prompt(0..40));
        assert_eq!(cache.hits, 48);
    }
}
