//! Whether answers are as long as asked, and as long as the server says.

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::Failure;

use super::{LaunchRules, PromptCounts, answered, failure, lines};
use crate::measure::{Sample, Samples};
use crate::stats::{length, real};

impl LaunchRules {
    /// Returns whether two counts differ by more than they may.
    fn differ(&self, one: u64, other: u64) -> bool {
        real(one.abs_diff(other)) > self.count_tolerance * real(other)
    }
}

/// Checks that the server's own token counts, where it gives any, are the client's.
pub(super) fn claims(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    let false_claims: Vec<&Sample> = answered(samples)
        .filter(|sample| sample.claimed.is_some_and(|claimed| rules.differ(claimed, sample.tokens)))
        .collect();
    let first = false_claims.first()?;
    let text = |sample: &Sample| {
        let claimed = sample.claimed.map_or_else(String::new, |claimed| claimed.to_string());
        format!("{}: usage says {claimed} tokens, {} came", sample.name(), sample.tokens)
    };
    let message = format!(
        "{} of {} answers have another length than `usage` says: {}",
        false_claims.len(),
        answered(samples).count(),
        text(first)
    );
    let check = Check::TokenCounts.above(length(false_claims.len()), 0.0, CheckUnit::Count);
    Some(failure(check, message).with_evidence(lines(&false_claims, text)))
}

/// Checks that the server's own counts of prompt tokens, where it gives any, are the client's, if they have to be.
pub(super) fn prompts(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    if rules.prompt_counts == PromptCounts::Unknown {
        return None;
    }
    let differs = |sample: &&Sample| sample.prompt_claimed.is_some_and(|claimed| claimed != sample.input_tokens);
    let wrong: Vec<&Sample> = answered(samples).filter(differs).collect();
    let first = wrong.first()?;
    let text = |sample: &Sample| {
        let claimed = sample.prompt_claimed.map_or_else(String::new, |claimed| claimed.to_string());
        format!("{}: usage says {claimed} prompt tokens, {} were sent", sample.name(), sample.input_tokens)
    };
    let message = format!("{} prompts have another length than `usage` says: {}", wrong.len(), text(first));
    let check = Check::PromptCounts.above(length(wrong.len()), 0.0, CheckUnit::Count);
    Some(failure(check, message).with_evidence(lines(&wrong, text)))
}

/// Checks that answers have the length asked: exactly where the end of text is ignored, else at most.
pub(super) fn lengths(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    let wrong = |sample: &&Sample| {
        let asked = u64::from(sample.asked);
        rules.differ(sample.tokens, asked) && (rules.exact_length || sample.tokens > asked)
    };
    let wrong: Vec<&Sample> = answered(samples).filter(wrong).collect();
    let first = wrong.first()?;
    let text = |sample: &Sample| format!("{}: {} tokens asked, {} came", sample.name(), sample.asked, sample.tokens);
    let message = format!(
        "{} of {} answers have another length than asked: {}",
        wrong.len(),
        answered(samples).count(),
        text(first)
    );
    let check = Check::AnswerLengths.above(length(wrong.len()), 0.0, CheckUnit::Count);
    Some(failure(check, message).with_evidence(lines(&wrong, text)))
}
