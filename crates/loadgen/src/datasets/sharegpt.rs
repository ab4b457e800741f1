//! `sharegpt`: the first question of each conversation of a file of `ShareGPT`, with an answer as long as the one there.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::reader::{Choice, Parsed, RowReader};
use super::{Context, DatasetError, Input, Options, Source};
use crate::schedule::{Content, Request};
use crate::tokenizer::Tokenizer;

/// The rules of vLLM's and SGLang's benchmarks: the shortest prompt and answer, the longest prompt, and the longest of both
/// together, in tokens.
const SHORTEST: u32 = 4;
const LONGEST_PROMPT: u32 = 1024;
const LONGEST: u32 = 2048;

const RULE: &str = "a conversation must have two turns, a prompt of 4 to 1024 tokens and an answer of 4 or more, and 2048 \
                    tokens together at most";

/// One conversation of the file.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow, default)]
    conversations: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    value: Cow<'a, str>,
}

/// The first questions of conversations.
pub(super) struct ShareGpt {
    reader: RowReader,
    tokenizer: Arc<Tokenizer>,
    /// Tokens that the server puts around a text.
    special: u32,
    /// The length of every answer, if it isn't the one of the conversation.
    output_tokens: Option<u32>,
}

impl ShareGpt {
    /// Opens it. As in vLLM's benchmark, lengths that are compared and sent count the tokens that the tokenizer puts around
    /// a text, of prompts as of answers, and a row is left out by its prompt's length and the length of the answer that is
    /// asked.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let given = options.tokens(&["sharegpt-output-len", "output-len"], 0)?;
        let tokenizer = Arc::clone(context.tokenizer("sharegpt")?);
        let special = context.special_tokens(&tokenizer)?;
        let output_tokens = context.asked(Some(given));
        let reader = RowReader::open(options, context, Choice::Shuffled, 0)?;
        Ok(Self { reader, tokenizer, special, output_tokens })
    }
}

impl Source for ShareGpt {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let Self { reader, tokenizer, special, output_tokens } = self;
        let parse = |bytes: &[u8]| {
            let row: Row<'_> = match serde_json::from_slice(bytes) {
                Ok(row) => row,
                Err(error) => return Ok(Parsed::Bad(format!("it is no conversation: {error}"))),
            };
            let [prompt, answer, ..] = row.conversations.as_slice() else { return Ok(Parsed::LeftOut) };
            let input = tokenizer.count(&prompt.value)? + *special;
            let output = match output_tokens {
                Some(asked) => *asked,
                None => tokenizer.count(&answer.value)? + *special,
            };
            let is_short = input < SHORTEST || (output_tokens.is_none() && output < SHORTEST);
            if is_short || input > LONGEST_PROMPT || input + output > LONGEST {
                return Ok(Parsed::LeftOut);
            }
            Ok(Parsed::Row(Request::new(Content::Text(prompt.value.clone().into_owned()), input, output)))
        };
        Ok(reader.next(RULE, parse)?.0)
    }

    fn left_out(&self) -> u64 {
        self.reader.left_out()
    }

    fn again(&self) -> u64 {
        self.reader.again()
    }

    fn file(&self) -> Option<Input> {
        Some(self.reader.input())
    }
}
