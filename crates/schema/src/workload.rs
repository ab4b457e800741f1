//! What a launch is loaded with: requests, lengths, arrivals and probes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;
use crate::script::Script;
use crate::task::OptionValue;

spelt_enum!(
    /// What kind of benchmark a workload is.
    WorkloadKind {
        /// Requests that arrive over time, streamed.
        Serving = "serving",
        /// Every request at once: how much work in how little time.
        Throughput = "throughput",
        /// A fixed batch at a time: how long one takes.
        Latency = "latency",
    }
);

spelt_enum!(
    /// The interface of the server that requests are sent to.
    Api {
        /// `POST /v1/completions`.
        Completions = "completions",
        /// `POST /v1/chat/completions`.
        Chat = "chat",
        /// `POST /v1/embeddings`, which answers whole and with no token.
        Embeddings = "embeddings",
    }
);

spelt_enum!(
    /// How the client counts the tokens of an answer.
    TokenCounter {
        /// By the token ids that the server sends with each chunk (`return_token_ids`).
        TokenIds = "token-ids",
        /// By words between white space, for engines whose tokens are words.
        Whitespace = "whitespace",
        /// By the model's own tokenizer, run by the client over the answer's text.
        Tokenizer = "tokenizer",
        /// By the server's `usage`, which is a claim and no count of the client's.
        Usage = "usage",
    }
);

/// When requests are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrival {
    /// Closed loop: so many requests are under way at any time, and one that ends starts the next.
    Closed {
        /// Requests under way.
        concurrency: u32,
        /// Over how many seconds the loop is filled, evenly; at once if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ramp_s: Option<f64>,
    },
    /// Open loop: requests are sent at their own times, however many are under way.
    Open {
        /// Mean rate in requests per second.
        rate_per_s: f64,
        /// Shape of the gamma-distributed gaps, as in vLLM: 1 is Poisson, below 1 is burstier, above 1 more regular.
        burstiness: f64,
    },
    /// Open loop with equal gaps.
    Constant {
        /// Rate in requests per second.
        rate_per_s: f64,
    },
    /// Open loop whose rate changes: steps and ramps, one after the other. The last stage goes on as long as there are
    /// requests, at its final rate.
    Stages {
        /// The stages.
        stages: Vec<Stage>,
        /// As in [`Arrival::Open`], in the stretched time in which the rate is constant; equal gaps there if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burstiness: Option<f64>,
    },
    /// Open loop of bursts: so many requests at the same moment, again and again.
    Bursts {
        /// Requests in a burst.
        size: u32,
        /// From burst to burst, in seconds.
        period_s: f64,
    },
    /// Open loop at the times of a trace, which come with its prompts.
    Trace {
        /// How much faster than in the trace: 2 halves every gap.
        speed: f64,
    },
    /// Every request at once.
    AllAtOnce,
}

impl Arrival {
    /// Returns a closed loop that is full at once.
    pub fn closed(concurrency: u32) -> Self {
        Self::Closed { concurrency, ramp_s: None }
    }

    /// Returns whether requests have times of their own, however many are under way.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Closed { .. } | Self::AllAtOnce => false,
            Self::Open { .. }
            | Self::Constant { .. }
            | Self::Stages { .. }
            | Self::Bursts { .. }
            | Self::Trace { .. } => true,
        }
    }
}

/// A stretch of time in which the rate goes evenly from one value to another: a step where both are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// How long it lasts, in seconds.
    pub seconds: f64,
    /// The rate at its start, in requests per second.
    pub from_per_s: f64,
    /// The rate at its end, in requests per second.
    pub to_per_s: f64,
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prompts {
    /// Seeded random words of a built-in list of common English words.
    Words {
        /// Words in each prompt.
        input_tokens: u32,
    },
    /// Seeded random token ids, sent as ids: exact lengths without a tokenizer.
    TokenIds {
        /// Token ids in each prompt.
        input_tokens: u32,
        /// Ids are drawn from `first_id..vocabulary_size`.
        vocabulary_size: u32,
        /// The lowest id that is drawn, above the special tokens.
        first_id: u32,
    },
    /// Prompts of a dataset that the engine's own benchmark knows by name, with that benchmark's options.
    Dataset {
        /// The dataset's name there, such as `sharegpt`, `sonnet`, `hf`, or `random` where lengths vary.
        name: String,
        /// Its options, by their names there, such as `dataset-path` or `random-range-ratio`.
        options: BTreeMap<String, OptionValue>,
    },
}

impl Prompts {
    /// Returns the length of each prompt in tokens (for words: in words), if all have one.
    pub fn input_tokens(&self) -> Option<u32> {
        match self {
            Self::Words { input_tokens } | Self::TokenIds { input_tokens, .. } => Some(*input_tokens),
            Self::Dataset { .. } => None,
        }
    }
}

/// Fixed greedy requests, one at a time, before and after the measured window, that show whether the answers are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// How many before the window, and as many after it. 0 turns the output check off.
    pub count: u32,
    /// Tokens asked of each.
    pub output_tokens: u32,
}

/// Everything that one launch is loaded with, but for the seed, which is the block's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The kind of benchmark.
    pub kind: WorkloadKind,
    /// The interface.
    pub api: Api,
    /// Measured requests.
    pub requests: u32,
    /// The prompts.
    pub prompts: Prompts,
    /// Tokens asked of each answer.
    pub output_tokens: u32,
    /// Whether the server must go on past the end-of-sequence token, so that every answer has the length asked.
    pub ignore_eos: bool,
    /// The sampling temperature. At 0 the answers of all arms must agree.
    pub temperature: f64,
    /// When requests are sent.
    pub arrival: Arrival,
    /// In an open loop, the most requests under way: one whose time has come waits for its turn, which counts in its latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u32>,
    /// Requests before the window that are not measured, sent in the same way.
    pub warm_up_requests: u32,
    /// The output check.
    pub probes: Probes,
    /// How tokens are counted.
    pub counter: TokenCounter,
    /// Further fields of each request's body, sent as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_body: BTreeMap<String, serde_json::Value>,
    /// The engine's own benchmark script, which is run instead of the client; the rest of the workload is what it is asked
    /// for. Absent: the client measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
}
