//! How long prompts are: by whose count, and whether the client's count is what the server's `usage` says.

use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::load_result::InputCounter;
use isobench_schema::workload::{Api, Prompts, TokenCounter, Workload};

use super::{LoadFacts, Sample, completed};
use crate::measure::evidence_line;

/// By which part a count of a tokenizer may differ from the server's: one that is built otherwise may cut a text otherwise.
const TOLERANCE: f64 = 0.02;
/// Special tokens that a server may put around a prompt, or leave away, without having another prompt.
const SPECIAL_TOKENS: f64 = 2.0;
/// The most tokens of a chat template around one message, its own instructions to the model included.
const TEMPLATE_TOKENS: f64 = 256.0;
/// Datasets whose prompts may have more than the text that the client counted: what was said before, tools, images.
const LONGER: [&str; 3] = ["sessions", "custom", "image"];
/// The dataset that draws words where there is no tokenizer.
const DRAWN: &str = "random";
/// Prompts that are named as evidence.
const EVIDENCE: usize = 5;

/// Returns whether the tokens of prompts are those that the server's `usage` says: where that counts tokens at all, and where
/// the client knows only words.
pub fn are_by_usage(workload: &Workload, has_tokenizer: bool) -> bool {
    workload.counter == TokenCounter::Usage || own(&workload.prompts, has_tokenizer) == InputCounter::Words
}

/// Returns by what the client itself knows how long prompts are.
fn own(prompts: &Prompts, has_tokenizer: bool) -> InputCounter {
    match prompts {
        Prompts::Words { .. } => InputCounter::Words,
        Prompts::TokenIds { .. } => InputCounter::TokenIds,
        Prompts::Dataset { .. } if has_tokenizer => InputCounter::Tokenizer,
        Prompts::Dataset { name, .. } if name == DRAWN => InputCounter::Words,
        Prompts::Dataset { .. } => InputCounter::Rows,
    }
}

/// Takes the lengths of prompts from `usage` where they are by that and every answer has it; returns by what they are.
pub(super) fn settle(facts: &LoadFacts, window: &mut [Sample]) -> InputCounter {
    let has_tokenizer = facts.tokenizer_digest.is_some();
    let is_told = completed(window).all(|sample| sample.prompt_claimed.is_some_and(|claimed| claimed > 0));
    if !(are_by_usage(&facts.workload, has_tokenizer) && is_told && completed(window).next().is_some()) {
        return own(&facts.workload.prompts, has_tokenizer);
    }
    for sample in window {
        if let Some(claimed) = sample.prompt_claimed {
            sample.input_tokens = claimed;
        }
    }
    InputCounter::Usage
}

/// How many tokens `usage` may say of a prompt, by its own length.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    /// By which part more or fewer, and how many besides.
    share: f64,
    fewer: f64,
    /// Without a bound where the client doesn't count all of the prompt.
    more: Option<f64>,
}

impl Allowed {
    /// Returns `None` where the client has no count of tokens.
    fn of(facts: &LoadFacts) -> Option<Self> {
        let Workload { prompts, api, .. } = &facts.workload;
        let is_longer = matches!(prompts, Prompts::Dataset { name, .. } if LONGER.contains(&name.as_str()));
        let more = match api {
            Api::Chat => TEMPLATE_TOKENS,
            Api::Completions | Api::Embeddings => SPECIAL_TOKENS,
        };
        match own(prompts, facts.tokenizer_digest.is_some()) {
            InputCounter::Words | InputCounter::Usage => None,
            InputCounter::TokenIds => Some(Self { share: 0.0, fewer: 0.0, more: Some(SPECIAL_TOKENS) }),
            InputCounter::Tokenizer | InputCounter::Rows => {
                Some(Self { share: TOLERANCE, fewer: SPECIAL_TOKENS, more: (!is_longer).then_some(more) })
            }
        }
    }

    fn holds(self, counted: f64, claimed: f64) -> bool {
        let is_short = claimed < counted * (1.0 - self.share) - self.fewer;
        let is_long = self.more.is_some_and(|more| claimed > counted * (1.0 + self.share) + more);
        !is_short && !is_long
    }
}

/// Checks that prompts are as long as the server's `usage` says. It is done before [`settle`].
pub(super) fn claims(facts: &LoadFacts, window: &[Sample]) -> Option<Failure> {
    let allowed = Allowed::of(facts)?;
    let is_wrong = |sample: &&Sample| {
        sample.prompt_claimed.is_some_and(|claimed| !allowed.holds(f64::from(sample.input_tokens), f64::from(claimed)))
    };
    let wrong: Vec<&Sample> = completed(window).filter(is_wrong).collect();
    let text = |sample: &Sample| {
        let claimed = sample.prompt_claimed.unwrap_or_default();
        format!("{}: usage says {claimed} tokens, {} were sent", sample.name(), sample.input_tokens)
    };
    let message = format!(
        "{} of {} prompts have another length than `usage` says: {}: check that the tokenizer is the model's, and whether the \
         server cuts prompts off",
        wrong.len(),
        completed(window).count(),
        text(wrong.first()?)
    );
    let lines: Vec<_> = wrong.iter().take(EVIDENCE).map(|sample| evidence_line(sample.line, &text(sample))).collect();
    Some(Failure::new(FailureStage::Validity, FailureClass::TokenCountMismatch, message).with_evidence(lines))
}
