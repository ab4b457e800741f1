//! `sonnet`: lines of verse, some of them the same in all prompts. The verse is this program's own unless a file is given.

use super::verse::VERSE;
use super::{Context, DatasetError, Input, Options, Source};
use crate::schedule::draw::Draws;
use crate::schedule::{Content, Request};
use crate::tokenizer::Tokenizer;
use isobench_schema::ids::Digest;
use std::fs;
use std::sync::Arc;

/// Lengths as in vLLM's benchmark, in tokens.
const INPUT: u32 = 550;
const OUTPUT: u32 = 150;
const PREFIX: u32 = 200;

/// What a prompt begins with.
const INTRODUCTION: &str = "Here are lines of verse. Write on in the same way:\n";

/// The largest file of verse, in bytes.
const LARGEST: u64 = 16 << 20;

/// Prompts of verse.
pub(super) struct Sonnet {
    tokenizer: Arc<Tokenizer>,
    draws: Draws,
    lines: Vec<Line>,
    /// The introduction and the lines that all prompts have.
    prefix: String,
    prefix_tokens: u32,
    /// The most tokens of a prompt, without those that the server adds.
    input: u32,
    special: u32,
    output_tokens: u32,
    file: Option<Input>,
}

/// A line with its end, and its length in tokens.
struct Line {
    text: String,
    tokens: u32,
}

impl Sonnet {
    /// Opens it. A prompt has as many lines as go into `sonnet-input-len` tokens, and the first of them, as many as go into
    /// `sonnet-prefix-len`, are the same in all prompts.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let asked = options.tokens(&["sonnet-input-len", "input-len"], INPUT)?;
        let output = options.whole(&["sonnet-output-len", "output-len"], 0, u32::MAX / 4)?;
        let prefix_tokens = options.tokens(&["sonnet-prefix-len", "prefix-len"], PREFIX.min(asked))?;
        let path = options.path(context)?;
        if prefix_tokens > asked {
            return Err(options.refuse("sonnet-prefix-len", prefix_tokens, "at most the length of a prompt"));
        }
        let tokenizer = Arc::clone(context.tokenizer("sonnet")?);
        let special = context.special_tokens(&tokenizer)?;
        let (text, file) = match path {
            None => (VERSE.to_owned(), None),
            Some(path) => {
                let failed = |source| DatasetError::Read { path: path.clone(), source };
                if fs::metadata(&path).map_err(failed)?.len() > LARGEST {
                    let what = format!("it is larger than {} MiB", LARGEST >> 20);
                    return Err(DatasetError::Form { path, what });
                }
                let text = fs::read_to_string(&path).map_err(failed)?;
                let digest = Digest::of(text.as_bytes());
                (text, Some(Input { path, digest }))
            }
        };
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let text = format!("{line}\n");
            let tokens = tokenizer.count(&text)?;
            lines.push(Line { text, tokens });
        }
        if let (true, Some(Input { path, .. })) = (lines.is_empty(), &file) {
            return Err(DatasetError::Empty { path: path.clone(), rule: "a line must hold text" });
        }
        let input = asked.saturating_sub(special);
        let mut prefix = INTRODUCTION.to_owned();
        for line in &lines {
            let longer = format!("{prefix}{}", line.text);
            if tokenizer.count(longer.trim_end())? + special > prefix_tokens {
                break;
            }
            prefix = longer;
        }
        let prefix_tokens = tokenizer.count(prefix.trim_end())?;
        if prefix_tokens > input {
            let rule = format!("at least {}, the length of a prompt without a line", prefix_tokens + special);
            return Err(options.refuse("sonnet-input-len", asked, &rule));
        }
        let output_tokens = context.output_tokens(output, OUTPUT);
        let draws = context.draws("verse");
        Ok(Self { tokenizer, draws, lines, prefix, prefix_tokens, input, special, output_tokens, file })
    }

    /// Draws one of the lines that have at most so many tokens.
    fn line(&mut self, most: u32) -> Option<&Line> {
        let fitting = self.lines.iter().filter(|line| line.tokens <= most);
        let count = u32::try_from(fitting.clone().count()).unwrap_or(u32::MAX);
        fitting.clone().nth(self.draws.below(count) as usize)
    }
}

impl Source for Sonnet {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let mut text = self.prefix.clone();
        let mut ends = vec![text.len()];
        let mut left = self.input - self.prefix_tokens;
        while let Some(line) = self.line(left) {
            let tokens = line.tokens;
            text.push_str(&line.text);
            ends.push(text.len());
            // A line of no tokens would be put there for ever.
            left -= tokens.max(1).min(left);
        }
        // Lines may have more tokens beside others than by themselves.
        let mut tokens = self.tokenizer.count(text.trim_end())?;
        while tokens > self.input && ends.len() > 1 {
            ends.pop();
            text.truncate(ends.last().copied().unwrap_or_default());
            tokens = self.tokenizer.count(text.trim_end())?;
        }
        text.truncate(text.trim_end().len());
        Ok(Request::new(Content::Text(text), tokens + self.special, self.output_tokens))
    }

    fn file(&self) -> Option<Input> {
        self.file.clone()
    }
}
