//! Prompts that share what they begin with: `prefix-repetition`, some prefixes again and again, and `prefix-tree`, paths
//! through a tree whose nodes are text.

use super::{Context, DatasetError, ExactText, Maker, Options, Source};
use crate::schedule::draw::Draws;
use crate::schedule::{Content, Request};

/// Lengths and counts as in vLLM's benchmark.
const PREFIX: u32 = 256;
const SUFFIX: u32 = 256;
const PREFIXES: u32 = 10;
const OUTPUT: u32 = 128;

/// The tree where nothing else is asked for.
const LEVELS: u32 = 3;
const BRANCHING: u32 = 4;
const LEVEL: u32 = 128;

/// What prompts begin with is drawn from this seed and a name, so that it needn't be kept.
struct Shared {
    seed: u64,
    scope: &'static str,
}

impl Shared {
    /// Reads the option that lets the warm-up have the same beginnings as the window, so that the server knows them.
    fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let scope = if options.switch("warm-prefixes", false)? { "both" } else { context.part.as_str() };
        Ok(Self { seed: context.seed, scope })
    }

    fn draws(&self, name: &str) -> Draws {
        Draws::new(self.seed, &format!("prefix/{}/{name}", self.scope))
    }
}

/// `prefix-repetition`.
pub(super) struct Repetition {
    maker: Maker,
    shared: Shared,
    draws: Draws,
    /// The prefix of each request.
    order: std::vec::IntoIter<u32>,
    prefix: u32,
    suffix: u32,
    special: u32,
    output_tokens: u32,
}

impl Repetition {
    /// Opens it. Each prefix comes equally often, to one request, in a random order.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let prefix = options.tokens(&["prefix-repetition-prefix-len"], PREFIX)?;
        let suffix = options.tokens(&["prefix-repetition-suffix-len"], SUFFIX)?;
        let prefixes = options.whole(&["prefix-repetition-num-prefixes"], 1, u32::MAX)?.unwrap_or(PREFIXES);
        let output = options.whole(&["prefix-repetition-output-len", "output-len"], 0, u32::MAX / 4)?;
        let is_shuffled = !options.switch("disable-shuffle", false)?;
        let shared = Shared::open(options, context)?;
        if prefix + suffix == 0 {
            return Err(options.refuse("prefix-repetition-suffix-len", suffix, "at least 1 where there is no prefix"));
        }
        let tokenizer = context.tokenizer("prefix-repetition")?;
        let special = context.special_tokens(tokenizer)?;
        let maker = Maker::new(tokenizer)?;
        // Without a shuffle all requests of one prefix come together, as in vLLM.
        let each = context.requests.div_ceil(prefixes).max(1);
        let mut order: Vec<u32> = (0..context.requests).map(|request| request / each).collect();
        if is_shuffled {
            order = (0..context.requests).map(|request| request % prefixes).collect();
            context.draws("prefix order").shuffle(&mut order);
        }
        Ok(Self {
            maker,
            shared,
            draws: context.draws("prefix suffixes"),
            order: order.into_iter(),
            prefix,
            suffix,
            special,
            output_tokens: context.output_tokens(output, OUTPUT),
        })
    }
}

impl Source for Repetition {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let place = self.order.next().unwrap_or(0);
        let mut text = ExactText::default();
        self.maker.extend(&mut text, self.prefix, &mut self.shared.draws(&place.to_string()))?;
        self.maker.extend(&mut text, self.suffix, &mut self.draws)?;
        self.maker.check(&text)?;
        let input_tokens = text.tokens() + self.special;
        Ok(Request::new(Content::Text(text.into_text()), input_tokens, self.output_tokens))
    }
}

/// `prefix-tree`.
pub(super) struct Tree {
    maker: Maker,
    shared: Shared,
    paths: Draws,
    suffixes: Draws,
    levels: u32,
    branching: u32,
    level: u32,
    suffix: u32,
    special: u32,
    output_tokens: u32,
}

impl Tree {
    /// Opens it. A prompt walks from the root through `tree-levels` nodes, each one of `tree-branching`, all equally likely,
    /// with a text of `tree-level-len` tokens; its own part of `tree-suffix-len` tokens ends it.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let levels = options.whole(&["tree-levels"], 1, 1000)?.unwrap_or(LEVELS);
        let branching = options.whole(&["tree-branching"], 1, u32::MAX)?.unwrap_or(BRANCHING);
        let level = options.tokens(&["tree-level-len"], LEVEL)?;
        let suffix = options.tokens(&["tree-suffix-len"], LEVEL)?;
        let output = options.whole(&["tree-output-len", "output-len"], 0, u32::MAX / 4)?;
        let shared = Shared::open(options, context)?;
        if level + suffix == 0 {
            return Err(options.refuse("tree-suffix-len", suffix, "at least 1 where nodes have no text"));
        }
        let tokenizer = context.tokenizer("prefix-tree")?;
        Ok(Self {
            special: context.special_tokens(tokenizer)?,
            maker: Maker::new(tokenizer)?,
            shared,
            paths: context.draws("tree paths"),
            suffixes: context.draws("tree suffixes"),
            levels,
            branching,
            level,
            suffix,
            output_tokens: context.output_tokens(output, OUTPUT),
        })
    }
}

impl Source for Tree {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let mut text = ExactText::default();
        let mut path = "tree".to_owned();
        for _ in 0..self.levels {
            path.push('/');
            path.push_str(&self.paths.below(self.branching).to_string());
            self.maker.extend(&mut text, self.level, &mut self.shared.draws(&path))?;
        }
        self.maker.extend(&mut text, self.suffix, &mut self.suffixes)?;
        self.maker.check(&text)?;
        let input_tokens = text.tokens() + self.special;
        Ok(Request::new(Content::Text(text.into_text()), input_tokens, self.output_tokens))
    }
}
