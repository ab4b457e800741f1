//! Prompts that are drawn from a seed alone.

use super::draw::Draws;
use super::words::push_words;
use super::{Content, FIRST_TOKENS, Request};
use crate::datasets::{DatasetError, Source};

/// Prompts that are drawn here, from a seed alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Drawn {
    Words { input_tokens: u32 },
    TokenIds { input_tokens: u32, vocabulary_size: u32, first_id: u32 },
}

/// Requests with such prompts, all of the same lengths.
#[derive(Debug)]
pub(crate) struct DrawnSource {
    pub(crate) kind: Drawn,
    pub(crate) output_tokens: u32,
    pub(crate) draws: Draws,
}

impl Source for DrawnSource {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let content = self.kind.draw(&mut self.draws);
        Ok(Request::new(content, self.kind.input_tokens(), self.output_tokens))
    }
}

impl Drawn {
    fn input_tokens(self) -> u32 {
        match self {
            Self::Words { input_tokens } | Self::TokenIds { input_tokens, .. } => input_tokens,
        }
    }

    /// Returns prompts like these, but of at most [`FIRST_TOKENS`] tokens.
    pub(crate) fn shortened(self) -> Self {
        match self {
            Self::Words { input_tokens } => Self::Words { input_tokens: input_tokens.min(FIRST_TOKENS) },
            Self::TokenIds { input_tokens, vocabulary_size, first_id } => {
                Self::TokenIds { input_tokens: input_tokens.min(FIRST_TOKENS), vocabulary_size, first_id }
            }
        }
    }

    fn draw(self, draws: &mut Draws) -> Content {
        match self {
            Self::Words { input_tokens } => {
                let mut text = String::new();
                push_words(&mut text, input_tokens, draws);
                Content::Text(text)
            }
            Self::TokenIds { input_tokens, vocabulary_size, first_id } => {
                let span = vocabulary_size.saturating_sub(first_id);
                Content::Ids((0..input_tokens).map(|_| first_id + draws.below(span)).collect())
            }
        }
    }
}
