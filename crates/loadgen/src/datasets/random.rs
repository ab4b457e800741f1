//! `random`: prompts of random text with exact lengths in tokens, behind a common prefix if one is asked for. Without a
//! tokenizer lengths are in words.

use super::{Context, DatasetError, ExactText, Maker, Options, Source};
use crate::schedule::draw::Draws;
use crate::schedule::words::push_words;
use crate::schedule::{Content, Request};

/// Lengths as in vLLM's benchmark.
const INPUT: u32 = 1024;
const OUTPUT: u32 = 128;

/// What the ratio of lengths means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// From length x (1 - ratio) to length x (1 + ratio), as in vLLM since 0.8.4.
    Around,
    /// From length x ratio to length, as in vLLM before that and in SGLang.
    UpTo,
}

/// Lengths that are drawn evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    least: u32,
    most: u32,
}

impl Span {
    /// Returns the lengths around or up to `length`.
    pub(super) fn new(length: u32, ratio: f64, meaning: Meaning) -> Self {
        let length = f64::from(length);
        let (least, most) = match meaning {
            Meaning::Around => ((length * (1.0 - ratio)).floor(), (length * (1.0 + ratio)).ceil()),
            Meaning::UpTo => ((length * ratio).floor(), length),
        };
        Self { least: whole(least), most: whole(most) }
    }

    /// Returns lengths of at least `least`.
    pub(super) fn at_least(self, least: u32) -> Self {
        Self { least: self.least.max(least), most: self.most.max(least) }
    }

    /// Draws a length.
    pub(super) fn draw(self, draws: &mut Draws) -> u32 {
        draws.between(self.least, self.most)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lengths are between 0 and twice the longest"
)]
fn whole(length: f64) -> u32 {
    length as u32
}

/// What prompts are made of.
enum Text {
    /// Text of so many tokens.
    Tokens {
        /// Makes it.
        maker: Box<Maker>,
        /// The common beginning.
        prefix: ExactText,
    },
    /// So many words, where there is no tokenizer.
    Words {
        /// The common beginning, and its words.
        prefix: String,
        /// See `prefix`.
        words: u32,
    },
}

impl Text {
    /// Returns a text of so many tokens or words behind the prefix, and its length.
    fn draw(&mut self, length: u32, draws: &mut Draws) -> Result<(String, u32), DatasetError> {
        match self {
            Self::Tokens { maker, prefix } => {
                let mut text = prefix.clone();
                maker.extend(&mut text, length, draws)?;
                maker.check(&text)?;
                let tokens = text.tokens();
                Ok((text.into_text(), tokens))
            }
            Self::Words { prefix, words } => {
                let mut text = prefix.clone();
                push_words(&mut text, length, draws);
                Ok((text, *words + length))
            }
        }
    }
}

/// Random prompts.
pub(super) struct Random {
    text: Text,
    draws: Draws,
    lengths: Draws,
    /// Tokens that the server puts around the prompt.
    special: u32,
    input: Span,
    output: Span,
}

impl Random {
    /// Opens it.
    ///
    /// `random-input-len` is the length of a prompt behind the prefix with the tokens that the server adds to it, as in
    /// vLLM; with `count-special-tokens` off it is the length of the text alone. Prompts of the chat interface are counted
    /// without their template in any case. `random-range-ratio` has the meaning that `range-meaning` says: `around`, the
    /// default, or `up-to`.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let input = options.tokens(&["random-input-len", "input-len"], INPUT)?;
        let output = options.whole(&["random-output-len", "output-len"], 0, u32::MAX / 4)?;
        let prefix = options.tokens(&["random-prefix-len", "prefix-len"], 0)?;
        let ratios = options.ratios("random-range-ratio")?;
        let meaning = options.choice("range-meaning", &[("around", Meaning::Around), ("up-to", Meaning::UpTo)])?;
        let counts_special = options.switch("count-special-tokens", true)?;
        let shares = options.switch("warm-prefixes", false)?;
        let tokenizer = context.resources.tokenizer.as_ref();
        let special = tokenizer.map_or(Ok(0), |tokenizer| context.special_tokens(tokenizer))?;
        let same = match meaning {
            Meaning::Around => 0.0,
            Meaning::UpTo => 1.0,
        };
        let (input_ratio, output_ratio) = ratios.unwrap_or((same, same));
        let own = if counts_special { input.saturating_sub(special) } else { input };
        let span = Span::new(own, input_ratio, meaning);
        if prefix + span.most == 0 {
            return Err(options.refuse("random-input-len", input, "longer than the tokens that the server adds"));
        }
        let least = u32::from(prefix == 0);
        let mut prefix_draws =
            if shares { context.shared_draws("random prefix") } else { context.draws("random prefix") };
        let text = if let Some(tokenizer) = tokenizer {
            let mut maker = Box::new(Maker::new(tokenizer)?);
            let prefix = maker.text(prefix, &mut prefix_draws)?;
            Text::Tokens { maker, prefix }
        } else {
            let mut text = String::new();
            push_words(&mut text, prefix, &mut prefix_draws);
            Text::Words { prefix: text, words: prefix }
        };
        let output = context.output_tokens(output, OUTPUT);
        Ok(Self {
            text,
            draws: context.draws("random text"),
            lengths: context.draws("random lengths"),
            special,
            input: span.at_least(least),
            output: Span::new(output, output_ratio, meaning).at_least(output.min(1)),
        })
    }
}

impl Source for Random {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let (text, length) = self.text.draw(self.input.draw(&mut self.lengths), &mut self.draws)?;
        let output_tokens = self.output.draw(&mut self.lengths);
        Ok(Request::new(Content::Text(text), length + self.special, output_tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_meanings_of_the_ratio_give_their_own_span() {
        let span = |ratio, meaning| {
            let span = Span::new(1000, ratio, meaning);
            (span.least, span.most)
        };
        assert_eq!(span(0.0, Meaning::Around), (1000, 1000));
        assert_eq!(span(0.25, Meaning::Around), (750, 1250));
        assert_eq!(span(1.0, Meaning::UpTo), (1000, 1000));
        assert_eq!(span(0.25, Meaning::UpTo), (250, 1000));
        let all: std::collections::BTreeSet<u32> = {
            let mut draws = Draws::new(1, "test");
            (0..200).map(|_| Span { least: 3, most: 7 }.draw(&mut draws)).collect()
        };
        assert_eq!(all.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    }
}
