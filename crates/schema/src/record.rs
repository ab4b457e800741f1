//! The records of a load: one JSON line for each request, after a header line.

use serde::{Deserialize, Serialize};

use crate::failure::{FailureClass, spelt_enum};
use crate::format::Stored;
use crate::ids::Digest;

spelt_enum!(
    /// What a request was sent for.
    Phase {
        /// The first request after the server was ready.
        First = "first",
        /// An output probe before the window.
        ProbeBefore = "probe-before",
        /// Warm-up.
        WarmUp = "warm-up",
        /// The measured window.
        Measure = "measure",
        /// An output probe after the window.
        ProbeAfter = "probe-after",
    }
);

/// The first line of the records. All times of the lines after it are nanoseconds of a monotonic clock since one moment
/// shortly before the first request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordHeader {
    /// The client and its version, for example `isobench 0.1.0`.
    pub client: String,
    /// The clock that the times are from, for example `CLOCK_MONOTONIC, user stamp after each read`.
    pub clock: String,
    /// Wall-clock time of the clock's zero, in nanoseconds since 1970-01-01 UTC.
    pub epoch_unix_ns: u64,
    /// The seed of prompts and arrival times.
    pub seed: u64,
    /// The digest of all prompts and intended times, equal for all arms of a block.
    pub workload: Digest,
}

impl Stored for RecordHeader {
    const NAME: &'static str = "requests";
    const VERSION: u32 = 1;
}

/// The server's own token counts: a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

/// Why a request has no whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFailure {
    /// One of the workload classes.
    pub class: FailureClass,
    /// What was seen, naming the label or the bytes: a lower-case fragment.
    pub message: String,
}

/// One request and everything that the client saw of its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRecord {
    /// Its number in its phase, from 0.
    pub index: u32,
    /// What it was sent for.
    pub phase: Phase,
    /// The prompt's length in tokens (in words for worded prompts).
    pub input_tokens: u32,
    /// The length asked of the answer, in tokens.
    pub output_tokens_asked: u32,
    /// When it should have been sent. In a closed loop: when its turn came.
    pub intended_ns: u64,
    /// When its last byte was handed to the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<u64>,
    /// When the first byte of the answer's head was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// When each chunk that carries text or tokens was read.
    pub chunk_ns: Vec<u64>,
    /// The tokens in each of those chunks, counted by the client.
    pub chunk_tokens: Vec<u32>,
    /// When the answer was complete, or when the request failed.
    pub end_ns: u64,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why the engine stopped, for example `length`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// The server's own token counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The answer's text.
    pub text: String,
    /// The answer's token ids, where the server gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
    /// Why there is no whole answer; absent if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RequestFailure>,
}

impl RequestRecord {
    /// Returns the tokens of the answer, counted by the client.
    pub fn output_tokens(&self) -> u64 {
        self.chunk_tokens.iter().copied().map(u64::from).sum()
    }
}
