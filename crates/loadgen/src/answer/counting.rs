//! How the tokens of an answer are counted.

use isobench_schema::failure::FailureClass;
use isobench_schema::record::RequestRecord;

use crate::failing::failure;

/// Fails a whole answer that is shorter than was asked, if lengths are `exact`. It is called once its tokens are counted:
/// by [`super::Answer::write`], or later where a tokenizer counts them.
pub fn check_length(record: &mut RequestRecord, exact: bool) {
    let (tokens, asked) = (record.output_tokens(), record.output_tokens_asked);
    if exact && record.failure.is_none() && tokens < u64::from(asked) {
        let reason = record.finish_reason.as_deref().unwrap_or("none");
        let message =
            format!("the answer has {tokens} tokens where {asked} were demanded (its finish reason is `{reason}`)");
        record.failure = Some(failure(FailureClass::OutputLength, message));
    }
}

/// Returns how many words begin in `text`; `in_word` carries over whether the text before it ended within a word.
pub(super) fn words_begun(text: &str, in_word: &mut bool) -> u32 {
    let mut words = 0;
    for c in text.chars() {
        let is_space = c.is_whitespace();
        if !is_space && !*in_word {
            words += 1;
        }
        *in_word = !is_space;
    }
    words
}

/// Whose the tokens of each chunk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// The server said them for each chunk.
    AsClaimed,
    /// The server said a total, which is spread evenly over the chunks: an assumption.
    Spread,
}

const FALLS: &str = "the server's `usage` falls while the answer grows, so its tokens can't be counted";

/// The server's running counts of the answer's tokens.
///
/// A server with `continuous_usage_stats` counts with each chunk, from the first one on. Any other says a total: at the
/// end, in the last chunk, or again and again with the same value.
#[derive(Debug, Default)]
pub(super) struct Claims {
    counted: u64,
    from_the_first: bool,
    fell: bool,
}

impl Claims {
    /// Takes the count that came with a chunk, and returns by how much it has grown.
    pub(super) fn chunk(&mut self, is_first: bool, claim: Option<u64>) -> u32 {
        let Some(claim) = claim else { return 0 };
        self.from_the_first |= is_first && claim > 0;
        self.fell |= claim < self.counted;
        let more = claim.saturating_sub(self.counted);
        self.counted = self.counted.max(claim);
        u32::try_from(more).unwrap_or(u32::MAX)
    }

    /// Brings the tokens of the chunks to the `total` that the server said last. What came after the last chunk, such as
    /// the end-of-sequence token, counts in that.
    pub(super) fn settle(&self, chunk_tokens: &mut [u32], total: Option<u64>) -> Result<Settled, String> {
        let chunks = u32::try_from(chunk_tokens.len()).unwrap_or(u32::MAX);
        if chunks == 0 {
            return Ok(Settled::AsClaimed);
        }
        let Some(total) = total else {
            let message = "the server gave no `usage` (`stream_options.include_usage` was asked for), so its tokens can't be \
                           counted: count them by a tokenizer";
            return Err(message.to_owned());
        };
        // No more fit into the record, and no answer has as many.
        let Ok(fitting) = u32::try_from(total) else {
            return Err(format!("the server claims {total} tokens in {chunks} chunks, which is beyond belief"));
        };
        if !self.from_the_first && chunks > 1 {
            let (each, over) = (fitting / chunks, fitting % chunks);
            for (place, tokens) in (0..).zip(chunk_tokens) {
                *tokens = each + u32::from(place < over);
            }
            return Ok(Settled::Spread);
        }
        let Some(after) = u32::try_from(self.counted).ok().and_then(|counted| fitting.checked_sub(counted)) else {
            return Err(FALLS.to_owned());
        };
        if self.fell {
            return Err(FALLS.to_owned());
        }
        if let Some(last) = chunk_tokens.last_mut() {
            *last += after;
        }
        Ok(Settled::AsClaimed)
    }
}
