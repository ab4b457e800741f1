//! Prompts that are drawn from a seed alone.

use isobench_schema::workload::Prompts;

use super::draw::Draws;
use super::words::WORDS;
use super::{Content, FIRST_TOKENS, ScheduleError};

/// Prompts that are drawn here, from a seed alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Drawn {
    Words { input_tokens: u32 },
    TokenIds { input_tokens: u32, vocabulary_size: u32, first_id: u32 },
}

impl Drawn {
    pub(crate) fn of(prompts: &Prompts) -> Result<Self, ScheduleError> {
        match *prompts {
            Prompts::Words { input_tokens } => Ok(Self::Words { input_tokens }),
            Prompts::TokenIds { input_tokens, vocabulary_size, first_id } => {
                Ok(Self::TokenIds { input_tokens, vocabulary_size, first_id })
            }
            Prompts::Dataset { ref name, .. } => Err(ScheduleError::Dataset { name: name.clone() }),
        }
    }

    pub(crate) fn input_tokens(self) -> u32 {
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

    pub(crate) fn draw(self, draws: &mut Draws) -> Content {
        match self {
            Self::Words { input_tokens } => {
                let mut text = String::new();
                for place in 0..input_tokens {
                    if place > 0 {
                        text.push(' ');
                    }
                    text.push_str(draw_word(draws));
                }
                Content::Text(text)
            }
            Self::TokenIds { input_tokens, vocabulary_size, first_id } => {
                let span = vocabulary_size.saturating_sub(first_id);
                Content::Ids((0..input_tokens).map(|_| first_id + draws.below(span)).collect())
            }
        }
    }
}

fn draw_word(draws: &mut Draws) -> &'static str {
    let bound = u32::try_from(WORDS.len()).unwrap_or(u32::MAX);
    WORDS.get(draws.below(bound) as usize).copied().unwrap_or("word")
}
