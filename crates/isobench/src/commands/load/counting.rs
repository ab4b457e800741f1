//! Counting an answer's tokens where a tokenizer does it.

use std::io;

use isobench_loadgen::answer::check_length;
use isobench_loadgen::tokenizer::Tokenizer;
use isobench_schema::record::RequestRecord;
use isobench_schema::workload::TokenCounter;

use super::asked::Asked;

/// By how much counts of a tokenizer may differ from the server's: text that is tokenised again needn't give the same
/// tokens.
pub(super) const TOKENIZER_TOLERANCE: f64 = 0.02;

/// Counts tokens off the threads that measure, where the tokenizer does it.
pub(super) struct Counting<'a> {
    tokenizer: Option<&'a Tokenizer>,
    /// Whether every answer must have the length asked.
    is_exact: bool,
}

impl<'a> Counting<'a> {
    /// Returns what counts for a load.
    pub(super) fn of(asked: &'a Asked) -> Self {
        let is_counter = asked.workload.counter == TokenCounter::Tokenizer;
        let tokenizer = asked.resources.tokenizer.as_deref().filter(|_| is_counter);
        Self { tokenizer, is_exact: asked.workload.ignore_eos }
    }

    /// Counts an answer's tokens, and checks its length by them.
    ///
    /// # Errors
    /// Returns an error if the text can't be tokenised.
    pub(super) fn count(&self, record: &mut RequestRecord) -> io::Result<()> {
        let Some(tokenizer) = self.tokenizer else { return Ok(()) };
        let bytes: Vec<usize> = record.chunk_bytes.iter().filter_map(|bytes| usize::try_from(*bytes).ok()).collect();
        let tokens = tokenizer.chunk_tokens(&record.text, &bytes).map_err(io::Error::other)?;
        record.chunk_tokens = tokens;
        let asked = u64::from(record.output_tokens_asked);
        // Text that is tokenised again may have some tokens less: what the server says of itself is then the better witness.
        let is_short = match record.usage {
            Some(usage) => usage.completion_tokens < asked,
            None => real(record.output_tokens()) < real(asked) * (1.0 - TOKENIZER_TOLERANCE),
        };
        check_length(record, self.is_exact && is_short);
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "no answer has 2^53 tokens")]
fn real(count: u64) -> f64 {
    count as f64
}
