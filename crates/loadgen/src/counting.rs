//! Counting an answer's tokens where a tokenizer does it.

use std::io;
use std::sync::Arc;

use isobench_schema::record::RequestRecord;
use isobench_schema::workload::{TokenCounter, Workload};

use crate::answer::check_length;
use crate::tokenizer::Tokenizer;

/// By which part an answer may have fewer tokens than asked: text that is tokenised again needn't give the same tokens.
const TOLERANCE: f64 = 0.02;

/// Counts tokens off the threads that measure, where the tokenizer does it.
#[derive(Debug)]
pub struct Counting {
    tokenizer: Option<Arc<Tokenizer>>,
    /// Whether every answer must have the length asked.
    is_exact: bool,
}

impl Counting {
    /// Returns what counts for a workload.
    pub fn new(workload: &Workload, tokenizer: Option<&Arc<Tokenizer>>) -> Self {
        let is_counter = workload.counter == TokenCounter::Tokenizer;
        Self { tokenizer: tokenizer.filter(|_| is_counter).cloned(), is_exact: workload.ignore_eos }
    }

    /// Counts an answer's tokens, and checks its length by them.
    ///
    /// # Errors
    /// Returns an error if the text can't be tokenised.
    pub fn count(&self, record: &mut RequestRecord) -> io::Result<()> {
        let Some(tokenizer) = &self.tokenizer else { return Ok(()) };
        let bytes: Vec<usize> = record.chunk_bytes.iter().filter_map(|bytes| usize::try_from(*bytes).ok()).collect();
        let tokens = tokenizer.chunk_tokens(&record.text, &bytes).map_err(io::Error::other)?;
        record.chunk_tokens = tokens;
        let asked = u64::from(record.output_tokens_asked);
        // Text that is tokenised again may have some tokens less: what the server says of itself is then the better witness.
        let is_short = match record.usage {
            Some(usage) => usage.completion_tokens < asked,
            None => real(record.output_tokens()) < real(asked) * (1.0 - TOLERANCE),
        };
        check_length(record, self.is_exact && is_short);
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "no answer has 2^53 tokens")]
fn real(count: u64) -> f64 {
    count as f64
}
