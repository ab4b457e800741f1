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
    const VERSION: u32 = 2;

    fn upgrade(version: u32, value: serde_json::Value) -> Option<serde_json::Value> {
        // Version 2 only adds: times on the way out, and lines of other kinds than requests.
        (version == 1).then_some(value)
    }
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

/// The place of a request in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The session, from 0.
    pub session: u32,
    /// The turn in it, from 0.
    pub turn: u32,
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
    /// When the client turned to it: later than intended by as much as the client was late, or as the request waited for
    /// its turn where only so many may be under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_ns: Option<u64>,
    /// When the connection that was opened for it was ready; absent where a kept one carried it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_ns: Option<u64>,
    /// When its first bytes were handed to the operating system, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_out_ns: Option<u64>,
    /// When its last bytes were handed to the operating system: just before the call that took them, as an answer may be
    /// there before that returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<u64>,
    /// When the first byte of the answer's head was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// When each chunk that carries text or tokens was read.
    pub chunk_ns: Vec<u64>,
    /// The tokens in each of those chunks, counted by the client.
    pub chunk_tokens: Vec<u32>,
    /// The bytes of text in each of those chunks, where the text is counted by a tokenizer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunk_bytes: Vec<u32>,
    /// The place among those chunks, from 0, of the first one with content, where reasoning or tool calls came before it;
    /// the number of chunks where none has content. Absent where the first chunk has content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_chunk: Option<u32>,
    /// Whether the server only gave the total of the tokens, which is spread evenly over the chunks: an assumption.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spread: bool,
    /// The longest time from the kernel's receipt of bytes of the answer until the client read them, in nanoseconds; absent
    /// without the kernel's stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ns: Option<u64>,
    /// The multi-turn session that it belongs to, and its turn there, both from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The model asked for, where it isn't the one of the load (an adapter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
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
    /// Returns the record of a request of which nothing is known yet but when it should be sent.
    pub fn intended(phase: Phase, index: u32, intended_ns: u64) -> Self {
        Self {
            index,
            phase,
            input_tokens: 0,
            output_tokens_asked: 0,
            intended_ns,
            released_ns: None,
            connected_ns: None,
            first_out_ns: None,
            sent_ns: None,
            first_byte_ns: None,
            chunk_ns: Vec::new(),
            chunk_tokens: Vec::new(),
            chunk_bytes: Vec::new(),
            content_chunk: None,
            spread: false,
            lag_ns: None,
            turn: None,
            model: None,
            end_ns: intended_ns,
            status: None,
            finish_reason: None,
            usage: None,
            text: String::new(),
            token_ids: None,
            failure: None,
        }
    }

    /// Returns the tokens of the answer, counted by the client.
    pub fn output_tokens(&self) -> u64 {
        self.chunk_tokens.iter().copied().map(u64::from).sum()
    }
}

/// What the client saw of itself in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseAudit {
    /// The phase.
    pub phase: Phase,
    /// When the phase began and ended, in nanoseconds of the clock.
    pub began_ns: u64,
    /// See `began_ns`.
    pub ended_ns: u64,
    /// Threads that sent and read.
    pub workers: u32,
    /// Processor time of those threads in the phase, in nanoseconds: that of the busiest, and of all.
    pub busiest_ns: u64,
    /// See `busiest_ns`.
    pub processor_ns: u64,
    /// How long the busiest thread was ready to run and had no processor, in nanoseconds, where the kernel says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// Reads that brought bytes.
    pub reads: u64,
    /// Those of them that had the kernel's receive stamp.
    pub stamped_reads: u64,
    /// The lag of those: pairs of an upper bound in nanoseconds and the number of reads up to it and above the bound before.
    pub lag_ns: Vec<(u64, u64)>,
    /// The longest lag, in nanoseconds.
    pub longest_lag_ns: u64,
    /// Requests that were sent once more because their kept connection turned out to be closed.
    pub reconnects: u32,
    /// Connections opened.
    pub connections: u64,
    /// TCP segments that the machine (its network namespace) sent again in the phase, where the kernel says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
}

/// What the server said of itself at one moment: its metrics by the names of their family, summed over labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSample {
    /// When the answer was there, in nanoseconds of the clock.
    pub at_ns: u64,
    /// The values.
    pub values: std::collections::BTreeMap<String, f64>,
}

/// A line of the records after the header.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordLine {
    /// A request.
    Request(Box<RequestRecord>),
    /// The end of a phase, `{"audit":…}`.
    Audit(PhaseAudit),
    /// A look at the server's own metrics, `{"server":…}`.
    Server(ServerSample),
}

/// What lines that are no request begin with, as they are written.
const AUDIT: &[u8] = b"{\"audit\":";
const SERVER: &[u8] = b"{\"server\":";

impl RecordLine {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// Returns an error if it is none of the kinds.
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        if line.starts_with(AUDIT) {
            let AuditLine { audit } = serde_json::from_slice(line)?;
            return Ok(Self::Audit(audit));
        }
        if line.starts_with(SERVER) {
            let ServerLine { server } = serde_json::from_slice(line)?;
            return Ok(Self::Server(server));
        }
        serde_json::from_slice(line).map(|record| Self::Request(Box::new(record)))
    }
}

/// The line of a [`PhaseAudit`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditLine {
    /// The audit.
    pub audit: PhaseAudit,
}

/// The line of a [`ServerSample`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerLine {
    /// The sample.
    pub server: ServerSample,
}
